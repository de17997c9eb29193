"""What of the events that wait goes into one request, and what it says of their time."""

import json
from dataclasses import dataclass

from streakline_client.queue import clock
from streakline_client.queue.clock import ClockState
from streakline_client.shapes import Event

BATCH_MAX = 100
# The service takes a million; properties alone may have 64 KB.
BATCH_BYTES_MAX = 500_000
SAME_CLOCK = 1_000


@dataclass(frozen=True, slots=True)
class Proof:
    """A time receipt of the service, and the device that it was given to."""

    device: str
    receipt: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """An event that waits."""

    number: int  # its place
    shift: int  # the clock's moves until then
    wall: int  # what it said
    event: Event
    proof: Proof | None = None  # the newest receipt then


@dataclass(frozen=True, slots=True)
class Batch:
    """Some events that one clock has read, and what time it is now by that clock."""

    events: list[Waiting]
    sent_at: str
    proof: Proof | None = None  # since when they may have waited


def is_newer(receipt: str, than: str) -> bool:
    """Whether a receipt was given later than another one ("": none)."""
    return not than or int(receipt.split(".")[1]) > int(than.split(".")[1])


def batch_of(waiting: list[Waiting], state: ClockState) -> list[Waiting]:
    """Return the first of these events that one clock read on one device, as many as one request carries."""
    size, some = 0, list[Waiting]()
    shift = clock.shift_of(state, waiting[0].number, waiting[0].shift)
    device = waiting[0].proof and waiting[0].proof.device
    for each in waiting:
        size += len(json.dumps(each.event))
        is_other = abs(clock.shift_of(state, each.number, each.shift) - shift) > SAME_CLOCK
        is_other |= (each.proof and each.proof.device) != device
        if is_other or (some and size > BATCH_BYTES_MAX):
            break
        some.append(each)
    return some
