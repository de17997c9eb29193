"""The warehouse for analysts' notebooks and batch jobs.

`query` goes through the Data API, so it works from anywhere with AWS credentials: the warehouse's network has
no way in. `connect` opens a session of redshift_connector, for a machine inside that network.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import awswrangler
import redshift_connector

PORT = 5439


def query(
    sql: str,
    database: str,
    *,
    workgroup: str,
    parameters: Mapping[str, Any] | None = None,
    session: Any = None,
) -> Any:
    """Return a query's rows as a pandas DataFrame, through the Data API.

    parameters replace :name in the query, as text. session: a boto3.Session; None for the default one.
    The caller's AWS identity needs redshift-data:ExecuteStatement and redshift-serverless:GetCredentials on
    the workgroup, and its database user the role `streakline_analysts`. Raises what awswrangler raises.
    """
    connection = awswrangler.data_api.redshift.connect(
        workgroup_name=workgroup, database=database, boto3_session=session
    )
    given = [{"name": name, "value": str(value)} for name, value in (parameters or {}).items()]
    return awswrangler.data_api.redshift.read_sql_query(sql, con=connection, parameters=given or None)


@contextmanager
def connect(
    host: str, database: str, *, workgroup: str | None = None, region: str | None = None, **more: Any
) -> Iterator[Any]:
    """Open a connection for a `with` block. At its end, whatever was not committed is rolled back.

    host: a workgroup's endpoint (workgroup-name.account.region.redshift-serverless.amazonaws.com). If a
    workgroup is named, user and password come from the caller's AWS identity
    (redshift-serverless:GetCredentials); otherwise give user and password. more: any parameter of
    redshift_connector.connect.
    """
    identity: dict[str, Any] = {}
    if workgroup is not None:
        identity = {"iam": True, "is_serverless": True, "serverless_work_group": workgroup, "region": region}
    options: dict[str, Any] = {"port": PORT, "ssl": True, **identity, **more}
    with redshift_connector.connect(host=host, database=database, **options) as connection:
        yield connection


def read(connection: Any, sql: str, parameters: Sequence[Any] | None = None) -> Any:
    """Return a query's rows as a pandas DataFrame. parameters replace the %s in the query, in order."""
    return awswrangler.redshift.read_sql_query(sql, con=connection, params=list(parameters or ()) or None)


def upsert(connection: Any, frame: Any, table: str, keys: Sequence[str]) -> None:
    """Write a DataFrame's rows to schema.table. They replace the rows that have the same keys.

    The table is created if it is missing. One transaction, committed at its end; safe to repeat. Raises
    ValueError if a key stands twice in the frame, because it would be chance which row wins.
    """
    if frame.duplicated(list(keys)).any():
        raise ValueError(f"{', '.join(keys)} stand twice in the frame")
    schema, _, name = table.partition(".")
    awswrangler.redshift.to_sql(
        frame, con=connection, schema=schema, table=name, mode="upsert", primary_keys=list(keys), index=False
    )
