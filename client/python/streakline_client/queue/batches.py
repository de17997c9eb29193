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
class Waiting:
    """An event that waits."""

    number: int  # in the order in which events happened
    shift: int  # the sum of the clock's moves until the event, in milliseconds
    wall: int  # what the clock said at the event (milliseconds since 1970)
    event: Event
    proof: Proof | None = None  # the newest receipt at the event


@dataclass(frozen=True, slots=True)
class Batch:
    """Events that were read from one clock, on one device."""

    events: list[Waiting]
    sent_at: str  # what that clock would say now
    proof: Proof | None = None  # shows since when the events may have waited


def is_newer(receipt: str, than: str) -> bool:
    """Whether a receipt was given later than another one ("": none)."""
    return not than or int(receipt.split(".")[1]) > int(than.split(".")[1])


def batch_of(waiting: list[Waiting], state: ClockState) -> list[Waiting]:
    """Return the first of these events that belong into one request: of one clock and device, and not too
    large.

    waiting: at least one event, the oldest first.
    """
    first, size, batch = waiting[0], 0, list[Waiting]()
    for event in waiting:
        size += len(json.dumps(event.event))
        if batch and (size > BATCH_BYTES_MAX or not _is_of_same_clock(event, first, state)):
            break
        batch.append(event)
    return batch


def _is_of_same_clock(event: Waiting, first: Waiting, state: ClockState) -> bool:
    shifts = (clock.shift_of(state, each.number, each.shift) for each in (event, first))
    devices = {each.proof and each.proof.device for each in (event, first)}
    return abs(next(shifts) - next(shifts)) <= SAME_CLOCK and len(devices) == 1
