"""Handlers in the process of a test, one request at a time, as in a process of Lambda."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class OneProcess:
    """Lets one thread run a request: a router keeps it in globals, a cache has one connection.

    Whoever waits for an engine lets others go on, as if they were other processes: so threads do race.
    """

    def __init__(self) -> None:
        self._lock, self._own = threading.Lock(), threading.local()

    @contextmanager
    def request(self, keep: Callable[[], Callable[[], None]]) -> Iterator[None]:
        """For a `with` block around a request. keep: takes down its globals; returns what puts them back."""
        with self._lock:
            self._own.keep = keep
            try:
                yield
            finally:
                self._own.keep = None

    def wait(self, seconds: float) -> None:
        """Let others run for so long. For use at any place, also outside of a request."""
        keep = getattr(self._own, "keep", None)
        if keep is None:
            time.sleep(seconds)
            return
        put_back = keep()
        self._lock.release()
        try:
            time.sleep(seconds)
        finally:
            self._lock.acquire()
            put_back()


ONE_PROCESS = OneProcess()
