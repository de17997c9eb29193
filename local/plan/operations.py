"""What operators do now and then, in units and dollars: move users in, forget, forgive, bring back."""

from collections.abc import Iterator, Mapping
from typing import Any

from local.plan.bill import CostPlan
from local.plan.given.measured_units import MeasuredUnits

USERS_MOVED = 1_000_000
FORGOTTEN = 1_000  # persons
FORGIVEN = 100_000  # users
BROUGHT_BACK = 1_000_000  # events
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
    back = BROUGHT_BACK * (STORED_OF_AN_EVENT + OF_A_DATE / max(1.0, events))
    found = {
        "moving_in_a_million": _times(_units(units, "position.lots.1"), USERS_MOVED),
        "forgetting_a_thousand": _times(person, FORGOTTEN),
        "forgiving_100000": _times(_units(units, "forgive"), FORGIVEN),
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


def lines(plan: CostPlan, units: MeasuredUnits) -> Iterator[str]:
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
