"""A plan: amounts, dollars and limits of a traffic in a size of the template; what is paid beside a month."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import log10

from local.plan.measured_units import Functions, MeasuredUnits, Spent, TemplateSize, by_place, by_table, total
from local.plan.month import DAYS_A_MONTH, DOORS, GB, SECONDS_A_DAY, a_day, running, seconds_of, table_bytes
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
# The same however many events there are: the warehouse's nights, and the keys of tables in use.
UNCHANGED = frozenset({"redshift.rpu_hours", "kms.requests"})
# Index partitions that many users write to: how many there are is a setting of the size, or a number.
# Every other index is keyed by a user, a lead or a question.
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
OWN = ("BPEvents/IdempotencyIndex", "Event/event-type-index", "Responses/ByFingerprint")
USERS_MAX, STEPS = 1e12, 24  # where a limit is looked for
READ_UNIT_BYTES = 4096
Amounts = dict[str, float]


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit. load: at the peak of the plan's day. most: what there may be. what: its unit."""

    name: str
    load: float
    most: float
    what: str

    @property
    def share(self) -> float:
        """How much of the limit is used."""
        return self.load / self.most


@dataclass(frozen=True)
class CostPlan:
    """What a size of the template costs with a traffic.

    idle, amounts: of a month, by the names of prices; amounts include the idle ones. day: by function. gb: of
    each table once the retention is over. hot_days: EventHotDays.
    """

    traffic: Traffic
    units: MeasuredUnits
    size: TemplateSize
    prices: PriceList
    hot_days: float
    amounts: Amounts
    day: Spent
    gb: Mapping[str, float]

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
        more = sum(each for name, each in self.running_dollars.items() if name not in UNCHANGED)
        return 1e6 * more / events if events else None

    @property
    def running_dollars(self) -> Amounts:
        """Dollars of a month beyond the idle ones, by the names of prices."""
        idle = self.prices.dollars(self.size.idle)
        return {name: each - idle.get(name, 0.0) for name, each in self.prices.dollars(self.amounts).items()}


def make_plan(
    traffic: Traffic, units: MeasuredUnits, size: TemplateSize, prices: PriceList, hot_days: float = 0.0
) -> CostPlan:
    """Work out a plan; raises BadPriceList for a price that is missing. hot_days: EventHotDays."""
    more, day = running(traffic, units, size, hot_days)
    amounts = {name: size.idle.get(name, 0.0) + more.get(name, 0.0) for name in {*size.idle, *more}}
    sizes = table_bytes(traffic, units, day, hot_days)
    gb = {table: each / GB for table, each in sorted(sizes.items())}
    return CostPlan(traffic, units, size, prices, hot_days, amounts, day, gb)


def by_service(dollars: Mapping[str, float]) -> dict[str, float]:
    """Return dollars by service, in the order of SERVICES."""
    found = dict.fromkeys(SERVICES.values(), 0.0)
    for name, each in dollars.items():
        found[SERVICES[name.partition(".")[0]]] += each
    return {service: each for service, each in found.items() if each}


def limits(traffic: Traffic, units: MeasuredUnits, size: TemplateSize) -> list[Limit]:
    """Return all limits with the load that a traffic's peak puts on them, the fullest one first."""
    a_second = traffic.peak / SECONDS_A_DAY
    found = list(_limits(a_day(traffic, units, size), size, a_second))
    return sorted(found, key=lambda each: -each.share)


def _limits(day: Functions, size: TemplateSize, a_second: float) -> Iterator[Limit]:
    writes = by_place(day, "write")
    for index, shards in SHARED.items():
        load = (
            writes.get(index, 0.0) * a_second / (shards if isinstance(shards, int) else size.settings[shards])
        )
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
        load = by_place(day, "firehose").get(name, 0.0) * a_second
        yield Limit(f"Firehose's {name}", load, fact(f"firehose.{name}_per_second"), f"{name}/s")


def first_limits(plan: CostPlan, count: int = 3) -> list[tuple[Limit, float]]:
    """Return the limits that growth reaches first, with the daily actives at whom each is reached.

    Leads and questions grow with the users, in the plan's proportion.
    """
    base = plan.traffic.daily_actives or 1000.0
    found = [each for each in limits(plan.traffic.of_users(base), plan.units, plan.size) if each.load]

    @cache
    def shares(users: float) -> dict[str, float]:
        there = limits(plan.traffic.of_users(users), plan.units, plan.size)
        return {each.name: each.share for each in there}

    def share_of(name: str) -> Callable[[float], float]:
        return lambda users: shares(users)[name]

    reached = [(each, _crossing(share_of(each.name))) for each in found[: 2 * count]]
    return sorted(reached, key=lambda pair: pair[1])[:count]


