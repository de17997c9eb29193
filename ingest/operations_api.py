"""The routes about the service itself: the live view of the pipeline, health, and the OpenAPI document.

A part of the live view that cannot be read is null, and `unknown` has the reason.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from adapters import clock, settings
from adapters.logs import Logger
from adapters.operations.freshness import Freshness, FreshnessUnknown
from adapters.operations.gauges import ConsumerLag, Gauges, GaugesSilent
from adapters.operations.queue_depths import QueueDepths
from adapters.platform.aws import client
from adapters.platform.fencing.fence import Fenced
from adapters.platform.fencing.turn import fence
from adapters.platform.objects import S3Objects
from adapters.settings.operations import OperationsApiSettings
from ingest.web.caller import caller_of
from ingest.web.http import answer, resolver
from rules.regions.register import may_write

EVENTS = "engagement"  # the view's throughput is that of this consumer
PACE_SECONDS = 10

logger = Logger(service="operations-api")
app: APIGatewayHttpResolver = resolver(logger)
Part = dict[str, Any] | list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class OperationsView:
    """Reads the parts of the live view, each from its own store."""

    gauges: Gauges
    queues: QueueDepths
    freshness: Freshness

    def view(self, now: datetime) -> dict[str, Any]:
        """Return all parts. `unknown` maps the name of each part that is null to the reason."""
        reasons: dict[str, str] = {}
        return {
            "at": now.isoformat(),
            "throughput": _part(reasons, "throughput", lambda: self.throughput(now)),
            "consumers": _part(reasons, "consumers", lambda: self.consumers(now)),
            "queues": _part(reasons, "queues", self.queues.read),
            "lake": _part(reasons, "lake", lambda: self.freshness.lake(now)),
            "nightly": _part(reasons, "nightly", lambda: self.freshness.nightly(now)),
            "unknown": reasons,
        }

    def throughput(self, now: datetime) -> dict[str, Any]:
        """Return the events of each second of the last minute, and their mean over the last 10 seconds."""
        seconds = self.gauges.per_second(EVENTS, now)
        pace = sum(seconds[-PACE_SECONDS:]) / PACE_SECONDS
        return {"events_per_second": pace, "window_seconds": PACE_SECONDS, "per_second": seconds}

    def consumers(self, now: datetime) -> list[dict[str, Any]]:
        """Return how many seconds each consumer is behind, and when it had its last batch.

        What was stored since counts too: of a consumer that has stopped, the last batch says nothing.
        """
        lags = {each.consumer: each for each in self.gauges.lags()}
        since = self.gauges.waiting_since(lags.get(EVENTS))
        waiting = {EVENTS: since} if since else {}
        return [_consumer(name, lags.get(name), waiting.get(name), now) for name in sorted({*lags, *waiting})]


def _consumer(
    name: str, lag: ConsumerLag | None, waiting_since: datetime | None, now: datetime
) -> dict[str, Any]:
    """Return a consumer's row. lag: None if it has had no batch for a day."""
    waited = (now - waiting_since).total_seconds() if waiting_since else 0.0
    return {
        "name": name,
        "behind_seconds": max(0.0, waited, lag.behind_seconds if lag else 0.0),
        "waiting_since": waiting_since and waiting_since.isoformat(),
        "last_batch_at": lag and lag.last_batch_at.isoformat(),
    }


def _part(reasons: dict[str, str], name: str, read: Callable[[], Part]) -> Part | None:
    try:
        return read()
    except (GaugesSilent, FreshnessUnknown) as error:
        reasons[name] = str(error)
    except Exception as error:  # a store that fails must not hide what the others say
        logger.exception("unknown", extra={"part": name})
        reasons[name] = str(error)[:200]
    return None


@cache
def _parts() -> OperationsView:
    config = settings.read(OperationsApiSettings)
    urls = json.loads(config.queue_urls)
    return OperationsView(
        Gauges(config.redis_url),
        QueueDepths(lambda: client("sqs"), urls),
        Freshness(S3Objects(client("s3"), config.lake_bucket)),
    )


@app.get("/v1/operations")
def get_operations() -> Response[str]:
    """The live view, for admins."""
    caller_of(app.current_event.raw_event).check_admin()
    return answer(200, _parts().view(clock.now()))


@app.get("/v1/health")
def get_health() -> Response[str]:
    """Say that functions run. This reads no store, so a store that fails does not fail the check.

    Of two regions only the one that may write is healthy (rule 23): so a name leads to it.
    """
    turn = fence()
    if turn is None:
        return answer(200, {"status": "ok"})
    try:
        turn.check(may_write)
    except Fenced as fenced:
        return answer(503, {"status": "standby", "reason": str(fenced)}, {"Retry-After": "10"})
    return answer(200, {"status": "ok"})


@app.get("/v1/openapi.json")
def get_openapi() -> Response[str]:
    """The OpenAPI document. It is no secret, and the same until the next deployment."""
    from ingest.openapi import document  # noqa: PLC0415 (no other request needs it)

    return answer(200, document(), {"Cache-Control": "public, max-age=300"})


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: an HTTP API request, payload format 2.0."""
    answered = app.resolve(event, context)
    logger.info("answered", extra={"route": event.get("routeKey"), "status": answered["statusCode"]})
    return answered
