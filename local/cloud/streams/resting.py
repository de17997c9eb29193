"""When an idle shard is asked again: now and then, and at once when somebody waits for its consumer.

Who waits writes the consumer's name, and when he began, into the file ASKED.
"""

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
    """What all shards' threads wait on. asked: when somebody last began to wait for a function."""

    asked: dict[str, float] = field(default_factory=dict)
    waited_for: threading.Condition = field(default_factory=threading.Condition)

    def rest(self, function: str, polled_at: float, idle: int, *, is_kinesis: bool) -> None:
        """Wait for the next look, or until somebody asks. idle: how many looks in turn found nothing."""
        seconds = KINESIS_SECONDS if is_kinesis else table_seconds(idle)
        self._wait(function, polled_at, seconds)

    def gather(self, function: str, caught_up_at: float) -> None:
        """Wait a little until a batch has more records; not at all if somebody waits for the function.

        caught_up_at: when the function last had nothing left to do.
        """
        self._wait(function, caught_up_at, TABLE_SECONDS)

    def is_awaited(self, function: str, since: float) -> bool:
        """Whether somebody has begun to wait for a function, at `since` or later."""
        return self.asked.get(function, -1.0) >= since

    def _wait(self, function: str, since: float, seconds: float) -> None:
        with self.waited_for:
            self.waited_for.wait_for(lambda: self.is_awaited(function, since), seconds)

    def hear(self) -> None:
        """Wake the idle threads of a function for which somebody has begun to wait."""
        with contextlib.suppress(OSError, ValueError):  # nobody has yet, or is just writing it
            at, function = ASKED.read_text().split(" ")
            if float(at) != self.asked.get(function):
                with self.waited_for:
                    self.asked[function] = float(at)
                    self.waited_for.notify_all()


def ask(function: str, at: float) -> None:
    """Tell the poller that somebody waits for a function. at: since when (epoch seconds)."""
    fresh = ASKED.with_suffix(".new")
    fresh.write_text(f"{at} {function}")
    fresh.replace(ASKED)


def table_seconds(idle: int) -> float:
    """Return how long to leave a shard alone that has answered with nothing so many times in a row."""
    return min(TABLE_SECONDS_MAX, TABLE_SECONDS * GROWTH ** min(idle - 1, 99))