def _crossing(share: Callable[[float], float]) -> float:
    """Return where a share that grows with the users is 1; USERS_MAX if it is not reached before."""
    low, high = 0.0, log10(USERS_MAX)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if share(10**middle) >= 1 else (middle, high)
    return float(10**high)


def operations(plan: CostPlan) -> dict[str, Amounts]:
    """Return what operators do now and then, each with its units.

    Who is forgotten has sent a user's events on each day of the retention, and all are still there: the most
    there can be. The lake's part, the warehouse's and PostgreSQL's are not counted.
    """
    traffic, one = plan.traffic, _units(plan.units.paths["erase.1"])
    sent = traffic.events_per_user * traffic.retention_days
    more = {name: (units - one[name]) / 19 for name, units in _units(plan.units.paths["erase.20"]).items()}
    person = {name: one[name] + more[name] * max(0.0, sent - 1) for name in one}
    # An event, its claim, its entry; a day and a profile a date.
    back = 1e6 * (3 + 2 / max(1.0, traffic.events_per_user))
    found = {
        "move in a million opening positions of one lot and two freezes": _times(
            _units(plan.units.paths["position.lots.1"]), 1e6
        ),
        f"forget 1,000 persons who have sent {sent:,.0f} events each": _times(person, 1e3),
        "forgive an outage for 100,000 users who lost a streak": _times(
            _units(plan.units.paths["forgive"]), 1e5
        ),
        "bring back a million events, with claims, entries, days and profiles": {
            "dynamodb.write": back,
            "dynamodb.read": back,
        },
    }
    changes, idle = _second_region(plan), plan.size.idle
    stored = sum(plan.gb.values()) * GB
    found["a second region follows, a month, at most (rule 23)"] = changes
    found["  its own stack, idle, a month"] = dict(idle)
    found["  a return to the first one, once; a promotion costs nothing"] = {
        "dynamodb.read": 2 * stored / READ_UNIT_BYTES,
        "dynamodb.write": stored / fact("regions.item_bytes"),
    }
    return found


def _units(path: Functions) -> Amounts:
    return {f"dynamodb.{kind}": total(path, kind) for kind in ("write", "read")}


def _times(amounts: Amounts, count: float) -> Amounts:
    return {name: each * count for name, each in amounts.items()}


def _second_region(plan: CostPlan) -> Amounts:
    """Return a month's amounts of following. Nothing of it is measured: each figure is the most.

    A change is counted as a write unit of the writer, so one of a transaction or an index twice.
    """
    hours = fact("month.hours")
    written = by_place(plan.day, "write").items()
    changes = sum(units for table, units in written if table in KEYS) * DAYS_A_MONTH
    batches = min(changes, hours * 3600)
    looked = sum(map(seconds_of, plan.day.values())) * DAYS_A_MONTH / LOOK_SECONDS
    gigabytes, stored = changes * fact("regions.change_bytes") / GB, sum(plan.gb.values())
    return {
        "dynamodb.changes": changes,
        "dynamodb.write": changes,
        "dynamodb.read": changes * fact("regions.reads_per_change") + looked,
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
    """Return what it costs that old things leave their table, by setting (rule 22).

    write, read: units of a day. dollars: of a month in which all that is old enough leaves. kept_dollars: of
    a month's items, for each month that they stay. Items stay below 1 KB, each is read by itself: the most.
    """
    traffic = plan.traffic
    items = {
        ("EventHotDays", "BPEvents"): traffic.events + traffic.answers,
        ("PayloadRetentionDays", "Event"): traffic.lead_events,
        ("AnswerTextRetentionDays", "Responses"): traffic.answers,
    }
    stored = by_place(plan.day, "stored")
    found: dict[str, Mapping[str, float]] = {}
    for (setting, table), count in items.items():
        units = {"dynamodb.write": count * DAYS_A_MONTH, "dynamodb.read": count * DAYS_A_MONTH}
        gb = dict.fromkeys(
            ("dynamodb.storage_gb", "dynamodb.backup_gb"), stored.get(table, 0.0) * DAYS_A_MONTH / GB
        )
        dollars, kept = (sum(plan.prices.dollars(each).values()) for each in (units, gb))
        found[setting] = {"write": count, "read": count, "dollars": dollars, "kept_dollars": kept}
    return found
