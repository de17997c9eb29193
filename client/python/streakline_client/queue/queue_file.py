"""The SQLite file of a queue: its tables, its state, and who may send.

While the disk is full or cannot be written, a copy of the file in memory takes its place. What is new in the
copy is written to the file as soon as the disk takes it. A damaged file is renamed, and a new one begun:
nothing is deleted.
"""

import json
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from streakline_client.queue.clock import ClockState, Doubt, Fix

SENDING_SECONDS_MAX = 600.0  # that a process waits for another one which sends
TABLES = (
    """CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY AUTOINCREMENT, shift INTEGER NOT NULL,
    wall INTEGER NOT NULL, event TEXT NOT NULL, device TEXT, receipt TEXT)""",
    "CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)
# With these errors of SQLite nothing can be written now: the disk is full or fails, or may not be written.
DISK_ERRORS = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
)
COLUMNS = "shift, wall, event, device, receipt"
STATE = "state"  # the name under which QueueState is stored
BUSY_SECONDS_MAX = 30.0
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


File = TypeVar("File", bound="QueueFile")
P = ParamSpec("P")
R = TypeVar("R")


def or_in_memory(method: Callable[Concatenate[File, P], R]) -> Callable[Concatenate[File, P], R]:
    """Return a method that is called again, on the copy in memory, if the disk cannot be written.

    Before each call, new content of the copy is written to the file if possible.
    """

    @wraps(method)
    def with_copy(file: File, /, *arguments: P.args, **options: P.kwargs) -> R:
        with file.lock:
            file.to_disk()
            try:
                return method(file, *arguments, **options)
            except sqlite3.OperationalError as error:
                if not (is_disk_error(error) and file.to_memory()):
                    raise
                return method(file, *arguments, **options)

    return with_copy


