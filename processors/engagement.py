"""BPEvents stream -> ledger, days, profiles: every event applied exactly once (rule 7).

A batch is folded per user. State is read in bulk; an event that arrived after the profile's newest
ledger entry cannot have been applied before, so if that entry still is the head when the new ones
are written, nothing needs to be looked up. In every other case the ledger itself is asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from aws_lambda_powertools import Logger

from adapters import clock, settings
from adapters.accounts import ATTEMPTS_MAX, AccountStore, Contended, Moved
from adapters.aws import Unavailable, client, pauses
from adapters.batches import Unprocessed
from adapters.cache import Cache
from adapters.event_store import EventStore
from adapters.failures import FailureQueue
from adapters.items import plain
from adapters.ledger import HeadMoved, LedgerStore
from rules.accounts import Account, Day, Decision, Profile, decide
from rules.events import Event, Malformed, from_item

logger = Logger(service="engagement")
CONSUMER = "engagement"
# Another attempt, later, may succeed; anything else is the record's own fault.
TRANSIENT = (*Unavailable, Unprocessed, Contended)


@dataclass(slots=True)
class Outcome:
    """What became of a batch: each record is applied, a duplicate, to come again, or poison."""

    applied: int = 0
    duplicates: int = 0
    again: list[str] = field(default_factory=list)
    poison: list[tuple[Any, str]] = field(default_factory=list)
    profiles: dict[str, Profile] = field(default_factory=dict)
    days: dict[Any, Day] = field(default_factory=dict)
    done: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Engagement:
    """Applies stored events to accounts."""

    accounts: AccountStore
    events: EventStore
    cache: Cache

    def apply(self, records: Sequence[Mapping[str, Any]], now: datetime) -> Outcome:
        """Apply a batch of stream records, user by user; one user's trouble is not another's."""
        outcome = Outcome()
        by_user: dict[str, list[tuple[Mapping[str, Any], Event]]] = {}
        for record in records:
            try:
                event = from_item(plain(record["dynamodb"]["NewImage"]))
            except (Malformed, KeyError, ValueError) as error:
                outcome.poison.append((record, _reason(error)))
                continue
            by_user.setdefault(event.user_id, []).append((record, event))
        if by_user:
            self._apply_users(by_user, now, outcome)
        return outcome

    def _apply_users(
        self,
        by_user: Mapping[str, list[tuple[Mapping[str, Any], Event]]],
        now: datetime,
        outcome: Outcome,
    ) -> None:
        # Profiles before days: then the days hold at least what the profiles have counted in.
        profiles = self.accounts.profiles(by_user)
        days = self.accounts.days(
            (user, event.activity_date) for user, pairs in by_user.items() for _, event in pairs
        )
        known = self.cache.processed(
            {user: _maybe_applied(profiles[user], pairs) for user, pairs in by_user.items()}
        )
        for user, pairs in by_user.items():
            fresh = [pair for pair in pairs if pair[1].event_id not in known.get(user, ())]
            outcome.duplicates += len(pairs) - len(fresh)
            read = {event.activity_date: days.get((user, event.activity_date)) for _, event in fresh}
            try:
                self._apply_user(Account(profiles[user], read), fresh, now, outcome)
            except TRANSIENT:
                logger.exception("to come again", extra={"user_id": user})
                outcome.again += [record["dynamodb"]["SequenceNumber"] for record, _ in fresh]
            except Exception as error:
                logger.exception("poison", extra={"user_id": user})
                self._apply_one_by_one(user, fresh, now, outcome, error)

    def _apply_one_by_one(
        self,
        user: str,
        pairs: Sequence[tuple[Mapping[str, Any], Event]],
        now: datetime,
        outcome: Outcome,
        error: Exception,
    ) -> None:
        """Tell a user's poison records from the good ones."""
        if len(pairs) == 1:
            outcome.poison.append((pairs[0][0], _reason(error)))
            return
        for pair in pairs:
            try:
                self._settle(user, [pair], now, outcome)
            except TRANSIENT:
                outcome.again.append(pair[0]["dynamodb"]["SequenceNumber"])
            except Exception as own:  # noqa: BLE001 (as above)
                outcome.poison.append((pair[0], _reason(own)))

    def _apply_user(
        self,
        account: Account,
        pairs: Sequence[tuple[Mapping[str, Any], Event]],
        now: datetime,
        outcome: Outcome,
    ) -> None:
        if not pairs:
            return
        if not _maybe_applied(account.profile, pairs):
            events = _distinct(pairs)
            decision = self.accounts.decide(account, lambda each: decide(each, events, now))
            try:
                self.accounts.commit(decision)
            except (HeadMoved, Moved):
                pass
            else:
                self._note(decision, events, pairs, outcome)
                return
            self._settle(account.profile.user_id, pairs, now, outcome)
        else:
            self._settle(account.profile.user_id, pairs, now, outcome, account)

    def _settle(
        self,
        user: str,
        pairs: Sequence[tuple[Mapping[str, Any], Event]],
        now: datetime,
        outcome: Outcome,
        read: Account | None = None,
    ) -> None:
        """Read the account as of its newest entry, repair what is pending, apply what is in no entry.

        read: the profile, and the days after it, if they were read just now.
        """
        events = _distinct(pairs)
        dates = {event.activity_date for event in events}
        since = min(event.created_at for event in events)
        for _ in pauses(ATTEMPTS_MAX):
            if read:
                account, applied = self.accounts.complete(read, since)
            else:
                account, applied = self.accounts.load(user, dates, since)
            read = None
            fresh = [event for event in events if event.event_id not in applied]
            decision = self.accounts.decide(
                account,
                lambda each, fresh=fresh: decide(each, fresh, now, observed=events),  # type: ignore[misc]
            )
            try:
                self.accounts.commit(decision)
            except (HeadMoved, Moved):
                continue
            self._note(decision, fresh, pairs, outcome)
            return
        raise Contended(user)

    def _note(
        self,
        decision: Decision,
        applied: Sequence[Event],
        pairs: Sequence[tuple[Mapping[str, Any], Event]],
        outcome: Outcome,
    ) -> None:
        self.events.correct_points(decision.cut)
        user = decision.profile.user_id
        outcome.applied += len(applied)
        outcome.duplicates += len(pairs) - len(applied)
        outcome.profiles[user] = decision.profile
        outcome.days |= {(user, when): day for when, day in decision.days.items()}
        outcome.done.setdefault(user, []).extend(event.event_id for _, event in pairs)


