"""Waits for work that others do: as long as it goes on, and no longer."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

STALLED_SECONDS_MAX = 300.0
SAY_EVERY_SECONDS = 10.0


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # what a command answers is on the other


@dataclass(slots=True)
class Patience:
    """Ends when what it is told has not changed for so many seconds.

    say: told now and then how far it is. elapsed: seconds, from any beginning.
    """

    seconds: float = STALLED_SECONDS_MAX
    say: Callable[[str], object] = _print
    elapsed: Callable[[], float] = time.monotonic
    _seen: object = None
    _since: float | None = None
    _said: float = 0.0

    def wait(self, what: str, progress: object, pause: float) -> None:
        """Pause. Raises RuntimeError if there was no progress for too long.

        what: what is waited for, a sentence without its end. progress: another value whenever it goes on.
        """
        now = self.elapsed()
        if self._since is None:
            self._said = now
        if self._since is None or progress != self._seen:
            self._seen, self._since = progress, now
        elif now - self._since >= self.seconds:
            raise RuntimeError(f"{what} ({progress}), and nothing has happened for {self.seconds:.0f} s")
        if now - self._said >= SAY_EVERY_SECONDS:
            self.say(f"  {what} ({progress})")
            self._said = now
        time.sleep(pause)
