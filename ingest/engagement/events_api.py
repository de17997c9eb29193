"""POST /v1/events: a batch of events of a device or a server. acceptance.py takes each by itself."""

from dataclasses import dataclass
from typing import Any

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
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
from ingest.engagement.receipts import BatchWithReceipt, OfflineProver, device_of, with_receipt
from ingest.web.api import Allowance, Api
from ingest.web.caller import ApiError, Caller, invalid_field
from ingest.web.rate_limit import CHEAP_STEP, RateLimit
from rules.days import parse_moment
from rules.engagement.events import NO_SKEW, skew_of

app = Api("EventsApi")
logger = app.logger


@dataclass(frozen=True)
class EventsApiSettings(Allowance, IntakeSettings):
    """Settings of this function."""

    redis_url: str
    rate_limit_per_minute: int  # events of one user; admins and producers are not limited
    receipt_secret_arn: str


@dataclass(frozen=True, slots=True)
class _Parts:
    acceptor: Acceptor
    limit: RateLimit
    prover: OfflineProver
    gauges: Gauges


@bootstrap(EventsApiSettings)
def _parts(config: EventsApiSettings, client: ClientOf) -> _Parts:
    dynamodb = client("dynamodb")
    counters = SharedCounters(lambda: dynamodb, config.limits_table)
    redis = RedisCache(config.redis_url)
    limit = RateLimit(counters, "events", config.rate_limit_per_minute, step=CHEAP_STEP, redis=redis)
    stretches = StretchStore(dynamodb, config.idempotency_keys_table, config.bp_events_table)
    # It reads the keys when the first receipt comes.
    keys = KeyedHash(lambda: client("secretsmanager"), config.receipt_secret_arn)
    prover = OfflineProver(keys, stretches, tombstones_of(config, client))
    return _Parts(acceptor_of(config, client), limit, prover, Gauges(config.redis_url))


@app.route("POST /v1/events", body=EVENTS, status=202, answer=RESULTS)
def post_events() -> dict[str, Any]:
    """Send 1 to 100 events."""
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
    return {
        "accepted": count[AcceptStatus.ACCEPTED],
        "duplicates": count[AcceptStatus.DUPLICATE],
        "rejected": count[AcceptStatus.REJECTED] + count[AcceptStatus.CONFLICT],
        "results": [result.as_json() for result in results],
    }


def _refuse_whole(results: list[AcceptResult], caller: Caller) -> None:
    """Refuse the batch if all of its events have one fault.

    Raises 403 if the caller may send none of them, 410 if all are of erased users, 503 if none was stored.
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
