"""BPEvents stream -> ledger, days, profiles. Every event is applied exactly once (rule 7).

The processor reads the accounts of a batch in bulk, decides user by user, and writes several users at the
same time. It looks into the ledger only for events that may be applied already (maybe_applied), or if the
ledger has another head. Around it stand the fence of regions (_parts) and the tombstones of erased users
(apply).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial
from typing import Self

from adapters import clock, settings
from adapters.engagement.account_store import (
    ATTEMPTS_MAX,
    AccountContended,
    AccountStore,
    ProjectionMoved,
)
from adapters.engagement.amnesty import AmnestyStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import HeadMoved, LedgerStore
from adapters.logs import Logger
from adapters.platform.aws import client, pauses
from adapters.platform.fence import fence_writer
from adapters.platform.gauges import Gauges
from adapters.platform.items import decode_item
from adapters.platform.tables import BEFORE_ALL
from adapters.privacy.tombstones import NO_ERASURES, ErasureCheck, tombstones_of
from processors.batches import TRANSIENT, BatchResult, ConsumerSettings, Record, stream_consumer
from rules.engagement.account import decide
from rules.engagement.account_state import Account, Day, Decision, Profile
from rules.engagement.earnings import dates_beside, dates_of_caps
from rules.engagement.events import Event, from_item, is_beyond
from rules.engagement.ledger import AppliedEvents
from rules.privacy.tombstones import user_subject

Pairs = Sequence[tuple[Record, Event]]
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
    redis_url: str
    leaderboard_shards: int  # a region's parts in the index of streaks
    erasures_table: str
    erasure_secret_arn: str


@dataclass(slots=True)
class AppliedBatch(BatchResult):
    """What became of a batch. counts: applied, duplicates, erased (their users were)."""

    profiles: dict[str, Profile] = field(default_factory=dict)  # by user, as written
    days: dict[tuple[str, date], Day] = field(default_factory=dict)  # by user and date, as written
    done: dict[str, list[str]] = field(default_factory=dict)  # by user, ids of events that are applied by now

    def add(self, other: Self) -> None:
        """Add what became of other records."""
        BatchResult.add(self, other)  # slots make a new class, which super() does not find
        self.profiles |= other.profiles
        self.days |= other.days
        self.done |= other.done


@dataclass(frozen=True, slots=True)
class EngagementProcessor:
    """Applies stored events to accounts."""

    accounts: AccountStore
    cache: EngagementCache
    writers: int = 1  # how many users it writes at the same time
    gauges: Gauges = field(default_factory=lambda: Gauges(""))
    erased: ErasureCheck = NO_ERASURES

    def apply(self, records: Sequence[Record], now: datetime) -> AppliedBatch:
        """Apply a batch of stream records, user by user. One user's error does not affect other users."""
        outcome = AppliedBatch()
        by_user: dict[str, list[tuple[Record, Event]]] = {}
        for record, event in outcome.read(records, _event_of):
            if self.erased.forbids(user_subject(event.user_id), min(event.event_id, event.created_at)):
                outcome.counts["erased"] += 1
                continue
            by_user.setdefault(event.user_id, []).append((record, event))
        if by_user:
            self._apply_users(by_user, now, outcome)
        return outcome

    def _apply_users(self, by_user: Mapping[str, Pairs], now: datetime, outcome: AppliedBatch) -> None:
        """Apply what is not known to be applied, several users at the same time."""
        accounts = self.accounts.accounts_of(
            {user: [event for _, event in pairs] for user, pairs in by_user.items()}
        )
        processed = self.cache.processed(
            {user: list(maybe_applied(accounts[user].profile, pairs)) for user, pairs in by_user.items()}
        )
        work: dict[str, Pairs] = {}
        for user, pairs in by_user.items():
            fresh = [pair for pair in pairs if pair[1].event_id not in processed.get(user, ())]
            outcome.counts["duplicates"] += len(pairs) - len(fresh)
            if fresh:
                work[user] = fresh

        def apply(user: str) -> AppliedBatch:
            return self._apply_user(accounts[user], work[user], now)

        if self.writers == 1 or len(work) == 1:
            for user in work:
                outcome.add(apply(user))
            return
        with ThreadPoolExecutor(self.writers) as pool:
            for applied in pool.map(apply, work):
                outcome.add(applied)

    def _apply_user(self, account: Account, pairs: Pairs, now: datetime) -> AppliedBatch:
        """Apply a user's events together; after an error each by itself."""
        outcome, user = AppliedBatch(), account.profile.user_id

        def apply(some: Pairs) -> None:
            current = account
            if some is not pairs:
                current, _ = self.accounts.load(user, _dates_needed(event for _, event in some))
            outcome.add(self._apply_pairs(current, some, now))

        outcome.attempt(pairs, apply, logger, (*TRANSIENT, AccountContended), user_id=user)
        return outcome

    def _apply_pairs(self, account: Account, pairs: Pairs, now: datetime) -> AppliedBatch:
        known = self._applied_long_ago(account, pairs)
        if not known and not maybe_applied(account.profile, pairs):
            with suppress(HeadMoved, ProjectionMoved):
                return self._apply_new(account, pairs, now)
        return self._settle(account, pairs, now, known)

    def _applied_long_ago(self, account: Account, pairs: Pairs) -> AppliedEvents:
        if account.profile.head is None:
            return {}
        arrivals = {event.event_id: event.created_at for _, event in pairs}
        return self.accounts.ledger.applied_long_ago(account.profile.user_id, arrivals)

    def _apply_new(self, account: Account, pairs: Pairs, now: datetime) -> AppliedBatch:
        """Apply events that nobody has applied yet to the account as it was read: no look at newer entries.

        Raises HeadMoved or ProjectionMoved if it has changed since.
        """
        events = distinct_events(pairs)
        decision = self.accounts.decide(account, partial(decide, events=events, now=now))
        self.accounts.commit(decision)
        return self._batch_of(decision, events, pairs)

    def _settle(self, before: Account, pairs: Pairs, now: datetime, known: AppliedEvents) -> AppliedBatch:
        """Bring an account up to its newest entry, then apply the events that have no entry yet.

        before: the account as it was read. known: the events that older entries have applied.
        """
        user, events = before.profile.user_id, distinct_events(pairs)
        head = before.profile.head.created_at if before.profile.head else BEFORE_ALL
        known |= self.accounts.ledger.applied_since(user, maybe_applied(before.profile, pairs), head)
        account, applied = self.accounts.complete(before)
        for _ in pauses(ATTEMPTS_MAX):
            applied |= known
            fresh = [event for event in events if event.event_id not in applied]
            dated = [(event, applied.get(event.event_id, (None, 0))[0]) for event in events]
            rule = partial(decide, events=fresh, now=now, observed=dated)
            decision = self.accounts.decide(account, rule)
            try:
                self.accounts.commit(decision)
            except (HeadMoved, ProjectionMoved):
                account, applied = self.accounts.load(user, _dates_needed(events), head)
                continue
            return self._batch_of(decision, fresh, pairs)
        raise AccountContended(user)

    def _batch_of(self, decision: Decision, applied: Sequence[Event], pairs: Pairs) -> AppliedBatch:
        user = decision.profile.user_id
        return AppliedBatch(
            Counter(applied=len(applied), duplicates=len(pairs) - len(applied)),
            profiles={user: decision.profile},
            days={(user, when): day for when, day in decision.days.items()},
            done={user: [event.event_id for _, event in pairs]},
        )


