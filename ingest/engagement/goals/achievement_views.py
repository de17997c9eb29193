"""A user's achievements: which, since when, and how far the others are."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.engagement.goals import AchievementReader
from ingest.engagement.profiles import Profiles
from rules.book.goal_rules import Condition, ConditionKind
from rules.book.point_rules import UNIT
from rules.engagement.achievements import Declared, StreakHistory, ToldHistory, declared_achievements, key_of
from rules.engagement.goals import fold_periods


@dataclass(frozen=True, slots=True)
class AchievementViews:
    """Shows achievements."""

    profiles: Profiles
    reader: AchievementReader

    def view(self, user_id: str, now: datetime) -> dict[str, Any]:
        """Return all achievements of the book in force."""
        known = declared_achievements(self.reader.streaks.book_store.books(), now)
        told = self._told(user_id, known, now) if known else []
        return {"user_id": user_id, "achievements": told}

    def _told(self, user_id: str, known: Mapping[str, Declared], now: datetime) -> list[dict[str, Any]]:
        read = self.reader.read(self.profiles.get(user_id), known, now)
        return [
            {
                "name": name,
                "title": each.rule.title,
                "achieved": name in read.found,
                "achieved_at": read.found.get(name),
                "needs": "all" if each.rule.needs_all else "any",
                "conditions": [_condition_view(one, read.told, read.streaks) for one in each.rule.conditions],
            }
            for name, each in sorted(known.items())
        ]


def _condition_view(condition: Condition, told: ToldHistory, streaks: StreakHistory) -> dict[str, Any]:
    if condition.kind is ConditionKind.STREAK:
        have = fold_periods(streaks.periods[condition.streak or ""], streaks.cover).longest
    else:
        have = told.sums().get(key_of(condition), 0)
    unit = UNIT if condition.kind is ConditionKind.SUM else 1
    of = {"event_type": condition.event_type, "property": condition.property, "streak": condition.streak}
    return {
        "counts": condition.kind.value,
        **{name: value for name, value in of.items() if value},
        "needs": _number(condition.at_least, unit),
        "have": _number(have, unit),
    }


def _number(amount: int, unit: int) -> int | float:
    return amount / unit if amount % unit else amount // unit
