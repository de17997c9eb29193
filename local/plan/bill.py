"""A plan: the amounts, dollars and limits of a traffic in a size of the template.

It also says what operators' work costs beside a month, and what aging of items saves.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import log10

from local.plan.measured_units import (
    Functions,
    MeasuredUnits,
    Spent,
    TemplateSize,
    by_table,
    by_target,
    total,
)
from local.plan.month import (
    DAYS_A_MONTH,
    DOORS,
    GB,
    SECONDS_A_DAY,
    a_day,
    monthly_amounts,
    seconds_of,
    table_bytes,
)
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
    "logs": "CloudWatch Logs",
    "metrics": "CloudWatch metrics",
    "alarms": "CloudWatch alarms",
    "dashboards": "CloudWatch dashboards",
    "xray": "X-Ray",
    "cognito": "Cognito",
}
# Prices of what stays the same with more events: the warehouse's nights, and the keys of tables in use.
UNCHANGED = frozenset({"redshift.rpu_hours", "kms.requests"})
# The indexes whose partitions many users write to, with how many partitions there are: a number, or the
# setting of the size that says it. Every other index is keyed by a user, a lead or a question.
SHARED: Mapping[str, str | int] = {
    "UserStreaks/StreakLeaderboard": "LeaderboardShards",
    "UserStreaks/UnderReview": 1,
    "UserStreaks/ByExpiry": 8,
    "Feature/ByActivity": "FeatureShards",
    "UserStats/ByTotalPoints": "StatsShards",
    "Event/idempotency-index": 1,
    "Questions/ByStatus": 1,
    "Questions/ByClosing": 1,
    "Questions/ByAgentId": 1,
    "Subscriptions/ByLastNotified": 4,
    "Notifications/ByDue": 12,
}
# A limit is looked for up to so many users, by so many halvings of the range.
USERS_MAX, STEPS = 1e12, 24
READ_UNIT_BYTES = 4096
Amounts = dict[str, float]


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of AWS or of the template."""

    name: str
    load: float  # at the peak of the plan's day
    most: float  # the greatest load that there may be
    what: str  # the unit of load and most

    @property
    def share(self) -> float:
        """How much of the limit is used."""
        return self.load / self.most


@dataclass(frozen=True)
class CostPlan:
    """What a size of the template costs with a traffic. Dollars and amounts are those of a month."""

    traffic: Traffic
    units: MeasuredUnits
    size: TemplateSize
    prices: PriceList
    hot_days: float  # the setting EventHotDays
    amounts: Amounts  # by the names of prices; the idle ones are included
    day: Spent  # the counts of a day, by function
    gb: Mapping[str, float]  # gigabytes of each table, once the retention is over

    @property
    def idle_dollars(self) -> float:
        """Dollars of a month in which nobody does anything."""
        return sum(self.prices.dollars(self.size.idle).values())

    @property
    def dollars(self) -> float:
        """Dollars of a month."""
        return sum(self.prices.dollars(self.amounts).values())

    @property
    def per_million_events(self) -> float | None:
        """Dollars of a million events more; None without events. Answers are events, too."""
        events = (self.traffic.events + self.traffic.answers) * DAYS_A_MONTH
        running = sum(dollars for name, dollars in self.running_dollars.items() if name not in UNCHANGED)
        return 1e6 * running / events if events else None

    @property
    def running_dollars(self) -> Amounts:
        """Dollars of a month beyond the idle ones, by the names of prices."""
        idle = self.prices.dollars(self.size.idle)
        dollars = self.prices.dollars(self.amounts)
        return {name: amount - idle.get(name, 0.0) for name, amount in dollars.items()}


def make_plan(
    traffic: Traffic, units: MeasuredUnits, size: TemplateSize, prices: PriceList, hot_days: float = 0.0
) -> CostPlan:
    """Work out a plan. hot_days: the setting EventHotDays."""
    beyond_idle, day = monthly_amounts(traffic, units, size, hot_days)
    names = {*size.idle, *beyond_idle}
    amounts = {name: size.idle.get(name, 0.0) + beyond_idle.get(name, 0.0) for name in names}
    bytes_of_table = table_bytes(traffic, units, day, hot_days)
    gb = {table: table_size / GB for table, table_size in sorted(bytes_of_table.items())}
    return CostPlan(traffic, units, size, prices, hot_days, amounts, day, gb)


