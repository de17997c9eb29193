"""What leaves tables when it is old (rule 22): units of a day once there is something old enough."""

from collections.abc import Mapping
from dataclasses import dataclass

from local.plan.demand.traffic import Traffic
from local.plan.given.measured_units import Spent, tables_of
from local.plan.given.schedules import DAYS_A_MONTH

READ_UNIT_BYTES = 4096
GB = 10**9
HOT = "EventHotDays"
# Parameter -> the table whose items leave, or are changed.
TABLES = {HOT: "BPEvents", "PayloadRetentionDays": "Event", "AnswerTextRetentionDays": "Responses"}


@dataclass(frozen=True, slots=True)
class Leaves:
    """One kind of thing. days: the setting's; 0: it never leaves. items, write, read: a day's.

    Each item is read strongly, and deleted or changed at a write: items stay below 1 KB. An answer without
    words and a webhook that is in the bucket are read alone; all are counted, so it is the most. gb: what a
    day's items take in the table and its indexes.
    """

    days: int
    items: float
    write: float
    read: float
    gb: float


def leaves(traffic: Traffic, day: Spent, parameters: Mapping[str, str]) -> dict[str, Leaves]:
    """Return all kinds by their setting. day: see local.plan.demand.day.a_day."""
    stored = tables_of(day, "stored")
    counts = (traffic.events + traffic.answers, traffic.lead_events, traffic.answers)
    items = dict(zip(TABLES, counts, strict=True))
    found = {}
    for setting, table in TABLES.items():
        count, size = items[setting], stored.get(table, 0.0)
        # Items of a question are one query; others are read one by one.
        read = size / READ_UNIT_BYTES if table == "Responses" else count
        days = int(parameters.get(setting, 0))
        found[setting] = Leaves(days, count, count, read, size / GB)
    return found


def units_a_month(kinds: Mapping[str, Leaves], run_days: float) -> dict[str, float]:
    """Return the units of a month of what leaves, by the names of prices. run_days: since the beginning."""
    leaving = [each for each in kinds.values() if 0 < each.days < run_days]
    return {
        "dynamodb.write": sum(each.write for each in leaving) * DAYS_A_MONTH,
        "dynamodb.read": sum(each.read for each in leaving) * DAYS_A_MONTH,
    }
