"""A prediction as one HTML file: plots as inline SVG, with the tables behind them. It has no script."""

import html
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from analytics.what_if.summary import Json
from local.paths import ROOT
from local.plots import THEME
from local.what_if.lines import lines

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 360, 8, 8, 24, 28
# A text is 13 high, and "100%" 32 wide.
BAR, GAP, AXIS_WIDTH = 16, 10, 40
HEIGHT = 200
LABELS_MAX = 6
LEGEND = (
    f'<text class="before" x="{LEFT}" y="12">before</text>'
    f'<text class="after" x="{LEFT + 60}" y="12">after</text>'
)
STYLE = ROOT / "local" / "what_if" / "page.css"
IMPOSSIBLE_MAX = 100  # rows of what would not have been possible
MONTHS_MAX = 24  # with more months points are shown by year
REASONS_MAX = 3  # of one user's change


class PlotRow(NamedTuple):
    """The values of one bar, or of one place of the lines."""

    name: str
    before: float | None  # None: there is one value alone
    after: float


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of values before and after."""

    key: str  # begins the ids of its elements
    title: str
    text: str  # what it shows, for those who hear the page
    rows: Sequence[PlotRow]
    unit: str = ""  # "%" for shares of 1
    is_steps: bool = False  # two lines, and no bars

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
        return any(row.before is not None for row in self.rows)

    def _bars(self) -> tuple[str, int]:
        """Return horizontal bars, and the plot's height. Below each name are its bars with their values."""
        most = max((max(row.before or 0, row.after) for row in self.rows), default=0) or 1
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
        """Return two lines over names at even distances, and the plot's height. Values are shares of 1."""
        return LEGEND + "".join(self._axes()) + "".join(self._lines()), HEIGHT

    def _x(self, index: int) -> float:
        """Return where a row is, from the left."""
        width = WIDTH - LEFT - RIGHT - AXIS_WIDTH - 14
        return LEFT + AXIS_WIDTH + index * width / max(1, len(self.rows) - 1)

    @staticmethod
    def _y(value: float) -> float:
        """Return where a value is, from the top."""
        return TOP + (1 - value) * (HEIGHT - TOP - BOTTOM)

    def _axes(self) -> Iterator[str]:
        """Yield horizontal lines with their shares, and some of the rows' names below."""
        for share in (0.0, 0.5, 1.0):
            y = self._y(share)
            ends = f'x1="{LEFT + AXIS_WIDTH}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"'
            yield f'<line class="grid" {ends}/>'
            yield f'<text x="{LEFT}" y="{y + 4:.1f}">{share:.0%}</text>'
        every = -(-len(self.rows) // LABELS_MAX)
        for index, row in enumerate(self.rows):
            if index % every == 0:
                at = f'x="{self._x(index):.1f}" y="{HEIGHT - 8}"'
                yield f'<text {at} text-anchor="middle">{html.escape(row.name)}</text>'

    def _lines(self) -> Iterator[str]:
        """Yield the two lines."""
        for kind in ("before", "after"):
            values = [float(getattr(row, kind) or 0) for row in self.rows]
            points = " ".join(
                f"{self._x(index):.1f},{self._y(value):.1f}" for index, value in enumerate(values)
            )
            yield f'<polyline class="line {kind}" points="{points}"/>'


def page(figures: Json) -> str:
    """Return the page of a prediction. figures: see analytics.what_if.summary.summary."""
    title = f"What if {figures['book']} had been in force"
    introduction = next(lines(figures))
    parts = (
        f"<h1>{html.escape(title)}</h1><p>{html.escape(introduction)}</p>",
        _table("Users, points and streaks", ("", "before", "after", "change"), _totals(figures)),
        f"<p>{html.escape(_users(figures['users']))}</p>",
        _goals(figures["goals"]),
        *map(_figure, _plots(figures)),
        _impossible(figures["impossible"]),
        _largest_changes(figures["largest_changes"]),
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{THEME.read_text()}{STYLE.read_text()}</style>"
        f"</head><body><main>{''.join(parts)}</main></body></html>\n"
    )


def _users(users: Json) -> str:
    return (
        f"Of {users['all']:,} users {users['gain']:,} would have a higher balance, "
        f"{users['lose']:,} a lower one, and {users['same']:,} the same."
    )


def _totals(figures: Json) -> Iterator[Sequence[str]]:
    streaks = figures["streaks"]
    rows = (
        ("points ever earned", figures["points"]),
        ("liability: points that can be redeemed", figures["liability"]),
        ("users with a streak now", streaks["alive"]),
        ("days of these streaks", streaks["current"]),
        ("days of all users' longest streaks", streaks["longest"]),
    )
    for name, pair in rows:
        before, after = pair["before"], pair["after"]
        yield name, f"{before:,}", f"{after:,}", f"{after - before:+,}"
    yield "events that would have been refused", "", f"{figures['refused']['events']:,}", ""


def _goals(figures: Json) -> str:
    tables = ""
    if figures["streaks"]:
        heads = ("streak", "is", "per", "users who ever reached a period", "users who have it now", "longest")
        rows = [
            (
                streak["name"],
                streak["change"],
                streak["per"],
                *(
                    _before_and_after(streak["before"][name], streak["after"][name])
                    for name in ("reached", "current", "longest")
                ),
            )
            for streak in figures["streaks"]
        ]
        tables += _table("Streaks of the book that differ", heads, rows)
    if figures["achievements"]:
        rows = [
            (
                achievement["title"] or achievement["name"],
                achievement["change"],
                f"{achievement['before']:,}",
                f"{achievement['after']:,}",
            )
            for achievement in figures["achievements"]
        ]
        tables += _table(
            "Achievements that differ", ("achievement", "is", "users who have it", "users who would"), rows
        )
    return tables


def _before_and_after(before: int, after: int) -> str:
    return f"{before:,} → {after:,}"


def _plots(figures: Json) -> Iterator[Plot]:
    changes = [PlotRow(row["change"], None, float(row["users"])) for row in figures["users"]["by_change"]]
    title = "Users by the change of their balance, in points"
    largest = max(changes, key=attrgetter("after"))
    text = f"The largest class is {largest.name} with {largest.after:,.0f} users."
    yield Plot("users", title, text, changes)
    types = [PlotRow(name, points["before"], points["after"]) for name, points in figures["by_type"].items()]
    yield Plot("types", "Points by event type", f"{len(types)} event types, before and after.", types)
    period, sums = _points_by_period(figures["by_month"])
    yield Plot("periods", f"Points by {period}", f"{len(sums)} {period}s, before and after.", sums)
    shares = [
        PlotRow(str(row["days"]), row["before"], row["after"]) for row in figures["streaks"]["survival"]
    ]
    text = "The share of all runs of active dates that reach so many days, before and after."
    yield Plot("survival", "Streaks that reach so many days", text, shares, "%", is_steps=True)


def _points_by_period(by_month: Json) -> tuple[str, list[PlotRow]]:
    """Return `month` or, where there are many months, `year`; and the points of each period."""
    if len(by_month) <= MONTHS_MAX:
        rows = [PlotRow(month, points["before"], points["after"]) for month, points in by_month.items()]
        return "month", rows
    before, after = Counter[str](), Counter[str]()
    for month, points in by_month.items():
        before[month[:4]] += points["before"]
        after[month[:4]] += points["after"]
    return "year", [PlotRow(year, before[year], after[year]) for year in before]


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
    """Return a table that scrolls by itself where it is too wide. label: its name, if it has no title."""
    name = html.escape(label or title)
    heading = f"<h2>{html.escape(title)}</h2>" if title else ""
    heads = "".join(f'<th scope="col">{html.escape(text)}</th>' if text else "<td></td>" for text in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>" for cells in rows
    )
    return (
        f'{heading}<div class="scroll" tabindex="0" role="region" aria-label="{name}">'
        f"<table><tr>{heads}</tr>{body}</table></div>"
    )


def _impossible(figures: Json) -> str:
    if not figures["all"]:
        return "<h2>Not possible</h2><p>All redemptions, freezes and pauses would have been possible.</p>"
    rows = (
        (
            entry["user_id"],
            entry["what"],
            entry["at"][:10],
            f"{entry['points']:,}",
            f"{entry['missing']:,}",
            entry["why"],
        )
        for entry in figures["listed"][:IMPOSSIBLE_MAX]
    )
    heads = ("user", "what", "date", "points", "missing", "why")
    title = f"Not possible: {figures['all']:,}, of {figures['points']:,} points"
    return _table(title, heads, rows)


def _largest_changes(users: Sequence[Json]) -> str:
    if not users:
        return "<p>Nobody's points change.</p>"
    rows = (
        (
            user["user_id"],
            *(
                _before_and_after(user[f"{name}_before"], user[f"{name}_after"])
                for name in ("balance", "earned", "longest")
            ),
            "; ".join([*user["why"][:REASONS_MAX], *user["impossible"][:1]]),
        )
        for user in users
    )
    return _table("The largest changes", ("user", "balance", "earned", "longest", "why"), rows)
