"""A prediction as one HTML file: plots as inline SVG, with the tables behind them. It has no script."""

import html
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from local.paths import ROOT
from local.plots import THEME
from local.what_if.figures import lines

# Plots as inline SVG, before and after: bars beside each other, and steps. They need no script.


WIDTH, LEFT, RIGHT, TOP, BOTTOM = 360, 8, 8, 24, 28
# A text is 13 high, and "100%" 32 wide.
BAR, GAP, AXIS_WIDTH = 16, 10, 40
HEIGHT = 200
LABELS_MAX = 6
LEGEND = (
    f'<text class="before" x="{LEFT}" y="12">before</text>'
    f'<text class="after" x="{LEFT + 60}" y="12">after</text>'
)


@dataclass(frozen=True, slots=True)
class Plot:
    """title, text: what it shows, for those who hear it. rows: a name, a value before, and one after.

    before is None where there is one value alone.
    """

    key: str
    title: str
    text: str
    rows: Sequence[tuple[str, float | None, float]]
    unit: str = ""
    is_steps: bool = False

    def svg(self) -> str:
        """Return the plot."""
        body, height = self._steps() if self.is_steps else self._bars()
        names = f"{self.key}-title {self.key}-text"
        return (
            f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="{names}">'
            f'<title id="{self.key}-title">{html.escape(self.title)}</title>'
            f'<desc id="{self.key}-text">{html.escape(self.text)}</desc>{body}</svg>'
        )

    def shown(self, value: float) -> str:
        """Return a value with its unit."""
        return f"{value:.1%}" if self.unit == "%" else f"{value:,.0f}"

    @property
    def is_pair(self) -> bool:
        """Whether there are values before and after."""
        return any(before is not None for _, before, _ in self.rows)

    def _bars(self) -> tuple[str, int]:
        """Return lying bars: a name above, one bar or two below, each with its value."""
        most = max((max(before or 0, after) for _, before, after in self.rows), default=0) or 1
        parts, y = [LEGEND] if self.is_pair else [], TOP if self.is_pair else 4
        for name, before, after in self.rows:
            parts.append(f'<text x="{LEFT}" y="{y + 10}">{html.escape(name)}</text>')
            y += 14
            for kind, value in (("before", before), ("after", after)):
                if value is not None:
                    size = max(0, value) / most * (WIDTH - LEFT - RIGHT - 80)
                    at = f'x="{LEFT}" y="{y}" width="{size:.1f}" height="{BAR - 2}"'
                    parts.append(f'<rect class="{kind}" {at}/>')
                    x = LEFT + size + 4
                    parts.append(f'<text x="{x:.1f}" y="{y + BAR - 4}">{self.shown(value)}</text>')
                    y += BAR
            y += GAP
        return "".join(parts), y

    def _steps(self) -> tuple[str, int]:
        """Return two lines over names at even distances; values are shares of 1."""
        return LEGEND + "".join(self._axes()) + "".join(self._lines()), HEIGHT

    def _x(self, place: int) -> float:
        return (
            LEFT + AXIS_WIDTH + place * (WIDTH - LEFT - RIGHT - AXIS_WIDTH - 14) / max(1, len(self.rows) - 1)
        )

    @staticmethod
    def _y(value: float) -> float:
        return TOP + (1 - value) * (HEIGHT - TOP - BOTTOM)

    def _axes(self) -> Iterator[str]:
        for part in (0.0, 0.5, 1.0):
            y = self._y(part)
            ends = f'x1="{LEFT + AXIS_WIDTH}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"'
            yield f'<line class="grid" {ends}/>'
            yield f'<text x="{LEFT}" y="{y + 4:.1f}">{part:.0%}</text>'
        every = -(-len(self.rows) // LABELS_MAX)
        for place, (name, _, _) in enumerate(self.rows):
            if place % every == 0:
                at = f'x="{self._x(place):.1f}" y="{HEIGHT - 8}"'
                yield f'<text {at} text-anchor="middle">{html.escape(name)}</text>'

    def _lines(self) -> Iterator[str]:
        for kind, place in (("before", 1), ("after", 2)):
            points = " ".join(
                f"{self._x(number):.1f},{self._y(float(row[place] or 0)):.1f}"
                for number, row in enumerate(self.rows)
            )
            yield f'<polyline class="line {kind}" points="{points}"/>'


Json = dict[str, Any]
STYLE = ROOT / "local" / "what_if" / "page.css"
IMPOSSIBLE_SHOWN = 100
MONTHS_MAX = 24


def page(found: Json) -> str:
    """Return the page of a summary."""
    title = f"What if {found['book']} had been in force"
    first = next(lines(found))
    body = "".join(_figure(each) for each in _plots(found))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{THEME.read_text()}{STYLE.read_text()}</style>"
        f"</head><body><main><h1>{html.escape(title)}</h1><p>{html.escape(first)}</p>"
        f"{_table('Users, points and streaks', ('', 'before', 'after', 'change'), _totals(found))}"
        f"<p>{html.escape(_users(found['users']))}</p>{_goals(found['goals'])}{body}{_impossible(found['impossible'])}"
        f"{_top(found['largest_changes'])}</main></body></html>\n"
    )


def _users(users: Json) -> str:
    return (
        f"Of {users['all']:,} users {users['gain']:,} would have a higher balance, "
        f"{users['lose']:,} a lower one, and {users['same']:,} the same."
    )


