"""Applies events of BPEvents to ledger, days and profiles, each exactly once (docs/rules.md, rule 7).

The processor reads the accounts of a batch in bulk, decides user by user, and writes several users at the
same time. It reads the ledger in three cases: an event may be applied already (events_to_look_up); an event
is older than a key lives; the ledger has another newest entry, its *head*, than the profile. It skips events
of erased users, and a region that is no longer the writer writes nothing (adapters/bootstrap.py). The handler
then writes the new profiles and days to Redis, too, and lets users join the open league.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from typing import Self

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.engagement.account_store import (
    ATTEMPTS_MAX,
    AccountContended,
    AccountStore,
    ProjectionMoved,
)
from adapters.engagement.amnesty_store import AmnestyStore
from adapters.engagement.daily_terms_store import DailyTermsStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.leagues import Leagues, LeagueStore
from adapters.engagement.ledger_store import HeadMoved, LedgerStore
from adapters.logs import Logger
from adapters.platform.aws import pauses
from adapters.platform.gauges import Gauges
from adapters.platform.items import decode_item
from adapters.platform.tables import BEFORE_ALL
from adapters.privacy.tombstones import NO_ERASURES, ErasureCheck, tombstones_of
from processors.batches import TRANSIENT, UNREADABLE, BatchResult, ConsumerSettings, Record, stream_consumer
from rules.engagement.account import decide
from rules.engagement.account_state import Account, Day, Decision, Profile
from rules.engagement.earnings import dates_beside, dates_of_caps
from rules.engagement.events import Event, from_item, is_beyond, stamp_of
from rules.engagement.ledger import AppliedEvents
from rules.privacy.tombstones import user_subject

Pair = tuple[Record, Event]  # a record of the stream, and the event that it holds
Pairs = Sequence[Pair]
CONSUMER = "engagement"
WRITERS = 4  # users that are written at the same time, so that their waiting overlaps

logger = Logger(service="engagement")


@dataclass(frozen=True)
class EngagementSettings(ConsumerSettings):
    """Settings of EngagementFunction."""

    user_streaks_table: str
    daily_activity_table: str
    rewards_ledger_table: str
    rule_books_table: str
    boards_table: str
    redis_url: str
    leaderboard_shards: int  # a region's parts in the index of streaks
    erasures_table: str
    erasure_secret_arn: str


@dataclass(slots=True)
class AppliedBatch(BatchResult):
    """The result of a batch. counts: applied, duplicates, and erased, the events of erased users."""

    profiles: dict[str, Profile] = field(default_factory=dict)  # by user, as written
    days: dict[tuple[str, date], Day] = field(default_factory=dict)  # by user and date, as written
    event_ids: dict[str, list[str]] = field(default_factory=dict)  # by user, of the events that are applied

    def add(self, other: Self) -> None:
        """Add the result of other records."""
        BatchResult.add(self, other)  # slots make a new class, which super() does not find
        self.profiles |= other.profiles
        self.days |= other.days
        for user_id, event_ids in other.event_ids.items():
            self.event_ids[user_id] = [*self.event_ids.get(user_id, ()), *event_ids]


def stream_position(record: Record) -> str:
    """Return where a record stands in its stream (rules.engagement.events); "" if the record does not say."""
    _, separator, label = str(record.get("eventSourceARN", "")).partition("/stream/")
    number = str(record["dynamodb"].get("SequenceNumber", ""))
    return f"{label}/{number}" if separator and number.isdecimal() else ""


def event_of_record(record: Record) -> Event:
    """Return the event that a record stored. Raises UNREADABLE (processors.batches)."""
    return from_item(decode_item(record["dynamodb"]["NewImage"]), stream_position(record))


def distinct_events(events: Iterable[Event]) -> list[Event]:
    """Return events, each once: a batch may have several records of one event."""
    return list({event.event_id: event for event in events}.values())


def earliest_time(event: Event) -> str:
    """Return when an event happened, or when it arrived if that is earlier: its clock may be ahead.

    Both are stamps.
    """
    return min(stamp_of(event.event_id), event.created_at)


def events_to_look_up(profile: Profile, events: Iterable[Event]) -> dict[str, str]:
    """Return the events that an entry may have applied already: event id -> when the event arrived.

    All others are new, for one of two reasons. Their record comes after all that has been applied from this
    stream; or they arrived after the newest entry was written, and no entry is older than its event.
    """
    head = profile.head.created_at if profile.head else ""
    return {
        event.event_id: event.created_at
        for event in events
        if event.created_at <= head and not is_beyond(event.stream_position, profile.applied_through)
    }


def _dates_needed(events: Sequence[Event]) -> set[date]:
    """Return the dates whose days a decision about events needs."""
    return dates_beside(event.activity_date for event in events) | dates_of_caps(events)


def _batch_of(decision: Decision, new: Sequence[Event], events: Sequence[Event]) -> AppliedBatch:
    """Return the result of a user's events, of which a decision has applied the new ones."""
    user = decision.profile.user_id
    return AppliedBatch(
        Counter(applied=len(new), duplicates=len(events) - len(new)),
        profiles={user: decision.profile},
        days={(user, when): day for when, day in decision.days.items()},
        event_ids={user: [event.event_id for event in events]},
    )


