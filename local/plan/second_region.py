"""What a second region costs in a month, beside the first one: units and dollars (rule 23).

Calculated from what the first region writes. Nothing of it is measured, so each figure is the most that it
comes to.
"""

from collections.abc import Iterator, Mapping

from local.plan.bill import CostPlan
from local.plan.given.measured_units import tables_of
from local.plan.given.price_list import fact
from local.plan.given.schedules import DAYS_A_MONTH
from rules.regions.changes import KEYS
from rules.regions.register import LOOK_SECONDS

GB = 10**9
READ_UNIT_BYTES = 4096


def second_region(plan: CostPlan) -> Mapping[str, float]:
    """Return a month's amounts of following, by the names of prices; the second stack's idle costs are apart.

    A change is counted as a write unit of the writer, so one of a transaction or an index twice: the most.
    """
    written = tables_of(plan.ours.load.day, "write")
    changes = sum(units for table, units in written.items() if table in KEYS) * DAYS_A_MONTH
    gigabytes = changes * fact("regions.change_bytes") / GB
    batches = min(changes, fact("month.hours") * 3600)
    looked = sum(plan.ours.load.seconds.values()) * DAYS_A_MONTH / LOOK_SECONDS
    return {
        "dynamodb.changes": changes,
        "dynamodb.write": changes,
        "dynamodb.read": changes * fact("regions.reads_per_change") + looked,
        "dynamodb.storage_gb": plan.ours.amounts.get("dynamodb.storage_gb", 0.0),
        "dynamodb.backup_gb": plan.ours.amounts.get("dynamodb.backup_gb", 0.0),
        "kinesis.stream_hours": 2 * fact("month.hours"),  # each region has one, for when it writes
        "kinesis.in_gb": gigabytes,
        "kinesis.out_gb": gigabytes,
        "sqs.requests": 3 * batches,
        "lambda.requests": 2 * batches,
        "lambda.gb_seconds": changes * fact("regions.ms_per_change") / 1000,
    }


def returning(plan: CostPlan) -> Mapping[str, float]:
    """Return the units of a return: both regions' tables are read, and every item of one is written."""
    stored = plan.ours.amounts.get("dynamodb.storage_gb", 0.0) * GB
    return {
        "dynamodb.read": 2 * stored / READ_UNIT_BYTES,
        "dynamodb.write": stored / fact("regions.item_bytes"),
    }


def dollars(plan: CostPlan, amounts: Mapping[str, float]) -> float:
    """Return what amounts cost."""
    return sum(plan.prices.dollars(amounts).values())


def as_json(plan: CostPlan) -> Mapping[str, object]:
    """Return units and dollars of a second region."""
    following, back = second_region(plan), returning(plan)
    return {
        "a_month": {**following, "dollars": dollars(plan, following)},
        "idle_dollars": plan.ours.idle_dollars,
        "returning": {**back, "dollars": dollars(plan, back)},
    }


def lines(plan: CostPlan) -> Iterator[str]:
    """Yield what `streakline plan` prints of a second region."""
    following, back = second_region(plan), returning(plan)
    cost = dollars(plan, following)
    yield f"a second region (Role=active and standby): at most {cost:,.2f} dollars a month to follow,"
    yield f"  and {plan.ours.idle_dollars:,.2f} for its idle stack; one region pays nothing of it"
    yield (
        f"  {following['dynamodb.changes']:,.0f} changes, {following['dynamodb.write']:,.0f} writes, "
        f"{following['dynamodb.read']:,.0f} reads, {following['kinesis.in_gb']:,.2f} GB between regions"
    )
    yield (
        f"  a return, once: {back['dynamodb.write']:,.0f} writes, {back['dynamodb.read']:,.0f} reads, "
        f"{dollars(plan, back):,.2f} dollars; a promotion costs nothing"
    )
    yield "  Not counted: transfer between regions, copies of buckets, the database, Route 53."
