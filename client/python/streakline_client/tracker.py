"""A user's events: kept at once, sent whenever that is possible, and shown before they are answered."""

import logging
import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, cast

from streakline_client.calls import Calls, part
from streakline_client.profile import ShownProfile, estimated, nobody
from streakline_client.queue.batches import Proof, Waiting
from streakline_client.queue.clock import Reading
from streakline_client.queue.event_queue import EventQueue
from streakline_client.queue.moments import DeviceClocks
from streakline_client.queue.sender import RefusedEvent, Sender, Told, Trouble
from streakline_client.shapes import Event, Profile

QUEUE_MAX = 10_000
# What happens within so short a time goes in one request.
SOON_SECONDS = 0.1
STORAGE_AGAIN_SECONDS = 60.0
# So long a date that the service has taken may be missing in its profile: it is applied a moment later.
AHEAD_MILLISECONDS = 60_000


logger = logging.getLogger("streakline_client")


def _nothing(_: Any) -> None:
    pass


def _tell(callback: Callable[[Any], None], value: Any) -> None:
    """Tell an app something. An error of its own stops no sending."""
    try:
        callback(value)
    except Exception:
        logger.exception("a callback of the app has failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Queueing:
    """How events wait.

    path: the queue's file, of this user alone; None: memory. zone: IANA name of the place; None: the
    machine's. most: how many may wait; one more, and the oldest goes, and on_dropped tells. on_refused: the
    service refused an event for good; it is told at least once, perhaps in another process. on_trouble:
    events wait, and why; or the file was damaged, and where it is now. What a callback raises is logged.
    keeps_streak: whether an event keeps the streak, for the estimate only. is_sending: a thread sends by
    itself; else `flush` does. clocks: the machine's.
    """

    path: Path | None = None
    zone: str | None = None
    most: int = QUEUE_MAX
    on_refused: Callable[[RefusedEvent], None] = _nothing
    on_dropped: Callable[[Event], None] = _nothing
    on_trouble: Callable[[Trouble], None] = _nothing
    keeps_streak: Callable[[Event], bool] = lambda _: True
    is_sending: bool = True
    clocks: Callable[[], Reading] | None = None


class Tracker:
    """The events of one user."""

    def __init__(self, calls: Calls, user: str, how: Queueing) -> None:
        self._user, self._how = user, how
        self._clocks = how.clocks or DeviceClocks().read
        self._queue = EventQueue(how.path, self._clocks, how.zone, how.most)
        if self._queue.aside:
            reason = f"the queue's file is damaged, and was put aside: {self._queue.aside}"
            _tell(how.on_trouble, Trouble("damaged", reason))
        device = self._queue.device()
        calls.device, calls.received = lambda: device, self._received
        told = Told(
            lambda refused: _tell(how.on_refused, refused),
            lambda trouble: _tell(how.on_trouble, trouble),
            self._taken,
        )
        self._sender = Sender(self._queue, calls, told)
        self._woken, self._closed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="streakline", daemon=True)
        if how.is_sending:
            self._thread.start()

    def track(self, event_type: str, properties: Mapping[str, Any] | None) -> str:
        """Say that something happened, now and here; returns its key. It is kept when this returns."""
        event, gone = self._queue.add(event_type, properties, self._user)
        for each in gone:
            _tell(self._how.on_dropped, each)
        self._woken.set()
        return event["idempotency_key"]

    def flush(self) -> int:
        """Try to send now; returns how many events wait still."""
        self._sender.drain()
        return len(self._queue)

    def waiting(self) -> list[Event]:
        """Return what waits, the oldest first."""
        return [each.event for each in self._queue.waiting()]

    def close(self) -> None:
        """Stop sending. What waits is kept."""
        self._closed.set()
        self._woken.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()
        self._queue.close()

    def corrected(self, profile: Profile) -> ShownProfile:
        """Take a profile that the service has answered; returns it with what waits counted in."""
        self._queue.put("profile", profile)
        self._put_ahead(self._ahead(profile))
        return self.estimate()

    def estimate(self) -> ShownProfile:
        """Return the profile as it is to be shown now: the last one known, with what waits counted in."""
        profile: Profile = self._queue.get("profile") or nobody(self._user)
        dates, today = self._queue.dates(self._how.keeps_streak)
        dates += [day for day, _ in self._ahead(profile)]
        is_estimate = bool(dates) or profile.get("as_of") != today.isoformat()
        more = {"waiting": len(self._queue), "is_estimate": is_estimate}
        return cast("ShownProfile", {**estimated(profile, dates, today), **more})

    def _received(self, path: str, device: str, receipt: str) -> None:
        # Of other paths nobody knows whose token it was.
        if path in ("/v1/events", f"/v1/users/{part(self._user)}"):
            with suppress(sqlite3.Error):  # the disk is full, or this is closed: the next one will do
                self._queue.received(Proof(device, receipt))

    def _taken(self, events: list[Waiting]) -> None:
        now = self._clocks().wall
        dates = [(self._queue.date_of(each), now) for each in events if self._how.keeps_streak(each.event)]
        profile: Profile = self._queue.get("profile") or nobody(self._user)
        self._put_ahead([*self._ahead(profile), *dates])

    def _ahead(self, profile: Profile) -> list[tuple[date, int]]:
        """Return the dates that the service has taken and may not have applied, with when it took them."""
        now, last = self._clocks().wall, profile["last_activity_date"] or ""
        kept = [(day, at) for day, at in self._queue.get("ahead") or [] if day > last]
        return [(date.fromisoformat(day), at) for day, at in kept if abs(now - at) < AHEAD_MILLISECONDS]

    def _put_ahead(self, ahead: list[tuple[date, int]]) -> None:
        self._queue.put("ahead", [(day.isoformat(), at) for day, at in ahead])

    def _work(self) -> None:
        """Send what waits, until this is closed."""
        while not self._closed.is_set():
            wait = self._drained()
            if wait is None:
                self._woken.wait()
                self._woken.clear()
                wait = SOON_SECONDS
            self._closed.wait(wait)

    def _drained(self) -> float | None:
        self._woken.clear()
        try:
            return self._sender.drain()
        except Exception as error:  # noqa: BLE001 (a full disk, for one; the thread goes on, and tells)
            if not self._closed.is_set():
                _tell(self._how.on_trouble, Trouble("unavailable", repr(error)))
            return STORAGE_AGAIN_SECONDS
