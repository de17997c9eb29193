"""A queue's file that is damaged is put aside, and a new one begun: nothing of the old one is deleted."""

import sqlite3
import uuid
from contextlib import suppress
from pathlib import Path

BUSY_SECONDS_MAX = 30.0
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def opened(path: str, wait_seconds: float = BUSY_SECONDS_MAX) -> sqlite3.Connection:
    """Open a file, or memory (":memory:")."""
    return sqlite3.connect(path, timeout=wait_seconds, isolation_level=None, check_same_thread=False)


def opened_sound(path: Path) -> tuple[sqlite3.Connection, Path | None]:
    """Open a file. If it is damaged, put it aside and open a new one.

    Returns the open file, and where the damaged one is now (None: there was none). Raises
    sqlite3.OperationalError.
    """
    seen = _identity(path)
    base = opened(str(path))
    if _is_sound(base):
        return base, None
    base.close()
    aside = _put_aside(path, seen)
    return opened(str(path)), aside


def _is_sound(base: sqlite3.Connection) -> bool:
    try:
        return bool(base.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF in DAMAGED:
            return False
        raise


def _put_aside(path: Path, seen: tuple[int, int] | None) -> Path | None:
    """Rename a damaged file; returns its new path. None: another process has done so meanwhile."""
    if _identity(path) != seen:
        return None
    aside = path.with_name(f"{path.name}.damaged-{uuid.uuid4().hex[:8]}")
    with suppress(FileNotFoundError):
        path.rename(aside)
    with suppress(FileNotFoundError):  # SQLite would play the old journal back into the new file
        Path(f"{path}-journal").rename(f"{aside}-journal")
    return aside


def _identity(path: Path) -> tuple[int, int] | None:
    """Return the device and the inode of a file; None: there is none."""
    with suppress(FileNotFoundError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None
