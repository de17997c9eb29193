"""The warehouse: Redshift Serverless, or a DuckDB file in its place. Both take Redshift's SQL.

In Redshift the nightly run also sets our workgroup's daily limit, for which CloudFormation has no resource.
Each night it grants analysts what they may read, because a dropped table takes its grants with it.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from adapters.platform.aws import client
from adapters.platform.objects import objects_at
from analytics.warehouse.redshift_warehouse import RedshiftWarehouse

Rows = list[dict[str, Any]]
ROLE = "streakline_analysts"
READABLE = "marts, dimensions, facts"  # the schemas that analysts may read
_FIND_ROLE = f"SELECT role_name FROM svv_roles WHERE role_name = '{ROLE}'"  # noqa: S608 (a constant)
COMPUTE = "serverless-compute"  # measured in RPU hours
REFUSE = "deactivate"  # beyond the limit, refuse queries rather than only say so


class Warehouse(Protocol):
    """Runs Redshift SQL."""

    def run(self, statements: Sequence[str]) -> None:
        """Execute statements in one session and one transaction: all or none. Raises StatementFailed."""

    def rows(self, sql: str) -> Rows:
        """Return a query's rows as dictionaries; decimal numbers are Decimal. Raises StatementFailed."""

    def kept_open(self) -> AbstractContextManager[None]:
        """Return a context for many statements: a file or connection stays open until its end."""


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


def ensure_daily_limit(redshift: Any, workgroup_arn: str, rpu_hours: int) -> bool:
    """Make rpu_hours the workgroup's daily limit. Returns whether anything had to change.

    redshift: a botocore client of redshift-serverless. Raises what botocore raises.
    """
    limited = {"resourceArn": workgroup_arn, "usageType": COMPUTE}
    limits = redshift.list_usage_limits(**limited).get("usageLimits", [])
    daily = [limit for limit in limits if limit["period"] == "daily"]
    if not daily:
        redshift.create_usage_limit(**limited, amount=rpu_hours, period="daily", breachAction=REFUSE)
        return True
    if (daily[0]["amount"], daily[0]["breachAction"]) == (rpu_hours, REFUSE):
        return False
    redshift.update_usage_limit(usageLimitId=daily[0]["usageLimitId"], amount=rpu_hours, breachAction=REFUSE)
    return True


def grant_analysts(warehouse: Warehouse) -> None:
    """Make the role of analysts, and let it read the models' tables, now and in the nights to come.

    warehouse: of Redshift. The user who runs this must also build the models, because default privileges
    belong to the user who creates a table. An admin gives the role to people (sql/README.md). Running it
    again changes nothing. Raises StatementFailed.
    """
    create = [] if warehouse.rows(_FIND_ROLE) else [f"CREATE ROLE {ROLE}"]
    warehouse.run(
        [
            *create,
            f"GRANT USAGE ON SCHEMA {READABLE} TO ROLE {ROLE}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {READABLE} TO ROLE {ROLE}",
            f"ALTER DEFAULT PRIVILEGES IN SCHEMA {READABLE} GRANT SELECT ON TABLES TO ROLE {ROLE}",
        ]
    )
