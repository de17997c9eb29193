"""The events that wait, in an SQLite file: in the order in which they happened, each with its key.

Several processes and threads may use one file.
"""

import json
import sqlite3
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from streakline_client.queue import clock
from streakline_client.queue.clock import (
    ClockState,
    Reading,
    Watch,
    date_at,
    instant_text,
    offset_of,
    offset_text,
    place_at,
)
from streakline_client.queue.queue_file import COLUMNS, QueueFile, last_number, or_in_memory
from streakline_client.shapes import Event

BATCH_MAX = 100
BATCH_BYTES_MAX = 500_000  # the service takes a million; the properties of one event may have 64 KB
SAME_CLOCK = 1_000  # milliseconds: moves that differ by no more belong to one clock


@dataclass(frozen=True, slots=True)
class Proof:
    """A time receipt of the service, and the device that it was given to."""

    device: str
    receipt: str


@dataclass(frozen=True, slots=True)
class WaitingEvent:
    """An event that waits."""

    number: int  # in the order in which events happened
    shift: int  # the sum of the clock's moves until the event, in milliseconds
    wall: int  # the clock's time at the event (milliseconds since 1970)
    event: Event
    proof: Proof | None = None  # the newest receipt at the event


@dataclass(frozen=True, slots=True)
class Batch:
    """Events whose times were read from one clock, on one device."""

    events: list[WaitingEvent]
    sent_at: str  # the time that this clock would show now
    proof: Proof | None = None  # shows since when the events may have waited


class EventQueue(QueueFile):
    """A user's events that wait, in a file; without a path in memory, which ends with the process.

    clock.py says what shift, wall and fixes are.
    """

    def __init__(
        self, path: Path | None, read_clock: Callable[[], Reading], zone: str | None, waiting_max: int
    ) -> None:
        """read_clock: the device's. zone: IANA name; None: the machine's. waiting_max: how many may wait."""
        self._read_clock, self._zone, self._waiting_max = read_clock, zone, waiting_max
        self._watch: Watch | None = None
        super().__init__(path)

    @or_in_memory
    def add(
        self, event_type: str, properties: Mapping[str, Any] | None, user: str
    ) -> tuple[Event, list[Event]]:
        """Store an event that happens now; returns (event, dropped events).

        If the queue was full, the oldest events that are not under way are dropped. Raises ValueError or
        TypeError for an event that cannot be sent.
        """
        now = self._read_clock()
        _check_sendable(event_type, properties)
        place = place_at(now.wall, self._zone)
        occurred_at = instant_text(now.wall, place.offset)
        event: Event = {
            "idempotency_key": str(uuid.uuid4()),
            "event_type": event_type,
            "occurred_at": occurred_at,
            "user_id": user,
            "timezone": place.zone or offset_text(occurred_at),
        }
        if properties:
            event["properties"] = dict(properties)
        text = json.dumps(event)
        with self.change() as state:
            looked = self._look(state.clock)
            proof = (state.device, state.receipt) if state.receipt else (None, None)
            # Somebody may have moved the clock while this call waited for the lock. The event's time was
            # read before that.
            row = (state.clock.shift - clock.move_between(now, looked), now.wall, text, *proof)
            values = f"INSERT INTO waiting ({COLUMNS}) VALUES (?, ?, ?, ?, ?)"  # noqa: S608 (our own words)
            self._base.execute(values, row)
            dropped = self._drop_oldest(state.sending_up_to)
        return event, dropped

    def _look(self, state: ClockState) -> Reading:
        """Look at the clock, with the lock held; returns what was read."""
        now = self._read_clock()
        self._watch = clock.look(state, self._watch, now, self._next_number())
        return now

    def to_disk(self) -> None:
        """Write the copy's changes to the file and go back to it; do nothing if that fails."""
        watch = self._watch
        super().to_disk()
        if self.is_in_memory:
            self._watch = watch

    def moves_since(self, kept: ClockState) -> int:
        """Look at the clock; returns the moves that `kept` has seen, and this copy has not (milliseconds)."""
        now, own = self._read_clock(), self.state().clock
        clock.look(own, self._watch, now, self._next_number())
        self._watch = clock.look(kept, None, now, self._next_number())
        return kept.shift - own.shift

    def _next_number(self) -> int:
        return last_number(self._base) + 1

    def _drop_oldest(self, sending_up_to: int) -> list[Event]:
        """Delete and return the oldest events if too many wait.

        Events in a request under way stay. So does the newest one, also if more wait then for a while.
        """
        query = """DELETE FROM waiting WHERE number IN (
            SELECT number FROM waiting WHERE number > ? AND number < ? ORDER BY number LIMIT ?
        ) RETURNING event"""
        surplus = max(0, self._count() - self._waiting_max)
        rows = self._base.execute(query, (sending_up_to, last_number(self._base), surplus)).fetchall()
        return [json.loads(text) for (text,) in rows]

    @or_in_memory
    def __len__(self) -> int:
        return self._count()

    def _count(self) -> int:
        return int(self._base.execute("SELECT count(*) FROM waiting").fetchone()[0])

    @or_in_memory
    def waiting(self) -> list[WaitingEvent]:
        """Return the events that wait, the oldest first."""
        return self._oldest(-1)

    def _oldest(self, most: int) -> list[WaitingEvent]:
        query = f"SELECT number, {COLUMNS} FROM waiting ORDER BY number LIMIT ?"  # noqa: S608 (our own words)
        rows = self._base.execute(query, (most,)).fetchall()
        return [
            WaitingEvent(number, shift, wall, json.loads(text), Proof(device, receipt) if receipt else None)
            for number, shift, wall, text, device, receipt in rows
        ]

    @or_in_memory
    def newest(self) -> int:
        """Return the number of the newest event that was ever stored; 0: none was."""
        return last_number(self._base)

    @or_in_memory
    def batch(self, most: int, newest: int) -> Batch | None:
        """Return the next batch, the oldest events first, all of one clock; None: nothing waits.

        newest: what has a greater number is left for later.
        """
        with self.change() as state:
            self._look(state.clock)
            # With the lock held, so that nobody drops one of them.
            waiting = self._oldest(min(most, BATCH_MAX))
            if not waiting:
                state.clock.fixes = []  # they correct the shifts of waiting events only
            if not waiting or waiting[0].number > newest:
                return None
            shift = clock.shift_of(state.clock, waiting[0].number, waiting[0].shift)
            events = batch_of(waiting, state.clock)
            state.sending_up_to = events[-1].number
        sent_at = instant_text(clock.sent_at(state.clock, shift, self._read_clock().wall), 0)
        return Batch(events, sent_at, events[0].proof)

    @or_in_memory
    def settle(self, events: list[WaitingEvent]) -> None:
        """Delete events that the service has, or refuses for good."""
        with self.change() as state:
            self._base.executemany(
                "DELETE FROM waiting WHERE number = ?", [(event.number,) for event in events]
            )
            state.sending_up_to = 0

    @or_in_memory
    def look_for_doubt(self) -> bool:
        """Look at the clock; returns whether to ask the service for its time before anything is sent."""
        with self.change() as state:
            self._look(state.clock)
        return state.clock.is_in_doubt

    @or_in_memory
    def note_server_time(self, server_time: int | None, asked_at: int) -> None:
        """Note the service's time from a reply; None: the reply had none.

        asked_at: what the clock said before the request. If the machine slept since then, or the clock was
        moved, the reply's time is old.
        """
        with self.change() as state:
            wall = self._read_clock().wall
            if server_time is not None and abs(wall - asked_at) <= clock.STILL:
                clock.contact(state.clock, server_time, wall, self._next_number())

    def wall(self) -> int:
        """Return what the clock says now, in milliseconds since 1970."""
        return self._read_clock().wall

    @or_in_memory
    def device(self) -> str:
        """Return the device's id in requests. It is the same for all processes."""
        with self.change() as state:
            return state.device

    @or_in_memory
    def store_receipt(self, proof: Proof) -> None:
        """Store a time receipt. Events that happen from now on carry it."""
        with self.change() as state:
            if proof.device == state.device and is_newer(proof.receipt, state.receipt):
                state.receipt = proof.receipt

    def close(self) -> None:
        """Look at the clock, so that the next process knows of its moves until now, and close the file."""
        with suppress(sqlite3.Error):
            self.look_for_doubt()
        super().close()

    def date_of(self, waiting: WaitingEvent, start: str, state: ClockState | None = None) -> date:
        """Return the date of an event, at its place and by the right time, as far as that is known.

        start: when dates begin by the clock. state: of the device's clock; None: it is read.
        """
        state = state or self.state().clock
        shift = clock.shift_of(state, waiting.number, waiting.shift)
        instant = clock.right_time(state, waiting.wall, shift)
        return date_at(instant, offset_of(waiting.event["occurred_at"]), start)

    @or_in_memory
    def dates(self, counts: Callable[[Event], bool], start: str) -> tuple[list[date], date]:
        """Return the dates of the waiting events that count, and today's. start: when dates begin."""
        with self.change() as state:
            self._look(state.clock)
        dates = [self.date_of(each, start, state.clock) for each in self.waiting() if counts(each.event)]
        wall = self._read_clock().wall
        now = clock.right_time(state.clock, wall, state.clock.shift)
        return dates, date_at(now, place_at(wall, self._zone).offset, start)


