"""When an idle shard is asked again: now and then, and at once when somebody waits until all is done."""

import contextlib
import threading
from dataclasses import dataclass, field

from local.paths import ASKED

# As Lambda does: a stream once a second, a table four times. (More often would be slow on Kinesis: the
# emulator keeps iterators for five minutes, and walks over all of them at each call.) A table that stays idle
# is asked once a second, too: asking took a sixth of a laptop.
KINESIS_SECONDS = 1.0
TABLE_SECONDS = 0.25
TABLE_SECONDS_MAX = 1.0
GROWTH = 1.2


@dataclass(slots=True)
class Resting:
    """What all shards' threads wait on. asked_at: when somebody last began to wait (epoch seconds)."""

    asked_at: float = 0.0
    waited_for: threading.Condition = field(default_factory=threading.Condition)

    def rest(self, polled_at: float, idle: int, *, is_kinesis: bool) -> None:
        """Wait for the next look, or until somebody asks. idle: how many looks in turn found nothing."""
        seconds = KINESIS_SECONDS if is_kinesis else table_seconds(idle)
        with self.waited_for:
            self.waited_for.wait_for(lambda: self.asked_at >= polled_at, seconds)

    def hear(self) -> None:
        """Wake the idle threads if somebody has begun to wait."""
        with contextlib.suppress(OSError, ValueError):  # nobody has yet, or is just writing it
            asked_at = float(ASKED.read_text())
            if asked_at != self.asked_at:
                with self.waited_for:
                    self.asked_at = asked_at
                    self.waited_for.notify_all()


def table_seconds(idle: int) -> float:
    """Return how long to leave a shard alone that has answered with nothing so many times in a row."""
    return min(TABLE_SECONDS_MAX, TABLE_SECONDS * GROWTH ** min(idle - 1, 99))
