"""The warehouse: Redshift Serverless, or a DuckDB file in its place. Both take Redshift's SQL."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from urllib.parse import parse_qs, urlsplit

from adapters.platform.aws import client
from adapters.platform.objects import objects_at
from analytics.warehouse.redshift_warehouse import RedshiftWarehouse

Rows = list[dict[str, Any]]


class Warehouse(Protocol):
    """Runs Redshift SQL."""

    def run(self, statements: Sequence[str]) -> None:
        """Execute statements in one session and one transaction: all or none. Raises StatementFailed."""

    def rows(self, sql: str) -> Rows:
        """Return a query's rows as dictionaries; decimal numbers are Decimal. Raises StatementFailed."""

    def kept_open(self) -> AbstractContextManager[None]:
        """Return a context for many statements. What the first has to open stays open until the end."""


@runtime_checkable
class CompactableWarehouse(Protocol):
    """A warehouse whose file keeps the bytes of deleted rows until it is written anew."""

    def compact(self) -> None:
        """Write it anew."""


class NoWarehouse:
    """Used if there is no warehouse. The lake is still curated, recomputed and reconciled."""

    def run(self, statements: Sequence[str]) -> None:
        """Do nothing."""

    def rows(self, sql: str) -> Rows:  # noqa: ARG002 (what a Warehouse takes)
        """Return no rows."""
        return []

    def kept_open(self) -> AbstractContextManager[None]:
        """Do nothing."""
        return nullcontext()


def warehouse_at(url: str, lake: str = "", data_api: Any = None) -> Warehouse:
    """Return the warehouse at `duckdb:/path/file` or `redshift://workgroup/database`.

    The latter signs in by IAM; with `?secret_arn=ARN` by that secret. An empty URL gives NoWarehouse. lake:
    `s3://bucket` or a folder, from which a DuckDB file's COPY reads (Redshift reads the bucket itself).
    data_api: a client of redshift-data; None: the process's own. Raises ValueError for any other URL.
    """
    if not url:
        return NoWarehouse()
    parts = urlsplit(url)
    if parts.scheme == "duckdb":
        from analytics.warehouse.duckdb_warehouse import DuckWarehouse  # noqa: PLC0415 (a tenth of a second, for a laptop alone)

        return DuckWarehouse(Path(parts.path), lake, objects_at(lake) if lake else None)
    if parts.scheme == "redshift" and parts.netloc and parts.path.strip("/"):
        (secret,) = parse_qs(parts.query).get("secret_arn", [""])
        data_api = data_api or client("redshift-data")
        return RedshiftWarehouse(data_api, parts.netloc, parts.path.strip("/"), secret)
    raise ValueError(f"no warehouse is at {url!r}: duckdb:/path/file or redshift://workgroup/database")
