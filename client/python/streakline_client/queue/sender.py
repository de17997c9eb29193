"""Sends the events that wait, and settles each as the service answers. One process sends at a time."""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any, Literal, cast

from streakline_client.calls import (
    UNKNOWN,
    Calls,
    is_fresh,
    pause,
    read_json,
    refusal_of,
    retry_after_seconds,
)
from streakline_client.queue.clock import offset_text
from streakline_client.queue.event_queue import BATCH_MAX, Batch, EventQueue, WaitingEvent
from streakline_client.shapes import Applied, Event
from streakline_client.transport import Reply, Unreachable

PAUSE_SECONDS, PAUSE_SECONDS_MAX = 1.0, 300.0
# No answer can make the sender rest for longer.
REST_SECONDS_MAX = 86_400.0
# With these statuses the service refuses a batch as a whole.
BATCH_REFUSED = frozenset({400, 413, 422})
TOO_LARGE = 413
ZONE = "timezone"
BATCH_FIELDS = frozenset({"sent_at", "receipt"})  # the fields of a batch beside its events
TAKEN = frozenset({"accepted", "duplicate"})
# With these statuses the service has judged the event itself. Any other one may change.
JUDGED = frozenset({"rejected", "conflict"})
# These codes say nothing against an event.
TEMPORARY = frozenset({"unavailable", "rate_limited", "unauthorized"})
WAIT = "wait=2"  # so long the service may wait until events are applied
HALF_A_SECOND = 500  # milliseconds


@dataclass(frozen=True, slots=True)
class RefusedEvent:
    """An event that the service refuses for good: which field, and why."""

    event: Event
    code: str
    field: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """What keeps events waiting."""

    # damaged: something on disk cannot be read, and was put aside
    kind: Literal["unreachable", "unauthorized", "other_user", "unavailable", "damaged"]
    reason: str


@dataclass(slots=True)
class Verdict:
    """The service's reply to a batch, event by event."""

    taken: list[WaitingEvent] = field(default_factory=list)  # the service has them
    refused: list[tuple[WaitingEvent, RefusedEvent]] = field(default_factory=list)  # for good
    misplaced: list[WaitingEvent] = field(default_factory=list)  # the service does not know their zones
    trouble: Trouble | None = None
    is_to_halve: bool = False  # whether the batch must be sent again in halves
    is_without_fields: bool = False  # whether the batch must be sent again without BATCH_FIELDS


@dataclass(frozen=True, slots=True)
class SenderListeners:
    """The functions that a sender calls."""

    refused: Callable[[RefusedEvent], None]
    trouble: Callable[[Trouble], None]
    # The service has these events, and says what they did, or does not say it
    taken: Callable[[list[WaitingEvent], Applied | None], None]
    is_awaited: Callable[[], bool]  # whether somebody wants to know what events did


