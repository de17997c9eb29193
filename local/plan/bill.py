"""A plan: two designs side by side, with their amounts, dollars and limits; what a second region and
operators' work cost beside them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from local.plan.demand import HOT, Leaves, leaves, table_bytes
from local.plan.environments import DAYS_A_MONTH, SECONDS_A_DAY, Deployment
from local.plan.idle import idle
from local.plan.limits import Reached, reached
from local.plan.measured_units import MeasuredUnits, tables_of
from local.plan.month import Load, running
from local.plan.price_list import PriceList, fact
from local.plan.traffic import Traffic
from rules.regions.changes import KEYS
from rules.regions.register import LOOK_SECONDS

SERVICES = {
    "dynamodb": "DynamoDB",
    "lambda": "Lambda",
    "api": "HTTP API",
    "kinesis": "Kinesis",
    "firehose": "Firehose",
    "s3": "S3",
    "states": "Step Functions",
    "sqs": "SQS",
    "sns": "SNS",
    "redshift": "Redshift Serverless",
    "aurora": "Aurora",
    "rdsdata": "RDS Data API",
    "proxy": "RDS Proxy",
    "valkey": "Valkey",
    "endpoints": "interface endpoints",
    "secrets": "Secrets Manager",
    "kms": "KMS",
    "scheduler": "EventBridge Scheduler",
    "traffic": "data transfer",
    "glue": "Glue",
    "athena": "Athena",
    "logs": "CloudWatch Logs",
    "metrics": "CloudWatch metrics",
    "alarms": "CloudWatch alarms",
    "dashboards": "CloudWatch dashboards",
    "xray": "X-Ray",
    "cognito": "Cognito",
}
# The warehouse's nights, and the keys of tables in use.
UNCHANGED = frozenset({"redshift.rpu_hours", "kms.requests"})
Dollars = Mapping[str, float]


@dataclass(frozen=True)
class Design:
    """One design. amounts: of a month, idle ones included. idle, running: dollars a month, by price name.

    leaves: what leaves tables when it is old, by its parameter.
    """

    amounts: Mapping[str, float]
    idle: Dollars
    running: Dollars
    load: Load
    leaves: Mapping[str, Leaves]
    reached: Callable[[], list[Reached]]

    @cached_property
    def limits(self) -> list[Reached]:
        """What ends first, and where: worked out when asked for, because it takes many days of traffic."""
        return self.reached()

    @property
    def idle_dollars(self) -> float:
        """Dollars of a month in which nobody does anything."""
        return sum(self.idle.values())

    @property
    def dollars(self) -> float:
        """Dollars of a month."""
        return self.idle_dollars + sum(self.running.values())


@dataclass(frozen=True)
class CostPlan:
    """What an environment costs with a traffic, in our design and in the naive one."""

    traffic: Traffic
    environment: str
    prices: PriceList
    ours: Design
    naive: Design

    @property
    def events(self) -> float:
        """Events of a month: posted ones and answers."""
        return (self.traffic.events + self.traffic.answers) * DAYS_A_MONTH

    def per_million_events(self, design: Design) -> float | None:
        """Return the running dollars of a million events; None without events.

        What costs the same however many events there are is not among them (UNCHANGED).
        """
        dollars = sum(each for name, each in design.running.items() if name not in UNCHANGED)
        return 1e6 * dollars / self.events if self.events else None


def make_plan(traffic: Traffic, deployed: Deployment, units: MeasuredUnits, prices: PriceList) -> CostPlan:
    """Work out a plan; raises BadPriceList for a price that is missing."""
    return CostPlan(
        traffic,
        deployed.name,
        prices,
        _design(traffic, deployed, units, prices, naive=False),
        _design(traffic, deployed, units, prices, naive=True),
    )


def _design(
    traffic: Traffic, deployed: Deployment, units: MeasuredUnits, prices: PriceList, *, naive: bool
) -> Design:
    standing = idle(deployed, units)
    more, load = running(traffic, deployed, units, naive=naive)
    amounts = {name: standing.get(name, 0.0) + more.get(name, 0.0) for name in {*standing, *more}}
    idle_dollars, all_dollars = prices.dollars(standing), prices.dollars(amounts)
    running_dollars = {name: each - idle_dollars.get(name, 0.0) for name, each in all_dollars.items()}
    return Design(
        amounts,
        idle_dollars,
        running_dollars,
        load,
        leaves(traffic, load.day, {} if naive else deployed.parameters),
        lambda: reached(traffic, deployed, units, naive=naive),
    )


def by_service(dollars: Dollars) -> dict[str, float]:
    """Return dollars by service, in the order of SERVICES."""
    found = dict.fromkeys(SERVICES.values(), 0.0)
    for name, each in dollars.items():
        found[SERVICES[name.partition(".")[0]]] += each
    return {service: each for service, each in found.items() if each}


def shards(design: Design, peak: float) -> dict[str, int]:
    """Return the partitions that each table needs at the peak, at 1,000 write units a second each."""
    from math import ceil

    from local.plan.price_list import fact

    per_second = {
        table: units * peak / SECONDS_A_DAY for table, units in tables_of(design.load.day, "write").items()
    }
    return {
        table: max(1, ceil(units / fact("dynamodb.partition_writes")))
        for table, units in sorted(per_second.items())
    }


def concurrency(design: Design, peak: float) -> dict[str, float]:
    """Return the executions of each function at the peak's same moment."""
    return {
        function: seconds * peak / SECONDS_A_DAY for function, seconds in sorted(design.load.seconds.items())
    }


