"""A plan as a table that is read, as JSON, and as one HTML file with a picture from 1,000 to 100 million
daily actives.
"""

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import floor, log10
from typing import Any

from local.paths import ROOT
from local.plan import bill
from local.plan.bill import (
    CostPlan,
    Design,
    by_service,
    concurrency,
    make_plan,
    operation_lines,
    operations,
    shards,
    stored_gb,
)
from local.plan.environments import DAYS_A_MONTH, Deployment
from local.plan.limits import Reached, reached, scaled
from local.plan.measured_units import MeasuredUnits, tables_of
from local.plan.price_list import PriceList
from local.plan.traffic import Traffic

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
            *(*operation_lines(plan, units), "", *bill.second_region_lines(plan), ""),
            *(*_departures(plan), "", *_foot(plan)),
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


def departures(plan: CostPlan) -> Mapping[str, Mapping[str, float]]:
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


def _departures(plan: CostPlan) -> Iterator[str]:
    yield "what is old leaves its table, once a setting says when (0: never; then nothing of this is paid)"
    named, dollars = f"{'writes a day':>14} {'reads a day':>14}", f"{'a month':>9} {'month kept':>11}"
    yield f"{'setting':24} {'days':>5} {named} {dollars}"
    for setting, each in departures(plan).items():
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
        "second_region": bill.second_region_json(plan),
        "leaving": departures(plan),
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


# A plan from 1,000 to 100 million daily actives as one HTML file: an inline SVG, and no script.


SIGN_IN = "cognito.monthly_actives"
FIRST, LAST, A_DECADE = 3, 8, 4  # powers of ten, and points in each
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 430, 80, 150, 20, 50
STYLE = ROOT / "local" / "plan" / "picture.css"


@dataclass(frozen=True, slots=True)
class Scale:
    """Logarithmic axes: x of daily actives, y of dollars. lowest, highest: powers of ten of dollars."""

    lowest: int
    highest: int

    def x(self, users: float) -> float:
        """Return the place of a number of users."""
        part = (log10(users) - FIRST) / (LAST - FIRST)
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(self, dollars: float) -> float:
        """Return the place of dollars; what is below the axis lies on it."""
        part = (log10(max(dollars, 10.0**self.lowest)) - self.lowest) / (self.highest - self.lowest)
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)


def users_shown() -> list[float]:
    """Return the numbers of daily actives that are worked out."""
    return [10 ** (FIRST + each / A_DECADE) for each in range((LAST - FIRST) * A_DECADE + 1)]


def picture(traffic: Traffic, deployed: Deployment, units: MeasuredUnits, prices: PriceList) -> str:
    """Return the page. Leads and questions grow with the users, in the plan's proportion."""
    plans = [make_plan(scaled(traffic, users), deployed, units, prices) for users in users_shown()]
    limits = {
        name: reached(traffic, deployed, units, naive=name == "naive")[:LIMITS_SHOWN]
        for name in ("ours", "naive")
    }
    title = f"What {deployed.name} costs in {prices.region}, prices of {prices.dated}"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE.read_text()}</style>'
        f"<h1>{html.escape(title)}</h1><p>{html.escape(_subtitle(traffic))}</p>"
        f"{chart(plans, limits)}{_ends(limits)}{_figures(plans)}<p>{html.escape(prices.source)}</p></html>\n"
    )


def _subtitle(traffic: Traffic) -> str:
    return (
        f"{traffic.events_per_user:g} events a user and day in batches of {traffic.events_per_batch:g}, "
        f"{traffic.retention_days:g} days kept. Both axes are logarithmic. "
        "Dashed: with nobody there. Cognito is left out of the lines: your own issuer costs nothing here."
    )


def _dollars(design: Design) -> float:
    """A month's dollars without those of signing in: they are the same in both, and hide the rest."""
    return design.dollars - design.running.get(SIGN_IN, 0.0)


