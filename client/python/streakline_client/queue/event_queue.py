"""The events that wait, in an SQLite file: in the order in which they happened, each with its key.

Several processes and threads may use one file.
"""

import json
import uuid
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from streakline_client.queue import clock
from streakline_client.queue.batches import BATCH_MAX, Batch, Proof, Waiting, batch_of, is_newer
from streakline_client.queue.clock import ClockState, Reading, Watch
from streakline_client.queue.kept import COLUMNS, Kept, last_number, spared
from streakline_client.queue.moments import date_at, here, offset_of, offset_text, written
from streakline_client.shapes import Event


class EventQueue(Kept):
    """A user's events in a file; without a path in memory, which ends with the process."""

    def __init__(self, path: Path | None, clocks: Callable[[], Reading], zone: str | None, most: int) -> None:
        """zone: IANA name of the place; None: the machine's. most: how many may wait."""
        super().__init__(path)
        self._clocks, self._zone, self._most = clocks, zone, most
        self._watch: Watch | None = None

    @spared
    def add(
        self, event_type: str, properties: Mapping[str, Any] | None, user: str
    ) -> tuple[Event, list[Event]]:
        """Keep an event as it is now; returns it, and what had to go as the queue is full: the oldest.

        Raises ValueError or TypeError for what cannot be sent.
        """
        now = self._clocks()
        _check(event_type, properties)
        place = here(now.wall, self._zone)
        occurred_at = written(now.wall, place.offset)
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
            late = self._look(state.clock)
            proof = (state.device, state.receipt) if state.receipt else (None, None)
            row = (state.clock.shift - late(now), now.wall, text, *proof)
            values = f"INSERT INTO waiting ({COLUMNS}) VALUES (?, ?, ?, ?, ?)"  # noqa: S608 (our own words)
            self._base.execute(values, row)
            gone = self._give_up(state.flying)
        return event, gone

    def _look(self, state: ClockState) -> Callable[[Reading], int]:
        """Look at the clock, with the lock held; returns a function: its move since a reading."""
        now = self._clocks()
        self._watch = clock.look(state, self._watch, now, self._next())

        def since(then: Reading) -> int:
            moved = (now.wall - now.ticks) - (then.wall - then.ticks)
            return moved if abs(moved) > clock.STILL and (moved < 0 or now.counts_sleep) else 0

        return since

    def _next(self) -> int:
        return last_number(self._base) + 1

    def _give_up(self, flying: int) -> list[Event]:
        """Take the oldest out that is not under way, if more wait than may."""
        over = max(0, len(self) - self._most)
        query = (
            "DELETE FROM waiting WHERE number IN (SELECT number FROM waiting WHERE number > ? ORDER BY number"
        )
        rows = self._base.execute(f"{query} LIMIT ?) RETURNING event", (flying, over)).fetchall()
        return [json.loads(text) for (text,) in rows]

    def __len__(self) -> int:
        with self.lock:
            return int(self._base.execute("SELECT count(*) FROM waiting").fetchone()[0])

    def waiting(self, most: int = -1) -> list[Waiting]:
        """Return what waits, the oldest first. most: how many; -1: all."""
        query = f"SELECT number, {COLUMNS} FROM waiting ORDER BY number LIMIT ?"  # noqa: S608 (our own words)
        with self.lock:
            rows = self._base.execute(query, (most,)).fetchall()
        return [
            Waiting(number, shift, wall, json.loads(text), Proof(device, receipt) if receipt else None)
            for number, shift, wall, text, device, receipt in rows
        ]

    @spared
    def batch(self, most: int) -> Batch | None:
        """Return the next batch, the oldest events first, all of one clock; None: nothing waits."""
        with self.change() as state:
            self._look(state.clock)
            waiting = self.waiting(min(most, BATCH_MAX))  # with the lock held: nobody gives it up meanwhile
            if not waiting:
                state.clock.fixes = []
                return None
            shift = clock.shift_of(state.clock, waiting[0].number, waiting[0].shift)
            events = batch_of(waiting, state.clock)
            state.flying = events[-1].number
        sent_at = written(clock.sent_at(state.clock, shift, self._clocks().wall), 0)
        return Batch(events, sent_at, events[0].proof)

    @spared
    def settle(self, events: list[Waiting]) -> None:
        """Forget events that are settled."""
        with self.change() as state:
            self._base.executemany(
                "DELETE FROM waiting WHERE number = ?", [(event.number,) for event in events]
            )
            state.flying = 0

    @spared
    def is_in_doubt(self) -> bool:
        """Whether somebody should ask the service for its time first."""
        with self.change() as state:
            self._look(state.clock)
        return state.clock.is_in_doubt

    @spared
    def heard(self, server_time: int | None) -> None:
        """Take the service's time; None: the reply had none."""
        with self.change() as state:
            clock.contact(state.clock, server_time, self._clocks().wall, self._next())

    @spared
    def device(self) -> str:
        """Return what this device is called in requests: the same for all processes."""
        with self.change() as state:
            return state.device

    @spared
    def received(self, proof: Proof) -> None:
        """Take a receipt: events that happen from now on have it."""
        with self.change() as state:
            if proof.device == state.device and is_newer(proof.receipt, state.receipt):
                state.receipt = proof.receipt

    def date_of(self, one: Waiting, known: ClockState | None = None) -> date:
        """Return the date on which an event was, at its place and by the right time, as far as known."""
        known = known or self.state().clock
        right = clock.right_time(known, one.wall, clock.shift_of(known, one.number, one.shift))
        return date_at(right, offset_of(one.event["occurred_at"]))

    @spared
    def dates(self, counts: Callable[[Event], bool]) -> tuple[list[date], date]:
        """Return the dates on which waiting events were, and today's."""
        with self.change() as state:
            self._look(state.clock)
        dates = [self.date_of(each, state.clock) for each in self.waiting() if counts(each.event)]
        wall = self._clocks().wall
        return dates, date_at(
            clock.right_time(state.clock, wall, state.clock.shift), here(wall, self._zone).offset
        )


def _check(event_type: Any, properties: Any) -> None:
    """Raise ValueError or TypeError, with the name, for what cannot be sent."""
    if not (isinstance(event_type, str) and event_type.strip()):
        raise TypeError(f"event_type must be a text, such as LESSON_COMPLETED, and not {event_type!r}")
    if not (properties is None or isinstance(properties, Mapping)):
        raise TypeError(f"properties must be a mapping, and not {properties!r}")
    try:
        json.dumps(properties and dict(properties), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"properties must be JSON: {error}") from error
