"""A user's streaks that the book declares.

Periods that no late event can change any more are *settled*: they are stored, folded, in an item of
DailyActivity. A reader adds the days since then, which are about two months. Only the first reader of a user
reads all days.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from adapters.book import BookStore
from adapters.engagement.account_items import GOALS
from adapters.engagement.account_store import AccountStore
from adapters.engagement.kept_items import KeptItems
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import query_all
from rules.book.book import Books
from rules.book.goal_rules import StreakPeriod
from rules.engagement.account_state import Profile, date_at
from rules.engagement.achievements import StreakHistory
from rules.engagement.goals import (
    KnownPeriods,
    MeasuredDays,
    SettledGoals,
    first_date_needed,
    is_usable,
    settled_until,
    unsettled_goals,
)

# The stored part is renewed once settled_until has moved on by more than this. More often, the writes would
# cost more than the reads that they save.
RENEWED_AFTER = timedelta(days=28)


class GoalStore:
    """The settled part of users' streaks, and the days that streaks follow from. days: the table's name."""

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
        """Return the measures of the dates between two, both included. A date may have none."""
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


def periods_of(books: Books, now: datetime) -> Mapping[str, StreakPeriod]:
    """Return the streaks of the book in force, with their periods."""
    return {name: rule.per for name, rule in books.at(now).book.streaks.items()}


@dataclass(frozen=True, slots=True)
class StreakReader:
    """Reads periods of streaks, and stores their settled part."""

    accounts: AccountStore
    store: GoalStore
    book_store: BookStore

    def periods(
        self, profile: Profile, first: date, last: date, now: datetime, *, is_strong: bool = False
    ) -> tuple[Profile, KnownPeriods]:
        """Return a user's full profile, and all periods up to a date.

        first: the first date of the earliest period whose days the caller needs. Raises AccountContended if
        the profile's archive is damaged.
        """
        profile = self.accounts.full_profile(profile)
        books, stored = self.book_store.books(), self.store.get(profile.user_id)
        goals = stored if stored and is_usable(stored, profile, books) else unsettled_goals(books)
        settled_to, first_needed = settled_until(now), min(first, first_date_needed(goals))
        is_renewal_due = settled_to - goals.until > RENEWED_AFTER
        if is_renewal_due and profile.head:
            # What is stored must be right, so it follows from a strong read.
            days = self.store.days(profile.user_id, first_needed, max(last, settled_to), is_strong=True)
            goals = KnownPeriods(goals, books, days).settled(settled_to, profile.head.created_at)
            self.store.put(profile.user_id, goals)
        else:
            days = self.store.days(profile.user_id, first_needed, last, is_strong=is_strong)
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
