"""A user's account over its three tables: how it is read, and how a decision about it is written.

Rules 6 and 7 of docs/rules.md say in which order. Other functions go on from the streams of these tables:
processors/publisher.py (the lake) and processors/outgoing/notifications.py (webhooks).

In this order: AccountStore with its reads, decisions and writes; two indexes of profiles.

A *checkpoint* is a streak's state at the end of a past month. A *fold* computes a streak from its active
dates, all of them or those after a checkpoint. What protects a streak are freezes and pauses. A profile that
was *brought forward* lists only the later ones (rules/engagement/brought_forward.py), because a write of more
than a kilobyte costs another unit. The ledger has all of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from adapters.engagement.account_items import (
    BONUS_SHARD,
    EXPIRY_SHARDS,
    UNDER_REVIEW,
    day_attributes,
    day_from,
    profile_from,
    profile_item,
    with_daily_terms,
)
from adapters.engagement.ledger_store import HeadMoved, LedgerStore
from adapters.logs import Logger
from adapters.platform.aws import pauses
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import (
    BEFORE_ALL,
    get_all,
    get_one,
    if_unchanged,
    query_all,
    scan_all,
    write_if,
)
from rules.book.daily import DailyTerms, RepairRules
from rules.days import DAY, EPOCH, unstamp
from rules.engagement.account import decide
from rules.engagement.account_state import (
    NO_AMNESTIES,
    Account,
    Amnesties,
    Day,
    Decision,
    History,
    NeedsHistory,
    Profile,
)
from rules.engagement.brought_forward import begins_before, whole_profile
from rules.engagement.earnings import dates_beside, dates_of_caps, dates_to_read
from rules.engagement.events import Event
from rules.engagement.ledger import OPENED_AT, AppliedEvents, applied_events
from rules.engagement.repairs import BrokenRun, is_broken, may_follow_break, newest_break
from rules.engagement.rest_days import NO_TERMS
from rules.engagement.streak import resumed_streak

ATTEMPTS_MAX = 12
UNREADABLE = (KeyError, TypeError, ValueError)  # reading a damaged profile raises one of these
ACTIVE = "attribute_not_exists(is_inactive)"  # the days on which something counted for the streak


logger = Logger(service="accounts")


class ProjectionMoved(Exception):
    """Another writer has changed the profile or a day since it was read: read again, decide again."""


class AccountContended(Exception):
    """The account kept changing in all attempts; nothing is lost, and the caller may try again."""


FIRST_OF_ALSO = 1  # the index of `also` in HeadMoved.failed, after commit_at_once; the profile has 0


class LoadedAccount(NamedTuple):
    """An account as AccountStore.load reads it."""

    account: Account  # with its pending entries and the days that they touch
    applied: AppliedEvents  # by the entries that are newer than the watermark, or than an older `since`


class AccountStore:
    """Profiles (UserStreaks), days (DailyActivity) and the ledger.

    profiles, days: names of the tables. shards: of a region in the index StreakLeaderboard. amnesties:
    returns the amnesties that decisions apply (rule 17); a process that applies events needs them.
    daily_terms: returns what the books say of dates. Whoever folds or shows a streak needs it.
    pay_bonuses: returns whether a book pays for achievements. Whoever writes entries needs it.
    """

    def __init__(  # noqa: PLR0913, PLR0917 (three tables, and what decisions need)
        self,
        dynamodb: Any,
        profiles: str,
        days: str,
        ledger: LedgerStore,
        shards: int,
        amnesties: Callable[[], Amnesties] = lambda: NO_AMNESTIES,
        daily_terms: Callable[[], DailyTerms] = lambda: NO_TERMS,
        pay_bonuses: Callable[[], bool] = lambda: False,
    ) -> None:
        self.dynamodb, self._profiles, self.days_table, self.shards = dynamodb, profiles, days, shards
        self.ledger, self._amnesties, self.daily_terms = ledger, amnesties, daily_terms
        self.pay_bonuses = pay_bonuses

    def judging_by(
        self, daily_terms: Callable[[], DailyTerms], pay_bonuses: Callable[[], bool]
    ) -> "AccountStore":
        """Return the same store with what other books say of dates, and of points for achievements."""
        other = copy(self)
        other.daily_terms, other.pay_bonuses = daily_terms, pay_bonuses
        return other

    def profile(self, user_id: str, is_strong: bool = True) -> Profile:
        """Read one profile; a blank one for a user not seen yet. What decides a write is read strongly."""
        item = get_one(self.dynamodb, self._profiles, {"user_id": user_id}, is_strong)
        return self._read(item) if item else self.blank(user_id)

    def blank(self, user_id: str) -> Profile:
        """Return the profile of a user who is not seen yet."""
        return self.with_terms(Profile(user_id))

    def with_terms(self, profile: Profile) -> Profile:
        """Return a profile with what the books say of dates, and of points for achievements."""
        return with_daily_terms(replace(profile, pays_bonuses=self.pay_bonuses()), self.daily_terms())

    def _read(self, item: Item) -> Profile:
        profile = profile_from(decode_item(item), self.daily_terms())
        return replace(profile, pays_bonuses=True) if self.pay_bonuses() else profile

    def profiles(self, user_ids: Iterable[str]) -> dict[str, Profile]:
        """Read many profiles in bulk, by user; a blank one for a user not seen yet."""
        users = set(user_ids)
        keys = [{"user_id": user} for user in sorted(users)]
        profiles = (self._read(item) for item in get_all(self.dynamodb, self._profiles, keys))
        by_user = {profile.user_id: profile for profile in profiles}
        return {user: by_user.get(user) or self.blank(user) for user in users}

    def readable_profiles(self, user_ids: Iterable[str]) -> dict[str, Profile]:
        """Read many profiles as `profiles` does, for an answer about many users.

        One that somebody has damaged is logged and left out, so it does not stop the others; the nightly run
        repairs it.
        """
        profiles = {user: self.blank(user) for user in user_ids}
        for item in get_all(self.dynamodb, self._profiles, [{"user_id": user} for user in sorted(profiles)]):
            user = item["user_id"]["S"]
            try:
                profiles[user] = self._read(item)
            except UNREADABLE:
                logger.exception("profile cannot be read", extra={"user_id": user})
                del profiles[user]
        return profiles

    def all_profiles(self) -> Iterator[Profile]:
        """Yield all users' profiles, strongly consistent.

        A profile that somebody has damaged is left out; the nightly run repairs it.
        """
        for item in scan_all(self.dynamodb, TableName=self._profiles, ConsistentRead=True):
            with suppress(*UNREADABLE):
                yield self._read(item)

    def days(self, keys: Iterable[tuple[str, date]]) -> dict[tuple[str, date], Day]:
        """Read days in bulk, by user and date; those that do not exist are left out."""
        item_keys = [{"user_id": user, "activity_date": day.isoformat()} for user, day in sorted(set(keys))]
        days = (day_from(decode_item(item)) for item in get_all(self.dynamodb, self.days_table, item_keys))
        return {(day.user_id, day.activity_date): day for day in days}

    def accounts_of(self, events: Mapping[str, Sequence[Event]]) -> dict[str, Account]:
        """Read users' accounts in bulk, with the days that a decision about their events needs.

        events: by user. A profile is read before its days, and days are written before their profile. So the
        days have all that the profile has counted. Days are read twice: first those of the events, which tell
        which others are needed.
        """
        profiles = self.profiles(events)
        event_dates = {user: {event.activity_date for event in events[user]} for user in events}
        days = self.days((user, day) for user, dates in event_dates.items() for day in dates)
        other_dates = {
            user: dates_to_read(user_events, profiles[user].streak, days) | dates_of_caps(user_events)
            for user, user_events in events.items()
        }
        days |= self.days((user, day) for user, dates in other_dates.items() for day in dates)
        accounts: dict[str, Account] = {}
        for user in events:
            dates = event_dates[user] | other_dates[user]
            accounts[user] = Account(profiles[user], {day: days.get((user, day)) for day in dates})
        return accounts

    def history(
        self, profile: Profile, since: date, until: date = date.max, is_strong: bool = True
    ) -> History:
        """Return a user's active dates up to a date, from the newest checkpoint before `since` on.

        They span three months at most if `since` is within the late window, and a year or so if `until` is
        near `since` (rules.engagement.streak). If the profile has no checkpoint before `since`, they begin
        with the first date.
        """
        start = resumed_streak(profile.streak, profile.cover, since)
        first = start.last + DAY if start else date.min
        if first > until:
            return History((), start)
        return History(self.active_dates(profile.user_id, first, until, is_strong), start)

    def active_dates(self, user_id: str, first: date, last: date, is_strong: bool = True) -> list[date]:
        """Return a user's active dates between two, both included, ascending."""
        only = {"ProjectionExpression": "activity_date", "FilterExpression": ACTIVE}
        items = self._query_days(user_id, first, last, ConsistentRead=is_strong, **only)
        return [date.fromisoformat(item["activity_date"]["S"]) for item in items]

    def newest_break(
        self, profile: Profile, rules: RepairRules, today: date, is_strong: bool = True
    ) -> BrokenRun | None:
        """Return the newest run that has ended; None if none has ended so late that it can be repaired.

        Active dates are read only if the run that shows is so young that the one before it may matter.
        """
        if profile.streak and is_broken(profile.streak, profile.cover, today):
            return BrokenRun(profile.streak)
        if not rules.dates_max or not may_follow_break(profile.streak, rules):
            return None
        since = today - timedelta(rules.within_days)
        profile = self.reaching_back(profile, since)
        history = self.history(profile, since, is_strong=is_strong)
        return newest_break(history.dates, history.start, profile.cover, today)

    def newest_days(self, user_id: str, first: date, last: date, limit: int) -> list[Day]:
        """Return up to `limit` of a user's active days between two dates, both included, newest first.

        Eventually consistent.
        """
        newest_first = {"FilterExpression": ACTIVE, "ScanIndexForward": False, "Limit": limit}
        items = self._query_days(user_id, first, last, **newest_first)
        return [day_from(decode_item(item)) for item in islice(items, limit)]

    def first_and_last_day(self, user_id: str) -> tuple[date, date] | None:
        """Return a user's first and last date with an event, reversed ones included; None without any.

        Eventually consistent.
        """
        ends = []
        for is_forward in (True, False):
            options = {"ScanIndexForward": is_forward, "Limit": 1, "ProjectionExpression": "activity_date"}
            found = next(iter(self._query_days(user_id, date.min, date.max, **options)), None)
            if found is None:
                return None
            ends.append(date.fromisoformat(found["activity_date"]["S"]))
        return ends[0], ends[1]

    def measured_days(
        self, user_id: str, first: date, last: date, is_strong: bool = True
    ) -> dict[date, dict[str, int]]:
        """Return the measures of the dates between two, both included. A date without any is left out."""
        if first > last:
            return {}
        only = "activity_date, measures"
        items = self._query_days(user_id, first, last, ProjectionExpression=only, ConsistentRead=is_strong)
        return {
            date.fromisoformat(day["activity_date"]): day["measures"]
            for day in map(decode_item, items)
            if day.get("measures")
        }

    def lots(
        self, user_id: str, first: date, is_strong: bool = True
    ) -> Iterable[tuple[date, dict[date, int]]]:
        """Yield a user's lots: each earning date from `first` on, in order, with its points by expiry date.

        Dates without lots are left out.
        """
        only = "activity_date, lots"
        items = self._query_days(
            user_id, first, date.max, ProjectionExpression=only, ConsistentRead=is_strong
        )
        for day in map(decode_item, items):
            if lots := day.get("lots"):
                by_expiry = {date.fromisoformat(expiry): points for expiry, points in lots.items()}
                yield date.fromisoformat(day["activity_date"]), by_expiry

    def _query_days(self, user_id: str, first: date, last: date, **options: Any) -> Iterator[Item]:
        values = {":user": user_id, ":first": first.isoformat(), ":last": last.isoformat()}
        return query_all(
            self.dynamodb,
            TableName=self.days_table,
            KeyConditionExpression="user_id = :user AND activity_date BETWEEN :first AND :last",
            ExpressionAttributeValues=encode_item(values),
            **options,
        )

    def load(self, user_id: str, dates: Iterable[date] = (), since: str = "") -> LoadedAccount:
        """Read an account with its pending entries: their writer died before it counted them.

        dates: of the days that the caller needs. since: a place in the ledger; "": the profile's watermark.
        """
        profile = self.profile(user_id)
        dates = set(dates)
        days = self.days((user_id, day) for day in dates)
        account = Account(profile, {day: days.get((user_id, day)) for day in dates})
        return self.with_pending_entries(account, since)

    def with_pending_entries(self, account: Account, since: str = "") -> LoadedAccount:
        """Add its pending entries to an account whose days were read after its profile. since: see load."""
        profile = account.profile
        watermark = profile.head.created_at if profile.head else BEFORE_ALL
        entries, missing = self.ledger.after(profile.user_id, min(watermark, since) if since else watermark)
        self.ledger.store([entry for entry in missing if entry.created_at > watermark])
        pending = [entry for entry in entries if entry.created_at > watermark]
        touched = {
            date.fromisoformat(entry.draft.activity_date) for entry in pending if entry.draft.activity_date
        }
        # The days beside them show whether a flight left out a date between them (flight_gap_dates).
        unread = dates_beside(touched) - set(account.days)
        other_days = self.days((profile.user_id, day) for day in unread)
        days = {**account.days, **{day: other_days.get((profile.user_id, day)) for day in unread}}
        return LoadedAccount(Account(profile, days, pending), applied_events(entries))

    def decision_of(
        self, account: Account, rule: Callable[[Account], Decision], amnesties: Amnesties | None = None
    ) -> Decision:
        """Return what a rule decides about an account. The account's history is read if the rule asks for it.

        amnesties: None for those of the store. Raises AccountContended if the profile has changed since it
        was read.
        """
        account = replace(account, amnesties=self._amnesties() if amnesties is None else amnesties)
        try:
            return rule(account)
        except NeedsHistory as needs:
            profile = self.reaching_back(account.profile, needs.since)
            history = self.history(profile, needs.since)
            return rule(replace(account, profile=profile, history=history))

    def reaching_back(
        self, profile: Profile, since: date, count_read: Callable[[], None] = lambda: None
    ) -> Profile:
        """Return a profile with all that protects its streak from a date on.

        If it was brought forward to a later date, the user's whole ledger is read, strongly consistent.
        count_read: is called before that, and may raise.
        """
        if begins_before(profile, since):
            return profile
        count_read()
        newest = profile.head.created_at if profile.head else OPENED_AT
        return whole_profile(profile, self.ledger.protection(profile.user_id, newest))

    def commit(self, decision: Decision) -> None:
        """Write a decision: the ledger, then the days, then the profile.

        Raises HeadMoved if nothing was written, ProjectionMoved if a day or the profile has changed since it
        was read. Then the entries are written: they are pending, and whoever reads the account next counts
        them in.
        """
        before, user_id = decision.before, decision.profile.user_id
        if decision.entries:
            self.ledger.append(decision.head, decision.entries)
        for when, day in decision.days.items():
            if not write_if(self.dynamodb.put_item, **self.day_put(before.days.get(when), day)):
                raise ProjectionMoved(f"{user_id} {when}")
        if decision.profile != before.profile:
            put = self.profile_put(before.profile, decision.profile)
            if not write_if(self.dynamodb.put_item, **put):
                raise ProjectionMoved(user_id)

    def commit_at_once(self, decision: Decision, also: Sequence[dict[str, Any]] = ()) -> None:
        """Write a command's entries, profile and days in one transaction, so that all reads agree at once.

        also: further actions. Raises HeadMoved if nothing was written. Its `failed` has indices of the list
        below: 0 is the profile, and `also` begins at FIRST_OF_ALSO.
        """
        before = decision.before
        put_of_profile = {"Put": self.profile_put(before.profile, decision.profile)}
        puts_of_days = [
            {"Put": self.day_put(before.days.get(when), day)} for when, day in decision.days.items()
        ]
        actions = [put_of_profile, *also, *puts_of_days]
        self.ledger.append(decision.head, decision.entries, actions)

    def finish_pending(self, user_id: str, now: datetime) -> Account:
        """Count the pending entries of an account in, and return the account. Raises AccountContended."""
        for _ in pauses(ATTEMPTS_MAX):
            account = self.load(user_id).account
            if not account.pending:
                return account
            with suppress(HeadMoved, ProjectionMoved):
                self.commit(self.decision_of(account, partial(decide, events=(), now=now)))
        raise AccountContended(user_id)

    def profile_put(self, before: Profile, profile: Profile) -> dict[str, Any]:
        """Return the arguments of a put of a profile in place of the one that was read, `before`.

        A streak that had lapsed when the profile changed (updated_at) is lowered.
        """
        now = unstamp(profile.updated_at) if profile.updated_at else EPOCH
        condition = if_unchanged("user_id", "version", before.version or None)
        return {"TableName": self._profiles, "Item": profile_item(profile, self.shards, now), **condition}

    def day_put(self, before: Day | None, day: Day) -> dict[str, Any]:
        """Return the arguments of a put of a day in place of the one that was read, `before`."""
        condition = if_unchanged("user_id", "ledger_head", before.watermark if before else None)
        return {"TableName": self.days_table, "Item": encode_item(day_attributes(day)), **condition}


