"""A prediction as one HTML file: plots as inline SVG, with the tables behind them. It has no script."""

import html
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from analytics.what_if.summary import Json
from local.paths import ROOT
from local.plots import THEME
from local.what_if.lines import lines
from local.what_if.plots import Plot

STYLE = ROOT / "local" / "what_if" / "page.css"
IMPOSSIBLE_SHOWN = 100
MONTHS_MAX = 24


def page(figures: Json) -> str:
    """Return the page of a prediction. figures: see analytics.what_if.summary.summary."""
    title = f"What if {figures['book']} had been in force"
    first = next(lines(figures))
    body = "".join(_figure(plot) for plot in _plots(figures))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{THEME.read_text()}{STYLE.read_text()}</style>"
        f"</head><body><main><h1>{html.escape(title)}</h1><p>{html.escape(first)}</p>"
        f"{_table('Users, points and streaks', ('', 'before', 'after', 'change'), _totals(figures))}"
        f"<p>{html.escape(_users(figures['users']))}</p>{_goals(figures['goals'])}{body}{_impossible(figures['impossible'])}"
        f"{_top(figures['largest_changes'])}</main></body></html>\n"
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
        for each in figures["streaks"]
    )
    achievements = (
        (each["title"] or each["name"], each["change"], f"{each['before']:,}", f"{each['after']:,}")
        for each in figures["achievements"]
    )
    tables = ""
    if figures["streaks"]:
        head = (
            "streak",
            "is",
            "per",
            "users who ever reached a period",
            "users who have it now",
            "longest",
        )
        tables += _table("Streaks of the book that differ", head, streaks)
    if figures["achievements"]:
        heads = ("achievement", "is", "users who have it", "users who would")
        tables += _table("Achievements that differ", heads, achievements)
    return tables


def _plots(figures: Json) -> Iterator[Plot]:
    classes = [(each["change"], None, float(each["users"])) for each in figures["users"]["by_change"]]
    yield Plot("users", "Users by the change of their balance, in points", _largest_class(classes), classes)
    types = [(name, each["before"], each["after"]) for name, each in figures["by_type"].items()]
    yield Plot("types", "Points by event type", f"{len(types)} event types, before and after.", types)
    period, sums = _periods(figures["by_month"])
    yield Plot("periods", f"Points by {period}", f"{len(sums)} {period}s, before and after.", sums)
    rows = [(str(each["days"]), each["before"], each["after"]) for each in figures["streaks"]["survival"]]
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


def _largest_class(rows: Iterable[tuple[str, None, float]]) -> str:
    name, _, users = max(rows, key=itemgetter(2))
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


def _impossible(figures: Json) -> str:
    if not figures["all"]:
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
        for each in figures["listed"][:IMPOSSIBLE_SHOWN]
    )
    head = ("user", "what", "date", "points", "missing", "why")
    title = f"Not possible: {figures['all']:,}, of {figures['points']:,} points"
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
