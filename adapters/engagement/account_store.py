"""A user's account over its three tables: read it, and write a decision about it (rules 6 and 7). Which
accounts are under review, or have points to expire.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from itertools import islice
from secrets import token_bytes
from typing import Any

from adapters.engagement.account_items import (
    EXPIRY_SHARDS,
    UNDER_REVIEW,
    day_attributes,
    day_from,
    profile_from,
)
from adapters.engagement.kept_items import ArchiveMoved, ArchiveStore
from adapters.engagement.ledger_store import HeadMoved, LedgerStore
from adapters.platform.aws import pauses
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import BEFORE_ALL, cancellation_reasons, get_all, query_all, scan_all
from rules.days import DAY
from rules.engagement.account import decide
from rules.engagement.account_state import Account, Day, Decision, History, NeedsHistory, Profile
from rules.engagement.amnesty import NO_AMNESTIES, Amnesties
from rules.engagement.earnings import dates_beside, dates_of_caps, dates_to_read
from rules.engagement.events import Event
from rules.engagement.ledger import AppliedEvents, Entry, applied_events
from rules.engagement.seals import SALT_BYTES, with_proof
from rules.engagement.streak import resumed_streak

ATTEMPTS_MAX = 12


class ProjectionMoved(Exception):
    """Another writer has changed the profile or a day since it was read: read again, decide again."""


class AccountContended(Exception):
    """The account kept changing in all attempts; nothing is lost, and the caller may try again."""


class AccountStore:
    """Profiles (UserStreaks), days (DailyActivity) and the ledger.

    shards: of a region in the index StreakLeaderboard. amnesties: gives those that are known to whoever
    decides about an account (rule 17). salts: draws one for a chain of hashes that begins (rule 19).
    """

    def __init__(self, dynamodb: Any, profiles: str, days: str, ledger: LedgerStore, shards: int) -> None:
        self._dynamodb, self._profiles, self._days, self.shards = dynamodb, profiles, days, shards
        self.ledger, self.archives = ledger, ArchiveStore(dynamodb, days)
        self.amnesties: Callable[[], Amnesties] = lambda: NO_AMNESTIES
        self.salts: Callable[[], bytes] = partial(token_bytes, SALT_BYTES)

    def profile(self, user_id: str, is_strong: bool = True) -> Profile:
        """Read one profile; a blank one for a user not seen yet. What decides a write is read strongly."""
        answer = self._dynamodb.get_item(
            TableName=self._profiles, Key={"user_id": {"S": user_id}}, ConsistentRead=is_strong
        )
        return profile_from(decode_item(answer["Item"])) if "Item" in answer else Profile(user_id)

    def profiles(self, user_ids: Iterable[str]) -> dict[str, Profile]:
        """Read many profiles in bulk."""
        users = set(user_ids)
        keys = [{"user_id": user} for user in sorted(users)]
        found = (profile_from(decode_item(each)) for each in get_all(self._dynamodb, self._profiles, keys))
        by_user = {profile.user_id: profile for profile in found}
        return {user: by_user.get(user) or Profile(user) for user in users}

    def all_profiles(self) -> Iterator[Profile]:
        """Yield all users' profiles, as they are now.

        A profile that somebody has damaged is left out; the nightly run repairs it.
        """
        for item in scan_all(self._dynamodb, TableName=self._profiles, ConsistentRead=True):
            with suppress(KeyError, TypeError, ValueError):
                yield profile_from(decode_item(item))

    def days(self, keys: Iterable[tuple[str, date]]) -> dict[tuple[str, date], Day]:
        """Read days in bulk."""
        wanted = [{"user_id": user, "activity_date": day.isoformat()} for user, day in sorted(set(keys))]
        found = (day_from(decode_item(each)) for each in get_all(self._dynamodb, self._days, wanted))
        return {(day.user_id, day.activity_date): day for day in found}

    def accounts_of(self, events: Mapping[str, Sequence[Event]]) -> dict[str, Account]:
        """Read users' accounts in bulk, with the days that a decision about their events needs.

        events: by user. Profiles are read before days: so days hold all that the profiles have counted in.
        """
        profiles = self.profiles(events)
        own = {user: {event.activity_date for event in some} for user, some in events.items()}
        days = self.days((user, day) for user, dates in own.items() for day in dates)
        more = {
            user: dates_to_read(some, profiles[user].streak, days) | dates_of_caps(some)
            for user, some in events.items()
        }
        days |= self.days((user, day) for user, dates in more.items() for day in dates)
        return {
            user: Account(profiles[user], {day: days.get((user, day)) for day in own[user] | more[user]})
            for user in events
        }

    def history(
        self, profile: Profile, since: date, until: date = date.max, is_strong: bool = True
    ) -> History:
        """Return a user's active dates up to a date, from the newest checkpoint before `since` on.

        They are those of three months at most if since is within the late window, and of a year or so
        otherwise (rules.engagement.streak); all of them if the profile has no checkpoint before.
        """
        start = resumed_streak(profile.streak, since)
        first = start.last + DAY if start else date.min
        if first > until:
            return History((), start)
        span = {":first": first.isoformat(), ":last": until.isoformat()}
        found = self._query_days(
            profile.user_id, span, ProjectionExpression="activity_date", ConsistentRead=is_strong
        )
        return History([date.fromisoformat(each["activity_date"]["S"]) for each in found], start)

    def newest_days(self, user_id: str, first: date, last: date, limit: int) -> list[Day]:
        """Return up to `limit` of a user's active days between two dates, both included, newest first.

        Eventually consistent.
        """
        span = {":first": first.isoformat(), ":last": last.isoformat()}
        found = self._query_days(user_id, span, ScanIndexForward=False, Limit=limit)
        return [day_from(decode_item(each)) for each in islice(found, limit)]

    def lots(
        self, user_id: str, first: date, is_strong: bool = True
    ) -> Iterable[tuple[date, dict[date, int]]]:
        """Yield a user's dates from one on, in order, with their points by expiry. Others are left out."""
        found = query_all(
            self._dynamodb,
            TableName=self._days,
            KeyConditionExpression="user_id = :user AND activity_date >= :first",
            ExpressionAttributeValues=encode_item({":user": user_id, ":first": first.isoformat()}),
            ProjectionExpression="activity_date, lots",
            ConsistentRead=is_strong,
        )
        for day in map(decode_item, found):
            if lots := day.get("lots"):
                by_expiry = {date.fromisoformat(on): points for on, points in lots.items()}
                yield date.fromisoformat(day["activity_date"]), by_expiry

    def _query_days(self, user_id: str, span: dict[str, str], **options: Any) -> Iterable[dict[str, Any]]:
        return query_all(
            self._dynamodb,
            TableName=self._days,
            KeyConditionExpression="user_id = :user AND activity_date BETWEEN :first AND :last",
            FilterExpression="attribute_not_exists(is_passive)",
            ExpressionAttributeValues=encode_item({":user": user_id, **span}),
            **options,
        )

    def load(
        self, user_id: str, dates: Iterable[date] = (), since: str = ""
    ) -> tuple[Account, AppliedEvents]:
        """Read an account; entries that a dead writer has not counted in are its pending ones.

        dates: the days needed. since: a place in the ledger. Also returns date and points of all events whose
        entries are newer than that place or the profile's watermark, whichever is older.
        """
        profile = self.profile(user_id)
        wanted = set(dates)
        days = self.days((user_id, day) for day in wanted)
        return self.complete(Account(profile, {day: days.get((user_id, day)) for day in wanted}), since)

    def complete(self, account: Account, since: str = "") -> tuple[Account, AppliedEvents]:
        """Add the pending entries, and the days that they touch, to an account.

        Its days must have been read after its profile. since, and what is returned: see load.
        """
        profile = account.profile
        watermark = profile.head.created_at if profile.head else BEFORE_ALL
        entries, missing = self.ledger.after(profile.user_id, min(watermark, since) if since else watermark)
        self.ledger.store([entry for entry in missing if entry.created_at > watermark])
        pending = [entry for entry in entries if entry.created_at > watermark]
        touched = {
            date.fromisoformat(entry.draft.activity_date) for entry in pending if entry.draft.activity_date
        }
        # The dates beside them show whether one between them was flown over.
        lacking = dates_beside(touched) - set(account.days)
        more = self.days((profile.user_id, day) for day in lacking)
        days = {**account.days, **{day: more.get((profile.user_id, day)) for day in lacking}}
        return Account(profile, days, pending), applied_events(entries)

    def decide(
        self, account: Account, rule: Callable[[Account], Decision], amnesties: Amnesties | None = None
    ) -> Decision:
        """Apply a rule to an account, reading its history where the rule asks for it.

        amnesties: others than those that are known. Raises AccountContended if the profile has changed since
        it was read.
        """
        account = replace(account, amnesties=self.amnesties() if amnesties is None else amnesties)
        head = account.profile.head
        salt = b"" if head else self.salts()
        try:
            decision = rule(account)
        except NeedsHistory as needs:
            account = self.reaching(account, needs.since)
            decision = rule(replace(account, history=self.history(account.profile, needs.since)))
        return with_proof(decision, salt)

    def reaching(self, account: Account, since: date) -> Account:
        """Return an account whose profile has what protects its streak from a date on.

        Raises AccountContended if the profile has changed since it was read.
        """
        try:
            return replace(account, profile=self.archives.reaching(account.profile, since))
        except ArchiveMoved as error:
            raise AccountContended(str(error)) from None

    def whole(self, profile: Profile, since: date = date.min) -> Profile:
        """Return a profile that has what protects its streak from a date on, to answer with.

        It is read again if it has changed since. Raises AccountContended if its archive is damaged.
        """
        with suppress(AccountContended):
            return self.reaching(Account(profile, {}), since).profile
        return self.reaching(Account(self.profile(profile.user_id), {}), since).profile

    def commit(self, decision: Decision) -> None:
        """Write a decision: ledger, days, profile. Raises HeadMoved or ProjectionMoved."""
        if decision.entries:
            self.ledger.append(decision.head, decision.entries)
        self.commit_projections(decision)

    def commit_projections(self, decision: Decision) -> None:
        """Write a decision's days, then its profile; raises ProjectionMoved if one has changed."""
        for when, day in decision.days.items():
            self._put_day(decision.before.days.get(when), day)
        if decision.profile != decision.before.profile:
            self.put_profile(decision.profile)

    def commit_at_once(
        self, decision: Decision, reversed_entry: Entry | None = None, also: Sequence[dict[str, Any]] = ()
    ) -> None:
        """Write a command's entries, profile and days in one transaction, so that all reads agree at once.

        Raises HeadMoved if nothing was written; in its `failed`, 0 is the profile, and 1 and up are `also`.
        """
        put, *archive = ({"Put": each} for each in self.profile_puts(decision.profile))
        days = [
            {"Put": self.day_put(decision.before.days.get(when), day)} for when, day in decision.days.items()
        ]
        self.ledger.append(decision.head, decision.entries, reversed_entry, [put, *also, *archive, *days])

    def settle(self, user_id: str, now: datetime) -> Account:
        """Finish what is pending on an account, and return it. Raises AccountContended."""
        for _ in pauses(ATTEMPTS_MAX):
            account, _applied = self.load(user_id)
            if not account.pending:
                return account
            with suppress(HeadMoved, ProjectionMoved):
                self.commit(self.decide(account, lambda each: decide(each, (), now)))
        raise AccountContended(user_id)

    def put_profile(self, profile: Profile, also: Sequence[dict[str, Any]] = ()) -> None:
        """Put a profile whose version is one above the stored one; raises ProjectionMoved if it is not.

        also: further actions; with them, or with an archive, it is a transaction.
        """
        actions = [*({"Put": each} for each in self.profile_puts(profile)), *also]
        exceptions = self._dynamodb.exceptions
        try:
            if len(actions) == 1:
                self._dynamodb.put_item(**actions[0]["Put"])
            else:
                self._dynamodb.transact_write_items(TransactItems=actions)
        except exceptions.ConditionalCheckFailedException:
            raise ProjectionMoved(profile.user_id) from None
        except exceptions.TransactionCanceledException as error:
            cancellation_reasons(error, len(actions))
            raise ProjectionMoved(profile.user_id) from None

    def profile_puts(self, profile: Profile) -> list[dict[str, Any]]:
        """Return what writes a profile; and its archive, if something is put away."""
        stored, put_of_archive = self.archives.split(profile, self.shards)
        put: dict[str, Any] = {
            "TableName": self._profiles,
            "Item": stored,
            "ConditionExpression": "attribute_not_exists(user_id)",
        }
        if profile.version > 1:
            put["ConditionExpression"] = "version = :read"
            put["ExpressionAttributeValues"] = {":read": {"N": str(profile.version - 1)}}
        return [put, put_of_archive] if put_of_archive else [put]

    def day_put(self, before: Day | None, day: Day) -> dict[str, Any]:
        """Return what writes a day in place of the one that was read."""
        put: dict[str, Any] = {
            "TableName": self._days,
            "Item": encode_item(day_attributes(day)),
            "ConditionExpression": "attribute_not_exists(user_id)",
        }
        if before:
            put["ConditionExpression"] = "ledger_head = :read"
            put["ExpressionAttributeValues"] = {":read": {"S": before.ledger_head}}
        return put

    def _put_day(self, before: Day | None, day: Day) -> None:
        try:
            self._dynamodb.put_item(**self.day_put(before, day))
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            raise ProjectionMoved(f"{day.user_id} {day.activity_date}") from None


