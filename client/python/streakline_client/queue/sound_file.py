"""Opens a queue's file. A damaged file is renamed, and a new one begun: nothing is deleted."""

import sqlite3
import uuid
from contextlib import suppress
from pathlib import Path

BUSY_SECONDS_MAX = 30.0
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def open_file(path: str, wait_seconds: float = BUSY_SECONDS_MAX) -> sqlite3.Connection:
    """Open a file, or memory (":memory:")."""
    return sqlite3.connect(path, timeout=wait_seconds, isolation_level=None, check_same_thread=False)


def open_sound_file(path: Path) -> tuple[sqlite3.Connection, Path | None]:
    """Open a file. If it is damaged, rename it and open a new one.

    Returns the open file, and the path of the damaged one (None: there was none). Raises
    sqlite3.OperationalError.
    """
    identity = _identity(path)
    base = open_file(str(path))
    if _is_sound(base):
        return base, None
    base.close()
    aside = _put_aside(path, identity)
    return open_file(str(path)), aside


def _is_sound(base: sqlite3.Connection) -> bool:
    try:
        return bool(base.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF in DAMAGED:
            return False
        raise


def _put_aside(path: Path, identity: tuple[int, int] | None) -> Path | None:
    """Rename a damaged file; returns its new path. None: another process has renamed it meanwhile."""
    if _identity(path) != identity:
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
        status = path.stat()
        return status.st_dev, status.st_ino
    return None
