"""A user's streaks and achievements that the book declares: what is kept of them, an item of DailyActivity
each, and how it is read: with the days of two months and the ledger since the month before; once all.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from adapters.book import BookStore
from adapters.engagement.account_items import ACHIEVEMENTS, GOALS
from adapters.engagement.account_store import AccountStore
from adapters.engagement.kept_items import KeptItems
from adapters.engagement.ledger_store import LedgerStore, TooManyEntries
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import query_all
from rules.book.book import Books
from rules.book.goal_rules import StreakPeriod
from rules.engagement.account_state import Profile, date_at
from rules.engagement.achievements import (
    AchievementSnapshot,
    DeclaredAchievement,
    StreakHistory,
    UserHistory,
    answer_digest,
    dated_positions,
    next_snapshot,
    shown_achievements,
    snapshot_until,
)
from rules.engagement.goals import (
    KnownPeriods,
    MeasuredDays,
    SettledGoals,
    first_date_needed,
    is_usable,
    settled_until,
    unsettled_goals,
)

# What is kept is renewed when it is this much older than it could be.
RENEWED_AFTER = timedelta(days=28)
# Entries that one request reads: of whom totals are kept, and once of a history of which nothing is kept yet.
ENTRIES_MAX, WHOLE_MAX = 10_000, 50_000


class GoalStore:
    """What is settled of users' streaks, and the days that streaks go by (the table DailyActivity)."""

    def __init__(self, dynamodb: Any, days: str) -> None:
        self._dynamodb, self._days = dynamodb, days
        self._items = KeptItems(dynamodb, days, GOALS)

    def get(self, user_id: str) -> SettledGoals | None:
        """Return what is settled of a user's streaks; None for nothing, or for a damaged item."""
        return self._items.get(user_id, SettledGoals.of)

    def put(self, user_id: str, settled: SettledGoals) -> None:
        """Keep what is settled."""
        self._dynamodb.put_item(**self._items.put(user_id, settled.text))

    def days(self, user_id: str, first: date, last: date, *, is_strong: bool) -> MeasuredDays:
        """Return what each date between two, both included, adds to streaks; dates without are left out."""
        if first > last:
            return {}
        found = query_all(
            self._dynamodb,
            TableName=self._days,
            KeyConditionExpression="user_id = :user AND activity_date BETWEEN :first AND :last",
            ExpressionAttributeValues=encode_item(
                {":user": user_id, ":first": first.isoformat(), ":last": last.isoformat()}
            ),
            ProjectionExpression="activity_date, measures",
            ConsistentRead=is_strong,
        )
        return {
            date.fromisoformat(day["activity_date"]): day["measures"]
            for day in map(decode_item, found)
            if day.get("measures")
        }


class AchievementStore:
    """What readers have kept of users' achievements."""

    def __init__(self, dynamodb: Any, days: str) -> None:
        self._dynamodb, self._items = dynamodb, KeptItems(dynamodb, days, ACHIEVEMENTS)

    def get(self, user_id: str) -> AchievementSnapshot:
        """Return what is kept of a user, strongly consistent; an empty one for nothing, or a damaged item."""
        return self._items.get(user_id, AchievementSnapshot.of, is_strong=True) or AchievementSnapshot()

    def put(self, user_id: str, snapshot: AchievementSnapshot) -> None:
        """Keep a snapshot."""
        self._dynamodb.put_item(**self.put_of(user_id, snapshot)["Put"])

    def put_of(self, user_id: str, snapshot: AchievementSnapshot) -> dict[str, Any]:
        """Return a transaction's action that keeps a snapshot."""
        return {"Put": self._items.put(user_id, snapshot.text)}


def periods_of(books: Books, now: datetime) -> Mapping[str, StreakPeriod]:
    """Return the streaks of the book in force, with their periods."""
    return {name: rule.per for name, rule in books.at(now).book.streaks.items()}