def stored_gb(traffic: Traffic, units: MeasuredUnits, design: Design) -> dict[str, float]:
    """Return the GB of each table at the end of the retention."""
    sizes = table_bytes(traffic, units, design.load.day, design.leaves[HOT].days)
    return {table: size / 1e9 for table, size in sorted(sizes.items())}


# What operators do now and then, in units and dollars: move users in, forget, forgive, bring back.


USERS_MOVED = 1_000_000
PERSONS_FORGOTTEN = 1_000  # persons
USERS_FORGIVEN = 100_000  # users
EVENTS_BROUGHT_BACK = 1_000_000  # events
STORED_OF_AN_EVENT = 3  # the event, its claim, its entry: a write unit each, for they stay below 1 KB
OF_A_DATE = 2  # the user's day, and the profile


def operations(plan: CostPlan, units: MeasuredUnits) -> Mapping[str, Mapping[str, float]]:
    """Return each operation's write and read units in all tables and indexes, and their dollars.

    Who is forgotten has sent a user's events on each day of the plan's retention, and all are still there:
    the most there can be. The lake's part, the warehouse's and PostgreSQL's are not counted.
    """
    events = plan.traffic.events_per_user
    one, twenty = _units(units, "erase.1"), _units(units, "erase.20")
    more = {kind: (twenty[kind] - one[kind]) / 19 for kind in one}
    person = {kind: one[kind] + more[kind] * (events * plan.traffic.retention_days - 1) for kind in one}
    back = EVENTS_BROUGHT_BACK * (STORED_OF_AN_EVENT + OF_A_DATE / max(1.0, events))
    found = {
        "moving_in_a_million": _times(_units(units, "position.lots.1"), USERS_MOVED),
        "forgetting_a_thousand": _times(person, PERSONS_FORGOTTEN),
        "forgiving_100000": _times(_units(units, "forgive"), USERS_FORGIVEN),
        "restoring_a_million_events": {"write": back, "read": back},
    }
    return {name: _priced(plan, each) for name, each in found.items()}


def _units(units: MeasuredUnits, path: str) -> dict[str, float]:
    counts = [pair for counts in units.paths.get(path, {}).values() for pair in counts.items()]
    kinds = ("write", "read")
    return {kind: sum(count for name, count in counts if name.startswith(f"{kind}.")) for kind in kinds}


def _times(units: Mapping[str, float], count: int) -> dict[str, float]:
    return {kind: each * count for kind, each in units.items()}