def chart(plans: Sequence[CostPlan], limits: dict[str, list[Reached]]) -> str:
    """Return the SVG: dollars a month of both designs, with the limits that each reaches first."""
    least = max(1.0, plans[0].ours.idle_dollars)
    most = max(_dollars(each) for plan in plans for each in (plan.ours, plan.naive))
    scale = Scale(floor(log10(least)), floor(log10(most)) + 1)
    label = "Dollars a month by daily actives, our design and the naive one"
    parts = [*_axes(scale), *_lines(plans, scale), *_marks(limits, scale)]
    body = "".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{body}</svg>'


def _axes(scale: Scale) -> Iterator[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for power in range(scale.lowest, scale.highest + 1):
        y = scale.y(10.0**power)
        yield f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">${_short(10.0**power)}</text>'
    for power in range(FIRST, LAST + 1):
        x = scale.x(10.0**power)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{_short(10.0**power)}</text>'
    yield f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">daily actives</text>'


def _lines(plans: Sequence[CostPlan], scale: Scale) -> Iterator[str]:
    users = [plan.traffic.daily_actives for plan in plans]
    for name in ("naive", "ours"):
        costs = [_dollars(getattr(plan, name)) for plan in plans]
        places = zip(users, costs, strict=True)
        points = " ".join(f"{scale.x(each):.1f},{scale.y(cost):.1f}" for each, cost in places)
        yield f'<polyline class="line {name}" points="{points}"/>'
    idle = scale.y(plans[0].ours.idle_dollars)
    yield f'<line class="ours idle" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{idle:.1f}" y2="{idle:.1f}"/>'
    ends = [scale.y(_dollars(plans[-1].naive)), scale.y(_dollars(plans[-1].ours))]
    ends[1] = max(ends[1], ends[0] + 16)
    for name, text, y in (("naive", "naive", ends[0]), ("ours", "our design", ends[1])):
        yield f'<text class="{name}" x="{WIDTH - RIGHT + 8}" y="{y + 4:.1f}">{text}</text>'


def _marks(limits: dict[str, list[Reached]], scale: Scale) -> Iterator[str]:
    for name, listed in limits.items():
        for each in listed[:1]:
            users = each.daily_actives
            if users and 10**FIRST <= users <= 10**LAST:
                x = scale.x(users)
                ends = f'y1="{TOP}" y2="{HEIGHT - BOTTOM}"'
                yield f'<line class="{name} mark" x1="{x:.1f}" x2="{x:.1f}" {ends}/>'
                side = 'text-anchor="end"' if x > WIDTH / 2 else ""
                at = f'x="{x + (-4 if side else 4):.1f}" y="{TOP + (12 if name == "ours" else 28)}"'
                yield f'<text class="{name}" {at} {side}>{html.escape(each.limit.name)}</text>'


def _ends(limits: dict[str, list[Reached]]) -> str:
    rows = "".join(
        f"<tr><td>{'our design' if name == 'ours' else 'naive'}</td>{_limit_cells(each)}</tr>"
        for name, listed in limits.items()
        for each in listed
    )
    head = "<tr><th></th><th>limit</th><th>of</th><th>daily actives</th></tr>"
    return f"<h2>What ends first</h2><table>{head}{rows}</table>"


def _limit_cells(each: Reached) -> str:
    limit = each.limit
    cells = (limit.name, f"{limit.most:,.0f} {limit.what}", _users(each.daily_actives))
    return "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)


def _users(users: float | None) -> str:
    return "never" if users is None else f"{users:,.0f}"


def _figures(plans: Sequence[CostPlan]) -> str:
    rows = "".join(
        f"<tr><td>{plan.traffic.daily_actives:,.0f}</td><td>{_dollars(plan.ours):,.0f}</td>"
        f"<td>{_dollars(plan.naive):,.0f}</td><td>{plan.ours.running.get(SIGN_IN, 0.0):,.0f}</td></tr>"
        for plan in plans[::A_DECADE]
    )
    head = "<tr><th>daily actives</th><th>our design</th><th>naive</th><th>sign-in besides</th></tr>"
    return f"<h2>Dollars a month</h2><table>{head}{rows}</table>"


def _short(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g}{letter}"
    return f"{number:g}"