def by_service(dollars: Mapping[str, float]) -> dict[str, float]:
    """Return dollars by service, in the order of SERVICES."""
    sums = dict.fromkeys(SERVICES.values(), 0.0)
    for name, amount in dollars.items():
        sums[SERVICES[name.partition(".")[0]]] += amount
    return {service: amount for service, amount in sums.items() if amount}


def limits(traffic: Traffic, units: MeasuredUnits, size: TemplateSize) -> list[Limit]:
    """Return all limits with the load that a traffic's peak puts on them, the fullest first."""
    a_second = traffic.peak / SECONDS_A_DAY
    all_limits = _limits(a_day(traffic, units, size), size, a_second)
    return sorted(all_limits, key=lambda limit: -limit.share)


def _limits(day: Functions, size: TemplateSize, a_second: float) -> Iterator[Limit]:
    writes = by_target(day, "write")
    for index, partitions in SHARED.items():
        number = partitions if isinstance(partitions, int) else size.settings[partitions]
        load = writes.get(index, 0.0) * a_second / number
        yield Limit(f"a partition of {index}", load, fact("dynamodb.partition_writes"), "write units/s")
    for kind in ("write", "read"):
        for table, units in by_table(day, kind).items():
            most = fact(f"dynamodb.table_{kind}s")
            yield Limit(f"table {table}", units * a_second, most, f"{kind} units/s")
    requests = sum(day.get(door, {}).get("invocations", 0.0) for door in DOORS) * a_second
    yield Limit("the API's throttle (template)", requests, size.settings["requests_per_second"], "requests/s")
    yield Limit("the API's quota", requests, fact("api.requests_per_second"), "requests/s")
    at_once = {function: seconds_of(counts) * a_second for function, counts in day.items()}
    yield Limit(
        "Lambda's concurrency", sum(at_once.values()), fact("lambda.concurrency"), "executions at once"
    )
    for function, most in size.concurrency.items():
        yield Limit(f"{function}'s concurrency", at_once.get(function, 0.0), most, "executions at once")
    for name in ("records", "bytes"):  # all entities together: more than the busiest stream has
        load = by_target(day, "firehose").get(name, 0.0) * a_second
        yield Limit(f"Firehose's {name}", load, fact(f"firehose.{name}_per_second"), f"{name}/s")


def first_limits(plan: CostPlan, count: int = 3) -> list[tuple[Limit, float]]:
    """Return the limits that growth reaches first, with the daily actives at whom each is reached.

    Leads and questions grow with the users, in the plan's proportion.
    """
    base = plan.traffic.daily_actives or 1000.0
    loaded = [limit for limit in limits(plan.traffic.of_users(base), plan.units, plan.size) if limit.load]

    @cache
    def shares(users: float) -> dict[str, float]:
        limits_of_users = limits(plan.traffic.of_users(users), plan.units, plan.size)
        return {limit.name: limit.share for limit in limits_of_users}

    def share_of(name: str) -> Callable[[float], float]:
        return lambda users: shares(users)[name]

    # A limit that is less full today may grow faster, so twice as many are looked at.
    users_at = {limit: _crossing(share_of(limit.name)) for limit in loaded[: 2 * count]}
    return sorted(users_at.items(), key=lambda item: item[1])[:count]


def _crossing(share: Callable[[float], float]) -> float:
    """Return with how many users a share reaches 1, of a share that grows with them; USERS_MAX at most."""
    low, high = 0.0, log10(USERS_MAX)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if share(10**middle) >= 1 else (middle, high)
    return float(10**high)


