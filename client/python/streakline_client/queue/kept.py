"""The SQLite file of a queue: its tables, its state, and who may send.

What the disk does not take is in memory until it does.
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
from streakline_client.queue.sound_file import opened, opened_sound

SENDING_SECONDS_MAX = 600.0
TABLES = (
    """CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY AUTOINCREMENT, shift INTEGER NOT NULL,
    wall INTEGER NOT NULL, event TEXT NOT NULL, device TEXT, receipt TEXT)""",
    "CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)
# The disk is full, fails, or may not be written.
FULL = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
)
COLUMNS = "shift, wall, event, device, receipt"


def is_full(error: sqlite3.Error) -> bool:
    """Whether an error says that the disk takes nothing now."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in FULL


K = TypeVar("K", bound="Kept")
P = ParamSpec("P")
R = TypeVar("R")


def spared(work: Callable[Concatenate[K, P], R]) -> Callable[Concatenate[K, P], R]:
    """Do something on disk, or, where that is full, in memory, which goes to disk when that has room."""

    @wraps(work)
    def either(kept: K, /, *given: P.args, **named: P.kwargs) -> R:
        with kept.lock:
            kept.to_disk()
            try:
                return work(kept, *given, **named)
            except sqlite3.OperationalError as error:
                if not (is_full(error) and kept.to_memory()):
                    raise
                return work(kept, *given, **named)

    return either


@dataclass(slots=True)
class Spare:
    """A file that takes nothing now."""

    disk: sqlite3.Connection
    numbers: frozenset[int]  # of the events that it had then
    last: int  # the greatest of all
    state: str | None  # its text then, to see whether another process has stored another


@dataclass(slots=True)
class QueueState:
    """What all processes share."""

    clock: ClockState = field(default_factory=ClockState)
    flying: int = 0  # the newest event under way; up to it nothing is given up
    device: str = field(default_factory=lambda: str(uuid.uuid4()))  # what this device is called in requests
    receipt: str = ""  # the newest that it was given; "": none


class Kept:
    """A file that several threads and processes use; without a path it is in memory.

    aside: where a damaged file was put, None: there was none.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.lock, self._sender = threading.RLock(), threading.Lock()
        self._spare: Spare | None = None
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._base, self.aside = opened_sound(path) if path else (opened(":memory:"), None)
        self._make_tables()

    @spared
    def _make_tables(self) -> None:
        for table in TABLES:
            self._base.execute(table)

    @property
    def is_spared(self) -> bool:
        """Whether the file takes nothing now, and memory keeps what is new."""
        return self._spare is not None

    def to_memory(self) -> bool:
        """Go on in memory, with what the file has; returns whether that is any change."""
        if self._path is None or self._spare:
            return False
        memory = opened(":memory:")
        with suppress(sqlite3.Error):  # what cannot be read now is in the file later
            self._base.backup(memory)
        self._spare = Spare(self._base, frozenset(), 0, None)
        self._base = memory
        for table in TABLES:
            memory.execute(table)
        numbers = frozenset(number for (number,) in memory.execute("SELECT number FROM waiting"))
        self._spare = Spare(self._spare.disk, numbers, last_number(memory), _state_of(memory))
        return True

    def to_disk(self) -> None:
        """Go back to the file if that takes what memory has."""
        if (spare := self._spare) is None:
            return
        disk, memory = spare.disk, self._base
        try:
            disk.execute("PRAGMA user_version = 0")  # a small write shows whether a large one is worth trying
            disk.execute("BEGIN IMMEDIATE")
            self._write_back(spare)
            disk.execute("COMMIT")
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                disk.execute("ROLLBACK")
            return
        self._base, self._spare = disk, None
        memory.close()

    def _write_back(self, spare: Spare) -> None:
        for table in TABLES:
            spare.disk.execute(table)
        query = f"SELECT number, {COLUMNS} FROM waiting"  # noqa: S608 (our own words)
        rows = self._base.execute(query).fetchall()
        settled = spare.numbers - {number for number, *_ in rows}
        spare.disk.executemany("DELETE FROM waiting WHERE number = ?", [(number,) for number in settled])
        # Another process may have given numbers meanwhile.
        more = max(0, last_number(spare.disk) - spare.last)
        new = [(number + more, *row) for number, *row in rows if number > spare.last]
        values = f"INSERT INTO waiting (number, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608 (our own words)
        spare.disk.executemany(values, new)
        is_others = _state_of(spare.disk) != spare.state  # it knows of the same moves of the clock
        kept = self._base.execute(
            "SELECT name, value FROM kept WHERE name <> ?", ("state" if is_others else "",)
        )
        spare.disk.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", kept.fetchall())

    def get(self, name: str) -> Any:
        """Return what is kept under a name; None: nothing."""
        with self.lock:
            found = self._base.execute("SELECT value FROM kept WHERE name = ?", (name,)).fetchone()
        return json.loads(found[0]) if found else None

    @spared
    def put(self, name: str, value: Any) -> None:
        """Keep a JSON value under a name."""
        self._put(name, value)

    def _put(self, name: str, value: Any) -> None:
        self._base.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (name, json.dumps(value)))

    def state(self) -> QueueState:
        """Return the state as it is now."""
        fields = self.get("state")
        if fields is None:
            return QueueState()
        clock_fields = fields["clock"]
        doubts, fixes = (
            [Doubt(**each) for each in clock_fields["doubts"]],
            [Fix(**each) for each in clock_fields["fixes"]],
        )
        clock = ClockState(**{**clock_fields, "doubts": doubts, "fixes": fixes})
        return QueueState(**{**fields, "clock": clock})

    @contextmanager
    def change(self) -> Iterator[QueueState]:
        """Change state and events at once, or not at all."""
        with self.lock:
            self._base.execute("BEGIN IMMEDIATE")
            try:
                state = self.state()
                yield state
                self._put("state", asdict(state))
                self._base.execute("COMMIT")
            except BaseException:
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
                raise

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Hold the right to send. It is a lock of SQLite: it ends with the process, however that ends."""
        with self._sender:
            if self._path is None:
                yield
                return
            with ExitStack() as held:
                try:
                    lock = held.enter_context(closing(opened(f"{self._path}.sender", SENDING_SECONDS_MAX)))
                    lock.execute("BEGIN EXCLUSIVE")
                except sqlite3.OperationalError as error:
                    if not is_full(error):  # else two may send: the keys make that harmless
                        raise
                yield

    def close(self) -> None:
        """Close the file. What waits is kept, if the disk takes it."""
        with self.lock:
            self.to_disk()
            self._base.close()
            if self._spare:
                self._spare.disk.close()


def last_number(base: sqlite3.Connection) -> int:
    """Return the greatest number that was ever given to an event."""
    found = base.execute("SELECT seq FROM sqlite_sequence WHERE name = 'waiting'").fetchone()
    return int(found[0]) if found else 0


def _state_of(base: sqlite3.Connection) -> str | None:
    found = base.execute("SELECT value FROM kept WHERE name = 'state'").fetchone()
    return str(found[0]) if found else None
