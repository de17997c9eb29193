"""The warehouse for batch jobs that write: sessions of redshift_connector, from within its network.

Who only asks needs none of this: local.analyst.
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
