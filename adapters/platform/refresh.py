"""How old what a process has read may get before it reads again: so no event costs a read."""

import time
from collections.abc import Callable

from adapters.platform.aws import Unavailable

# Where the store is away, a process goes on with what it knows, and asks again so soon.
AWAY_SECONDS = 5


class Refresh:
    """Of one thing that a process keeps. Its clock is the process's monotonic one."""

    def __init__(self) -> None:
        self._until, self._has_read = 0.0, False

    @property
    def is_over(self) -> bool:
        """Whether it is time to read again."""
        return time.monotonic() >= self._until

    def renew(self, asked_at: float, seconds: float) -> None:
        """Say that it was read. asked_at: by time.monotonic(), before the question was asked."""
        self._until, self._has_read = asked_at + seconds, True

    def end(self) -> None:
        """Have it read again at the next use."""
        self._until = 0.0

    def keep(self, look: Callable[[], object]) -> None:
        """Look again if it is time to; look itself calls renew.

        Where the store is away, what is known stays good for a while; if nothing was ever read, look's error
        is raised.
        """
        if not self.is_over:
            return
        try:
            look()
        except Unavailable:
            if not self._has_read:
                raise
            self._until = time.monotonic() + AWAY_SECONDS
