"""A user's events: stored at once, sent whenever that is possible, and counted before the service answers."""

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

from streakline_client.calls import Calls, path_part
from streakline_client.profile import ShownProfile, estimated, new_profile
from streakline_client.queue.clock import DeviceClocks, Reading
from streakline_client.queue.event_queue import EventQueue, Proof, WaitingEvent
from streakline_client.queue.sender import RefusedEvent, Sender, SenderListeners, Trouble
from streakline_client.shapes import Event, Profile

QUEUE_MAX = 10_000
# Events that happen within this time go in one request.
SOON_SECONDS = 0.1
STORAGE_AGAIN_SECONDS = 60.0
# The service applies an event a moment after it has taken it. For this long its date is counted beside the
# profile.
AHEAD_MILLISECONDS = 60_000
MEMORY = ":memory:"
WARNINGS_MAX = 100
logger = logging.getLogger("streakline_client")


class Warnings:
    """Logs in place of the callbacks that the app has not given, each text once."""

    def __init__(self) -> None:
        self._known = set[str]()

    def refused(self, refused: RefusedEvent) -> None:
        """Tell of an event that the service refuses for good."""
        name, where = refused.event["event_type"], f" of {refused.field}" if refused.field else ""
        self._warn(f"the service refuses {name} for good: {refused.code}{where}: {refused.reason}")

    def dropped(self, _: Event) -> None:
        """Tell of an event that is given up as the queue is full."""
        self._warn("too many events wait: the oldest ones are given up")

    def unkept(self, _: Event) -> None:
        """Tell of an event that the disk did not take."""
        self._warn("nothing can be stored here: events wait in memory, and end with the process")

    def trouble(self, trouble: Trouble) -> None:
        """Tell why events wait."""
        begin = "" if trouble.kind == "damaged" else f"events wait: {trouble.kind}: "
        self._warn(begin + trouble.reason)

    def _warn(self, text: str) -> None:
        if text not in self._known and len(self._known) < WARNINGS_MAX:
            self._known.add(text)
            logger.warning("%s", text)


