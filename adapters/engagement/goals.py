"""A user's streaks and achievements that the book declares.

What is settled of them is kept in two items of DailyActivity. A reader adds the days of the last two months,
and the ledger since the month before. Only the first reader of a user reads everything.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

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

# Settled streaks are renewed when they are this much older than they could be.
RENEWED_AFTER = timedelta(days=28)
ENTRIES_MAX = 10_000  # that one request reads of a user whose totals are kept
WHOLE_MAX = 50_000  # that one request reads of a user of whom nothing is kept yet


class GoalStore:
    """The settled part of users' streaks, and the days that streaks follow from (the table DailyActivity)."""

    def __init__(self, dynamodb: Any, days: str) -> None:
        self._dynamodb, self._days = dynamodb, days
        self._items = KeptItems(dynamodb, days, GOALS)

    def get(self, user_id: str) -> SettledGoals | None:
        """Return the settled part of a user's streaks; None if there is none, or its item is damaged."""
        return self._items.get(user_id, SettledGoals.of)

    def put(self, user_id: str, settled: SettledGoals) -> None:
        """Store the settled part of a user's streaks."""
        self._dynamodb.put_item(**self._items.put(user_id, settled.text))

    def days(self, user_id: str, first: date, last: date, *, is_strong: bool) -> MeasuredDays:
        """Return what each date between two, both included, adds to streaks; dates without are left out."""
        if first > last:
            return {}
        items = query_all(
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
            for day in map(decode_item, items)
            if day.get("measures")
        }


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


def periods_of(books: Books, now: datetime) -> Mapping[str, StreakPeriod]:
    """Return the streaks of the book in force, with their periods."""
    return {name: rule.per for name, rule in books.at(now).book.streaks.items()}


@dataclass(frozen=True, slots=True)
class StreakReader:
    """Reads periods of streaks, and stores what is settled of them."""

    accounts: AccountStore
    store: GoalStore
    book_store: BookStore

    def periods(
        self, profile: Profile, first: date, last: date, now: datetime, *, is_strong: bool = False
    ) -> tuple[Profile, KnownPeriods]:
        """Return a user's full profile, and all periods up to a date.

        first: the first date of the earliest period whose days are asked for. Raises AccountContended if the
        profile's archive is damaged.
        """
        profile = self.accounts.full_profile(profile)
        books, stored = self.book_store.books(), self.store.get(profile.user_id)
        goals = stored if stored and is_usable(stored, profile, books) else unsettled_goals(books)
        settled_to, needed_from = settled_until(now), first_date_needed(goals)
        is_renewed = settled_to - goals.until > RENEWED_AFTER and profile.head is not None
        read_to = max(last, settled_to) if is_renewed else last
        days = self.store.days(
            profile.user_id, min(first, needed_from), read_to, is_strong=is_renewed or is_strong
        )
        if is_renewed and profile.head:
            goals = KnownPeriods(goals, books, days).settled(settled_to, profile.head.created_at)
            self.store.put(profile.user_id, goals)
        days_to_last = {day: measures for day, measures in days.items() if day <= last}
        return profile, KnownPeriods(goals, books, days_to_last)

    def history(
        self, profile: Profile, names: Iterable[str], now: datetime, *, is_strong: bool = False
    ) -> tuple[Profile, StreakHistory]:
        """Return a user's full profile, and the streaks of these names up to their newest period.

        Raises AccountContended if the profile's archive is damaged.
        """
        books = self.book_store.books()
        period_of = {name: period for name, period in periods_of(books, now).items() if name in set(names)}
        if not period_of:
            profile = self.accounts.full_profile(profile)
            return profile, StreakHistory({}, profile.cover, books)
        today = date_at(profile, now)
        earliest = min(period.first(today) for period in period_of.values())
        profile, known = self.periods(profile, earliest, today, now, is_strong=is_strong)
        periods = {name: known.until(name, period, today) for name, period in period_of.items()}
        return profile, StreakHistory(periods, profile.cover, books)


@dataclass(frozen=True, slots=True)
class AchievementReading:
    """A user's achievements, and the history that they follow from."""

    achieved: Mapping[str, str]  # by name, the instant at which the user achieved it
    history: UserHistory
    streaks: StreakHistory
    is_settled: bool  # the profile has counted all entries of the ledger; if not, a streak may lack a period


class _Request(NamedTuple):
    """What is asked of a user."""

    user: str
    declared: Mapping[str, DeclaredAchievement]
    streaks: StreakHistory
    now: datetime