class ReviewIndex:
    """The accounts under review, from the index UnderReview of UserStreaks. Nobody else is in it."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def waiting(self, after: str, limit: int) -> list[dict[str, Any]]:
        """Return up to `limit` accounts after a user id ("": from the first), as attributes of the index.

        They may be some seconds old.
        """
        page: dict[str, Any] = {}
        if after:
            page["ExclusiveStartKey"] = encode_item({"user_id": after, "review_state": UNDER_REVIEW})
        answer = self._dynamodb.query(
            TableName=self._table,
            IndexName="UnderReview",
            KeyConditionExpression="review_state = :open",
            ExpressionAttributeValues={":open": {"S": UNDER_REVIEW}},
            Limit=limit,
            **page,
        )
        return [decode_item(each) for each in answer["Items"]]


class ExpiryIndex:
    """The accounts with points to expire or bonuses due: the index ByExpiry. Nobody else is in it."""

    def __init__(self, dynamodb: Any, table: str, pay_bonuses: Callable[[], bool] = lambda: False) -> None:
        """pay_bonuses: as of AccountStore."""
        self._dynamodb, self._table, self._pay_bonuses = dynamodb, table, pay_bonuses

    def due(self, until: date, first_shard: int = 0) -> Iterator[str]:
        """Yield the users whose bonuses are due, and those whose next points expire by a date.

        They come shard by shard, in each the oldest first, and may be some seconds old. first_shard: where to
        begin, so that runs take turns.
        """
        shards = [str((first_shard + number) % EXPIRY_SHARDS) for number in range(EXPIRY_SHARDS)]
        if self._pay_bonuses():
            for shard in shards:
                yield from self._users(f"{BONUS_SHARD}{shard}", date.max)
        for shard in shards:
            yield from self._users(shard, until)

    def _users(self, shard: str, until: date) -> Iterator[str]:
        items = query_all(
            self._dynamodb,
            TableName=self._table,
            IndexName="ByExpiry",
            KeyConditionExpression="expiry_shard = :shard AND expires_next <= :until",
            ExpressionAttributeValues=encode_item({":shard": shard, ":until": until.isoformat()}),
        )
        yield from (item["user_id"]["S"] for item in items)
