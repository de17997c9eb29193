"""What ends first as users grow: each limit with the load on it, and the users at whom it is reached."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import log10

from local.plan.environments import SECONDS_A_DAY, Deployment
from local.plan.measured_units import MeasuredUnits, tables_of
from local.plan.month import DOORS, Load, a_night, load, scan_seconds
from local.plan.price_list import fact
from local.plan.traffic import Traffic

USERS_MAX = 1e12
USERS_BASE = 1000.0
STEPS = 24
EXACT = 4
# Index partitions that many users write to: how many there are is a row of infra/app/sizes.yaml, or a number.
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
NAIVE_SHARED = {**SHARED, "UserStreaks/StreakLeaderboard": 1}  # its regions are not split
OWN = ("BPEvents/IdempotencyIndex", "Event/event-type-index", "Responses/ByFingerprint")


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit. load: what there is at the peak of the plan's day; most: what there may be. what: its unit."""

    name: str
    load: float
    most: float
    what: str

    @property
    def share(self) -> float:
        """How much of the limit is used."""
        return self.load / self.most


@dataclass(frozen=True, slots=True)
class Reached:
    """A limit, and the daily actives at whom it is reached; None: no number of users reaches it."""

    limit: Limit
    daily_actives: float | None


def limits(
    traffic: Traffic, deployed: Deployment, units: MeasuredUnits, *, naive: bool = False
) -> list[Limit]:
    """Return all limits of a design with the load that this traffic's peak puts on them."""
    found = load(traffic, deployed, units, naive=naive)
    a_second = traffic.peak / SECONDS_A_DAY
    listed = [
        *_partitions(found, NAIVE_SHARED if naive else SHARED, deployed.parameters, a_second),
        *_tables(found, a_second),
        *_api(found, deployed, a_second),
        *_functions(found, deployed, a_second),
        *_firehose(found, a_second),
        *(_night(traffic, deployed, units, found) if naive else ()),
    ]
    return sorted(listed, key=lambda each: -each.share)


def _partitions(
    found: Load, shared: Mapping[str, str | int], parameters: Mapping[str, str], a_second: float
) -> Iterator[Limit]:
    writes = tables_of(found.day, "write")
    for index, shards in shared.items():
        count = shards if isinstance(shards, int) else int(parameters[shards])
        per_second = writes.get(index, 0.0) * a_second / count
        yield Limit(f"a partition of {index}", per_second, fact("dynamodb.partition_writes"), "write units/s")


def _tables(found: Load, a_second: float) -> Iterator[Limit]:
    for kind in ("write", "read"):
        by_table: dict[str, float] = {}
        for place, count in tables_of(found.day, kind).items():
            table = place.partition("/")[0]
            by_table[table] = max(by_table.get(table, 0.0), count)
        for table, count in by_table.items():
            yield Limit(
                f"table {table}", count * a_second, fact(f"dynamodb.table_{kind}s"), f"{kind} units/s"
            )


def _api(found: Load, deployed: Deployment, a_second: float) -> Iterator[Limit]:
    requests = sum(found.day.get(door, {}).get("invocations", 0.0) for door in DOORS) * a_second
    for _, stage in deployed.of_type("AWS::ApiGatewayV2::Stage"):
        settings = stage.get("DefaultRouteSettings", {})
        if "ThrottlingRateLimit" in settings:
            most = float(settings["ThrottlingRateLimit"])
            yield Limit("the API's throttle (template)", requests, most, "requests/s")
    yield Limit("the API's quota", requests, fact("api.requests_per_second"), "requests/s")


def _functions(found: Load, deployed: Deployment, a_second: float) -> Iterator[Limit]:
    at_once = {function: seconds * a_second for function, seconds in found.seconds.items()}
    yield Limit(
        "Lambda's concurrency", sum(at_once.values()), fact("lambda.concurrency"), "executions at once"
    )
    for source in deployed.mappings:
        if source.concurrency_max:
            name = f"{source.function}'s concurrency"
            yield Limit(name, at_once.get(source.function, 0.0), source.concurrency_max, "executions at once")
    for function, properties in deployed.functions.items():
        if reserved := properties.get("ReservedConcurrentExecutions"):
            name = f"{function}'s reserved concurrency"
            yield Limit(name, at_once.get(function, 0.0), float(reserved), "executions at once")


def _firehose(found: Load, a_second: float) -> Iterator[Limit]:
    # All entities together: more than the busiest stream has.
    for name, what in (("records", "records/s"), ("bytes", "bytes/s")):
        count = sum(counts.get(f"firehose.{name}", 0.0) for counts in found.day.values())
        yield Limit(f"Firehose's {name}", count * a_second, fact(f"firehose.{name}_per_second"), what)


def _night(traffic: Traffic, deployed: Deployment, units: MeasuredUnits, found: Load) -> Iterator[Limit]:
    """Yield where a night in one call a function ends. Ours goes piece by piece and share by share."""
    night = a_night(traffic, deployed, units, found.day)
    for function, seconds in (
        ("CurateFunction", night.task_seconds),
        ("ReconcileFunction", scan_seconds(night)),
    ):
        most = float(deployed.functions[function]["Timeout"])
        yield Limit(f"the nightly {function}", seconds, most, "seconds of a task")


def reached(
    traffic: Traffic, deployed: Deployment, units: MeasuredUnits, *, naive: bool = False
) -> list[Reached]:
    """Return the limits with the daily actives at whom each is reached, the first one first.

    Leads and questions grow with the users, in the plan's proportion. Only the first ones are exact; those
    further off are where they would be if the load grew as the users do.
    """

    @cache
    def at(users: float) -> Mapping[str, Limit]:
        return {each.name: each for each in limits(scaled(traffic, users), deployed, units, naive=naive)}

    base = traffic.daily_actives or USERS_BASE
    found = [Reached(each, base / each.share if each.share else None) for each in at(base).values()]
    found.sort(key=_when)

    def share_of(name: str) -> Callable[[float], float]:
        return lambda users: at(users)[name].share

    near = [replace(each, daily_actives=crossing(share_of(each.limit.name))) for each in found[:EXACT]]
    return sorted([*near, *found[EXACT:]], key=_when)


def _when(each: Reached) -> float:
    return USERS_MAX if each.daily_actives is None else each.daily_actives


def crossing(share: Callable[[float], float]) -> float | None:
    """Return where a share that grows with the users is 1; None if it is not reached."""
    low, high = 0.0, log10(USERS_MAX)
    if share(10**high) < 1:
        return None
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if share(10**middle) >= 1 else (middle, high)
    return float(10**high)


def scaled(traffic: Traffic, users: float) -> Traffic:
    """Return the same traffic of another number of users."""
    if not traffic.daily_actives:
        return replace(traffic, daily_actives=users)
    factor = users / traffic.daily_actives
    return replace(
        traffic,
        daily_actives=users,
        users=traffic.users * factor,
        lead_events=traffic.lead_events * factor,
        leads=traffic.leads * factor,
        lead_reads=traffic.lead_reads * factor,
        questions=traffic.questions * factor,
    )