def _totals(found: Json) -> Iterator[Sequence[str]]:
    streaks = found["streaks"]
    rows = (
        ("points ever earned", found["points"]),
        ("liability: points that can be redeemed", found["liability"]),
        ("users with a streak now", streaks["alive"]),
        ("days of these streaks", streaks["current"]),
        ("days of all users' longest streaks", streaks["longest"]),
    )
    for name, pair in rows:
        before, after = pair["before"], pair["after"]
        yield name, f"{before:,}", f"{after:,}", f"{after - before:+,}"
    yield "events that would have been refused", "", f"{found['refused']['events']:,}", ""


def _goals(found: Json) -> str:
    """Return the tables of streaks and achievements that differ; nothing where none does."""
    streaks = (
        (
            each["name"],
            each["change"],
            each["per"],
            *(
                f"{each['before'][name]:,} → {each['after'][name]:,}"
                for name in ("reached", "current", "longest")
            ),
        )
        for each in found["streaks"]
    )
    achievements = (
        (each["title"] or each["name"], each["change"], f"{each['before']:,}", f"{each['after']:,}")
        for each in found["achievements"]
    )
    told = ""
    if found["streaks"]:
        of_streaks = (
            "streak",
            "is",
            "per",
            "users who ever reached a period",
            "users who have it now",
            "longest",
        )
        told += _table("Streaks of the book that differ", of_streaks, streaks)
    if found["achievements"]:
        of_achievements = ("achievement", "is", "users who have it", "users who would")
        told += _table("Achievements that differ", of_achievements, achievements)
    return told


def _plots(found: Json) -> Iterator[Plot]:
    classes = [(each["change"], None, float(each["users"])) for each in found["users"]["by_change"]]
    yield Plot("users", "Users by the change of their balance, in points", _most(classes), classes)
    types = [(name, each["before"], each["after"]) for name, each in found["by_type"].items()]
    yield Plot("types", "Points by event type", f"{len(types)} event types, before and after.", types)
    period, sums = _periods(found["by_month"])
    yield Plot("periods", f"Points by {period}", f"{len(sums)} {period}s, before and after.", sums)
    rows = [(str(each["days"]), each["before"], each["after"]) for each in found["streaks"]["survival"]]
    text = "The share of all runs of active dates that reach so many days, before and after."
    yield Plot("survival", "Streaks that reach so many days", text, rows, "%", is_steps=True)


def _periods(by_month: Json) -> tuple[str, list[tuple[str, float, float]]]:
    """Return points by month, or by year where there are many months."""
    if len(by_month) <= MONTHS_MAX:
        return "month", [(name, each["before"], each["after"]) for name, each in by_month.items()]
    years: dict[str, list[float]] = {}
    for month, each in by_month.items():
        year = years.setdefault(month[:4], [0, 0])
        year[0] += each["before"]
        year[1] += each["after"]
    return "year", [(name, before, after) for name, (before, after) in years.items()]


def _most(rows: Iterable[tuple[str, None, float]]) -> str:
    name, _, users = max(rows, key=lambda each: each[2])
    return f"The largest class is {name} with {users:,.0f} users."


def _figure(plot: Plot) -> str:
    head = ("", "before", "after") if plot.is_pair else ("", "users")
    rows = [
        (name, *(plot.shown(value) for value in (before, after) if value is not None))
        for name, before, after in plot.rows
    ]
    table = _table("", head, rows, plot.title)
    return (
        f"<figure><figcaption><h2>{html.escape(plot.title)}</h2></figcaption>{plot.svg()}"
        f"<details><summary>The figures behind it</summary>{table}</details></figure>"
    )


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], label: str = "") -> str:
    """Return a table that scrolls by itself where it is too wide."""
    name = html.escape(label or title)
    heading = f"<h2>{html.escape(title)}</h2>" if title else ""
    first = "".join(f'<th scope="col">{html.escape(each)}</th>' if each else "<td></td>" for each in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(each)}</td>" for each in row) + "</tr>" for row in rows
    )
    return (
        f'{heading}<div class="scroll" tabindex="0" role="region" aria-label="{name}">'
        f"<table><tr>{first}</tr>{body}</table></div>"
    )


def _impossible(found: Json) -> str:
    if not found["all"]:
        return "<h2>Not possible</h2><p>All redemptions, freezes and pauses would have been possible.</p>"
    rows = (
        (
            each["user_id"],
            each["what"],
            each["at"][:10],
            f"{each['points']:,}",
            f"{each['missing']:,}",
            each["why"],
        )
        for each in found["listed"][:IMPOSSIBLE_SHOWN]
    )
    head = ("user", "what", "date", "points", "missing", "why")
    title = f"Not possible: {found['all']:,}, of {found['points']:,} points"
    return _table(title, head, rows)


def _top(rows: Sequence[Json]) -> str:
    listed = (
        (
            row["user_id"],
            f"{row['balance_before']:,} → {row['balance_after']:,}",
            f"{row['earned_before']:,} → {row['earned_after']:,}",
            f"{row['longest_before']:,} → {row['longest_after']:,}",
            "; ".join([*row["why"][:3], *row["impossible"][:1]]),
        )
        for row in rows
    )
    head = ("user", "balance", "earned", "longest", "why")
    return _table("The largest changes", head, listed) if rows else "<p>Nobody's points change.</p>"
