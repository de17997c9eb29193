"""Reads a user's achievements: what is kept, and the ledger since the month before; once all of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from adapters.engagement.goals.achievement_store import AchievementStore
from adapters.engagement.goals.streak_reader import StreakReader
from adapters.engagement.ledger_store import LedgerStore
from rules.engagement.account_state import Profile
from rules.engagement.goals.achievements import Declared, StreakHistory
from rules.engagement.goals.kept_achievements import KeptAchievements, next_kept, positions, shown
from rules.engagement.goals.settled_goals import settled_until
from rules.engagement.goals.told_history import ToldHistory


@dataclass(frozen=True, slots=True)
class ReadAchievements:
    """What a reading found. known: of the book in force. found: by name, instants of those the user has.

    is_settled: whether the profile knows all that the ledger has; if not, a streak may lack a period.
    """

    known: Mapping[str, Declared]
    found: Mapping[str, str]
    told: ToldHistory
    streaks: StreakHistory
    is_settled: bool


@dataclass(frozen=True, slots=True)
class AchievementReader:
    """Reads achievements, and keeps what it has read: what was shown of those that are never withdrawn."""

    streaks: StreakReader
    store: AchievementStore
    ledger: LedgerStore

    def read(
        self, profile: Profile, known: Mapping[str, Declared], now: datetime, *, is_strong: bool = False
    ) -> ReadAchievements:
        """Return a user's achievements. is_strong: as of all that is written; else some moments old.

        Raises AccountContended if the profile's archive is damaged.
        """
        profile, streaks = self.streaks.history(profile, _streaks_of(known), now, is_strong=is_strong)
        user = profile.user_id
        kept = self.store.get(user)
        told = self._told(user, kept, now, is_strong=is_strong)
        if not kept.is_usable(known, streaks, told):
            kept = KeptAchievements(shown=kept.shown)
            told = self._told(user, kept, now, is_strong=is_strong)
        found = shown(kept, known, positions(kept, known, told, streaks))
        later = next_kept(kept, known, told, streaks, now)
        # A projection that is behind the ledger may lack a period of a streak.
        is_settled = profile.head is not None and profile.head.created_at >= later.head
        if is_settled and (later.until, later.shown) != (kept.until, kept.shown):
            self.store.put(user, later)
        return ReadAchievements(known, found, told, streaks, is_settled)

    def _told(self, user_id: str, kept: KeptAchievements, now: datetime, *, is_strong: bool) -> ToldHistory:
        is_to_be_kept = kept.until < settled_until(now).replace(day=1)
        entries, _ = self.ledger.after(user_id, kept.places_from(), consistent=is_to_be_kept or is_strong)
        return kept.told(entries)


def _streaks_of(known: Mapping[str, Declared]) -> set[str]:
    return {each.streak for one in known.values() for each in one.rule.conditions if each.streak}
