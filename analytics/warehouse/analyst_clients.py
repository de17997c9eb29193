"""The warehouse for analysts' notebooks and batch jobs: redshift_connector and awswrangler.

Functions do not use this: they go through the Data API (analytics/warehouse/warehouse.py), without a driver.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import awswrangler
import redshift_connector

PORT = 5439


@contextmanager
def connect(
    host: str, database: str, *, workgroup: str | None = None, region: str | None = None, **more: Any
) -> Iterator[Any]:
    """Open a connection for a `with` block; what was not committed is rolled back at its end.

    host: a workgroup's endpoint (workgroup-name.account.region.redshift-serverless.amazonaws.com). With a
    workgroup, user and password come from the caller's AWS identity (redshift-serverless:GetCredentials);
    otherwise give user and password. more: any parameter of redshift_connector.connect.
    """
    identity: dict[str, Any] = {}
    if workgroup is not None:
        identity = {"iam": True, "is_serverless": True, "serverless_work_group": workgroup, "region": region}
    options: dict[str, Any] = {"port": PORT, "ssl": True, **identity, **more}
    with redshift_connector.connect(host=host, database=database, **options) as connection:
        yield connection


def read(connection: Any, sql: str, parameters: Sequence[Any] | None = None) -> Any:
    """Return a query's rows as a pandas DataFrame; parameters fill its %s."""
    return awswrangler.redshift.read_sql_query(sql, con=connection, params=list(parameters or ()) or None)


def upsert(connection: Any, frame: Any, table: str, keys: Sequence[str]) -> None:
    """Write a DataFrame's rows to schema.table (made if need be), in the place of those with its keys.

    One transaction, committed at its end; safe to repeat. Raises ValueError for a frame in which a key
    stands twice: Redshift would leave to chance which row wins.
    """
    if frame.duplicated(list(keys)).any():
        raise ValueError(f"{', '.join(keys)} stand twice in the frame")
    schema, _, name = table.partition(".")
    awswrangler.redshift.to_sql(
        frame, con=connection, schema=schema, table=name, mode="upsert", primary_keys=list(keys), index=False
    )