def _check_sendable(event_type: Any, properties: Any) -> None:
    """Raise ValueError or TypeError, with the argument's name, for an event that cannot be sent."""
    if not (isinstance(event_type, str) and event_type.strip()):
        raise TypeError(f"event_type must be a text, such as LESSON_COMPLETED, and not {event_type!r}")
    if not (properties is None or isinstance(properties, Mapping)):
        raise TypeError(f"properties must be a mapping, and not {properties!r}")
    try:
        json.dumps(properties and dict(properties), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"properties must be JSON: {error}") from error


def is_newer(receipt: str, other: str) -> bool:
    """Whether a receipt was given later than another one ("": none). The second part is its time."""
    return not other or int(receipt.split(".")[1]) > int(other.split(".")[1])


def batch_of(waiting: list[WaitingEvent], state: ClockState) -> list[WaitingEvent]:
    """Return the first events that fit into one request: of one clock and device, and not too large.

    waiting: at least one event, the oldest first.
    """
    first, size, batch = waiting[0], 0, list[WaitingEvent]()
    for event in waiting:
        size += len(json.dumps(event.event))
        if batch and (size > BATCH_BYTES_MAX or not _is_of_same_clock(event, first, state)):
            break
        batch.append(event)
    return batch


def _is_of_same_clock(event: WaitingEvent, first: WaitingEvent, state: ClockState) -> bool:
    shift = clock.shift_of(state, event.number, event.shift)
    first_shift = clock.shift_of(state, first.number, first.shift)
    device = event.proof and event.proof.device
    first_device = first.proof and first.proof.device
    return abs(shift - first_shift) <= SAME_CLOCK and device == first_device
