"""What is stored once the system has run for so many days; each part in GB."""

from typing import TYPE_CHECKING

from local.plan.demand.batches import NAIVE, PUBLISHER, waiting
from local.plan.demand.traffic import Traffic
from local.plan.given.measured_units import MeasuredUnits, Spent, tables_of
from rules.engagement.events import RETENTION
from rules.outgoing.notices import KEPT

if TYPE_CHECKING:
    from collections.abc import Mapping

GB = 10**9
# Their items expire; the others' stay.
EXPIRING = ("BPEvents", "IdempotencyKeys")
# Raw objects go to the archive class after so many days: LakeBucket's rule archive-raw.
ARCHIVED_AFTER_DAYS = 90
PROFILES = "UserStreaks"
NOTIFICATIONS = "Notifications"


def days_kept(table: str, retention_days: float, event_days: int = 0) -> float:
    """Return how many days of a table's items are there. event_days: EventHotDays."""
    if table == "BPEvents" and event_days:
        return min(retention_days, event_days)
    if table == NOTIFICATIONS:
        return min(retention_days, KEPT.days)
    return min(retention_days, RETENTION.days) if table in EXPIRING else retention_days


def table_bytes(traffic: Traffic, units: MeasuredUnits, day: Spent, event_days: int = 0) -> dict[str, float]:
    """Return the bytes of each table with its indexes; a profile for each account.

    event_days: EventHotDays.
    """
    profile = tables_of(units.paths["events.first.1"], "stored")[PROFILES]
    found = {
        table: bytes_a_day * days_kept(table, traffic.retention_days, event_days)
        for table, bytes_a_day in tables_of(day, "stored").items()
        if bytes_a_day > 0 and table != PROFILES
    }
    return found | ({PROFILES: traffic.accounts * profile} if traffic.accounts else {})


def lake_rows(day: Spent) -> dict[str, float]:
    """Return the rows a day that go to the lake, by table, whichever publisher takes them."""
    found: dict[str, float] = {}
    for publisher in (PUBLISHER, NAIVE):
        for table, rows in waiting(day, publisher).items():
            found[table] = found.get(table, 0.0) + rows
    return found


def stored(traffic: Traffic, units: MeasuredUnits, day: Spent, event_days: int = 0) -> dict[str, float]:
    """Return the amounts of a month's storage, by the names of prices. event_days: EventHotDays."""
    tables = sum(table_bytes(traffic, units, day, event_days).values()) / GB
    raw, curated = (_lake_bytes(day, units, kind) / GB for kind in ("raw", "curated"))
    fresh = min(traffic.retention_days, ARCHIVED_AFTER_DAYS)
    return {
        "dynamodb.storage_gb": tables,
        "dynamodb.backup_gb": tables,
        "s3.storage_gb": raw * fresh + curated * traffic.retention_days,
        "s3.archive_gb": raw * (traffic.retention_days - fresh),
        "redshift.storage_gb": curated * traffic.retention_days,
    }


def _lake_bytes(day: Spent, units: MeasuredUnits, kind: str) -> float:
    sizes: Mapping[str, float] = units.here
    return sum(rows * sizes.get(f"{kind}_bytes.{table}", 0.0) for table, rows in lake_rows(day).items())