def _maybe_applied(profile: Profile, pairs: Sequence[tuple[Mapping[str, Any], Event]]) -> list[str]:
    """The events that are not younger than the profile's newest entry."""
    head = profile.head.created_at if profile.head else ""
    return [event.event_id for _, event in pairs if event.created_at <= head]


def _distinct(pairs: Sequence[tuple[Mapping[str, Any], Event]]) -> list[Event]:
    return list({event.event_id: event for _, event in pairs}.values())


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


@cache
def _parts() -> tuple[Engagement, FailureQueue]:
    config, dynamodb = settings.read(settings.Engagement), client("dynamodb")
    ledger = LedgerStore(dynamodb, config.rewards_ledger_table)
    accounts = AccountStore(
        dynamodb, config.user_streaks_table, config.daily_activity_table, ledger, config.leaderboard_shards
    )
    redis = Cache(config.redis_url, config.leaderboard_shards)
    events = EventStore(dynamodb, config.bp_events_table)
    return Engagement(accounts, events, redis), FailureQueue(client("sqs"), config.failure_queue_url)


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: a DynamoDB stream batch. Records to come again are reported one by one."""
    engagement, failures = _parts()
    now = clock.now()
    records = [record for record in event["Records"] if record["eventName"] == "INSERT"]
    outcome = engagement.apply(records, now)
    if event.get("streakline_redrive"):
        outcome.again += [record["dynamodb"]["SequenceNumber"] for record, _ in outcome.poison]
    else:
        failures.keep(CONSUMER, outcome.poison, now)
    engagement.cache.write_through(outcome.profiles.values(), outcome.days.values(), outcome.done)
    logger.info(
        "batch",
        extra={
            "applied": outcome.applied,
            "duplicates": outcome.duplicates,
            "again": len(outcome.again),
            "poison": len(outcome.poison),
        },
    )
    return {"batchItemFailures": [{"itemIdentifier": number} for number in outcome.again]}
