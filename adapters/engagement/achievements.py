"""A user's achievements, and the streaks that the book declares.

Periods of streaks that no late event can change any more are *settled*: they are stored, folded, in an item
of DailyActivity. A reader adds the days since then, which are about two months. Only the first reader of a
user reads all days. Achievements follow alike from a stored snapshot and the ledger entries after it.
"""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

from adapters.book_store import BookStore
from adapters.engagement.account_items import ACHIEVEMENTS, GOALS, KeptItems
from adapters.engagement.account_store import AccountStore
from adapters.engagement.ledger_store import LedgerStore
from rules.book.book import Books
from rules.book.goal_rules import StreakPeriod
from rules.engagement.account_state import Profile, date_at
from rules.engagement.achievements import (
    AchievementSnapshot,
    Position,
    StreakHistory,
    UserHistory,
    achievement_positions,
    dated_positions,
    days_without,
    due_bonuses,
    next_snapshot,
    shown_achievements,
)
from rules.engagement.bonuses import bonus_drafts
from rules.engagement.goals import (
    DeclaredAchievement,
    KnownPeriods,
    SettledGoals,
    declared_achievements,
    first_date_needed,
    is_usable,
    settled_until,
    unsettled_goals,
)
from rules.engagement.ledger import Draft, Entry, Head
from rules.engagement.streak import Cover

# One request reads at most so many entries of a user: with a stored snapshot, and without one.
ENTRIES_MAX, ALL_ENTRIES_MAX = 10_000, 50_000
# The stored part is renewed once settled_until has moved on by more than this. More often, the writes would
# cost more than the reads that they save.
RENEWED_AFTER = timedelta(days=28)


class GoalStore:
    """The settled part of users' streaks."""

    def __init__(self, dynamodb: Any, days: str) -> None:
        """days: the name of the table DailyActivity."""
        self._dynamodb, self._items = dynamodb, KeptItems(dynamodb, days, GOALS)

    def get(self, user_id: str) -> SettledGoals | None:
        """Return the settled part of a user's streaks; None if there is none, or its item is damaged."""
        return self._items.get(user_id, SettledGoals.of)

    def put(self, user_id: str, settled: SettledGoals) -> None:
        """Store the settled part of a user's streaks."""
        self._dynamodb.put_item(**self._items.put(user_id, settled.text))


def periods_of(books: Books, now: datetime) -> Mapping[str, StreakPeriod]:
    """Return the streaks of the book in force, with their periods."""
    return {name: rule.per for name, rule in books.at(now).book.streaks.items()}


# Streaks as they would be without some entries: none for as they are. Periods that are settled stay.
StreaksWithout = Callable[[Iterable[Entry]], StreakHistory]


