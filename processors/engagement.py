"""BPEvents stream -> ledger, days, profiles. Every event is applied exactly once (rule 7).

The processor folds a batch per user, reads state in bulk, and writes several users at the same time. It looks
into the ledger only for events that may be applied already (applied_batch.maybe_applied), or if the ledger
has another head.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from typing import Any

from adapters import clock, settings
from adapters.engagement.account_store import (
    ATTEMPTS_MAX,
    BEFORE_ALL,
    AccountContended,
    AccountStore,
    ProjectionMoved,
)
from adapters.engagement.amnesty.amnesty_store import AmnestyStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import HeadMoved, LedgerStore
from adapters.logs import Logger
from adapters.operations.gauges import Gauges
from adapters.platform.aws import Unavailable, client, pauses
from adapters.platform.batches import Unprocessed
from adapters.platform.failures import FailureQueue
from adapters.platform.fencing.turn import fenced
from adapters.platform.items import plain
from adapters.privacy.tombstones import NOBODY, Erased, tombstones_of
from adapters.settings.accounts import EngagementSettings
from processors.applied_batch import (
    AppliedBatch,
    Pairs,
    Record,
    distinct_events,
    maybe_applied,
    place_of,
)
from rules.engagement.account_state import Account, Decision
from rules.engagement.accounts import decide
from rules.engagement.earning import dates_of_caps
from rules.engagement.events import Event, MalformedItem, from_item
from rules.engagement.ledger import Applied
from rules.engagement.placing import beside
from rules.privacy.tombstones import user_subject

logger = Logger(service="engagement")
CONSUMER = "engagement"
# After these, a later attempt may succeed. Any other error is the record's own fault.
TRANSIENT = (*Unavailable, Unprocessed, AccountContended)


@dataclass(frozen=True, slots=True)
class EngagementProcessor:
    """Applies stored events to accounts. writers: how many users it writes at the same time."""

    accounts: AccountStore
    cache: EngagementCache
    writers: int = 1
    gauges: Gauges = field(default_factory=lambda: Gauges(""))
    erased: Erased = NOBODY

    def apply(self, records: Sequence[Record], now: datetime) -> AppliedBatch:
        """Apply a batch of stream records, user by user. One user's error does not affect other users."""
        outcome = AppliedBatch()
        by_user: dict[str, list[tuple[Record, Event]]] = {}
        for record in records:
            try:
                event = from_item(plain(record["dynamodb"]["NewImage"]), place_of(record))
            except (MalformedItem, KeyError, TypeError, ValueError) as error:
                outcome.poison.append((record, _reason(error)))
                continue
            if self.erased.forbids(user_subject(event.user_id), min(event.event_id, event.created_at)):
                outcome.erased += 1
                continue
            by_user.setdefault(event.user_id, []).append((record, event))
        if by_user:
            self._apply_users(by_user, now, outcome)
        return outcome

    def _apply_users(self, by_user: Mapping[str, Pairs], now: datetime, outcome: AppliedBatch) -> None:
        accounts = self.accounts.accounts_of(
            {user: [event for _, event in pairs] for user, pairs in by_user.items()}
        )
        known = self.cache.processed(
            {user: list(maybe_applied(accounts[user].profile, pairs)) for user, pairs in by_user.items()}
        )

        work: dict[str, tuple[Account, Pairs]] = {}
        for user, pairs in by_user.items():
            fresh = [pair for pair in pairs if pair[1].event_id not in known.get(user, ())]
            work[user] = accounts[user], fresh
            outcome.duplicates += len(pairs) - len(fresh)
        self._write_users(work, now, outcome)

    def _write_users(
        self, work: Mapping[str, tuple[Account, Pairs]], now: datetime, outcome: AppliedBatch
    ) -> None:
        def apply(user: str) -> AppliedBatch:
            return self._apply_user(*work[user], now)

        if self.writers == 1 or len(work) == 1:
            for user in work:
                outcome.add(apply(user))
            return
        with ThreadPoolExecutor(self.writers) as pool:
            for each in pool.map(apply, work):
                outcome.add(each)

    def _apply_user(self, account: Account, pairs: Pairs, now: datetime) -> AppliedBatch:
        """Apply a user's events."""
        if not pairs:
            return AppliedBatch()
        user = account.profile.user_id
        try:
            known = self._applied_long_ago(account, pairs)
            if not known and not maybe_applied(account.profile, pairs):
                with suppress(HeadMoved, ProjectionMoved):
                    return self._apply_new(account, pairs, now)
            return self._settle(account, pairs, now, known)
        except TRANSIENT:
            logger.exception("to come again", extra={"user_id": user})
            return AppliedBatch(again=[record["dynamodb"]["SequenceNumber"] for record, _ in pairs])
        except Exception as error:  # one record's error must not stop the other records
            logger.exception("poison", extra={"user_id": user})
            if len(pairs) == 1:
                return AppliedBatch(poison=[(pairs[0][0], _reason(error))])
            outcome = AppliedBatch()
            for pair in pairs:
                dates = beside([pair[1].activity_date]) | dates_of_caps([pair[1]])
                alone = self.accounts.load(user, dates)[0]
                outcome.add(self._apply_user(alone, [pair], now))
            return outcome

    def _applied_long_ago(self, account: Account, pairs: Pairs) -> Applied:
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
        return self._done(decision, events, pairs)

    def _settle(self, read: Account, pairs: Pairs, now: datetime, known: Applied) -> AppliedBatch:
        """Look for entries, count in the pending ones, apply events without. known: with an older entry."""
        user, events = read.profile.user_id, distinct_events(pairs)
        dates = beside(event.activity_date for event in events) | dates_of_caps(events)
        head = read.profile.head.created_at if read.profile.head else BEFORE_ALL
        known |= self.accounts.ledger.applied_since(user, maybe_applied(read.profile, pairs), head)
        account, applied = self.accounts.complete(read)
        for _ in pauses(ATTEMPTS_MAX):
            applied |= known
            fresh = [event for event in events if event.event_id not in applied]
            dated = [(event, applied.get(event.event_id, (None, 0))[0]) for event in events]
            rule = partial(decide, events=fresh, now=now, observed=dated)
            decision = self.accounts.decide(account, rule)
            try:
                self.accounts.commit(decision)
            except (HeadMoved, ProjectionMoved):
                account, applied = self.accounts.load(user, dates, head)
                continue
            return self._done(decision, fresh, pairs)
        raise AccountContended(user)

    def _done(self, decision: Decision, applied: Sequence[Event], pairs: Pairs) -> AppliedBatch:
        user = decision.profile.user_id
        return AppliedBatch(
            applied=len(applied),
            duplicates=len(pairs) - len(applied),
            profiles={user: decision.profile},
            days={(user, when): day for when, day in decision.days.items()},
            done={user: [event.event_id for _, event in pairs]},
        )


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