@settings.wiring(EngagementSettings)
def _parts(config: EngagementSettings) -> EngagementProcessor:
    dynamodb = fence_writer(client("dynamodb"))
    ledger = LedgerStore(dynamodb, config.rewards_ledger_table)
    accounts = AccountStore(
        dynamodb, config.user_streaks_table, config.daily_activity_table, ledger, config.leaderboard_shards
    )
    redis = EngagementCache(config.redis_url)
    accounts.amnesties = AmnestyStore(dynamodb, config.rule_books_table).known
    return EngagementProcessor(accounts, redis, WRITERS, Gauges(config.redis_url), tombstones_of(config))


@stream_consumer(CONSUMER, logger)
def handler(records: list[Record], now: datetime) -> AppliedBatch:
    """Lambda entry: a batch of BPEvents' stream."""
    engagement = _parts()
    stored = [record for record in records if record["eventName"] == "INSERT"]
    outcome = engagement.apply(stored, now)
    engagement.cache.write_through(outcome.profiles.values(), outcome.days.values(), outcome.done)
    engagement.gauges.count(CONSUMER, outcome.counts["applied"], stored, clock.now())
    return outcome


def distinct_events(pairs: Pairs) -> list[Event]:
    """Return the events of some records, each once."""
    return list({event.event_id: event for _, event in pairs}.values())


def stream_position(record: Record) -> str:
    """Return a record's place in its stream (rules.engagement.events); "" if it does not say."""
    _, mark, label = str(record.get("eventSourceARN", "")).partition("/stream/")
    number = str(record["dynamodb"].get("SequenceNumber", ""))
    return f"{label}/{number}" if mark and number.isdecimal() else ""


def maybe_applied(profile: Profile, pairs: Pairs) -> dict[str, str]:
    """Return the events that may be applied already: event id -> when it arrived.

    An event is new if its record is beyond all that has been applied from this stream, or if it arrived after
    the newest entry: entries are later than their events.
    """
    head = profile.head.created_at if profile.head else ""
    return {
        event.event_id: event.created_at
        for _, event in pairs
        if event.created_at <= head and not is_beyond(event.place, profile.applied_through)
    }


def _dates_needed(events: Iterable[Event]) -> set[date]:
    """Return the dates whose days a decision about events needs."""
    events = list(events)
    return dates_beside(event.activity_date for event in events) | dates_of_caps(events)


def _event_of(record: Record) -> Event:
    return from_item(decode_item(record["dynamodb"]["NewImage"]), stream_position(record))