def _priced(plan: CostPlan, units: Mapping[str, float]) -> dict[str, float]:
    dollars: Any = plan.prices.dollars({f"dynamodb.{kind}": count for kind, count in units.items()})
    return {**{f"{kind}_units": count for kind, count in units.items()}, "dollars": sum(dollars.values())}


def operation_lines(plan: CostPlan, units: MeasuredUnits) -> Iterator[str]:
    """Yield what `streakline plan` prints of operations."""
    traffic = plan.traffic
    sent = traffic.events_per_user * traffic.retention_days
    what = {
        "moving_in_a_million": "move in a million opening positions of one lot and two freezes",
        "forgetting_a_thousand": f"forget 1,000 persons who have sent {sent:,.0f} events each",
        "forgiving_100000": "forgive an outage for 100,000 users who lost a streak",
        "restoring_a_million_events": "bring back a million events, with claims, entries, days and profiles",
    }
    yield f"{'what operators do, once':72} {'writes':>12} {'reads':>12} {'dollars':>9}"
    for name, told in operations(plan, units).items():
        dollars = f"{told['dollars']:,.2f}" if told["dollars"] < 1000 else f"{told['dollars']:,.0f}"
        yield f"{what[name]:72} {told['write_units']:>12,.0f} {told['read_units']:>12,.0f} {dollars:>9}"
    yield "  Writes and reads are units of DynamoDB. Forgetting is counted at its most: events and claims"
    yield "  leave by themselves after 90 days; the night's part, in lake and warehouse, is not counted."
    yield "  Proofs of the ledger take no unit; the nightly roots are in the services above."
    if plan.events:
        per = plan.per_million_events(plan.ours) or 0.0
        yield f"  Moving in a million events of histories: {per:,.2f} dollars, as any others."


# What a second region costs in a month, beside the first one: units and dollars (rule 23).
#
# Calculated from what the first region writes. Nothing of it is measured, so each figure is the most that it
# comes to.


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


def second_region_return(plan: CostPlan) -> Mapping[str, float]:
    """Return the units of a return: both regions' tables are read, and every item of one is written."""
    stored = plan.ours.amounts.get("dynamodb.storage_gb", 0.0) * GB
    return {
        "dynamodb.read": 2 * stored / READ_UNIT_BYTES,
        "dynamodb.write": stored / fact("regions.item_bytes"),
    }


def second_region_dollars(plan: CostPlan, amounts: Mapping[str, float]) -> float:
    """Return what amounts cost."""
    return sum(plan.prices.dollars(amounts).values())


def second_region_json(plan: CostPlan) -> Mapping[str, object]:
    """Return units and dollars of a second region."""
    following, back = second_region(plan), second_region_return(plan)
    return {
        "a_month": {**following, "dollars": second_region_dollars(plan, following)},
        "idle_dollars": plan.ours.idle_dollars,
        "returning": {**back, "dollars": second_region_dollars(plan, back)},
    }


def second_region_lines(plan: CostPlan) -> Iterator[str]:
    """Yield what `streakline plan` prints of a second region."""
    following, back = second_region(plan), second_region_return(plan)
    cost = second_region_dollars(plan, following)
    yield f"a second region (Role=active and standby): at most {cost:,.2f} dollars a month to follow,"
    yield f"  and {plan.ours.idle_dollars:,.2f} for its idle stack; one region pays nothing of it"
    yield (
        f"  {following['dynamodb.changes']:,.0f} changes, {following['dynamodb.write']:,.0f} writes, "
        f"{following['dynamodb.read']:,.0f} reads, {following['kinesis.in_gb']:,.2f} GB between regions"
    )
    yield (
        f"  a return, once: {back['dynamodb.write']:,.0f} writes, {back['dynamodb.read']:,.0f} reads, "
        f"{second_region_dollars(plan, back):,.2f} dollars; a promotion costs nothing"
    )
    yield "  Not counted: transfer between regions, copies of buckets, the database, Route 53."
