"""A user's achievements: which, since when, and how far the others are."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.engagement.goals.achievement_store import AchievementStore
from adapters.engagement.ledger_store import LedgerStore
from ingest.engagement.goals.goal_views import GoalViews
from rules.book.achievement_rules import Condition, ConditionKind
from rules.book.streak_rules import UNIT
from rules.engagement.goals.achievements import Declared, StreakHistory, declared, key_of
from rules.engagement.goals.goal_streaks import fold_periods
from rules.engagement.goals.kept_achievements import KeptAchievements, next_kept, positions, shown
from rules.engagement.goals.settled_goals import settled_until
from rules.engagement.goals.told_history import ToldHistory


@dataclass(frozen=True, slots=True)
class AchievementViews:
    """Reads achievements: what is kept, and the ledger since the month before; once all of it."""

    goals: GoalViews
    store: AchievementStore
    ledger: LedgerStore

    def view(self, user_id: str, now: datetime) -> dict[str, Any]:
        """Return all achievements of the book in force."""
        books = self.goals.book_store.books()
        known = declared(books, now)
        told = self._told(user_id, known, now) if known else []
        return {"user_id": user_id, "achievements": told}

    def _told(self, user_id: str, known: Mapping[str, Declared], now: datetime) -> list[dict[str, Any]]:
        profile, streaks = self.goals.history(user_id, _streaks_of(known), now)
        kept = self.store.get(user_id)
        told = self._read(user_id, kept, now)
        if not kept.is_usable(known, streaks, told):
            kept = KeptAchievements(shown=kept.shown)
            told = self._read(user_id, kept, now)
        found = shown(kept, known, positions(kept, known, told, streaks))
        later = next_kept(kept, known, told, streaks, now)
        # A projection that is behind the ledger may lack a period of a streak.
        is_settled = profile.head is not None and profile.head.created_at >= later.head
        if is_settled and (later.until, later.shown) != (kept.until, kept.shown):
            self.store.put(user_id, later)
        return [
            {
                "name": name,
                "title": each.rule.title,
                "achieved": name in found,
                "achieved_at": found.get(name),
                "needs": "all" if each.rule.needs_all else "any",
                "conditions": [_condition_view(one, told, streaks) for one in each.rule.conditions],
            }
            for name, each in sorted(known.items())
        ]

    def _read(self, user_id: str, kept: KeptAchievements, now: datetime) -> ToldHistory:
        is_to_be_kept = kept.until < settled_until(now).replace(day=1)
        entries, _ = self.ledger.after(user_id, kept.places_from(), consistent=is_to_be_kept)
        return kept.told(entries)


def _streaks_of(known: Mapping[str, Declared]) -> set[str]:
    return {each.streak for one in known.values() for each in one.rule.conditions if each.streak}


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
