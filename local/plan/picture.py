"""A plan from 1,000 to 100 million daily actives as one HTML file: an inline SVG, and no script."""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor, log10

from local.paths import ROOT
from local.plan.bill import CostPlan, Design, make_plan
from local.plan.demand.traffic import Traffic
from local.plan.given.environments import Deployment
from local.plan.given.measured_units import MeasuredUnits
from local.plan.given.price_list import PriceList
from local.plan.limits import Reached, reached, scaled

SIGN_IN = "cognito.monthly_actives"
FIRST, LAST, A_DECADE = 3, 8, 4  # powers of ten, and points in each
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 430, 80, 150, 20, 50
LIMITS_SHOWN = 3
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
        f"<tr><td>{'our design' if name == 'ours' else 'naive'}</td>{_limit(each)}</tr>"
        for name, listed in limits.items()
        for each in listed
    )
    head = "<tr><th></th><th>limit</th><th>of</th><th>daily actives</th></tr>"
    return f"<h2>What ends first</h2><table>{head}{rows}</table>"


def _limit(each: Reached) -> str:
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
