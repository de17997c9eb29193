"""The figures of a prediction, as JSON has them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import duckdb

from analytics.what_if.figures import GoalChange
from analytics.what_if.what_if import WhatIfAnswer

# ruff: noqa: S608 (names of columns are our own)
SURVIVAL_DAYS = (1, 2, 3, 5, 7, 10, 14, 21, 30, 60, 90, 180, 365)
IMPOSSIBLE_LISTED = 1000
Json = dict[str, Any]
# The changes of users are counted in these classes: up to 10 points, up to 100, and so on.
CLASSES = (1, 11, 101, 1001)
SUMS = ("earned", "balance", "shown", "longest")
TOTALS = f"""
SELECT count(*) AS all_users, {{changes}},
  {", ".join(f"coalesce(sum({n}_{w}), 0)::BIGINT AS {n}_{w}" for n in SUMS for w in ("before", "after"))},
  count(*) FILTER (shown_before > 0) AS alive_before, count(*) FILTER (shown_after > 0) AS alive_after
FROM users
"""
CHANGES = ", ".join(
    f"count(*) FILTER ({name}_after {sign} {name}_before) AS {name}_{word}"
    for name in SUMS
    for sign, word in ((">", "more"), ("<", "less"), ("=", "same"))
)
CLASSED = """
SELECT sign(change) * ({steps}) AS class, count(*) AS users
FROM (SELECT balance_after - balance_before AS change FROM users) GROUP BY ALL
"""


def summary(answer: WhatIfAnswer, book: str) -> Json:
    """Return all figures. book: how the candidate is named."""
    question, figures = answer.question, answer.figures
    db = duckdb.connect()
    db.register("users", answer.users)
    totals = _row(db, TOTALS.format(changes=CHANGES))
    kinds = Counter(each.what for each in figures.impossible)
    days = [day for day in SURVIVAL_DAYS if day <= max(_lengths(answer))]
    before, after = (runs.survival(days) for runs in (figures.runs_before, figures.runs_after))
    return {
        "book": book,
        "from": question.since.isoformat() if question.since else None,
        "to": question.until.isoformat() if question.until else None,
        "as_of": question.now.isoformat(),
        "entries": figures.entries,
        "users": {
            "all": totals["all_users"],
            "gain": totals["balance_more"],
            "lose": totals["balance_less"],
            "same": totals["balance_same"],
            "earn_more": totals["earned_more"],
            "earn_less": totals["earned_less"],
            "by_change": _classes(db),
        },
        "points": _pair(totals, "earned"),
        "liability": _pair(totals, "balance"),
        "by_type": {name: asdict(sums) for name, sums in sorted(figures.types.items())},
        "by_month": {month: {"before": a, "after": b} for month, (a, b) in sorted(figures.months.items())},
        "streaks": {
            "current": _pair(totals, "shown") | _moved(totals, "shown"),
            "alive": _pair(totals, "alive"),
            "longest": _pair(totals, "longest") | _moved(totals, "longest"),
            "survival": [{"days": day, "before": before[day], "after": after[day]} for day in days],
        },
        "goals": {
            "streaks": [_streak(streak) for streak in figures.streaks],
            "achievements": [_achievement(achievement) for achievement in figures.achievements],
        },
        "refused": {
            "events": sum(each.refused for each in figures.types.values()),
            "for_their_properties": sum(each.broken for each in figures.types.values()),
        },
        "impossible": {
            "all": len(figures.impossible),
            "points": sum(each.points for each in figures.impossible),
            "redemptions": figures.redemptions,
            "by_kind": dict(sorted(kinds.items())),
            "listed": [asdict(each) for each in _in_order(figures.impossible)][:IMPOSSIBLE_LISTED],
        },
        "largest_changes": answer.largest_changes,
    }


def _streak(streak: GoalChange) -> Json:
    change = {"name": streak.name, "per": streak.per, "change": streak.change}
    return {**change, "before": asdict(streak.before), "after": asdict(streak.after)}


def _achievement(achievement: GoalChange) -> Json:
    change = {"name": achievement.name, "title": achievement.title, "change": achievement.change}
    return {**change, "before": achievement.before.reached, "after": achievement.after.reached}


def _lengths(answer: WhatIfAnswer) -> Iterable[int]:
    runs = (answer.figures.runs_before, answer.figures.runs_after)
    return [0, *(length for run in runs for lengths in (run.ended, run.alive) for length in lengths)]


def _in_order(listed: Iterable[Any]) -> list[Any]:
    return sorted(listed, key=lambda each: (each.at, each.user_id, each.what))


def _pair(totals: Json, name: str) -> Json:
    return {"before": totals[f"{name}_before"], "after": totals[f"{name}_after"]}


def _moved(totals: Json, name: str) -> Json:
    return {"longer": totals[f"{name}_more"], "shorter": totals[f"{name}_less"]}


def _classes(db: duckdb.DuckDBPyConnection) -> list[Json]:
    """Return how many users change by how much: classes of ten, hundred and thousand points.

    A list, from the largest loss to the largest gain: browsers sort the names of an object that are numbers.
    """
    steps = " + ".join(f"(abs(change) >= {bound})::INTEGER" for bound in CLASSES)
    counts = {int(number): users for number, users in db.execute(CLASSED.format(steps=steps)).fetchall()}
    numbers = range(-len(CLASSES), len(CLASSES) + 1)
    return [{"change": _class_name(number), "users": counts.get(number, 0)} for number in numbers]


def _class_name(number: int) -> str:
    """Return a class in words, such as `+11 to +100`. number: negative for losses, 0 for no change."""
    if not number:
        return "0"
    low, sign = CLASSES[abs(number) - 1], "+" if number > 0 else "-"
    if abs(number) == len(CLASSES):
        return f"{sign}{low - 1:,} and more"
    return f"{sign}{low:,} to {sign}{CLASSES[abs(number)] - 1:,}"


def _row(db: duckdb.DuckDBPyConnection, sql: str) -> Json:
    result = db.execute(sql)
    names = [column[0] for column in result.description or ()]
    return dict(zip(names, result.fetchone() or (), strict=True))