@dataclass(frozen=True, slots=True)
class EngagementProcessor:
    """Applies stored events to accounts."""

    accounts: AccountStore
    cache: EngagementCache
    writers: int = 1  # users that are written at the same time
    gauges: Gauges = field(default_factory=lambda: Gauges(""))
    erased: ErasureCheck = NO_ERASURES
    leagues: Leagues | None = None  # None: nobody joins one

    def apply(self, records: Sequence[Record], now: datetime) -> AppliedBatch:
        """Apply a batch of stream records, user by user. One user's error does not affect other users."""
        result = AppliedBatch()
        pairs_by_user: dict[str, list[Pair]] = {}
        for record, event in result.read(records, event_of_record):
            if self.erased.forbids(user_subject(event.user_id), earliest_time(event)):
                result.counts["erased"] += 1
            else:
                pairs_by_user.setdefault(event.user_id, []).append((record, event))
        accounts = self._accounts(pairs_by_user)
        if self.cache.is_configured and accounts:
            pairs_by_user = self._unprocessed_pairs(pairs_by_user, accounts, result)
        with ThreadPoolExecutor(self.writers) as pool:
            results = pool.map(
                lambda user: self._apply_user(user, accounts.get(user), pairs_by_user[user], now),
                pairs_by_user,
            )
            for user_result in results:
                result.add(user_result)
        return result

    def _accounts(self, pairs_by_user: Mapping[str, Pairs]) -> dict[str, Account]:
        """Read the users' accounts in bulk; none of them if somebody has damaged one.

        Then each is read by itself, so that the damaged one stops no other.
        """
        try:
            return self.accounts.accounts_of(
                {user: [event for _, event in pairs] for user, pairs in pairs_by_user.items()}
            )
        except UNREADABLE:
            logger.exception("accounts cannot be read together")
            return {}

    def _unprocessed_pairs(
        self, pairs_by_user: Mapping[str, Pairs], accounts: Mapping[str, Account], result: AppliedBatch
    ) -> dict[str, list[Pair]]:
        """Return the events that the cache does not know to be applied; the others count as duplicates."""
        processed_ids = self.cache.processed(
            {
                user: list(events_to_look_up(accounts[user].profile, [event for _, event in pairs]))
                for user, pairs in pairs_by_user.items()
            }
        )
        unprocessed: dict[str, list[Pair]] = {}
        for user, pairs in pairs_by_user.items():
            known_ids = processed_ids.get(user, ())
            rest = [(record, event) for record, event in pairs if event.event_id not in known_ids]
            result.counts["duplicates"] += len(pairs) - len(rest)
            if rest:
                unprocessed[user] = rest
        return unprocessed

    def _apply_user(self, user: str, account: Account | None, pairs: Pairs, now: datetime) -> AppliedBatch:
        """Apply a user's events together; after an error each by itself. account: None if it was not read."""
        result = AppliedBatch()

        def apply_some(some: Pairs) -> None:
            current, events = account, [event for _, event in some]
            is_retry = len(some) < len(pairs)
            if current is None or is_retry:  # the attempt with all pairs may have written some
                current = self.accounts.load(user, _dates_needed(events)).account
            result.add(self._apply_events(current, events, now))

        result.attempt(pairs, apply_some, logger, (*TRANSIENT, AccountContended), user_id=user)
        return result

    def _apply_events(self, account: Account, events: Sequence[Event], now: datetime) -> AppliedBatch:
        """Apply a user's events. In the usual case all are new and recent, and the ledger is not read."""
        profile, applied_long_ago = account.profile, AppliedEvents()
        if profile.head:
            # An event may come again after its key has expired. The ledger is read only if one is older than
            # a key lives.
            arrivals = {event.event_id: event.created_at for event in events}
            applied_long_ago = self.accounts.ledger.applied_long_ago(profile.user_id, arrivals)
        if not applied_long_ago and not events_to_look_up(profile, events):
            new = distinct_events(events)
            with suppress(HeadMoved, ProjectionMoved):
                decision = self.accounts.decision_of(account, partial(decide, events=new, now=now))
                self.accounts.commit(decision)
                return _batch_of(decision, new, events)
        return self._apply_by_ledger(account, events, now, applied_long_ago)

    def _apply_by_ledger(
        self, before: Account, events: Sequence[Event], now: datetime, applied_long_ago: AppliedEvents
    ) -> AppliedBatch:
        """Bring an account up to its newest entry, then apply the events that have no entry yet.

        The sets of events are three. `up_to_head` have entries up to the head that was read, which never
        change. `after_head` have later entries, which are read again after each lost race. `new` have none.
        before: the account as it was read. applied_long_ago: events that are sent again after their
        idempotency keys have expired.
        """
        user, distinct = before.profile.user_id, distinct_events(events)
        head = before.profile.head.created_at if before.profile.head else BEFORE_ALL
        arrivals = events_to_look_up(before.profile, events)
        up_to_head = applied_long_ago | self.accounts.ledger.applied_since(user, arrivals, head).events
        account, after_head = self.accounts.with_pending_entries(before)
        for _ in pauses(ATTEMPTS_MAX):
            applied = after_head | up_to_head
            new = [event for event in distinct if event.event_id not in applied]
            decision = self.accounts.decision_of(account, partial(decide, events=new, now=now))
            try:
                self.accounts.commit(decision)
            except (HeadMoved, ProjectionMoved):
                account, after_head = self.accounts.load(user, _dates_needed(distinct), head)
                continue
            return _batch_of(decision, new, events)
        raise AccountContended(user)


