"""The SQLite file of a queue: its tables, its state, and who may send.

While the file cannot be opened, read or written, a copy of it in memory takes its place. What is new in the
copy is written to the file as soon as the disk takes it. A damaged file is renamed, and a new one begun:
nothing is deleted.
"""

import json
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from streakline_client.queue import forks
from streakline_client.queue.clock import ClockState, Doubt, Fix

SENDING_SECONDS_MAX = 600.0  # that a process waits for another one which sends
TABLES = (
    """CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY AUTOINCREMENT, shift INTEGER NOT NULL,
    wall INTEGER NOT NULL, event TEXT NOT NULL, device TEXT, receipt TEXT)""",
    "CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
# With these errors of SQLite the file cannot be used now: the disk is full or fails, or may not be written,
# another process holds the file's lock for too long, or the file system has no locks; or the file is damaged,
# or lacks our tables, as somebody has emptied it, or it is another program's.
DISK_ERRORS = DAMAGED | {
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_PROTOCOL,
}
MEMORY = ":memory:"
COLUMNS = "shift, wall, event, device, receipt"
STATE = "state"  # the name under which QueueState is stored
BUSY_SECONDS_MAX = 30.0
# The same, while the copy in memory is used: each call tries the file first.
BUSY_AGAIN_SECONDS_MAX = 0.1


File = TypeVar("File", bound="QueueFile")
P = ParamSpec("P")
R = TypeVar("R")


def or_in_memory(method: Callable[Concatenate[File, P], R]) -> Callable[Concatenate[File, P], R]:
    """Return a method that is called again, on the copy in memory, if the file cannot be used.

    Before each call, new content of the copy is written to the file if possible.
    """

    @wraps(method)
    def with_copy(file: File, /, *arguments: P.args, **options: P.kwargs) -> R:
        with file.lock:
            file.to_disk()
            try:
                return method(file, *arguments, **options)
            except sqlite3.DatabaseError as error:
                if not (is_disk_error(error) and file.to_memory()):
                    raise
                return method(file, *arguments, **options)

    return with_copy


def is_disk_error(error: sqlite3.Error) -> bool:
    """Whether an error means that the file cannot be used now."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in DISK_ERRORS


@dataclass(slots=True)
class FullFile:
    """A file that cannot be used now, and its content when the copy was made."""

    disk: sqlite3.Connection | None = None  # None: it could not be opened
    file_id: tuple[int, int] | None = None  # of the file that is open: its device and inode
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


Stored = TypeVar("Stored", QueueState, ClockState, Doubt, Fix)


class QueueFile:
    """A file that several threads and processes use; without a path all of it is in memory."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.lock, self._sender = threading.RLock(), threading.Lock()
        forks.guard(self.lock)
        self._full_file: FullFile | None = None
        # The paths of damaged files that were renamed. The app is to hear of them.
        self.asides = list[Path]()
        with self.lock:
            try:
                self._base = self._open(path) if path else open_file(MEMORY)
            except (sqlite3.DatabaseError, OSError) as error:
                if isinstance(error, sqlite3.Error) and not is_disk_error(error):
                    raise
                self._base, self._full_file = open_file(MEMORY), FullFile()
            self._make_tables()

    def _open(self, path: Path, wait_seconds: float = BUSY_SECONDS_MAX) -> sqlite3.Connection:
        """Open the file; if it is damaged, rename it and begin a new one. Raises sqlite3.Error, OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        base, aside = open_sound_file(path, wait_seconds)
        self._file_id = _identity(path)
        if aside:
            self.asides.append(aside)
        return base

    @or_in_memory
    def _make_tables(self) -> None:
        _make_tables(self._base)

    @property
    def is_in_memory(self) -> bool:
        """Whether the file cannot be used now, so that new events are in memory alone."""
        return self._full_file is not None

    def to_memory(self) -> bool:
        """Go on with a copy of the file in memory; returns False if memory is in use already."""
        if self._path is None or self._full_file:
            return False
        memory = open_file(MEMORY)
        with suppress(sqlite3.Error):  # content that cannot be read now is still in the file
            self._base.backup(memory, progress=_give_up_if_busy)
        if not _is_sound(memory) or not _has_tables(memory):
            memory.close()
            memory = open_file(MEMORY)
        _make_tables(memory)
        numbers = frozenset(number for (number,) in memory.execute("SELECT number FROM waiting"))
        self._base.execute(f"PRAGMA busy_timeout = {BUSY_AGAIN_SECONDS_MAX * 1000:.0f}")
        self._full_file = FullFile(
            self._base, self._file_id, numbers, last_number(memory), _value_text(memory, STATE)
        )
        self._base = memory
        return True

    def to_disk(self) -> None:
        """Write the copy's changes to the file and go back to it; do nothing if that fails."""
        if (full_file := self._full_file) is None:
            return
        memory = self._base
        try:
            disk = self._reopen(full_file)
            disk.execute("PRAGMA user_version = 0")  # a small write shows whether a large one is worth trying
            disk.execute("BEGIN IMMEDIATE")
            self._write_back(disk, full_file)
            disk.execute("COMMIT")
            disk.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS_MAX * 1000:.0f}")
        except (sqlite3.Error, OSError) as error:
            if full_file.disk:
                with suppress(sqlite3.Error):
                    full_file.disk.execute("ROLLBACK")
                if getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGED:
                    full_file.disk.close()
                    full_file.disk = None  # next time it is opened anew, and renamed
            return
        self._base, self._full_file = disk, None
        memory.close()

    def _reopen(self, full_file: FullFile) -> sqlite3.Connection:
        """Return the file. It is opened if it is not open, or if another one has its path now.

        Raises sqlite3.Error, OSError.
        """
        path = cast("Path", self._path)
        if full_file.disk and _identity(path) == full_file.file_id:
            return full_file.disk
        if full_file.disk:
            full_file.disk.close()
            full_file.disk = None
        full_file.disk = self._open(path, BUSY_AGAIN_SECONDS_MAX)
        if self._file_id != full_file.file_id:  # then nothing of the copy is in it
            full_file.file_id, full_file.state = self._file_id, None
            full_file.numbers, full_file.last_number = frozenset(), 0
        return full_file.disk

    def _write_back(self, disk: sqlite3.Connection, full_file: FullFile) -> None:
        """Add events that are new in memory to the file, and delete those that are gone from memory."""
        _make_tables(disk)
        query = f"SELECT number, {COLUMNS} FROM waiting"  # noqa: S608 (our own words)
        rows = self._base.execute(query).fetchall()
        gone = full_file.numbers - {number for number, *_ in rows}
        disk.executemany("DELETE FROM waiting WHERE number = ?", [(number,) for number in gone])
        # Another process may have given the next numbers meanwhile: then the new events come after its
        # events.
        given_meanwhile = max(0, last_number(disk) - full_file.last_number)
        moves = self._join(disk, full_file)
        new_rows = [
            (number + given_meanwhile, shift + moves, *row)
            for number, shift, *row in rows
            if number > full_file.last_number
        ]
        insert = f"INSERT INTO waiting (number, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608 (our own words)
        disk.executemany(insert, new_rows)
        values = dict(self._base.execute("SELECT name, value FROM kept").fetchall())
        if _value_text(disk, STATE) != full_file.state:
            values.pop(STATE, None)
        disk.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", list(values.items()))

    def _join(self, disk: sqlite3.Connection, full_file: FullFile) -> int:
        """Return what the shifts of new events differ by in the file.

        If another process has stored a state meanwhile, that stays: it has seen the same moves of the clock.
        But a copy that never had the file's state has counted moves from its own beginning.
        """
        text = _value_text(disk, STATE)
        if full_file.state is not None or text is None:
            return 0
        kept = state_of(text)
        moves = self.moves_since(kept.clock)
        _put(disk, STATE, asdict(kept))
        return moves

    def moves_since(self, kept: ClockState) -> int:
        """Look at the clock; returns the moves that `kept` has seen, and this copy has not (milliseconds)."""
        raise NotImplementedError

    @or_in_memory
    def get(self, name: str) -> Any:
        """Return the JSON value that is stored under a name; None: there is none."""
        text = _value_text(self._base, name)
        return None if text is None else json.loads(text)

    @or_in_memory
    def put(self, name: str, value: Any) -> None:
        """Store a JSON value under a name."""
        _put(self._base, name, value)

    def state(self) -> QueueState:
        """Return the state as it is now."""
        with self.lock:
            return state_of(_value_text(self._base, STATE))

    @contextmanager
    def change(self) -> Iterator[QueueState]:
        """Open a block that changes state and events in one transaction. The state is stored at its end."""
        with self.lock:
            self._base.execute("BEGIN IMMEDIATE")
            try:
                state = self.state()
                yield state
                _put(self._base, STATE, asdict(state))
                self._base.execute("COMMIT")
            except BaseException:
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
                raise

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Open a block in which no other thread or process sends.

        Without a disk two processes may send. The events' keys make that harmless.
        """
        with self._sender, ExitStack() as resources:
            if self._path:
                resources.enter_context(forks.locked_file(f"{self._path}.sender", SENDING_SECONDS_MAX))
            yield

    def close(self) -> None:
        """Close the file. Events that are in memory alone are lost unless they can be written now."""
        with self.lock:
            self.to_disk()
            self._base.close()
            if self._full_file and self._full_file.disk:
                self._full_file.disk.close()


def last_number(base: sqlite3.Connection) -> int:
    """Return the greatest number that was ever given to an event."""
    row = base.execute("SELECT seq FROM sqlite_sequence WHERE name = 'waiting'").fetchone()
    return int(row[0]) if row else 0


def _make_tables(base: sqlite3.Connection) -> None:
    for table in TABLES:
        base.execute(table)


def _has_tables(base: sqlite3.Connection) -> bool:
    try:
        base.execute(f"SELECT number, {COLUMNS} FROM waiting, (SELECT name, value FROM kept)")  # noqa: S608 (our own words)
    except sqlite3.Error:
        return False
    return True


def state_of(text: str | None) -> QueueState:
    """Return the state that a stored text is of; a new one for None."""
    if text is None:
        return QueueState()
    fields = json.loads(text)
    doubts = [_known(Doubt, each) for each in fields["clock"]["doubts"]]
    fixes = [_known(Fix, each) for each in fields["clock"]["fixes"]]
    clock = _known(ClockState, {**fields["clock"], "doubts": doubts, "fixes": fixes})
    return _known(QueueState, {**fields, "clock": clock})


def _known(kind: type[Stored], values: dict[str, Any]) -> Stored:
    """Make a dataclass of its own fields. A newer version of this package may have stored more of them."""
    return kind(**{name: value for name, value in values.items() if name in kind.__dataclass_fields__})


def _put(base: sqlite3.Connection, name: str, value: Any) -> None:
    base.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (name, json.dumps(value)))


def _give_up_if_busy(status: int, *_: int) -> None:
    """Stop a copy of the file that another process has locked: SQLite would try for ever."""
    if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        raise sqlite3.OperationalError("the file is locked")


def _value_text(base: sqlite3.Connection, name: str) -> str | None:
    row = base.execute("SELECT value FROM kept WHERE name = ?", (name,)).fetchone()
    return str(row[0]) if row else None


def open_file(path: str, wait_seconds: float = BUSY_SECONDS_MAX) -> sqlite3.Connection:
    """Open a file, or memory (":memory:")."""
    return sqlite3.connect(path, timeout=wait_seconds, isolation_level=None, check_same_thread=False)


def open_sound_file(path: Path, wait_seconds: float) -> tuple[sqlite3.Connection, Path | None]:
    """Open a file. If it is damaged, rename it and open a new one.

    Returns the open file, and the path of the damaged one (None: there was none). Raises
    sqlite3.DatabaseError, OSError.
    """
    identity = _identity(path)
    base = open_file(str(path), wait_seconds)
    if _is_sound(base):
        return base, None
    base.close()
    aside = _put_aside(path, identity)
    return open_file(str(path), wait_seconds), aside


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
