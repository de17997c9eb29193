"""An item of UserStats: less than 1 KB, however long a person has been answering (a former key: 36 bytes)."""

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from rules.engagement.streak import Streak
from rules.questions import answer_stats
from rules.questions.answer_stats import BADGES, BadgeMeasure, Category, Settled, Stats, earned_badges

# Answers in the categories that are not counted one by one. No category has this name.
OTHERS = "*"
DATE_CHARACTERS = 4
# Badges of categories follow from the categories, which keep their first dates.
_SETTLES = {each.name for each in BADGES if each.counted is not BadgeMeasure.CATEGORIES}


def stats_attributes(person: str, stats: Stats) -> dict[str, Any]:
    """Return stats as table attributes.

    Stats are read again from days, settled, badges with badge_days, answers_by_category with category_days,
    newest_at, zone and created_at. The other attributes are what shows, as of the last activity date.
    """
    streak, names, badges = stats.streak, sorted(stats.categories), earned_badges(stats)
    answers = {name: stats.categories[name].answers for name in names}
    return {
        "fingerprint_hash": person,
        "total_points": stats.total_points,
        "total_answers": stats.total_answers,
        "streak_days": streak.length if streak else 0,
        "longest_streak_days": streak.longest if streak else 0,
        "streak_last_date": streak.last.isoformat() if streak else None,
        "badges": [each.badge.name for each in badges],
        "badge_days": _encode(each.earned_on for each in badges),
        "answers_by_category": answers | ({OTHERS: stats.others} if stats.others else {}),
        "category_days": _encode(stats.categories[name].first for name in names),
        "days": answer_stats.encode_days(stats.days),
        "settled": _settled_text(stats.settled),
        "created_at": stats.created_at or None,
        "newest_at": stats.newest[0],
        "zone": stats.newest[1],
    }


def stats_from(stored: Mapping[str, Any]) -> Stats:
    """Read stored stats; raises ValueError or KeyError for what stats_attributes() did not write."""
    days, newest = answer_stats.decode_days(stored["days"]), (stored["newest_at"], stored["zone"])
    answers = dict(stored["answers_by_category"])
    others = answers.pop(OTHERS, 0)
    firsts = _decode(stored["category_days"])
    categories = {
        name: Category(answers[name], first) for name, first in zip(sorted(answers), firsts, strict=True)
    }
    earned = dict(zip(stored["badges"], _decode(stored["badge_days"]), strict=True))
    settled = _settled(stored.get("settled"), earned)
    return Stats(days, categories, newest, settled, others, stored.get("created_at", ""))


def _settled_text(settled: Settled) -> str | None:
    streak = settled.streak
    if streak is None:
        return None
    numbers = (streak.last.toordinal(), streak.length, streak.longest, streak.active_days)
    return ":".join(map(str, (settled.answers, settled.points, *numbers)))


def _settled(text: str | None, earned: Mapping[str, date]) -> Settled:
    if text is None:
        return Settled()
    answers, points, last, length, longest, active_days = map(int, text.split(":"))
    streak = Streak(date.fromordinal(last), length, longest, active_days)
    kept = {name: day for name, day in earned.items() if day <= streak.last and name in _SETTLES}
    return Settled(answers, points, streak, kept)


def _encode(days: Iterable[date]) -> str:
    return "".join(answer_stats.base36(day.toordinal(), DATE_CHARACTERS) for day in days)


def _decode(text: str) -> list[date]:
    places = range(0, len(text), DATE_CHARACTERS)
    return [date.fromordinal(int(text[place : place + DATE_CHARACTERS], 36)) for place in places]