def _call_app(callback: Callable[[Any], None], value: Any) -> None:
    """Call a function of the app. If it raises an error, sending goes on."""
    try:
        callback(value)
    except Exception:
        logger.exception("a callback of the app has failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Queueing:
    """How events wait.

    Raises ValueError or TypeError for what cannot work.
    """

    # The queue's file, of this user alone; None, or ":memory:": memory
    path: str | os.PathLike[str] | None = None
    zone: str | ZoneInfo | None = None  # IANA name of the place, or a ZoneInfo; None: the machine's
    # How many events may wait. With one more the oldest is dropped, and on_dropped is called
    most: int = QUEUE_MAX
    # The service refused an event for good. It is called at least once, perhaps in another process
    on_refused: Callable[[RefusedEvent], None] | None = None
    on_dropped: Callable[[Event], None] | None = None
    # An event cannot be written to the disk. It waits in memory, and is lost when the process ends
    on_unkept: Callable[[Event], None] | None = None
    # Events wait, for a reason; or the file was damaged and renamed. Without a callback the reason is logged,
    # each once. Errors of callbacks are logged, too
    on_trouble: Callable[[Trouble], None] | None = None
    # Whether an event keeps the streak, for the estimate only
    keeps_streak: Callable[[Event], bool] = lambda _: True
    is_sending: bool = True  # a thread sends by itself; else `flush` does
    clocks: Callable[[], Reading] | None = None  # reads the clocks; None: the machine's

    def __post_init__(self) -> None:
        """Check the app's values."""
        if isinstance(self.most, bool) or not isinstance(self.most, int) or self.most < 1:
            raise ValueError(f"most must be a whole number of events, and not {self.most!r}")
        for name in ("on_refused", "on_dropped", "on_unkept", "on_trouble", "clocks"):
            if not (getattr(self, name) is None or callable(getattr(self, name))):
                raise TypeError(f"{name} must be a function, and not {getattr(self, name)!r}")
        if not callable(self.keeps_streak):
            raise TypeError(f"keeps_streak must be a function, and not {self.keeps_streak!r}")
        self.file()
        self.zone_name()

    def file(self) -> Path | None:
        """Return the queue's file; None: memory."""
        if self.path is None or self.path == MEMORY:
            return None
        if not isinstance(self.path, str | bytes | os.PathLike):
            raise TypeError(f"path must be a text or a Path, and not {self.path!r}")
        name = os.fsdecode(self.path)
        if not name.strip():
            raise ValueError("path must name a file; without one events wait in memory")
        return Path(name).expanduser()

    def zone_name(self) -> str | None:
        """Return the zone's name; None: the machine's."""
        name: Any = getattr(self.zone, "key", self.zone)
        if name is None:
            return None
        try:
            return ZoneInfo(name).key
        except (TypeError, ValueError, OSError, KeyError):
            raise ValueError(f"zone must be an IANA name that this machine knows, and not {name!r}") from None


class Tracker:
    """The events of one user."""

    def __init__(self, calls: Calls, user: str, queueing: Queueing) -> None:
        self.user, self._queueing = user, queueing
        warnings = Warnings()
        self._on_dropped = queueing.on_dropped or warnings.dropped
        self._on_unkept = queueing.on_unkept or warnings.unkept
        self._on_trouble = queueing.on_trouble or warnings.trouble
        on_refused = queueing.on_refused or warnings.refused
        self._clocks = queueing.clocks or DeviceClocks().read
        self._queue = EventQueue(queueing.file(), self._clocks, queueing.zone_name(), queueing.most)
        if self._queue.aside:
            reason = f"the queue's file is damaged, and was put aside: {self._queue.aside}"
            _call_app(self._on_trouble, Trouble("damaged", reason))
        device = self._queue.device()
        calls.device_id, calls.on_receipt = lambda: device, self._keep_receipt
        listeners = SenderListeners(
            lambda refused: _call_app(on_refused, refused),
            lambda trouble: _call_app(self._on_trouble, trouble),
            self._count_taken,
        )
        self._sender = Sender(self._queue, calls, listeners)
        self._woken, self._closed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="streakline", daemon=True)
        if queueing.is_sending:
            self._thread.start()

    def track(self, event_type: str, properties: Mapping[str, Any] | None) -> str:
        """Say that something happened, now and here; returns its key. It is kept when this returns."""
        event, dropped_events = self._queue.add(event_type, properties, self.user)
        if self._queue.is_in_memory:
            _call_app(self._on_unkept, event)
        for dropped in dropped_events:
            _call_app(self._on_dropped, dropped)
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
        """Store a profile that the service has answered; returns it with the waiting events counted in."""
        self._queue.put("profile", profile)
        self._put_ahead(self._ahead(profile))
        return self.estimate()

    def estimate(self) -> ShownProfile:
        """Return the profile to show now: the newest stored one, with the waiting events counted in."""
        profile: Profile = self._queue.get("profile") or new_profile(self.user)
        dates, today = self._queue.dates(self._queueing.keeps_streak)
        dates += [day for day, _ in self._ahead(profile)]
        is_estimate = bool(dates) or profile.get("as_of") != today.isoformat()
        more = {"waiting": len(self._queue), "is_estimate": is_estimate}
        return cast("ShownProfile", {**estimated(profile, dates, today), **more})

    def _keep_receipt(self, path: str, device: str, receipt: str) -> None:
        # Only these paths are certain to be called with this user's token.
        if path in ("/v1/events", f"/v1/users/{path_part(self.user)}"):
            with suppress(sqlite3.Error):  # the disk is full, or this is closed: the next one will do
                self._queue.store_receipt(Proof(device, receipt))

    def _count_taken(self, events: list[WaitingEvent]) -> None:
        now = self._clocks().wall
        dates = [
            (self._queue.date_of(event), now) for event in events if self._queueing.keeps_streak(event.event)
        ]
        profile: Profile = self._queue.get("profile") or new_profile(self.user)
        self._put_ahead([*self._ahead(profile), *dates])

    def _ahead(self, profile: Profile) -> list[tuple[date, int]]:
        """Return (date, instant of its acceptance) of each date that the service may not have applied yet."""
        now, last = self._clocks().wall, profile["last_activity_date"] or ""
        kept = [(day, at) for day, at in self._queue.get("ahead") or [] if day > last]
        return [(date.fromisoformat(day), at) for day, at in kept if abs(now - at) < AHEAD_MILLISECONDS]

    def _put_ahead(self, ahead: list[tuple[date, int]]) -> None:
        self._queue.put("ahead", [(day.isoformat(), at) for day, at in ahead])

    def _work(self) -> None:
        while True:
            self._woken.clear()  # before the look at `_closed`: `close` sets that first
            if self._closed.is_set():
                return
            wait = self._drain()
            if wait is None:
                self._woken.wait()
                wait = SOON_SECONDS
            self._closed.wait(wait)

    def _drain(self) -> float | None:
        try:
            return self._sender.drain()
        except Exception as error:  # noqa: BLE001 (a full disk, for one; the thread goes on, and tells)
            if not self._closed.is_set():
                _call_app(self._on_trouble, Trouble("unavailable", repr(error)))
            return STORAGE_AGAIN_SECONDS