class Sender:
    """Sends a queue."""

    def __init__(self, queue: EventQueue, calls: Calls, listeners: SenderListeners) -> None:
        self._queue, self._calls, self._listeners = queue, calls, listeners
        self._attempt, self._size = 0, BATCH_MAX
        self._omits_batch_fields = False  # whether the next batch goes without BATCH_FIELDS
        # The service does not know the zones of these events. By an event's key: the offset to send in place
        # of its zone; "" if that is unknown, too.
        self._zones: dict[str, str] = {}

    def drain(self) -> float | None:
        """Send what waits. Returns None then, else the seconds after which to try again.

        It ends although others go on: what comes meanwhile is left for the next call.
        """
        with self._queue.sending():
            newest = self._queue.newest()
            while True:
                wait = self._step(newest)
                if wait != 0:
                    return wait

    def _step(self, newest: int) -> float | None:
        """Send one batch. Returns 0: go on; None: nothing waits; else the seconds to wait."""
        try:
            if self._queue.look_for_doubt():
                asked_at = self._queue.wall()
                health = self._calls.once("GET", "/v1/health")
                self._queue.note_server_time(server_time(health), asked_at)
            batch = self._queue.batch(self._size, newest)
            if batch is None:
                return None
            batch = replace(batch, events=[self._with_offset(event) for event in batch.events])
            asked_at = self._queue.wall()
            # Only the last batch: the others shall go at once.
            is_last = batch.events[-1].number >= newest
            prefer = WAIT if is_last and self._listeners.is_awaited() else ""
            return self._settle_reply(batch, self._post(batch, prefer), asked_at)
        except BaseException as error:
            self._queue.settle([])  # nothing is under way any more
            if not isinstance(error, Unreachable):
                raise
            return self._retry_later(Trouble("unreachable", str(error)), None)

    def _post(self, batch: Batch, prefer: str) -> Reply:
        body: dict[str, Any] = {"events": [event.event for event in batch.events]}
        if not self._omits_batch_fields:
            body["sent_at"] = batch.sent_at
        if batch.proof is None:
            return self._calls.once("POST", "/v1/events", body, prefer=prefer)
        if not self._omits_batch_fields:
            body["receipt"] = batch.proof.receipt
        return self._calls.once("POST", "/v1/events", body, device=batch.proof.device, prefer=prefer)

    def _with_offset(self, waiting: WaitingEvent) -> WaitingEvent:
        """Return an event as it is sent: with its offset where the service does not know its zone."""
        zone = self._zones.get(waiting.event["idempotency_key"])
        if zone is None:
            return waiting
        event: Any = {name: value for name, value in waiting.event.items() if name != ZONE}
        if zone:
            event[ZONE] = zone
        return replace(waiting, event=event)

    def _note_unknown_zone(self, event: Event) -> None:
        offset = offset_text(event["occurred_at"])
        self._zones[event["idempotency_key"]] = "" if event.get(ZONE) == offset else offset

    def _settle_reply(self, batch: Batch, reply: Reply, asked_at: int) -> float:
        """Apply the reply to a batch; returns the seconds to wait until the next one.

        asked_at: what the clock said when the batch was sent.
        """
        judgement = verdict(batch.events, reply)
        # Once only: a second refusal of the batch's fields makes the sender wait.
        self._omits_batch_fields = judgement.is_without_fields and not self._omits_batch_fields
        for _, refused_event in judgement.refused:
            self._listeners.refused(refused_event)
        settled = [*judgement.taken, *(waiting for waiting, _ in judgement.refused)]
        for waiting in settled:
            self._zones.pop(waiting.event["idempotency_key"], None)
        for waiting in judgement.misplaced:
            self._note_unknown_zone(waiting.event)
        self._queue.settle(settled)
        self._queue.note_server_time(server_time(reply), asked_at)
        if judgement.taken:
            self._listeners.taken(judgement.taken, applied_of(reply))
        self._size = max(1, len(batch.events) // 2) if judgement.is_to_halve else BATCH_MAX
        if judgement.trouble and not self._omits_batch_fields:
            return self._retry_later(judgement.trouble, retry_after_seconds(reply.headers))
        self._attempt = 0
        return 0

    def _retry_later(self, trouble: Trouble, retry_after: float | None) -> float:
        self._listeners.trouble(trouble)
        self._attempt += 1
        return rest(self._attempt - 1, retry_after)


def rest(attempt: int, retry_after: float | None) -> float:
    """Return the seconds until the next attempt: those that the service asks for, else as pause() does."""
    if retry_after is not None:
        # A random part spreads the clients that the service has sent away at the same moment.
        return min(REST_SECONDS_MAX, retry_after) + random.uniform(0.001, PAUSE_SECONDS)  # noqa: S311 (no secret)
    return max(0.001, pause(attempt, None, PAUSE_SECONDS, PAUSE_SECONDS_MAX))


def verdict(events: list[WaitingEvent], reply: Reply) -> Verdict:
    """Return what a reply says of a batch."""
    results = _results_of(reply)
    if results is not None and len(results) == len(events):
        return _of_each(events, results)
    refusal = refusal_of(reply)
    if reply.status in (401, 403):
        return Verdict(trouble=Trouble("unauthorized", str(refusal)))
    # A refusal without a code comes from something on the way, such as a network's login page, and says
    # nothing about the batch. Only TOO_LARGE counts, whoever says so.
    if reply.status not in BATCH_REFUSED or (refusal.code == UNKNOWN and reply.status != TOO_LARGE):
        return Verdict(trouble=Trouble("unavailable", str(refusal)))
    name = _field_of(refusal.details)
    if name in BATCH_FIELDS:
        return Verdict(is_without_fields=True, trouble=Trouble("unavailable", str(refusal)))
    if len(events) > 1:
        return Verdict(is_to_halve=True)
    error = {"code": refusal.code, "field": name, "message": refusal.message}
    return _of_each(events, [{"status": "rejected", "error": error} for _ in events])


def _field_of(details: Any) -> str | None:
    """Return the field that details name first: its own name, whatever it is part of."""
    first = details[0] if isinstance(details, list) and details else None
    name = first.get("field") if isinstance(first, dict) else None
    return re.sub(r"^events?\W.*?(\w+)$", r"\1", name) if isinstance(name, str) else None


def _results_of(reply: Reply) -> list[dict[str, Any]] | None:
    """Return one result for each event: in the answer, or in the details of a refusal of all of them."""
    body = read_json(reply)
    try:
        results = body["results"] if reply.status in (200, 202) else body["error"]["details"]
    except (KeyError, TypeError):
        return None
    if not isinstance(results, list) or not all(
        isinstance(result, dict) and isinstance(result.get("status"), str) for result in results
    ):
        return None
    return results


def applied_of(reply: Reply) -> Applied | None:
    """Return what events did, if a reply says it."""
    body = read_json(reply)
    if reply.status != 200 or not isinstance(body, dict) or not isinstance(body.get("profile"), dict):
        return None
    return cast("Applied", body) if isinstance(body["profile"].get("current_streak"), int) else None


def _of_each(events: list[WaitingEvent], results: list[dict[str, Any]]) -> Verdict:
    judgement = Verdict()
    for waiting, result in zip(events, results, strict=True):
        error = result["error"] if isinstance(result.get("error"), dict) else {}
        code, name, reason = error.get("code", UNKNOWN), error.get("field"), error.get("message", "")
        if result["status"] in TAKEN:
            judgement.taken.append(waiting)
        elif result["status"] not in JUDGED or code in TEMPORARY:
            judgement.trouble = Trouble("unavailable", reason or result["status"])
        elif name == ZONE and waiting.event.get(ZONE):
            judgement.misplaced.append(waiting)
        elif code == "forbidden" and name == "user_id":
            # The token is another user's: this says nothing against the event.
            judgement.trouble = Trouble("other_user", reason)
        else:
            judgement.refused.append((waiting, RefusedEvent(waiting.event, code, name, reason)))
    return judgement


def server_time(reply: Reply) -> int | None:
    """Return the service's time in milliseconds since 1970; None: this reply does not tell it.

    Others answer, too: a network's login page, a proxy, a cache, each with a clock of its own or with an old
    time. So the answer must be in the service's words, and fresh. The header is cut to seconds, so half a
    second is added.
    """
    if not (_is_of_service(reply) and is_fresh(reply.headers)):
        return None
    try:
        return int(parsedate_to_datetime(reply.headers["date"]).timestamp() * 1000) + HALF_A_SECOND
    except (KeyError, TypeError, ValueError):
        return None


def _is_of_service(reply: Reply) -> bool:
    """Whether only the service answers like this: results, its health, or an error with a code."""
    body = read_json(reply)
    if not isinstance(body, dict):
        return False
    if reply.status < 300:
        return _results_of(reply) is not None or body.get("status") == "ok"
    error = body.get("error")
    return isinstance(error, dict) and all(isinstance(error.get(name), str) for name in ("code", "message"))
