"""POST /v1/events: a batch of events of a device or a server. acceptance.py takes each by itself."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aws_lambda_powertools.event_handler import Response

from adapters import clock
from adapters.book_store import BookStore
from adapters.bootstrap import ClientOf, bootstrap
from adapters.engagement.account_store import AccountStore
from adapters.engagement.achievements import AchievementReader, AchievementStore, GoalStore, StreakReader
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.event_store import EventStore
from adapters.engagement.expiry import Settler
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.stretch_store import StretchStore
from adapters.platform.gauges import Gauges
from adapters.platform.keyed_hash import KeyedHash
from adapters.platform.limits import SharedCounters
from adapters.platform.redis_cache import RedisCache
from adapters.privacy.tombstones import tombstones_of
from ingest.engagement.acceptance import (
    ERASED,
    Acceptor,
    AcceptResult,
    AcceptStatus,
    IntakeSettings,
    acceptor_of,
)
from ingest.engagement.event_body import EVENTS, RESULTS
from ingest.engagement.goal_views import AchievementViews
from ingest.engagement.profiles import Profiles
from ingest.engagement.receipts import BatchWithReceipt, OfflineProver, device_of, with_receipt
from ingest.engagement.waiting import APPLIED, PREFER, WAITS_PER_MINUTE, Waiter, seconds_to_wait
from ingest.web.api import Allowance, Api, json_response
from ingest.web.caller import ApiError, Caller, invalid_field
from ingest.web.rate_limit import CHEAP_STEP, RateLimit
from rules.days import parse_moment
from rules.engagement.events import NO_SKEW, skew_of

app = Api("EventsApi")
logger = app.logger


@dataclass(frozen=True)
class EventsApiSettings(Allowance, IntakeSettings):
    """Settings of this function."""

    daily_activity_table: str
    rewards_ledger_table: str
    leaderboard_shards: int
    redis_url: str
    rate_limit_per_minute: int  # events of one user; admins and producers are not limited
    receipt_secret_arn: str


@dataclass(frozen=True, slots=True)
class _Parts:
    acceptor: Acceptor
    limit: RateLimit
    waits: RateLimit
    prover: OfflineProver
    gauges: Gauges
    waiter: Waiter


@bootstrap(EventsApiSettings)
def _parts(config: EventsApiSettings, client: ClientOf) -> _Parts:
    dynamodb = client("dynamodb")
    counters = SharedCounters(lambda: dynamodb, config.limits_table)
    redis = RedisCache(config.redis_url)
    limit = RateLimit(counters, "events", config.rate_limit_per_minute, step=CHEAP_STEP, redis=redis)
    waits = RateLimit(counters, "waits", WAITS_PER_MINUTE, step=CHEAP_STEP, redis=redis)
    stretches = StretchStore(dynamodb, config.idempotency_keys_table, config.bp_events_table)
    # It reads the keys when the first receipt comes.
    keys = KeyedHash(lambda: client("secretsmanager"), config.receipt_secret_arn)
    prover = OfflineProver(keys, stretches, tombstones_of(config, client))
    gauges, waiter = Gauges(config.redis_url), _waiter(config, client)
    return _Parts(acceptor_of(config, client), limit, waits, prover, gauges, waiter)


def _waiter(config: EventsApiSettings, client: ClientOf) -> Waiter:
    dynamodb = client("dynamodb")
    books = BookStore(dynamodb, config.rule_books_table)
    days = config.daily_activity_table
    ledger = LedgerStore(dynamodb, config.rewards_ledger_table)
    accounts = AccountStore(
        dynamodb,
        config.user_streaks_table,
        days,
        ledger,
        config.leaderboard_shards,
        daily_terms=books.daily_terms,
    )
    events = EventStore(dynamodb, config.bp_events_table)
    cache = EngagementCache(config.redis_url)
    profiles = Profiles(accounts, events, cache, Settler(accounts, books))
    streaks = StreakReader(accounts, GoalStore(dynamodb, days), books)
    achievements = AchievementReader(streaks, AchievementStore(dynamodb, days), ledger)
    return Waiter(accounts, profiles, AchievementViews(profiles, achievements))


@app.route("POST /v1/events", [PREFER], body=EVENTS, status=202, answer=RESULTS, waited=APPLIED)
def post_events() -> Response[str]:
    """Send 1 to 100 events.

    With the header Prefer: wait=2 the answer is 200 as soon as the events are applied. It has each event's
    points and date, the profile after them, and achievements and level that are new. If they are not applied
    in time (five seconds at most), are of several users, or arrived over ten minutes ago, it is 202, as
    without the header.
    """
    parts = _parts()
    caller, now = app.caller(), clock.now()
    body = app.body(batch="events")
    bodies = body["events"]
    try:
        skew = skew_of(parse_moment(body["sent_at"]), now) if "sent_at" in body else NO_SKEW
    except ValueError as error:
        raise invalid_field("sent_at", str(error)) from None
    if not caller.is_server:
        parts.limit.check(caller.user_id, len(bodies), now)
    proof = None
    if "receipt" in body:
        sent = BatchWithReceipt(bodies, body["receipt"], caller, device_of(app.event), now, skew)
        proof = parts.prover.proof(sent)
    results = parts.acceptor.accept(bodies, caller, now, skew=skew, proof=proof)
    count = {status: sum(result.status is status for result in results) for status in AcceptStatus}
    logger.info("events", extra={status.value: number for status, number in count.items()})
    _refuse_whole(results, caller)
    if count[AcceptStatus.ACCEPTED]:
        parts.gauges.note_stored(now)
    answer: dict[str, Any] = {
        "accepted": count[AcceptStatus.ACCEPTED],
        "duplicates": count[AcceptStatus.DUPLICATE],
        "rejected": count[AcceptStatus.REJECTED] + count[AcceptStatus.CONFLICT],
        "results": [result.as_json() for result in results],
    }
    seconds = _seconds_to_wait(caller, now)
    applied = parts.waiter.wait(results, seconds) if seconds else None
    if applied is None:
        return json_response(202, answer)
    for result in answer["results"]:
        if event := applied.events.get(result.get("event_id")):
            result |= {"activity_date": event.day.isoformat(), "points": event.points}
            if closed := applied.closed_periods.get(result["event_id"]):
                result["closed_periods"] = closed
    return json_response(200, answer | applied.other_fields, {"Preference-Applied": f"wait={seconds}"})


def _seconds_to_wait(caller: Caller, now: datetime) -> int:
    """Return how many seconds the request waits: as it asks, or 0 for a user who has waited too often."""
    seconds = seconds_to_wait(app.event.get("headers", {}).get("prefer"))
    if seconds and not caller.is_server:
        try:
            _parts().waits.check(caller.user_id, 1, now)
        except ApiError:
            return 0
    return seconds


def _refuse_whole(results: list[AcceptResult], caller: Caller) -> None:
    """Refuse the batch if all of its events have one fault.

    Raises 403 if the caller may send none of them, 410 if all are of erased users, 503 if a
    store did not answer: some of them may be stored, and a repetition is safe.
    """
    codes = {(result.error or {}).get("code", "") for result in results}
    details = [result.as_json() for result in results]
    if codes == {"forbidden"}:
        logger.warning("forbidden", extra={"caller": caller.user_id})
        raise ApiError(403, "forbidden", "the caller may send none of these events", details)
    if codes == {ERASED}:
        raise ApiError(410, ERASED, "the user was erased", details)
    if codes == {"unavailable"}:
        raise ApiError(503, "unavailable", "try again", details, {"Retry-After": "1"})


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: an HTTP API request, payload format 2.0."""
    return with_receipt(app.resolve(event, context), event, lambda: _parts().prover.keys)