@cache
def _parts() -> tuple[EngagementProcessor, FailureQueue]:
    config, dynamodb = settings.read(EngagementSettings), fenced(client("dynamodb"))
    ledger = LedgerStore(dynamodb, config.rewards_ledger_table)
    accounts = AccountStore(
        dynamodb, config.user_streaks_table, config.daily_activity_table, ledger, config.leaderboard_shards
    )
    redis = EngagementCache(config.redis_url)
    accounts.amnesties = AmnestyStore(dynamodb, config.rule_books_table).known
    engagement = EngagementProcessor(
        accounts, redis, config.writers, Gauges(config.redis_url), tombstones_of(config)
    )
    return engagement, FailureQueue(lambda: client("sqs"), config.failure_queue_url)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a DynamoDB stream batch. The answer lists the records that must come again."""
    engagement, failures = _parts()
    now = clock.now()
    records = [record for record in event["Records"] if record["eventName"] == "INSERT"]
    outcome = engagement.apply(records, now)
    outcome.again += failures.settle(event, CONSUMER, outcome.poison, now)
    engagement.cache.write_through(outcome.profiles.values(), outcome.days.values(), outcome.done)
    engagement.gauges.count(CONSUMER, outcome.applied, records, clock.now())
    logger.info("batch", extra=outcome.counts())
    return failures.answer(outcome.again)
