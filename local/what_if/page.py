"""A prediction as one HTML file: plots as inline SVG, with the tables behind them. It has no script."""

import html
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import itemgetter

from analytics.what_if.summary import Json
from local.plots import Figure, bars, file_page, lines, readable, spoken
from local.what_if.lines import span

IMPOSSIBLE_MAX = 100  # rows of what would not have been possible
MONTHS_MAX = 24  # with more months points are shown by year
REASONS_MAX = 3  # of one user's change
Pairs = Sequence[tuple[str, float, float]]  # a name, a value before, and one after


def page(figures: Json) -> str:
    """Return the page of a prediction. figures: see analytics.what_if.summary.summary."""
    title = f"What if {figures['book']} had been in force"
    at = f"Worked out at {figures['as_of']} from {figures['entries']:,} ledger entries; {span(figures)}."
    totals = Figure(
        "Users, points and streaks",
        _users(figures["users"]),
        ("Sum", "Before", "After", "Change"),
        list(_totals(figures)),
    )
    parts = (
        f"<h1>{html.escape(title)}</h1><p class=note>{html.escape(readable(at))}</p>",
        *(f"<p class=note>{html.escape(limit)}</p>" for limit in figures["limits"]),
        _section("All together", [totals, *_goals(figures["goals"]), *_levels(figures["levels"])]),
        _section("Who gains, and by what", _plots(figures)),
        _section(
            "User by user",
            [_impossible(figures["impossible"]), _largest_changes(figures["largest_changes"])],
            "lists",
        ),
    )
    return file_page(title, "".join(parts))


def _section(title: str, figures: Iterator[Figure] | Sequence[Figure], kind: str = "plots") -> str:
    body = "".join(figure.html() for figure in figures)
    return f"<h2>{html.escape(title)}</h2><div class={kind}>{body}</div>"


def _users(users: Json) -> str:
    return (
        f"Of {users['all']:,} users {users['gain']:,} would have a higher balance, "
        f"{users['lose']:,} a lower one, and {users['same']:,} the same."
    )


def _totals(figures: Json) -> Iterator[Sequence[str]]:
    streaks = figures["streaks"]
    rows = (
        ("Points ever earned", figures["points"]),
        ("Points that can be redeemed: what you owe", figures["liability"]),
        ("Users with a streak now", streaks["alive"]),
        ("Days of these streaks", streaks["current"]),
        ("Days of all users' longest streaks", streaks["longest"]),
    )
    for name, pair in rows:
        before, after = pair["before"], pair["after"]
        yield name, f"{before:,}", f"{after:,}", f"{after - before:+,}" if after != before else "0"
    refused = f"{figures['refused']['events']:,}"
    yield "Events that would have been refused", "0", refused, f"+{refused}" if refused != "0" else "0"


def _goals(figures: Json) -> Iterator[Figure]:
    if figures["streaks"]:
        heads: tuple[str, ...] = (
            "Streak",
            "Is",
            "Per",
            "Users who ever reached a period",
            "Users who have it now",
            "Longest",
        )
        rows = [
            (
                spoken(streak["name"]),
                streak["change"],
                streak["per"],
                *(
                    _before_and_after(streak["before"][name], streak["after"][name])
                    for name in ("reached", "current", "longest")
                ),
            )
            for streak in figures["streaks"]
        ]
        yield Figure("Streaks of the book that differ", "", heads, rows)
    if figures["achievements"]:
        users = [
            (
                achievement["title"] or spoken(achievement["name"]),
                achievement["change"],
                f"{achievement['before']:,}",
                f"{achievement['after']:,}",
            )
            for achievement in figures["achievements"]
        ]
        heads = ("Achievement", "Is", "Users who have it", "Users who would")
        yield Figure("Achievements that differ", "", heads, users)


def _levels(levels: Sequence[Json]) -> Iterator[Figure]:
    if levels:
        rows = [
            (
                level["title"] or spoken(level["name"] or "none"),
                f"{level['before']:,}",
                f"{level['after']:,}",
                f"{level['after'] - level['before']:+,}" if level["after"] != level["before"] else "0",
            )
            for level in levels
        ]
        yield Figure("Users on each level", "", ("Level", "Before", "After", "Change"), rows)


def _before_and_after(before: int, after: int) -> str:
    return f"{before:,} → {after:,}"


def _plots(figures: Json) -> Iterator[Figure]:
    classes = {row["change"]: float(row["users"]) for row in figures["users"]["by_change"]}
    change, users = max(classes.items(), key=itemgetter(1))
    yield bars(
        "Users by the change of their balance, in points",
        f"The largest class is {change} with {users:,.0f} users.",
        list(classes),
        {"users": [*classes.values()]},
        head="Change",
    )
    types = [(spoken(name), points["before"], points["after"]) for name, points in figures["by_type"].items()]
    sentence = "A type whose two bars differ is one that this book pays otherwise."
    yield bars("Points by event type", sentence, *_series(types), head="Event")
    period, sums = _points_by_period(figures["by_month"])
    sentence = f"What people earned in each {period}."
    yield bars(f"Points by {period}", sentence, *_series(sums), head=period.capitalize())
    shares = [(str(row["days"]), row["before"], row["after"]) for row in figures["streaks"]["survival"]]
    sentence = (
        "The share of all runs of active dates that reach so many days. A run that goes on counts as far as "
        "it has come (Kaplan-Meier). A higher line is better."
    )
    yield lines("Streaks that reach so many days", sentence, *_series(shares), head="Days")


def _series(rows: Pairs) -> tuple[list[str], dict[str, list[float]]]:
    values = {"before": [row[1] for row in rows], "after": [row[2] for row in rows]}
    return [row[0] for row in rows], values


def _points_by_period(by_month: Json) -> tuple[str, Pairs]:
    """Return `month` or, where there are many months, `year`; and (period, points before, points after)."""
    if len(by_month) <= MONTHS_MAX:
        return "month", [(month, points["before"], points["after"]) for month, points in by_month.items()]
    before, after = Counter[str](), Counter[str]()
    for month, points in by_month.items():
        before[month[:4]] += points["before"]
        after[month[:4]] += points["after"]
    return "year", [(year, before[year], after[year]) for year in before]


def _impossible(figures: Json) -> Figure:
    if not figures["all"]:
        sentence = "All redemptions, freezes, repairs and pauses would have been possible."
        return Figure("Not possible: nothing", sentence, (), ())
    rows = [
        (
            entry["user_id"],
            entry["what"],
            entry["at"][:10],
            f"{entry['points']:,}",
            f"{entry['missing']:,}",
            entry["why"],
        )
        for entry in figures["listed"][:IMPOSSIBLE_MAX]
    ]
    title = f"Not possible: {figures['all']:,}, of {figures['points']:,} points"
    return Figure(title, "", ("User", "What", "Date", "Points", "Missing", "Why"), rows)


def _largest_changes(users: Sequence[Json]) -> Figure:
    rows = [
        (
            user["user_id"],
            *(
                _before_and_after(user[f"{name}_before"], user[f"{name}_after"])
                for name in ("balance", "earned", "longest")
            ),
            readable("; ".join([*user["why"][:REASONS_MAX], *user["impossible"][:1]])),
        )
        for user in users
    ]
    sentence = "" if rows else "Nobody's points change."
    return Figure("The largest changes", sentence, ("User", "Balance", "Earned", "Longest", "Why"), rows)
