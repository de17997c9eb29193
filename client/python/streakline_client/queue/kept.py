"""The SQLite file of a queue: its tables, its state, and who may send."""

import json
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from streakline_client.queue.clock import ClockState, Doubt, Fix
from streakline_client.queue.sound_file import opened, opened_sound

SENDING_SECONDS_MAX = 600.0
TABLES = (
    """CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY AUTOINCREMENT, shift INTEGER NOT NULL,
    wall INTEGER NOT NULL, event TEXT NOT NULL, device TEXT, receipt TEXT)""",
    "CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)


@dataclass(slots=True)
class QueueState:
    """What all processes share. flying: the newest event under way; up to it nothing is given up.

    device: what this device is called in requests. receipt: the newest that it was given; "": none.
    """

    clock: ClockState = field(default_factory=ClockState)
    flying: int = 0
    device: str = field(default_factory=lambda: str(uuid.uuid4()))
    receipt: str = ""


class Kept:
    """A file that several threads and processes use; without a path it is in memory.

    aside: where a damaged file was put, None: there was none.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock, self._sender = threading.RLock(), threading.Lock()
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._base, self.aside = opened_sound(path) if path else (opened(":memory:"), None)
        for table in TABLES:
            self._base.execute(table)
        self._add_columns()

    def _add_columns(self) -> None:
        """Add to a file of an earlier version what it lacks."""
        known = {name for _, name, *_ in self._base.execute("PRAGMA table_info(waiting)")}
        for name in ("device", "receipt"):
            if name not in known:
                with suppress(sqlite3.OperationalError):  # another process was faster
                    self._base.execute(f"ALTER TABLE waiting ADD COLUMN {name} TEXT")

    def get(self, name: str) -> Any:
        """Return what is kept under a name; None: nothing."""
        with self._lock:
            found = self._base.execute("SELECT value FROM kept WHERE name = ?", (name,)).fetchone()
        return json.loads(found[0]) if found else None

    def put(self, name: str, value: Any) -> None:
        """Keep a JSON value under a name."""
        with self._lock:
            self._base.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (name, json.dumps(value)))

    def state(self) -> QueueState:
        """Return the state as it is now."""
        told = self.get("state")
        if told is None:
            return QueueState()
        known = told["clock"]
        doubts, fixes = [Doubt(**each) for each in known["doubts"]], [Fix(**each) for each in known["fixes"]]
        clock = ClockState(**{**known, "doubts": doubts, "fixes": fixes})
        return QueueState(**{**told, "clock": clock})

    @contextmanager
    def change(self) -> Iterator[QueueState]:
        """Change state and events at once, or not at all."""
        with self._lock:
            self._base.execute("BEGIN IMMEDIATE")
            try:
                state = self.state()
                yield state
                self.put("state", asdict(state))
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
            with closing(opened(f"{self._path}.sender", SENDING_SECONDS_MAX)) as lock:
                lock.execute("BEGIN EXCLUSIVE")
                yield

    def close(self) -> None:
        """Close the file. What waits is kept."""
        with self._lock:
            self._base.close()