@dataclass(frozen=True, slots=True)
class StreakReader:
    """Reads periods of streaks, and keeps what it finds settled."""

    accounts: AccountStore
    store: GoalStore
    book_store: BookStore

    def periods(
        self, profile: Profile, first: date, last: date, now: datetime, *, is_strong: bool = False
    ) -> tuple[Profile, KnownPeriods]:
        """Return a user's whole profile, and all periods up to a date.

        first: the first date of the earliest period whose days are asked for. Raises AccountContended if the
        profile's archive is damaged.
        """
        profile = self.accounts.full_profile(profile)
        books, kept = self.book_store.books(), self.store.get(profile.user_id)
        usable = kept if kept and is_usable(kept, profile, books) else unsettled_goals(books)
        upto, since = settled_until(now), first_date_needed(usable)
        renew = upto - usable.until > RENEWED_AFTER and profile.head is not None
        until = max(last, upto) if renew else last
        found = self.store.days(profile.user_id, min(first, since), until, is_strong=renew or is_strong)
        if renew and profile.head:
            usable = KnownPeriods(usable, books, found).settled(upto, profile.head.created_at)
            self.store.put(profile.user_id, usable)
        return profile, KnownPeriods(usable, books, {day: each for day, each in found.items() if day <= last})

    def history(
        self, profile: Profile, names: Iterable[str], now: datetime, *, is_strong: bool = False
    ) -> tuple[Profile, StreakHistory]:
        """Return a user's whole profile, and some streaks up to the newest period over or reached."""
        books = self.book_store.books()
        pers = {name: per for name, per in periods_of(books, now).items() if name in set(names)}
        if not pers:
            profile = self.accounts.full_profile(profile)
            return profile, StreakHistory({}, profile.cover, books)
        when = date_at(profile, now)
        first_of_all = min(per.first(when) for per in pers.values())
        profile, known = self.periods(profile, first_of_all, when, now, is_strong=is_strong)
        periods = {name: known.until(name, per, when) for name, per in pers.items()}
        return profile, StreakHistory(periods, profile.cover, books)


@dataclass(frozen=True, slots=True)
class AchievementReading:
    """A user's achievements, and what they follow from."""

    achieved: Mapping[str, str]  # by name, instants of those that the user has
    history: UserHistory
    streaks: StreakHistory
    is_settled: bool  # whether the profile knows all that the ledger has; if not, a streak may lack a period


@dataclass(frozen=True, slots=True)
class AchievementReader:
    """Reads achievements, and keeps what it has read: what was shown of those that are never withdrawn."""

    streaks: StreakReader
    store: AchievementStore
    ledger: LedgerStore

    def read(
        self,
        profile: Profile,
        declared: Mapping[str, DeclaredAchievement],
        now: datetime,
        *,
        is_strong: bool = False,
    ) -> AchievementReading:
        """Return a user's achievements. is_strong: as of all that is written; else some moments old.

        Raises AccountContended if the profile's archive is damaged; if not is_strong, TooManyEntries for who
        has more than one request may read.
        """
        profile, streaks = self.streaks.history(profile, _streaks_of(declared), now, is_strong=is_strong)
        user, head = profile.user_id, profile.head.created_at if profile.head else ""
        kept = self.store.get(user)
        if not is_strong and kept.answer_of and kept.answer_of == answer_digest(head, declared, streaks):
            return AchievementReading(kept.answer, UserHistory((), kept.sums), streaks, is_settled=True)
        asked = answer_digest("", declared, streaks)
        if not is_strong and kept.refused == asked:
            raise TooManyEntries(ENTRIES_MAX)
        try:
            history = self._history(user, kept, now, is_strong=is_strong)
            if not kept.is_usable(declared, streaks, history):
                kept = AchievementSnapshot(shown=kept.shown)
                history = self._history(user, kept, now, is_strong=is_strong)
        except TooManyEntries:  # it costs thousands of read units to find out
            self.store.put(user, replace(self.store.get(user), refused=asked))
            raise
        dated = dated_positions(kept, declared, history, streaks)
        achieved = shown_achievements(kept, declared, dated)
        later = next_snapshot(kept, declared, history, streaks, now)
        # A projection that is behind the ledger may lack a period of a streak.
        is_settled = bool(head) and head >= later.head
        is_answer_new = head == later.head and later.answer_of not in ("", kept.answer_of)
        if is_settled and (is_answer_new or (later.until, later.shown) != (kept.until, kept.shown)):
            self.store.put(user, later)
        return AchievementReading(achieved, history, streaks, is_settled)

    def _history(
        self, user_id: str, kept: AchievementSnapshot, now: datetime, *, is_strong: bool
    ) -> UserHistory:
        most = None if is_strong else WHOLE_MAX if kept.until == date.min else ENTRIES_MAX
        read_after, place = self.ledger.after, kept.places_from()
        is_to_be_kept = kept.until < snapshot_until(0, now)
        entries, _ = read_after(user_id, place, consistent=is_to_be_kept or is_strong, most=most)
        if not is_to_be_kept and not is_strong and kept.until < snapshot_until(len(entries), now):
            entries, _ = read_after(user_id, place, most=most)  # once a day, of whom there are many
        return kept.history_with(entries)


def _streaks_of(declared: Mapping[str, DeclaredAchievement]) -> set[str]:
    return {
        condition.streak for one in declared.values() for condition in one.rule.conditions if condition.streak
    }