def operations(plan: CostPlan) -> dict[str, Amounts]:
    """Return the work that operators do now and then, each with its amounts.

    A person who is forgotten is counted with a user's events of all days of the retention, as if all of them
    were still there: the most there can be. The lake, the warehouse and PostgreSQL are not counted.
    """
    traffic = plan.traffic
    one_event, twenty_events = (_units(plan.units.paths[f"erase.{count}"]) for count in (1, 20))
    sent = traffic.events_per_user * traffic.retention_days
    an_event_more = {name: (units - one_event[name]) / 19 for name, units in twenty_events.items()}
    person = {name: one_event[name] + an_event_more[name] * max(0.0, sent - 1) for name in one_event}
    # Of each event itself, its claim and its entry; of each date a day and a profile.
    restored = 1e6 * (3 + 2 / max(1.0, traffic.events_per_user))
    work = {
        "move in a million opening positions of one lot and two freezes": _times(
            _units(plan.units.paths["position.lots.1"]), 1e6
        ),
        f"forget 1,000 persons who have sent {sent:,.0f} events each": _times(person, 1e3),
        "forgive an outage for 100,000 users who lost a streak": _times(
            _units(plan.units.paths["forgive"]), 1e5
        ),
        "bring back a million events, with claims, entries, days and profiles": {
            "dynamodb.write": restored,
            "dynamodb.read": restored,
        },
    }
    stored = sum(plan.gb.values()) * GB
    work["a second region follows, a month, at most (rule 23)"] = _second_region(plan)
    work["  its own stack, idle, a month"] = dict(plan.size.idle)
    work["  a return to the first one, once; a promotion costs nothing"] = {
        "dynamodb.read": 2 * stored / READ_UNIT_BYTES,
        "dynamodb.write": stored / fact("regions.item_bytes"),
    }
    return work


def _units(path: Functions) -> Amounts:
    """Return the write and read units of a path."""
    return {f"dynamodb.{kind}": total(path, kind) for kind in ("write", "read")}


def _times(amounts: Amounts, count: float) -> Amounts:
    return {name: amount * count for name, amount in amounts.items()}


def _second_region(plan: CostPlan) -> Amounts:
    """Return a month's amounts of a region that follows. Nothing is measured: each figure is the most.

    Each write unit of the writer is counted as a change. A write in a transaction has two units, so it is
    counted twice.
    """
    hours = fact("month.hours")
    written = by_target(plan.day, "write").items()
    changes = sum(units for table, units in written if table in KEYS) * DAYS_A_MONTH
    batches = min(changes, hours * 3600)
    register_reads = sum(map(seconds_of, plan.day.values())) * DAYS_A_MONTH / LOOK_SECONDS
    gigabytes, stored = changes * fact("regions.change_bytes") / GB, sum(plan.gb.values())
    return {
        "dynamodb.changes": changes,
        "dynamodb.write": changes,
        "dynamodb.read": changes * fact("regions.reads_per_change") + register_reads,
        "dynamodb.storage_gb": stored,
        "dynamodb.backup_gb": stored,
        "kinesis.stream_hours": 2 * hours,  # each region has one, for when it writes
        "kinesis.in_gb": gigabytes,
        "kinesis.out_gb": gigabytes,
        "sqs.requests": 3 * batches,
        "lambda.requests": 2 * batches,
        "lambda.gb_seconds": changes * fact("regions.ms_per_change") / 1000,
    }


def leaving(plan: CostPlan) -> dict[str, Mapping[str, float]]:
    """Return what the deletion of old items costs and saves, by the setting of their age (rule 22).

    write, read: units of a day. dollars: of a month in which all that is old enough is deleted. kept_dollars:
    what a month's items cost for each month that they stay. These are the most, as if each item were read by
    itself.
    """
    traffic = plan.traffic
    items = {
        ("EventHotDays", "BPEvents"): traffic.events + traffic.answers,
        ("PayloadRetentionDays", "Event"): traffic.lead_events,
        ("AnswerTextRetentionDays", "Responses"): traffic.answers,
    }
    stored = by_target(plan.day, "stored")
    costs: dict[str, Mapping[str, float]] = {}
    for (setting, table), count in items.items():
        units = {"dynamodb.write": count * DAYS_A_MONTH, "dynamodb.read": count * DAYS_A_MONTH}
        gb = dict.fromkeys(
            ("dynamodb.storage_gb", "dynamodb.backup_gb"), stored.get(table, 0.0) * DAYS_A_MONTH / GB
        )
        costs[setting] = {
            "write": count,
            "read": count,
            "dollars": sum(plan.prices.dollars(units).values()),
            "kept_dollars": sum(plan.prices.dollars(gb).values()),
        }
    return costs