@bootstrap(EngagementSettings)
def _parts(config: EngagementSettings, client: ClientOf) -> EngagementProcessor:
    dynamodb = client("dynamodb")
    ledger = LedgerStore(dynamodb, config.rewards_ledger_table)
    terms = DailyTermsStore(dynamodb, config.rule_books_table)
    accounts = AccountStore(
        dynamodb,
        config.user_streaks_table,
        config.daily_activity_table,
        ledger,
        config.leaderboard_shards,
        AmnestyStore(dynamodb, config.rule_books_table).recent,
        terms.recent,
        terms.pay_bonuses,
    )
    leagues = Leagues(LeagueStore(dynamodb, config.boards_table, config.daily_activity_table), accounts)
    return EngagementProcessor(
        accounts,
        EngagementCache(config.redis_url),
        WRITERS,
        Gauges(config.redis_url),
        tombstones_of(config, client),
        leagues,
    )


@stream_consumer(CONSUMER, logger)
def handler(records: list[Record], now: datetime) -> AppliedBatch:
    """Lambda entry: a batch of BPEvents' stream."""
    engagement = _parts()
    stored = [record for record in records if record["eventName"] == "INSERT"]
    result = engagement.apply(stored, now)
    engagement.cache.write_through(result.profiles.values(), result.days.values(), result.event_ids)
    if engagement.leagues:
        engagement.leagues.join_all(result.profiles.values(), now)
    engagement.gauges.note_applied(CONSUMER, result.counts["applied"], stored, clock.now())
    return result
