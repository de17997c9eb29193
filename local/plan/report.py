"""A plan as a table that is read, and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from local.plan.bill import CostPlan, by_service, first_limits, leaving, operations
from local.plan.measured_units import by_table

NOT_COUNTED = (
    "Not counted: cold starts, what goes through endpoints, Aurora's storage, what is read from the archive, "
    "Glue, Athena, transfer between regions, free allowances other than those in the price list."
)


def table(plan: CostPlan) -> str:
    """Return the plan as text."""
    parts = (_head(plan), _services(plan), _units(plan), _limits(plan), _operations(plan), _leaving(plan))
    return "\n\n".join("\n".join(part) for part in (*parts, _foot(plan)))


def as_json(plan: CostPlan) -> dict[str, Any]:
    """Return the whole plan as plain data."""
    return {
        "environment": plan.size.name,
        "region": plan.prices.region,
        "prices": {"dated": plan.prices.dated, "source": plan.prices.source},
        "traffic": asdict(plan.traffic),
        "idle_dollars": plan.idle_dollars,
        "dollars": plan.dollars,
        "dollars_per_million_events": plan.per_million_events,
        "idle_by_service": by_service(plan.prices.dollars(plan.size.idle)),
        "running_by_service": by_service(plan.running_dollars),
        "amounts_a_month": dict(sorted(plan.amounts.items())),
        "write_units_a_day": by_table(plan.day, "write"),
        "read_units_a_day": by_table(plan.day, "read"),
        "stored_gb": plan.gb,
        "limits": [
            {**asdict(limit), "share": limit.share, "daily_actives": users}
            for limit, users in first_limits(plan)
        ],
        "operations": {
            name: {**amounts, "dollars": sum(plan.prices.dollars(amounts).values())}
            for name, amounts in operations(plan).items()
        },
        "leaving": leaving(plan),
    }


def _money(dollars: float) -> str:
    return f"{dollars:,.2f}" if abs(dollars) < 1000 else f"{dollars:,.0f}"


def _head(plan: CostPlan) -> Iterator[str]:
    traffic = plan.traffic
    yield f"{plan.size.name}, {plan.prices.region}, prices of {plan.prices.dated}"
    yield (
        f"{traffic.daily_actives:,.0f} daily actives of {traffic.accounts:,.0f} users, "
        f"{traffic.events_per_user:g} events each in batches of {traffic.events_per_batch:g}: "
        f"{traffic.events:,.0f} events a day"
    )
    yield (
        f"{traffic.lead_events:,.0f} webhooks, {traffic.questions:,.0f} questions and {traffic.answers:,.0f} "
        f"answers a day; {traffic.retention_days:g} days kept; the peak is {traffic.peak:g} times the mean"
    )


def _services(plan: CostPlan) -> Iterator[str]:
    idle, running = by_service(plan.prices.dollars(plan.size.idle)), by_service(plan.running_dollars)
    yield f"{'dollars a month':24} {'idle':>12} {'running':>14}"
    for service in {**idle, **running}:
        yield f"{service:24} {_money(idle.get(service, 0)):>12} {_money(running.get(service, 0)):>14}"
    yield f"{'together':24} {_money(plan.idle_dollars):>12} {_money(plan.dollars - plan.idle_dollars):>14}"
    yield f"{'a month in all':24} {'':>12} {_money(plan.dollars):>14}"
    if plan.per_million_events is not None:
        yield f"{'a million events more':24} {'':>12} {_money(plan.per_million_events):>14}"


def _units(plan: CostPlan) -> Iterator[str]:
    writes, reads = (by_table(plan.day, kind) for kind in ("write", "read"))
    yield f"{'table':24} {'writes a day':>14} {'reads a day':>14} {'GB':>10}"
    for name in sorted({*writes, *reads, *plan.gb}):
        units = f"{writes.get(name, 0):>14,.0f} {reads.get(name, 0):>14,.0f}"
        yield f"{name:24} {units} {plan.gb.get(name, 0):>10,.2f}"


def _limits(plan: CostPlan) -> Iterator[str]:
    yield "what ends first as users grow"
    for limit, users in first_limits(plan):
        yield (
            f"  {limit.name}: {limit.most:,.0f} {limit.what}, reached at {users:,.0f} daily actives "
            f"(now {limit.load:,.2f})"
        )


def _operations(plan: CostPlan) -> Iterator[str]:
    yield f"{'what is paid beside that':72} {'writes':>12} {'reads':>12} {'dollars':>9}"
    for name, amounts in operations(plan).items():
        units = f"{amounts.get('dynamodb.write', 0):>12,.0f} {amounts.get('dynamodb.read', 0):>12,.0f}"
        yield f"{name:72} {units} {_money(sum(plan.prices.dollars(amounts).values())):>9}"
    yield "  Forgetting is counted at its most: events and claims leave by themselves after 90 days."
    if plan.per_million_events is not None:
        yield f"  Moving in a million events of histories: {_money(plan.per_million_events)} dollars."


def _leaving(plan: CostPlan) -> Iterator[str]:
    yield "what is old leaves its table, once a setting says when (0: never; then nothing of this is paid)"
    yield f"{'setting':24} {'writes a day':>14} {'reads a day':>14} {'a month':>9} {'month kept':>11}"
    for setting, costs in leaving(plan).items():
        units = f"{costs['write']:>14,.0f} {costs['read']:>14,.0f}"
        yield f"{setting:24} {units} {_money(costs['dollars']):>9} {_money(costs['kept_dollars']):>11}"
    yield "  a month: dollars of reading and deleting. month kept: of a month's items for each month longer."
    yield "  EventHotDays 0: events expire after 90 days at no price, whether the lake has them or not."


def _foot(plan: CostPlan) -> Iterator[str]:
    yield f"Prices: {plan.prices.source}"
    yield "Units: local/plan/units.json, measured by `make units`. Assumptions: local/plan/facts.json."
    yield NOT_COUNTED
