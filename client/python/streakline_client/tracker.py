"""A user's events: stored at once, sent whenever that is possible, and counted before the service answers."""

import logging
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, cast
from zoneinfo import ZoneInfo, available_timezones

from streakline_client.calls import Calls, user_part
from streakline_client.profile import ShownProfile, estimated, new_profile
from streakline_client.queue import forks
from streakline_client.queue.clock import DeviceClocks, Reading, zone_of
from streakline_client.queue.event_queue import EventQueue, Proof, WaitingEvent
from streakline_client.queue.queue_file import MEMORY
from streakline_client.queue.sender import WAIT, RefusedEvent, Sender, SenderListeners, Trouble, applied_of
from streakline_client.shapes import Applied, Event, Profile
from streakline_client.transport import Unreachable

QUEUE_MAX = 10_000
# Events that happen within this time go in one request.
SOON_SECONDS = 0.1
STORAGE_AGAIN_SECONDS = 60.0
# How often a thread looks whether a process that has ended meanwhile left events in the file.
LEFT_SECONDS = 5.0
# The service applies an event a moment after it has taken it. For this long a profile may lack it.
AHEAD_MILLISECONDS = 60_000
AGAIN_SECONDS = 0.5  # until the service is asked again what an event did
WARNINGS_MAX = 100
OPEN_COMMAND = "command "  # then its name
logger = logging.getLogger("streakline_client")
# Trackers of the parent. A child must not close their connections, so it keeps them as long as it lives.
_inherited = list["Tracker"]()


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
    # The service has applied events: points and date of each, the profile after them, and what is new
    on_applied: Callable[[Applied], None] | None = None
    # Whether an event keeps the streak, for the estimate only
    keeps_streak: Callable[[Event], bool] = lambda _: True
    is_sending: bool = True  # a thread sends by itself; else `flush` does
    clocks: Callable[[], Reading] | None = None  # reads the clocks; None: the machine's

    def __post_init__(self) -> None:
        """Check the app's values."""
        if isinstance(self.most, bool) or not isinstance(self.most, int) or self.most < 1:
            raise ValueError(f"most must be a whole number of events, and not {self.most!r}")
        for name in ("on_refused", "on_dropped", "on_unkept", "on_trouble", "on_applied", "clocks"):
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
        if not name.strip() or "\0" in name:
            raise ValueError("path must name a file; without one events wait in memory")
        try:
            return Path(name).expanduser()
        except RuntimeError:  # this user has none, as in some containers
            raise ValueError(f"path must not begin with ~ where there is no home folder: {name!r}") from None

    def zone_name(self) -> str | None:
        """Return the zone's name; None: the machine's."""
        if self.zone is None:
            return None
        name: Any = getattr(self.zone, "key", self.zone)
        if not isinstance(name, str):
            raise TypeError(f"zone must be an IANA name, or a ZoneInfo that has one, and not {self.zone!r}")
        try:
            zone_of(name)
        except ValueError:
            hint = (
                "" if available_timezones() else ": it has no time zones at all; install the package tzdata"
            )
            raise ValueError(
                f"zone must be an IANA name that this machine knows, and not {name!r}{hint}"
            ) from None
        return name


class StoredCommands:
    """Commands whose answer is missing (calls.OpenCommands), in the queue's file, or in memory."""

    def __init__(self, tracker: "Tracker") -> None:
        self._tracker, self._memory = tracker, dict[str, tuple[dict[str, Any], float]]()

    def get(self, name: str) -> tuple[dict[str, Any], float] | None:
        """Return a command; None: its answer is not missing."""
        found = self._memory.get(name)
        if not self._tracker.is_inherited:
            with suppress(sqlite3.Error):  # the queue is closed
                found = self._tracker.queue.get(OPEN_COMMAND + name)
        return None if found is None else (found[0], found[1])

    def __setitem__(self, name: str, value: tuple[dict[str, Any], float]) -> None:
        """Keep a command."""
        self._memory[name] = value
        self._store(name, value)

    def pop(self, name: str, default: None) -> None:
        """Forget a command."""
        self._memory.pop(name, None)
        self._store(name, default)

    def _store(self, name: str, value: tuple[dict[str, Any], float] | None) -> None:
        if not self._tracker.is_inherited:
            with suppress(sqlite3.Error):
                self._tracker.queue.put(OPEN_COMMAND + name, value)


class Tracked(NamedTuple):
    """An event that was tracked, and what it did."""

    key: str
    applied: Applied | None  # None: the service has not said it in time


class _Ahead(NamedTuple):
    """An event that the service has taken, and that the stored profile may lack."""

    day: date  # on which it was
    at: int  # when the service took it, in milliseconds since 1970
    keeps: bool  # whether it keeps the streak


@dataclass(slots=True)
class _Taken:
    """A batch that the service has taken."""

    events: list[Event]  # until the service has said what they did
    ahead: list[_Ahead]  # these, and what was ahead before
    number: int  # later ones have greater numbers