class ReviewIndex:
    """The accounts under review, from the index UnderReview of UserStreaks. Nobody else is in it."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def waiting(self, after: str, limit: int) -> list[dict[str, Any]]:
        """Return up to `limit` accounts after a user id ("": from the first), as attributes of the index.

        They may be some seconds old.
        """
        start = (
            {"ExclusiveStartKey": encode_item({"user_id": after, "review_state": UNDER_REVIEW})}
            if after
            else {}
        )
        answer = self._dynamodb.query(
            TableName=self._table,
            IndexName="UnderReview",
            KeyConditionExpression="review_state = :open",
            ExpressionAttributeValues={":open": {"S": UNDER_REVIEW}},
            Limit=limit,
            **start,
        )
        return [decode_item(each) for each in answer["Items"]]


class ExpiryIndex:
    """The accounts with points to expire, from the index ByExpiry of UserStreaks. Nobody else is in it."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def due(self, until: date, first_shard: int = 0) -> Iterator[str]:
        """Yield the users whose next points expire on a date or before it, those of the oldest first in each
        shard. They may be some seconds old. first_shard: where to begin, so that runs take turns.
        """
        for number in range(EXPIRY_SHARDS):
            found = query_all(
                self._dynamodb,
                TableName=self._table,
                IndexName="ByExpiry",
                KeyConditionExpression="expiry_shard = :shard AND expires_next <= :until",
                ExpressionAttributeValues=encode_item(
                    {":shard": str((first_shard + number) % EXPIRY_SHARDS), ":until": until.isoformat()}
                ),
            )
            yield from (each["user_id"]["S"] for each in found)