@dataclass(frozen=True, slots=True)
class StreakReader:
    """Reads periods of streaks, and stores their settled part."""

    accounts: AccountStore
    store: GoalStore
    book_store: BookStore

    def periods(
        self, profile: Profile, first: date, last: date, now: datetime, *, is_strong: bool = False
    ) -> tuple[Profile, KnownPeriods]:
        """Return a user's whole profile, and all periods up to a date. first: the first date of the earliest
        period whose days the caller needs.
        """
        books, stored = self.book_store.books(), self.store.get(profile.user_id)
        goals = stored if stored and is_usable(stored, profile, books) else unsettled_goals(books)
        settled_to, first_needed = settled_until(now), min(first, first_date_needed(goals))
        cover = goals.whole_cover(profile.cover)
        # If the ledger must be read for old freezes and pauses, the next reader shall find them here.
        is_renewal_due = settled_to - goals.until > (RENEWED_AFTER if cover else timedelta(0))
        profile = replace(profile, cover=cover) if cover else self.accounts.reaching_back(profile, date.min)
        if is_renewal_due and profile.head:
            # What is stored must be right, so it follows from a strong read.
            days = self.accounts.measured_days(profile.user_id, first_needed, max(last, settled_to))
            known = KnownPeriods(goals, books, days)
            goals = known.settled(settled_to, profile.head.created_at, profile.cover)
            self.store.put(profile.user_id, goals)
        else:
            days = self.accounts.measured_days(profile.user_id, first_needed, last, is_strong)
        days_to_last = {day: measures for day, measures in days.items() if day <= last}
        return profile, KnownPeriods(goals, books, days_to_last)

    def history(
        self, profile: Profile, names: Iterable[str], now: datetime, *, is_strong: bool = False
    ) -> tuple[Profile, StreaksWithout]:
        """Return a user's profile, and the streaks of these names up to their newest period.

        The profile is whole if there are any such streaks. Without one, no freeze and no pause counts.
        """
        books = self.book_store.books()
        period_of = {name: period for name, period in periods_of(books, now).items() if name in set(names)}
        if not period_of:
            return profile, lambda _: StreakHistory({}, Cover(), books)
        today = date_at(profile, now)
        earliest = min(period.first(today) for period in period_of.values())
        profile, known = self.periods(profile, earliest, today, now, is_strong=is_strong)

        def streaks_without(entries: Iterable[Entry]) -> StreakHistory:
            left = replace(known, days=days_without(known.days, entries))
            periods = {name: left.until(name, period, today) for name, period in period_of.items()}
            return StreakHistory(periods, profile.cover, books)

        return profile, streaks_without


class AchievementStore:
    """The snapshots that readers keep of users' achievements."""

    def __init__(self, dynamodb: Any, days: str) -> None:
        self._dynamodb, self._items = dynamodb, KeptItems(dynamodb, days, ACHIEVEMENTS)

    def get(self, user_id: str) -> AchievementSnapshot:
        """Return a user's snapshot, strongly consistent; an empty one if there is none, or it is damaged."""
        return self._items.get(user_id, AchievementSnapshot.of, is_strong=True) or AchievementSnapshot()

    def put(self, user_id: str, snapshot: AchievementSnapshot) -> None:
        """Store a snapshot."""
        self._dynamodb.put_item(**self.put_action(user_id, snapshot)["Put"])

    def put_action(self, user_id: str, snapshot: AchievementSnapshot) -> dict[str, Any]:
        """Return a transaction's action that stores a snapshot."""
        return {"Put": self._items.put(user_id, snapshot.text)}


@dataclass(frozen=True, slots=True)
class AchievementReading:
    """A user's achievements, and the history that they follow from."""

    achieved: Mapping[str, str]  # by name, the instant at which the user achieved it
    history: UserHistory
    streaks: StreakHistory
    # Whether the profile has counted all entries of the ledger. If not, a streak may lack a period.
    is_complete: bool
    dated: Mapping[str, Position]  # by name, the event that made it true; of those that are true
    streaks_without: StreaksWithout

    def new_by(self, declared: Mapping[str, DeclaredAchievement], event_ids: AbstractSet[str]) -> list[str]:
        """Return the names of the achievements that would not be there without these events."""
        others, these = list[Entry](), list[Entry]()
        for entry in self.history.entries:
            (these if entry.draft.event_id in event_ids else others).append(entry)
        history, streaks = replace(self.history, entries=others), self.streaks_without(these)
        without = achievement_positions(declared, history, streaks)
        return [
            name
            for name in achievement_positions(declared, self.history, self.streaks)
            if name not in without
        ]


class _Request(NamedTuple):
    """A read of a user's achievements."""

    user: str
    declared: Mapping[str, DeclaredAchievement]
    streaks: StreakHistory
    now: datetime
    is_strong: bool
    is_bounded: bool
    head: Head | None  # the newest entry that the profile has


