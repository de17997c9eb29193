"""The routes about the service itself: the live view of the pipeline, health, and the OpenAPI document.

A part of the live view that cannot be read is null, and `unknown` has the reason.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from aws_lambda_powertools.event_handler import Response

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.freshness import Freshness
from adapters.platform.fence import RegionFenced, process_fence
from adapters.platform.gauges import ConsumerLag, Gauges
from adapters.platform.objects import S3Objects
from adapters.platform.queues import QueueDepths
from adapters.settings.parts import deployed_parts
from ingest.web.api import Allowance, Answer, Api, json_response
from ingest.web.routes import DOCUMENT
from ingest.web.served_parts import served_document
from rules.regions.register import may_write

EVENTS = "engagement"  # the view's throughput is that of this consumer
# How late a batch was says for so long how far its consumer is behind. After that only what waits says it.
LAG_KEPT = timedelta(minutes=1)
PACE_SECONDS = 10

app = Api("OperationsApi")
logger, handler = app.logger, app.handler
Part = dict[str, Any] | list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class OperationsApiSettings(Allowance):
    """Settings of this function."""

    redis_url: str
    lake_bucket: str
    queue_urls: (
        str  # JSON: a queue's name -> its URL. Messages of a queue named ...Failures need an operator.
    )


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
            "nightly": _part(reasons, "nightly", self.freshness.nightly),
            "unknown": reasons,
        }

    def throughput(self, now: datetime) -> dict[str, Any]:
        """Return the events of each second of the last minute, and their mean over the last 10 seconds."""
        seconds = self.gauges.applied_per_second(EVENTS, now)
        pace = sum(seconds[-PACE_SECONDS:]) / PACE_SECONDS
        return {"events_per_second": pace, "window_seconds": PACE_SECONDS, "per_second": seconds}

    def consumers(self, now: datetime) -> list[dict[str, Any]]:
        """Return how many seconds each consumer is behind, and when it had its last batch.

        What was stored since counts too: of a consumer that has stopped, the last batch says nothing. A lag
        that is over is none.
        """
        lags = {lag.consumer: lag for lag in self.gauges.lags()}
        since = self.gauges.waiting_since(lags.get(EVENTS))
        waiting = {EVENTS: since} if since else {}
        return [_consumer(name, lags.get(name), waiting.get(name), now) for name in sorted({*lags, *waiting})]


def _consumer(
    name: str, lag: ConsumerLag | None, waiting_since: datetime | None, now: datetime
) -> dict[str, Any]:
    """Return a consumer's row. lag: None if it has had no batch for a day."""
    waited = (now - waiting_since).total_seconds() if waiting_since else 0.0
    is_recent = lag is not None and now - lag.last_batch_at <= LAG_KEPT
    return {
        "name": name,
        "behind_seconds": max(0.0, waited, lag.behind_seconds if lag and is_recent else 0.0),
        "waiting_since": waiting_since and waiting_since.isoformat(),
        "last_batch_at": lag and lag.last_batch_at.isoformat(),
    }


def _part(reasons: dict[str, str], name: str, read: Callable[[], Part]) -> Part | None:
    try:
        return read()
    except Exception as error:  # a store that fails must not hide what the others say
        logger.exception("unknown", extra={"part": name})
        reasons[name] = str(error)[:200]
        return None


@bootstrap(OperationsApiSettings)
def _parts(config: OperationsApiSettings, client: ClientOf) -> OperationsView:
    urls = json.loads(config.queue_urls)
    return OperationsView(
        Gauges(config.redis_url),
        QueueDepths(lambda: client("sqs"), urls),
        Freshness(S3Objects(client("s3"), config.lake_bucket)),
    )


@app.route("GET /v1/operations")
def get_operations() -> dict[str, Any]:
    """The pipeline, live (admins)."""
    app.admin()
    return _parts().view(clock.now())


@app.route("GET /v1/health", is_open=True)
def get_health() -> Answer:
    """Health."""
    # It says that functions run, and reads no store: one that fails does not fail the check. Of two regions
    # only the one that may write is healthy (docs/rules.md, rule 23), so a name leads to it.
    try:
        if turn := process_fence():
            turn.check(may_write)
    except RegionFenced as fenced:
        return json_response(503, {"status": "standby", "reason": str(fenced)}, {"Retry-After": "10"})
    return {"status": "ok"}


@app.route("GET /v1/openapi.json", is_open=True)
def get_open_api() -> Response[str]:
    """This document."""
    # It is no secret, and the same until the next deployment.
    served = served_document(json.loads(DOCUMENT.read_bytes()), deployed_parts())
    return json_response(200, served, {"Cache-Control": "public, max-age=300"})
