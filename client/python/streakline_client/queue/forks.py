"""A process that forks: its child shares nothing with it but files.

In the child only the thread goes on that has forked. A lock that another thread held is never released there.
SQLite has such locks, too, and remembers in memory what the process has locked in a file. So no thread of
this package is within SQLite while Python forks, and a child opens connections and files of its own.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

WAIT_SECONDS_MAX = 5.0  # that a fork waits for threads that are within SQLite
POLL_SECONDS = 0.02
# Held while a client is made anew in a child, and during a fork.
making = threading.RLock()


# The stubs have a function threading.RLock.
_guards = WeakSet[Any]()
_held = list[Any]()  # those that the thread which forks just now has acquired
_files = set[int]()  # descriptors of the files that are locked now, or waited for
_process_id = os.getpid()


def guard(lock: Any) -> None:
    """Hold a lock of threads whenever this process forks."""
    with making:
        _guards.add(lock)


def is_child(process_id: int) -> bool:
    """Whether this process is a child of the one with this id. C code may fork without calling hooks."""
    if os.getpid() != _process_id:
        _after_in_child()
    return os.getpid() != process_id


@contextmanager
def locked_file(path: str, wait_seconds: float) -> Iterator[None]:
    """Lock a file for a `with` block. If that takes too long, or cannot be done here, go on without the lock.

    The lock ends with the process, however that ends. A child that is forked meanwhile does not have it.
    """
    descriptor = None
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        _files.add(descriptor)
        _wait_for(descriptor, wait_seconds)
    try:
        yield
    finally:
        if descriptor in _files:  # else this is a child, which has closed it already
            _files.discard(descriptor)
            with suppress(OSError):
                _unlock(descriptor)
            os.close(descriptor)


def _wait_for(descriptor: int, wait_seconds: float) -> None:
    """Lock a file. Raises OSError where that is not possible."""
    until = time.monotonic() + wait_seconds
    while not _try_to_lock(descriptor) and time.monotonic() < until:
        time.sleep(POLL_SECONDS)


if sys.platform == "win32":

    def _try_to_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:

    def _try_to_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        # Closing alone would not do: a child has a copy of the descriptor until it closes that.
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _before() -> None:
    until = time.monotonic() + WAIT_SECONDS_MAX
    making.acquire()
    for lock in list(_guards):
        if lock.acquire(timeout=max(0.0, until - time.monotonic())):
            _held.append(lock)


def _after_in_parent() -> None:
    while _held:
        _held.pop().release()
    making.release()


def _after_in_child() -> None:
    global making, _guards, _process_id
    making, _guards, _process_id = threading.RLock(), WeakSet(), os.getpid()
    _held.clear()
    for descriptor in _files:
        with suppress(OSError):
            os.close(descriptor)
    _files.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
