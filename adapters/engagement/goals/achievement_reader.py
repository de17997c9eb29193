"""Reads a user's achievements: what is kept, and the ledger since the month before; once all of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime

from adapters.engagement.goals.achievement_store import AchievementStore
from adapters.engagement.goals.streak_reader import StreakReader
from adapters.engagement.ledger_store import LedgerStore, TooManyEntries
from rules.engagement.account_state import Profile
from rules.engagement.achievements import (
    Declared,
    KeptAchievements,
    StreakHistory,
    ToldHistory,
    answer_of,
    keeps_until,
    next_kept,
    positions,
    shown_achievements,
)

# Entries that one request reads: of whom totals are kept, and once of a history of which nothing is kept yet.
ENTRIES_MAX, WHOLE_MAX = 10_000, 50_000


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

        Raises AccountContended if the profile's archive is damaged; if not is_strong, TooManyEntries for who
        has more than one request may read.
        """
        profile, streaks = self.streaks.history(profile, _streaks_of(known), now, is_strong=is_strong)
        user, head = profile.user_id, profile.head.created_at if profile.head else ""
        kept = self.store.get(user)
        if not is_strong and kept.answer_of and kept.answer_of == answer_of(head, known, streaks):
            return ReadAchievements(known, kept.found, ToldHistory((), kept.sums), streaks, is_settled=True)
        asked = answer_of("", known, streaks)
        if not is_strong and kept.refused == asked:
            raise TooManyEntries(ENTRIES_MAX)
        try:
            told = self._told(user, kept, now, is_strong=is_strong)
            if not kept.is_usable(known, streaks, told):
                kept = KeptAchievements(shown=kept.shown)
                told = self._told(user, kept, now, is_strong=is_strong)
        except TooManyEntries:  # it costs thousands of read units to find out
            self.store.put(user, replace(self.store.get(user), refused=asked))
            raise
        found = shown_achievements(kept, known, positions(kept, known, told, streaks))
        later = next_kept(kept, known, told, streaks, now)
        # A projection that is behind the ledger may lack a period of a streak.
        is_settled = bool(head) and head >= later.head
        is_answer_new = head == later.head and later.answer_of not in ("", kept.answer_of)
        if is_settled and (is_answer_new or (later.until, later.shown) != (kept.until, kept.shown)):
            self.store.put(user, later)
        return ReadAchievements(known, found, told, streaks, is_settled)

    def _told(self, user_id: str, kept: KeptAchievements, now: datetime, *, is_strong: bool) -> ToldHistory:
        most = None if is_strong else WHOLE_MAX if kept.until == date.min else ENTRIES_MAX
        read, place = self.ledger.after, kept.places_from()
        is_to_be_kept = kept.until < keeps_until(0, now)
        entries, _ = read(user_id, place, consistent=is_to_be_kept or is_strong, most=most)
        if not is_to_be_kept and not is_strong and kept.until < keeps_until(len(entries), now):
            entries, _ = read(user_id, place, most=most)  # once a day, of whom there are many
        return kept.told(entries)


def _streaks_of(known: Mapping[str, Declared]) -> set[str]:
    return {each.streak for one in known.values() for each in one.rule.conditions if each.streak}
