"""The figures of a prediction, in the shape of the answer's JSON."""

from collections import Counter
from dataclasses import asdict
from typing import Any

import duckdb

from analytics.lake.curated_files import cursor, query
from analytics.what_if.figures import GoalChange, WhatIfAnswer

# ruff: noqa: S608 (names of columns are our own)
SURVIVAL_DAYS = (1, 2, 3, 5, 7, 10, 14, 21, 30, 60, 90, 180, 365)
IMPOSSIBLE_LISTED = 1000
Json = dict[str, Any]
# Users are counted by the size of their change, in these classes: the least points of each class.
SIZE_CLASSES = (1, 11, 101, 1001)
# The columns of users, each with _before and _after. shown: the current streak as the profile shows it.
COMPARED = ("earned", "balance", "shown", "longest")
SUMS = ", ".join(
    f"coalesce(sum({name}_{when}), 0)::BIGINT AS {name}_{when}"
    for name in COMPARED
    for when in ("before", "after")
)
CHANGES = ", ".join(
    f"count(*) FILTER ({name}_after {sign} {name}_before) AS {name}_{word}"
    for name in COMPARED
    for sign, word in ((">", "more"), ("<", "less"), ("=", "same"))
)
TOTALS = f"""
SELECT count(*) AS all_users, {CHANGES}, {SUMS},
  count(*) FILTER (shown_before > 0) AS alive_before, count(*) FILTER (shown_after > 0) AS alive_after
FROM users
"""
# A class has the number of its place in SIZE_CLASSES, from 1; it is negative for losses, and 0 for no change.
USERS_BY_CLASS = f"""
SELECT sign(change) * ({" + ".join(f"(abs(change) >= {size})::INTEGER" for size in SIZE_CLASSES)}) AS class,
  count(*) AS users
FROM (SELECT balance_after - balance_before AS change FROM users) GROUP BY ALL
"""


def summary(answer: WhatIfAnswer, book: str) -> Json:
    """Return all figures. book: the candidate book's name."""
    question, figures = answer.question, answer.figures
    db = cursor()
    db.register("users", answer.users)
    (totals,) = query(db, TOTALS).to_pylist()
    impossible_kinds = Counter(act.what for act in figures.impossible)
    impossible_by_time = sorted(figures.impossible, key=lambda act: (act.at, act.user_id, act.what))
    runs = (figures.runs_before, figures.runs_after)
    longest_run = max((length for each in runs for length in (*each.ended, *each.alive)), default=0)
    days = [day for day in SURVIVAL_DAYS if day <= longest_run]
    survival_before, survival_after = figures.runs_before.survival(days), figures.runs_after.survival(days)
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
            "by_change": _users_by_change(db),
        },
        "points": _pair(totals, "earned"),
        "liability": _pair(totals, "balance"),
        "by_type": {name: asdict(sums) for name, sums in sorted(figures.types.items())},
        "by_month": {
            month: asdict(points)
            for month, points in sorted(figures.months.items())
            if points.before or points.after
        },
        "streaks": {
            "current": _pair(totals, "shown") | _longer_and_shorter(totals, "shown"),
            "alive": _pair(totals, "alive"),
            "longest": _pair(totals, "longest") | _longer_and_shorter(totals, "longest"),
            "survival": [
                {"days": day, "before": survival_before[day], "after": survival_after[day]} for day in days
            ],
        },
        "goals": {
            "streaks": [_streak(streak) for streak in figures.streaks],
            "achievements": [_achievement(achievement) for achievement in figures.achievements],
        },
        "levels": [asdict(level) for level in figures.levels],
        "refused": {
            "events": sum(sums.refused for sums in figures.types.values()),
            "for_their_properties": sum(sums.broken for sums in figures.types.values()),
        },
        "impossible": {
            "all": len(figures.impossible),
            "points": sum(act.points for act in figures.impossible),
            "redemptions": figures.redemptions,
            "by_kind": dict(sorted(impossible_kinds.items())),
            "listed": [asdict(act) for act in impossible_by_time[:IMPOSSIBLE_LISTED]],
        },
        "largest_changes": answer.largest_changes,
        "limits": answer.limits,
    }


def _streak(streak: GoalChange) -> Json:
    change = {"name": streak.name, "per": streak.per, "change": streak.change}
    return {**change, "before": asdict(streak.before), "after": asdict(streak.after)}


def _achievement(achievement: GoalChange) -> Json:
    change = {"name": achievement.name, "title": achievement.title, "change": achievement.change}
    return {**change, "before": achievement.before.reached, "after": achievement.after.reached}


def _pair(totals: Json, name: str) -> Json:
    return {"before": totals[f"{name}_before"], "after": totals[f"{name}_after"]}


def _longer_and_shorter(totals: Json, name: str) -> Json:
    return {"longer": totals[f"{name}_more"], "shorter": totals[f"{name}_less"]}


def _users_by_change(db: duckdb.DuckDBPyConnection) -> list[Json]:
    """Return how many users change by 1 to 10 points, 11 to 100, 101 to 1,000, and more.

    It is a list, from the largest loss to the largest gain: browsers sort the names of an object that are
    numbers.
    """
    counts = {int(number): users for number, users in db.execute(USERS_BY_CLASS).fetchall()}
    numbers = range(-len(SIZE_CLASSES), len(SIZE_CLASSES) + 1)
    return [{"change": _class_name(number), "users": counts.get(number, 0)} for number in numbers]


def _class_name(number: int) -> str:
    """Return a class in words, such as `+11 to +100`. number: as in USERS_BY_CLASS."""
    if not number:
        return "0"
    low, sign = SIZE_CLASSES[abs(number) - 1], "+" if number > 0 else "-"
    if abs(number) == len(SIZE_CLASSES):
        return f"{sign}{low:,} and more"
    return f"{sign}{low:,} to {sign}{SIZE_CLASSES[abs(number)] - 1:,}"
