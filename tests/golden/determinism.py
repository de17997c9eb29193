"""What is left to chance and to the clock, fixed for a process: two recordings of one tree are equal.

fix() comes before any import of the product: its modules take uuid4 by name.
"""

import os
import random
import secrets
import uuid
from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 2, 12, tzinfo=UTC)
TICK = timedelta(milliseconds=7)


class Clock:
    """A clock that goes on by a tick each time that somebody looks."""

    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> datetime:
        self.at += TICK
        return self.at


# Each has its own, for libraries ask for uuids as often as they wait for a server.
CLOCK, UUIDS, SECRETS = Clock(), random.Random(), random.Random()


def fix() -> None:
    """Replace the clock, uuid4 and secrets of this process by ones that `restart` brings back to their beginning."""
    os.environ["POWERTOOLS_LOG_LEVEL"] = "CRITICAL"
    uuid.uuid4 = lambda: uuid.UUID(int=UUIDS.getrandbits(128), version=4)
    secrets.token_bytes = lambda nbytes=None: SECRETS.randbytes(32 if nbytes is None else nbytes)
    secrets.token_hex = lambda nbytes=None: secrets.token_bytes(nbytes).hex()
    secrets.choice = SECRETS.choice
    import adapters.clock
    import processors.engagement

    adapters.clock.now = CLOCK
    processors.engagement.WRITERS = 1  # whoever comes first among threads differs from run to run


def restart() -> None:
    """Begin anew: what is recorded now is the same, whatever was recorded before."""
    CLOCK.at = START
    for number, each in enumerate((UUIDS, SECRETS)):
        each.seed(number)
    random.seed("golden")