@dataclass(frozen=True, slots=True)
class AchievementReader:
    """Reads achievements, and stores a snapshot of them."""

    streaks: StreakReader
    store: AchievementStore
    ledger: LedgerStore

    @classmethod
    def of(cls, accounts: AccountStore, books: BookStore) -> "AchievementReader":
        """Return the reader of some accounts' achievements."""
        goals = GoalStore(accounts.dynamodb, accounts.days_table)
        store = AchievementStore(accounts.dynamodb, accounts.days_table)
        return cls(StreakReader(accounts, goals, books), store, accounts.ledger)

    def read(
        self,
        profile: Profile,
        declared: Mapping[str, DeclaredAchievement],
        now: datetime,
        *,
        is_strong: bool = False,
        is_bounded: bool = True,
    ) -> AchievementReading:
        """Return a user's achievements, some moments old. is_strong: with all that is written.

        Raises TooManyEntries, unless is_bounded is False, for a user with more entries than one request may
        read.
        """
        names = _streaks_of(declared)
        profile, streaks_without = self.streaks.history(profile, names, now, is_strong=is_strong)
        streaks = streaks_without(())
        user, head = profile.user_id, profile.head.created_at if profile.head else ""
        stored = self.store.get(user)
        request = _Request(user, declared, streaks, now, is_strong, is_bounded, profile.head)
        snapshot, history = self._snapshot_and_history(request, stored)
        dated = dated_positions(snapshot, declared, history, streaks)
        achieved = shown_achievements(snapshot, declared, dated)
        following = next_snapshot(snapshot, declared, history, streaks, now)
        is_complete = bool(head) and head >= following.head
        # A snapshot is stored if the profile has counted all of its entries, and if it has more of the
        # history, or an achievement that was not shown before.
        if is_complete and (following.until, following.shown) != (snapshot.until, snapshot.shown):
            self.store.put(user, following)
        return AchievementReading(achieved, history, streaks, is_complete, dated, streaks_without)

    def bonus_drafts(self, profile: Profile, now: datetime) -> list[Draft] | None:
        """Return the entries by which a ledger has the bonuses that it should have; strongly consistent.

        None if the profile has not counted all entries of the ledger.
        """
        # A version that this process does not know could leave a bonus unpaid.
        declared = declared_achievements(self.streaks.book_store.look(), now)
        paying = {name for name, achievement in declared.items() if achievement.rule.points}
        if not paying:
            return []
        reading = self.read(profile, declared, now, is_strong=True)
        if not reading.is_complete:
            return None
        return bonus_drafts(reading.history.bonuses, due_bonuses(declared, reading.dated), paying)

    def _snapshot_and_history(
        self, request: _Request, snapshot: AchievementSnapshot
    ) -> tuple[AchievementSnapshot, UserHistory]:
        """Return the user's history, and the snapshot that it was made with.

        That is the stored one; or if it is stale, one that has only its `shown`.
        """
        history = self._history(request, snapshot)
        if snapshot.is_usable(request.declared, request.streaks, history):
            return snapshot, history
        only_shown = AchievementSnapshot(shown=snapshot.shown)
        return only_shown, self._history(request, only_shown)

    def _history(self, request: _Request, snapshot: AchievementSnapshot) -> UserHistory:
        """Return the history of a snapshot's totals and the entries after them. Raises TooManyEntries."""
        user, now, limit = request.user, request.now, None
        if request.is_bounded:
            limit = ALL_ENTRIES_MAX if snapshot.until == date.min else ENTRIES_MAX
        place = snapshot.place_before_later()
        if limit is not None:
            self.ledger.check_few(request.head, user, place, limit)
        # Entries for the next snapshot must be read strongly.
        is_strong = request.is_strong or snapshot.until < snapshot.next_until(now)
        entries, _ = self.ledger.after(user, place, is_strong=is_strong, most=limit)
        return snapshot.history_with(entries)


def _streaks_of(declared: Mapping[str, DeclaredAchievement]) -> set[str]:
    """Return the names of the streaks that achievements have as conditions."""
    return {
        condition.streak
        for achievement in declared.values()
        for condition in achievement.rule.conditions
        if condition.streak
    }