class Tracker:
    """The events of one user."""

    def __init__(self, calls: Calls, user: str, queueing: Queueing) -> None:
        self.user, self._calls, self._queueing = user, calls, queueing
        self._process_id = os.getpid()
        warnings = Warnings()
        self._on_dropped = queueing.on_dropped or warnings.dropped
        self._on_unkept = queueing.on_unkept or warnings.unkept
        self._on_trouble = queueing.on_trouble or warnings.trouble
        on_refused = queueing.on_refused or warnings.refused
        self._clocks = queueing.clocks or DeviceClocks().read
        self.queue = EventQueue(queueing.file(), self._clocks, queueing.zone_name(), queueing.most)
        self._tell_damage()
        device = self.queue.device()
        calls.device_id, calls.on_receipt = lambda: device, self._keep_receipt
        calls.open_commands = StoredCommands(self)
        listeners = SenderListeners(
            lambda refused: self._note_refused(refused, on_refused),
            lambda trouble: _call_app(self._on_trouble, trouble),
            self._count_taken,
            lambda: self._waiters > 0 or queueing.on_applied is not None,
        )
        self._sender = Sender(self.queue, calls, listeners)
        # Somebody waits for what events do: how many, and what is known by key.
        self._waiters, self._known, self._applied = 0, dict[str, Applied | None](), threading.Condition()
        # The newest events of which the service has not said that it has applied them. A user's events are
        # applied as they came.
        self._unconfirmed = _Taken([], [], 0)
        self._confirmed = 0  # the number of the newest batch that is
        self._woken, self._closed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="streakline", daemon=True)
        if queueing.is_sending:
            with suppress(RuntimeError):  # the process ends: what is tracked yet is kept, and can be flushed
                self._thread.start()

    @property
    def is_inherited(self) -> bool:
        """Whether this process is a child of the one that made this, forked since, and this was open then."""
        return forks.is_child(self._process_id) and not self._closed.is_set()

    def anew(self, *, is_sending: bool = True) -> "Tracker":
        """Return a tracker for this process, a child of the one that made this. It shares the file alone."""
        _inherited.append(self)
        return Tracker(
            self._calls,
            self.user,
            replace(self._queueing, is_sending=is_sending and self._queueing.is_sending),
        )

    def track(self, event_type: str, properties: Mapping[str, Any] | None) -> str:
        """Say that something happened, now and here; returns its key. It is kept when this returns."""
        event, dropped_events = self.queue.add(event_type, properties, self.user)
        if self.queue.is_in_memory:
            _call_app(self._on_unkept, event)
        for dropped in dropped_events:
            _call_app(self._on_dropped, dropped)
        self._tell_damage()
        self._woken.set()
        return event["idempotency_key"]

    def track_and_wait(
        self, event_type: str, properties: Mapping[str, Any] | None, seconds: float
    ) -> Tracked:
        """Say that something happened, and wait for what the service makes of it; see track."""
        with self._applied:
            self._waiters += 1
        try:
            key = self.track(event_type, properties)
            if not self._thread.is_alive():
                self.flush()
            return Tracked(key, self._applied_of(key, time.monotonic() + seconds))
        finally:
            with self._applied:
                self._waiters -= 1
                if not self._waiters:
                    self._known.clear()

    def _applied_of(self, key: str, until: float) -> Applied | None:
        """Return what an event did, or None if nobody knows it in time. until: in monotonic seconds."""
        with self._applied:
            self._applied.wait_for(
                lambda: key in self._known or self._is_unconfirmed(key), max(0.0, until - time.monotonic())
            )
        while self._is_unconfirmed(key) and time.monotonic() < until and not self.is_confirmed():
            self._closed.wait(min(AGAIN_SECONDS, max(0.0, until - time.monotonic())))
        return self._known.get(key)

    def _is_unconfirmed(self, key: str) -> bool:
        return any(event["idempotency_key"] == key for event in self._unconfirmed.events)

    def flush(self) -> int:
        """Try to send now; returns how many events wait still."""
        self._sender.drain()
        return len(self.queue)

    def waiting(self) -> list[Event]:
        """Return what waits, the oldest first."""
        return [each.event for each in self.queue.waiting()]

    def close(self) -> None:
        """Stop sending. What waits is kept."""
        self._closed.set()
        self._woken.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()
        self.queue.close()

    def is_confirmed(self) -> bool:
        """Ask what the newest events did, if the service has not said it yet; returns whether it says it now.

        The same events again change nothing.
        """
        taken = self._unconfirmed
        if not (events := taken.events):
            return False
        try:
            reply = self._calls.once("POST", "/v1/events", {"events": events}, prefer=WAIT)
        except Unreachable:
            return False
        applied = applied_of(reply)
        if applied:
            self._confirm(applied, taken)
        return applied is not None

    def corrected(self, read: Callable[[], Profile]) -> ShownProfile:
        """Store the profile that the service answers; returns it with the waiting events counted in."""
        confirmed = self._confirmed
        profile = read()
        # Somebody on the way may answer with JSON, too: what is no profile changes nothing. Nor does one that
        # is older than the stored one.
        if isinstance(profile.get("current_streak"), int):
            now = self._clocks().wall
            with self._applied:
                if self._confirmed == confirmed:
                    self.queue.put("profile", profile)
                    ahead = [each for each in self._ahead() if abs(now - each.at) < AHEAD_MILLISECONDS]
                    self._put_ahead(ahead)
        return self.estimate()

    def estimate(self) -> ShownProfile:
        """Return the profile to show now: the newest stored one, with the waiting events counted in."""
        start = (self.queue.get("profile") or {}).get("day_starts_at", "00:00")
        # What waits is read first: an event that is taken meanwhile is in both, and not in neither.
        waiting = len(self.queue)
        dates, today = self.queue.dates(self._queueing.keeps_streak, start)
        with self._applied:
            profile: Profile = self.queue.get("profile") or new_profile(self.user)
            ahead = self._ahead()
        dates += [each.day for each in ahead if each.keeps]
        is_estimate = bool(ahead or waiting) or profile.get("as_of") != today.isoformat()
        more = {"waiting": waiting, "is_estimate": is_estimate}
        return cast("ShownProfile", {**estimated(profile, dates, today), **more})

    def _tell_damage(self) -> None:
        while self.queue.asides:
            reason = f"the queue's file is damaged, and was put aside: {self.queue.asides.pop()}"
            _call_app(self._on_trouble, Trouble("damaged", reason))

    def _keep_receipt(self, path: str, device: str, receipt: str) -> None:
        # Only these paths are certain to be called with this user's token.
        if path in ("/v1/events", f"/v1/users/{user_part(self.user)}"):
            with suppress(sqlite3.Error):  # the disk is full, or this is closed: the next one will do
                self.queue.store_receipt(Proof(device, receipt))

    def _count_taken(self, events: list[WaitingEvent], applied: Applied | None) -> None:
        now, keeps = self._clocks().wall, self._queueing.keeps_streak
        profile: Profile = self.queue.get("profile") or new_profile(self.user)
        start = profile.get("day_starts_at", "00:00")
        more = [_Ahead(self.queue.date_of(event, start), now, keeps(event.event)) for event in events]
        with self._applied:
            self._put_ahead([*self._ahead(), *more])
            number = self._unconfirmed.number + 1
            taken = _Taken([event.event for event in events], self._ahead(), number)
            self._unconfirmed = taken
            if not applied:
                self._applied.notify_all()
        if applied:
            self._confirm(applied, taken)

    def _note_refused(self, refused: RefusedEvent, callback: Callable[[RefusedEvent], None]) -> None:
        with self._applied:
            if self._waiters:
                self._known[refused.event["idempotency_key"]] = None  # nobody need wait for it
            self._applied.notify_all()
        _call_app(callback, refused)

    def _confirm(self, applied: Applied, taken: _Taken) -> None:
        """Store the profile that has all events up to these.

        What another thread or process has sent since is still ahead of it. And what came since may be
        confirmed before this: then the stored profile is newer.
        """
        with self._applied:
            if taken.number > self._confirmed:
                since = Counter(self._ahead()) - Counter(taken.ahead)
                self.queue.put("profile", applied["profile"])
                self._put_ahead(list(since.elements()))
                self._confirmed = taken.number
            if self._waiters:
                self._known |= {str(result["idempotency_key"]): applied for result in applied["results"]}
            self._applied.notify_all()
            is_new, taken.events = bool(taken.events), []
        if is_new and self._queueing.on_applied:
            _call_app(self._queueing.on_applied, applied)

    def _ahead(self) -> list[_Ahead]:
        """Return the events that the service has taken, and that the stored profile may lack."""
        return [
            _Ahead(date.fromisoformat(day), at, keeps) for day, at, keeps in self.queue.get("ahead") or []
        ]

    def _put_ahead(self, ahead: list[_Ahead]) -> None:
        self.queue.put("ahead", [(each.day.isoformat(), each.at, each.keeps) for each in ahead])

    def _work(self) -> None:
        while True:
            self._woken.clear()  # before the look at `_closed`: `close` sets that first
            if self._closed.is_set():
                return
            wait = self._drain()
            if wait is None:
                self._wait_for_events()
                wait = SOON_SECONDS
            self._closed.wait(wait)

    def _wait_for_events(self) -> None:
        """Wait until this process tracks an event, or another one has left some in the file."""
        if self._queueing.file() is None:
            self._woken.wait()
        while not self._woken.wait(LEFT_SECONDS):
            with suppress(sqlite3.Error):
                if len(self.queue):
                    return

    def _drain(self) -> float | None:
        try:
            return self._sender.drain()
        except Exception as error:  # noqa: BLE001 (a full disk, for one; the thread goes on, and tells)
            if not self._closed.is_set():
                _call_app(self._on_trouble, Trouble("unavailable", repr(error)))
            return STORAGE_AGAIN_SECONDS
