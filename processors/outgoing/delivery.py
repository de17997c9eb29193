"""Delivers the notifications that wait in a share of an endpoint's lanes.

A lane is delivered in order: the next notification is sent when the one before has arrived. A replay moves a
lane back to one of its notifications, and all later ones follow in order.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import partial
from typing import Any

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.hook_store import HookStore
from adapters.logs import Logger
from adapters.outgoing.endpoint_store import EndpointStore, NoEndpoint
from adapters.outgoing.lane_store import LANES_READ, Lane, LaneStore, WorkerLeases
from adapters.outgoing.outbox_store import EndpointShare, endpoint_share
from adapters.outgoing.transports import HookSender, SendAnswer, Transport
from adapters.platform.queues import Consumer, Deadline, FailureQueue, PoisonMessage
from processors.batches import ConsumerSettings, reason_of
from rules.days import stamp, unstamp
from rules.outgoing.notices import (
    REFUSED_MAX,
    Endpoint,
    Notification,
    backoff_after,
    holder_names,
    holder_of,
    is_given_up,
    next_attempt,
)
from rules.outgoing.webhooks import is_public

logger = Logger(service="delivering")
CONSUMER = "deliveries"
GONE_REASON = "it answered 410 Gone"
SOON = timedelta(seconds=10)  # a worker waits for a lane that is due by then
RESERVE_SECONDS = 35  # an attempt takes 20 at most
Send = Callable[[Endpoint, Notification, datetime], SendAnswer]


@dataclass(frozen=True)
class WebhookDeliverySettings(ConsumerSettings):
    """Settings of WebhookDeliveryFunction. Its failure queue has what was refused for three days."""

    notifications_table: str
    webhook_endpoints_table: str
    event_bus_name: str
    endpoint_secret_prefix: str  # of the names of endpoints' secrets
    private_endpoints: bool  # whether an endpoint may be at a private address, as on a laptop


class LaneOutcome(Enum):
    """The result of a lane in a round."""

    ARRIVED = "arrived"  # all that was sent
    REFUSED = "refused"  # the last that was sent
    GONE = "gone"  # the endpoint wants no more messages
    PASSED = "passed"  # nothing was sent, or another worker has the lane


@dataclass(frozen=True, slots=True)
class Deliverer:
    """Delivers notifications to endpoints."""

    endpoints: EndpointStore
    lanes: LaneStore
    workers: WorkerLeases
    send: Send
    failures: FailureQueue
    now: Callable[[], datetime] = clock.now
    writers: int = 8  # how many lanes are served at the same time

    def run(self, endpoint_id: str, share: int, is_over: Callable[[], bool]) -> int:
        """Deliver until nothing is due or the time is over; returns how many lanes were served.

        A round in which any lane's messages arrived sets the endpoint's failures back to 0. After a round in
        which too many were refused, the share has a pause. An endpoint that is gone is disabled.
        """
        served, _ = self._run(endpoint_id, share, is_over)
        return served

    def _run(self, endpoint_id: str, share: int, is_over: Callable[[], bool]) -> tuple[int, bool]:
        """Return as `run` does how many lanes were served, and whether anything arrived."""
        try:
            endpoint = self.endpoints.get(endpoint_id)
        except NoEndpoint:
            return 0, False
        if endpoint.disabled:
            return 0, False
        failures = self.workers.begin(endpoint_id, share, self.now())
        if failures is None:
            return 0, False
        served, has_arrived, has_pause = 0, False, False
        try:
            for outcomes in self._rounds(endpoint, share, failures, is_over):
                served += len(outcomes)
                refused = outcomes.count(LaneOutcome.REFUSED)
                if LaneOutcome.ARRIVED in outcomes:
                    failures, has_arrived = 0, True
                elif LaneOutcome.GONE in outcomes:
                    self.endpoints.set_disabled(endpoint_id, GONE_REASON)
                    break
                elif refused >= REFUSED_MAX or (refused and failures):
                    failures, has_pause = failures + 1, True
                    break
        finally:
            until = self.now() + backoff_after(failures) if has_pause else self.now()
            self.workers.end(endpoint_id, share, failures, until)
        return served, has_arrived

    def serve(
        self,
        endpoint_id: str,
        share: int,
        is_over: Callable[[], bool],
        pause: Callable[[float], None] = time.sleep,
    ) -> int:
        """Deliver as `run` does, and again while lanes are due within moments, since they were refused once.

        Otherwise an endpoint that refuses now and then would get a user's next notifications only when the
        next minute's schedule wakes a worker: a handful a minute. For one that takes nothing, no worker
        waits. pause: waits for some seconds.
        """
        served, has_arrived = self._run(endpoint_id, share, is_over)
        while has_arrived and not is_over():
            due_at = self.lanes.next_due(endpoint_id, share, self.now(), self.now() + SOON)
            if due_at is None:
                break
            pause(max(0.0, (due_at - self.now()).total_seconds()))
            more, has_arrived = self._run(endpoint_id, share, is_over)
            served += more
        return served

    def replay(self, request: Mapping[str, Any], now: datetime) -> EndpointShare:
        """Move a lane back to one of its notifications; all later ones follow in order.

        request: has endpoint_id; user_id, lead_id or question_id; and the first notification to send again:
        its number, or since, a stamp. Returns the share that the lane is in. Raises PoisonMessage if there is
        nothing to send again.
        """
        try:
            endpoint_id, holder = str(request["endpoint_id"]), holder_of(request)
            first, since = int(request.get("number", 1)), str(request.get("since", ""))
            self.endpoints.get(endpoint_id)
        except NoEndpoint:
            raise PoisonMessage(f"there is no endpoint {endpoint_id}") from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise PoisonMessage(reason_of(error)) from None
        numbers = [each.number for each in self.lanes.log(holder, first - 1) if each.at >= since]
        if not numbers:
            raise PoisonMessage("nothing is kept of it from then on")
        self.lanes.go_back(holder, endpoint_id, numbers[0], numbers[-1], now)
        return endpoint_share(endpoint_id, holder)

    def _rounds(
        self, endpoint: Endpoint, share: int, failures: int, is_over: Callable[[], bool]
    ) -> Iterator[list[LaneOutcome]]:
        """Yield the outcomes of each round. If the endpoint refused before, the first round is one lane."""
        limit = 1 if failures else LANES_READ
        with ThreadPoolExecutor(self.writers) as pool:
            while not is_over():
                lanes = self.lanes.due(endpoint.endpoint_id, share, self.now(), limit)
                if not lanes:
                    return
                yield list(pool.map(partial(self._serve_lane, endpoint, is_over), lanes))
                limit = LANES_READ

    def _serve_lane(self, endpoint: Endpoint, is_over: Callable[[], bool], lane: Lane) -> LaneOutcome:
        """Send the notifications of a lane, in order, until an attempt fails."""
        taken = self.lanes.take(lane, self.now())
        if taken is None:
            return LaneOutcome.PASSED
        delivered, outcome = taken.delivered, LaneOutcome.PASSED
        for notification in self.lanes.log(taken.holder, delivered):
            if is_over():
                self.lanes.wait(taken, self.now(), delivered=delivered)
                return outcome
            if endpoint.wants(notification):
                answer = self.send(endpoint, notification, self.now())
                if not answer.is_delivered:
                    return self._note_refusal(taken, notification, answer, delivered)
                outcome = LaneOutcome.ARRIVED
            delivered = notification.number
        self.lanes.finish(taken, max(delivered, taken.newest), self.now())
        return outcome

    def _note_refusal(
        self, taken: Lane, tried: Notification, answer: SendAnswer, delivered: int
    ) -> LaneOutcome:
        """Make a lane wait after a refused notification; give that one up if its time is over.

        delivered: the number of the newest notification that was delivered before it.
        """
        now = self.now()
        log_fields = {
            "endpoint_id": taken.endpoint_id,
            "message_id": tried.message_id,
            "reason": answer.reason,
        }
        logger.warning("not delivered", extra=log_fields)
        if answer.is_gone:
            self.lanes.wait(taken, now, delivered=delivered)
            return LaneOutcome.GONE
        is_first = delivered > taken.delivered or not taken.failing_since
        failures, since = (1, stamp(now)) if is_first else (taken.failures + 1, taken.failing_since)
        if is_given_up(unstamp(max(tried.at, since)), now):
            key = {"endpoint_id": taken.endpoint_id, **holder_names(taken.holder), "number": tried.number}
            self.failures.keep(CONSUMER, [(key, answer.reason)], now)
            delivered = tried.number
        until = next_attempt(failures, now)
        self.lanes.wait(taken, until, delivered=delivered, failures=failures, failing_since=since)
        return LaneOutcome.REFUSED


@bootstrap(WebhookDeliverySettings)
def _parts(config: WebhookDeliverySettings, client: ClientOf) -> Deliverer:
    dynamodb = client("dynamodb")
    secrets = HookStore(client("secretsmanager"), config.endpoint_secret_prefix)
    may_be_private = config.private_endpoints
    sender = HookSender(is_allowed=(lambda _: True) if may_be_private else is_public)
    transport = Transport(secrets, sender, lambda: client("events"), may_be_private)
    return Deliverer(
        EndpointStore(dynamodb, config.webhook_endpoints_table, config.event_bus_name),
        LaneStore(dynamodb, config.notifications_table),
        WorkerLeases(dynamodb, config.notifications_table),
        transport.send,
        FailureQueue(lambda: client("sqs"), config.failure_queue_url),
    )


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Lambda entry: which endpoint, and which share of its lanes; or messages that ask for a replay."""
    deliverer, is_over = _parts(), Deadline(context, RESERVE_SECONDS).is_over
    if "Records" in event:
        shares, now = set[EndpointShare](), clock.now()
        replays = Consumer(CONSUMER, deliverer.failures, logger)
        answer = replays.serve(event, lambda request: shares.add(deliverer.replay(request, now)), now)
        for endpoint_id, share in sorted(shares):
            deliverer.run(endpoint_id, share, is_over)
        return answer
    served = deliverer.serve(event["endpoint_id"], event["share"], is_over)
    logger.info("delivered", extra={"lanes": served})
    return {"lanes": served}