def is_disk_error(error: sqlite3.Error) -> bool:
    """Whether an error means that the disk cannot be written now."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in DISK_ERRORS


@dataclass(slots=True)
class FullFile:
    """A file on a disk that cannot be written now, and its content when the copy was made."""

    disk: sqlite3.Connection
    numbers: frozenset[int] = frozenset()  # of its events
    last_number: int = 0  # the greatest that was ever given
    state: str | None = None  # its text, to see later whether another process has stored another one


@dataclass(slots=True)
class QueueState:
    """What all processes share."""

    clock: ClockState = field(default_factory=ClockState)
    sending_up_to: int = 0  # the number of the newest event in the request under way; 0: there is none
    device: str = field(default_factory=lambda: str(uuid.uuid4()))  # the device's id in requests
    receipt: str = ""  # the newest time receipt; "": none


class QueueFile:
    """A file that several threads and processes use; without a path all of it is in memory."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.lock, self._sender = threading.RLock(), threading.Lock()
        self._full_file: FullFile | None = None
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
        # aside: the path of a damaged file that was renamed; None: there was none.
        self._base, self.aside = open_sound_file(path) if path else (open_file(":memory:"), None)
        self._make_tables()

    @or_in_memory
    def _make_tables(self) -> None:
        _make_tables(self._base)

    @property
    def is_in_memory(self) -> bool:
        """Whether the disk cannot be written now, so that new events are in memory alone."""
        return self._full_file is not None

    def to_memory(self) -> bool:
        """Go on with a copy of the file in memory; returns False if memory is in use already."""
        if self._path is None or self._full_file:
            return False
        memory = open_file(":memory:")
        with suppress(sqlite3.Error):  # content that cannot be read now is still in the file
            self._base.backup(memory)
        _make_tables(memory)
        numbers = frozenset(number for (number,) in memory.execute("SELECT number FROM waiting"))
        self._full_file = FullFile(self._base, numbers, last_number(memory), _state_text(memory))
        self._base = memory
        return True

    def to_disk(self) -> None:
        """Write the copy's changes to the file and go back to it; do nothing if that fails."""
        if (full_file := self._full_file) is None:
            return
        disk, memory = full_file.disk, self._base
        try:
            disk.execute("PRAGMA user_version = 0")  # a small write shows whether a large one is worth trying
            disk.execute("BEGIN IMMEDIATE")
            self._write_back(full_file)
            disk.execute("COMMIT")
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                disk.execute("ROLLBACK")
            return
        self._base, self._full_file = disk, None
        memory.close()

    def _write_back(self, full_file: FullFile) -> None:
        """Add events that are new in memory to the file, and delete those that are gone from memory."""
        disk = full_file.disk
        _make_tables(disk)
        query = f"SELECT number, {COLUMNS} FROM waiting"  # noqa: S608 (our own words)
        rows = self._base.execute(query).fetchall()
        gone = full_file.numbers - {number for number, *_ in rows}
        disk.executemany("DELETE FROM waiting WHERE number = ?", [(number,) for number in gone])
        # Another process may have given the next numbers meanwhile: then the new events come after its
        # events.
        given_meanwhile = max(0, last_number(disk) - full_file.last_number)
        new_rows = [
            (number + given_meanwhile, *row) for number, *row in rows if number > full_file.last_number
        ]
        insert = f"INSERT INTO waiting (number, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608 (our own words)
        disk.executemany(insert, new_rows)
        values = dict(self._base.execute("SELECT name, value FROM kept").fetchall())
        if _state_text(disk) != full_file.state:
            # Another process has stored a state. It stays: that process has seen the same moves of the clock.
            values.pop(STATE, None)
        disk.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", list(values.items()))

    def get(self, name: str) -> Any:
        """Return the JSON value that is stored under a name; None: there is none."""
        with self.lock:
            text = _value_text(self._base, name)
        return None if text is None else json.loads(text)

    @or_in_memory
    def put(self, name: str, value: Any) -> None:
        """Store a JSON value under a name."""
        self._put(name, value)

    def _put(self, name: str, value: Any) -> None:
        self._base.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (name, json.dumps(value)))

    def state(self) -> QueueState:
        """Return the state as it is now."""
        fields = self.get(STATE)
        if fields is None:
            return QueueState()
        clock_fields = fields["clock"]
        doubts = [Doubt(**doubt) for doubt in clock_fields["doubts"]]
        fixes = [Fix(**fix) for fix in clock_fields["fixes"]]
        clock = ClockState(**{**clock_fields, "doubts": doubts, "fixes": fixes})
        return QueueState(**{**fields, "clock": clock})

    @contextmanager
    def change(self) -> Iterator[QueueState]:
        """Open a block that changes state and events in one transaction. The state is stored at its end."""
        with self.lock:
            self._base.execute("BEGIN IMMEDIATE")
            try:
                state = self.state()
                yield state
                self._put(STATE, asdict(state))
                self._base.execute("COMMIT")
            except BaseException:
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
                raise

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Open a block in which no other thread or process sends.

        The lock is a transaction in an SQLite file of its own, so it ends with the process, however that
        ends.
        """
        with self._sender:
            if self._path is None:
                yield
                return
            with ExitStack() as resources:
                try:
                    lock_file = open_file(f"{self._path}.sender", SENDING_SECONDS_MAX)
                    resources.enter_context(closing(lock_file)).execute("BEGIN EXCLUSIVE")
                except sqlite3.OperationalError as error:
                    # Without a disk two processes may send. The events' keys make that harmless.
                    if not is_disk_error(error):
                        raise
                yield

    def close(self) -> None:
        """Close the file. Events that are in memory alone are lost unless they can be written now."""
        with self.lock:
            self.to_disk()
            self._base.close()
            if self._full_file:
                self._full_file.disk.close()


def last_number(base: sqlite3.Connection) -> int:
    """Return the greatest number that was ever given to an event."""
    row = base.execute("SELECT seq FROM sqlite_sequence WHERE name = 'waiting'").fetchone()
    return int(row[0]) if row else 0


def _make_tables(base: sqlite3.Connection) -> None:
    for table in TABLES:
        base.execute(table)


def _state_text(base: sqlite3.Connection) -> str | None:
    return _value_text(base, STATE)


def _value_text(base: sqlite3.Connection, name: str) -> str | None:
    row = base.execute("SELECT value FROM kept WHERE name = ?", (name,)).fetchone()
    return str(row[0]) if row else None


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
