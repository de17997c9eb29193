"""A plan as a table that is read, and as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from local.plan import second_region
from local.plan.bill import CostPlan, Design, by_service, concurrency, shards, stored_gb
from local.plan.given.measured_units import MeasuredUnits, tables_of
from local.plan.given.schedules import DAYS_A_MONTH
from local.plan.limits import Reached
from local.plan.operations import lines, operations

LIMITS_SHOWN = 3
NOT_COUNTED = (
    "Not counted: cold starts, what goes through endpoints, Aurora's storage, what is read from the archive, "
    "Glue, Athena, free allowances other than those in the price list."
)


def table(plan: CostPlan, units: MeasuredUnits) -> str:
    """Return the plan as text."""
    return "\n".join(
        [
            *(*_head(plan), "", *_services(plan), "", *_units(plan, units), "", *_limits(plan), ""),
            *(*lines(plan, units), "", *second_region.lines(plan), ""),
            *(*_leaving(plan), "", *_foot(plan)),
        ]
    )


def _head(plan: CostPlan) -> Iterator[str]:
    traffic = plan.traffic
    yield f"{plan.environment}, {plan.prices.region}, prices of {plan.prices.dated}"
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
    ours, naive = by_service(plan.ours.running), by_service(plan.naive.running)
    idle = by_service(plan.ours.idle)
    yield f"{'dollars a month':24} {'idle':>12} {'running':>14} {'of naive':>14}"
    for service in {**idle, **ours, **naive}:
        cells = (_money(each.get(service, 0.0)) for each in (idle, ours, naive))
        yield f"{service:24} {next(cells):>12} {next(cells):>14} {next(cells):>14}"
    sums = [plan.ours.idle_dollars, sum(ours.values()), sum(naive.values())]
    yield f"{'together':24} {_money(sums[0]):>12} {_money(sums[1]):>14} {_money(sums[2]):>14}"
    if plan.events:
        per = (plan.per_million_events(each) or 0.0 for each in (plan.ours, plan.naive))
        yield f"{'per million events':24} {'':>12} {_money(next(per)):>14} {_money(next(per)):>14}"
    yield f"{'a month in all':24} {'':>12} {_money(plan.ours.dollars):>14} {_money(plan.naive.dollars):>14}"


def _money(dollars: float) -> str:
    return f"{dollars:,.2f}" if abs(dollars) < 1000 else f"{dollars:,.0f}"


def _units(plan: CostPlan, units: MeasuredUnits) -> Iterator[str]:
    stored, partitions = stored_gb(plan.traffic, units, plan.ours), shards(plan.ours, plan.traffic.peak)
    by_table = {kind: _by_table(plan.ours, kind) for kind in ("write", "read")}
    yield f"{'table':24} {'writes a day':>14} {'reads a day':>14} {'partitions':>11} {'GB':>10}"
    for name in sorted({*by_table["write"], *by_table["read"], *stored}):
        writes, reads = (by_table[kind].get(name, 0.0) for kind in ("write", "read"))
        size = f"{partitions.get(name, 1):>11} {stored.get(name, 0.0):>10,.2f}"
        yield f"{name:24} {writes:>14,.0f} {reads:>14,.0f} {size}"
    at_once = {name: each for name, each in concurrency(plan.ours, plan.traffic.peak).items() if each >= 0.01}
    if at_once:
        yield ""
        yield f"{'function':24} {'at once':>14}"
        yield from (f"{name:24} {each:>14,.2f}" for name, each in at_once.items())


def _by_table(design: Design, kind: str) -> dict[str, float]:
    """Return units a day by table, those of its indexes included."""
    found: dict[str, float] = {}
    for place, count in tables_of(design.load.day, kind).items():
        name = place.partition("/")[0]
        found[name] = found.get(name, 0.0) + count
    return found


def _limits(plan: CostPlan) -> Iterator[str]:
    for name, design in (("our design", plan.ours), ("the naive one", plan.naive)):
        yield f"what ends first in {name}"
        for each in design.limits[:LIMITS_SHOWN]:
            yield f"  {_limit(each)}"


def _limit(each: Reached) -> str:
    limit = each.limit
    when = f"{each.daily_actives:,.0f} daily actives" if each.daily_actives else "no number of users"
    return f"{limit.name}: {limit.most:,.0f} {limit.what}, reached at {when} (now {limit.load:,.2f})"


def leaving(plan: CostPlan) -> Mapping[str, Mapping[str, float]]:
    """Return what it costs that old things leave, by setting: units of a day, and dollars of a month.

    dollars: of all that would leave, whether the setting is made or not. kept_dollars: of a month's items,
    for each month that they stay in their table.
    """
    found = {}
    for setting, each in plan.ours.leaves.items():
        units = {"dynamodb.write": each.write * DAYS_A_MONTH, "dynamodb.read": each.read * DAYS_A_MONTH}
        kept = dict.fromkeys(("dynamodb.storage_gb", "dynamodb.backup_gb"), each.gb * DAYS_A_MONTH)
        found[setting] = {
            **asdict(each),
            "dollars": sum(plan.prices.dollars(units).values()),
            "kept_dollars": sum(plan.prices.dollars(kept).values()),
        }
    return found


def _leaving(plan: CostPlan) -> Iterator[str]:
    yield "what is old leaves its table, once a setting says when (0: never; then nothing of this is paid)"
    named, dollars = f"{'writes a day':>14} {'reads a day':>14}", f"{'a month':>9} {'month kept':>11}"
    yield f"{'setting':24} {'days':>5} {named} {dollars}"
    for setting, each in leaving(plan).items():
        units = f"{each['write']:>14,.0f} {each['read']:>14,.0f}"
        dollars = f"{_money(each['dollars']):>9} {_money(each['kept_dollars']):>11}"
        yield f"{setting:24} {each['days']:>5.0f} {units} {dollars}"
    yield "  a month: dollars of reading and deleting. month kept: of a month's items for each month longer."
    yield "  EventHotDays 0: events expire after 90 days at no price, whether the lake has them or not."
    yield "  What the lifecycles of buckets delete costs nothing."


def _foot(plan: CostPlan) -> Iterator[str]:
    yield f"Prices: {plan.prices.source}"
    yield "Units: local/plan/units.json, measured by `make units`. Assumptions: local/plan/facts.json."
    yield NOT_COUNTED


def as_json(plan: CostPlan, units: MeasuredUnits) -> dict[str, Any]:
    """Return the whole plan as plain data."""
    return {
        "environment": plan.environment,
        "region": plan.prices.region,
        "prices": {"dated": plan.prices.dated, "source": plan.prices.source},
        "traffic": asdict(plan.traffic),
        "events_a_month": plan.events,
        "ours": _design(plan, plan.ours, units),
        "naive": _design(plan, plan.naive, units),
        "operations": operations(plan, units),
        "second_region": second_region.as_json(plan),
        "leaving": leaving(plan),
    }


def _design(plan: CostPlan, design: Design, units: MeasuredUnits) -> Mapping[str, Any]:
    return {
        "idle_dollars": design.idle_dollars,
        "dollars": design.dollars,
        "dollars_per_million_events": plan.per_million_events(design),
        "idle_by_service": by_service(design.idle),
        "running_by_service": by_service(design.running),
        "amounts_a_month": dict(sorted(design.amounts.items())),
        "write_units_a_day": tables_of(design.load.day, "write"),
        "read_units_a_day": tables_of(design.load.day, "read"),
        "partitions": shards(design, plan.traffic.peak),
        "concurrency": concurrency(design, plan.traffic.peak),
        "stored_gb": stored_gb(plan.traffic, units, design),
        "limits": [
            {**asdict(each.limit), "share": each.limit.share, "daily_actives": each.daily_actives}
            for each in design.limits
        ],
    }