@dataclass(frozen=True, slots=True)
class AchievementReader:
    """Reads achievements, and keeps a snapshot of them: those that are never withdrawn are nowhere else."""

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

        Raises AccountContended if the profile's archive is damaged. Raises TooManyEntries, unless is_strong,
        for a user with more entries than one request may read.
        """
        profile, streaks = self.streaks.history(profile, _streaks_of(declared), now, is_strong=is_strong)
        user, head = profile.user_id, profile.head.created_at if profile.head else ""
        snapshot = self.store.get(user)
        if not is_strong and snapshot.answer_of == answer_digest(head, declared, streaks):
            return AchievementReading(
                snapshot.answer, UserHistory((), snapshot.sums), streaks, is_settled=True
            )
        request = _Request(user, declared, streaks, now)
        if is_strong:
            snapshot, history = self._snapshot_and_history(request, snapshot, None)
        else:
            snapshot, history = self._history_or_refusal(request, snapshot)
        dated = dated_positions(snapshot, declared, history, streaks)
        achieved = shown_achievements(snapshot, declared, dated)
        next_kept = next_snapshot(snapshot, declared, history, streaks, now)
        is_settled = bool(head) and head >= next_kept.head
        # A snapshot is stored if the profile knows all that it holds, and if it holds something new: the
        # answer to this question, more of the history, or an achievement that was not shown before.
        is_answer_new = head == next_kept.head and next_kept.answer_of not in ("", snapshot.answer_of)
        is_history_new = (next_kept.until, next_kept.shown) != (snapshot.until, snapshot.shown)
        if is_settled and (is_answer_new or is_history_new):
            self.store.put(user, next_kept)
        return AchievementReading(achieved, history, streaks, is_settled)

    def _history_or_refusal(
        self, request: _Request, snapshot: AchievementSnapshot
    ) -> tuple[AchievementSnapshot, UserHistory]:
        """Return what _snapshot_and_history does; raises TooManyEntries, and remembers that it did.

        To find out costs thousands of read units. So the next request of the same kind is refused at once.
        """
        digest = answer_digest("", request.declared, request.streaks)
        if snapshot.refused == digest:
            raise TooManyEntries(ENTRIES_MAX)
        try:
            return self._snapshot_and_history(request, snapshot, ENTRIES_MAX)
        except TooManyEntries:
            # Another request may have stored a snapshot meanwhile.
            self.store.put(request.user, replace(self.store.get(request.user), refused=digest))
            raise

    def _snapshot_and_history(
        self, request: _Request, snapshot: AchievementSnapshot, most: int | None
    ) -> tuple[AchievementSnapshot, UserHistory]:
        """Return the user's history, and the snapshot that it was made with.

        A snapshot that does not serve these achievements is left out, but for what was shown.
        """
        history = self._history(request, snapshot, most)
        if snapshot.is_usable(request.declared, request.streaks, history):
            return snapshot, history
        only_shown = AchievementSnapshot(shown=snapshot.shown)
        return only_shown, self._history(request, only_shown, most)

    def _history(self, request: _Request, snapshot: AchievementSnapshot, most: int | None) -> UserHistory:
        """Return the history that the snapshot and the newer entries make.

        most: how many entries may be read; None: all, strongly consistent. Of a user without a snapshot it is
        WHOLE_MAX. Entries that go into the next snapshot are read strongly, too. Raises TooManyEntries.
        """
        user, now, is_strong = request.user, request.now, most is None
        if most is not None and snapshot.until == date.min:
            most = WHOLE_MAX
        place = snapshot.place_before_later()
        is_due = snapshot.until < snapshot_until(0, now)  # whatever the number of entries
        entries, _ = self.ledger.after(user, place, consistent=is_due or is_strong, most=most)
        # Of a user with many entries a snapshot is due each day. Only the entries show that they are many, so
        # they are read a second time, strongly.
        if not is_due and not is_strong and snapshot.until < snapshot_until(len(entries), now):
            entries, _ = self.ledger.after(user, place, consistent=True, most=most)
        return snapshot.history_with(entries)


def _streaks_of(declared: Mapping[str, DeclaredAchievement]) -> set[str]:
    """Return the names of the streaks that achievements have as conditions."""
    return {
        condition.streak
        for achievement in declared.values()
        for condition in achievement.rule.conditions
        if condition.streak
    }
