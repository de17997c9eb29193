"""Which of the waiting events go into one request, and what the request says of their time."""

import json
from dataclasses import dataclass

from streakline_client.queue import clock
from streakline_client.queue.clock import ClockState
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
