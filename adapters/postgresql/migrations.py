"""Migrations: numbered SQL files, each applied once, in order, in a transaction of its own.

The Data API keeps no session and takes one statement a call. So each transaction takes the lock for itself,
and then looks what has been applied meanwhile.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from adapters.postgresql.sql_statements import statements
from rules.privacy.tombstones import TellsNobody

FOLDER = Path(__file__).resolve().parents[2] / "sql" / "identity"
SCHEMA = "identity"
LOCK = 7150326214980357
# What `migrate` itself needs; running it again changes nothing.
PREPARE = f"""
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
CREATE TABLE IF NOT EXISTS {SCHEMA}.migration (
    name text PRIMARY KEY, digest text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now()
)
"""
APPLIED = f"SELECT name, digest FROM {SCHEMA}.migration"  # noqa: S608 (a constant)
NOTE = f"INSERT INTO {SCHEMA}.migration (name, digest) VALUES (%s, %s)"  # noqa: S608 (a constant)


class MigrationChanged(TellsNobody, Exception):
    """Somebody changed a file after it had been applied."""


def migrate(connection: Any, folder: Path = FOLDER) -> list[str]:
    """Apply the files that are not applied yet; returns their names. Safe to repeat and to run concurrently.

    connection: the owner's, as adapters.postgresql.sql describes it. Migrations without a file here are
    ignored: a newer version may have applied them. Raises MigrationChanged before anything is applied, and
    what the connection raises; the files before the failing one then stay applied.
    """
    files = {path.name: path.read_text() for path in sorted(folder.glob("*.sql"))}
    if not files:
        raise FileNotFoundError(f"no migrations in {folder}")
    with _locked(connection):
        for statement in statements(PREPARE):
            connection.execute(statement)
        applied = _applied(connection, files)
    return [name for name in files if name not in applied and _apply(connection, name, files)]


def _apply(connection: Any, name: str, files: dict[str, str]) -> bool:
    """Apply a file; returns False if somebody else has done so meanwhile."""
    with _locked(connection):
        if name in _applied(connection, files):
            return False
        connection.execute(f"SET LOCAL search_path = {SCHEMA}, pg_temp")
        for statement in statements(files[name]):
            connection.execute(statement)
        connection.execute(NOTE, [name, _digest(files[name])])
    return True


@contextmanager
def _locked(connection: Any) -> Iterator[None]:
    """Run a transaction that no other migration runs beside."""
    with connection.transaction():
        connection.execute("SET LOCAL statement_timeout = '60s'")
        connection.execute("SELECT 1 FROM pg_advisory_xact_lock(%s::bigint)", [LOCK])
        yield


def _applied(connection: Any, files: dict[str, str]) -> dict[str, str]:
    """Return the digests of what is applied, by name; raises MigrationChanged if a file's is another."""
    applied: dict[str, str] = dict(connection.execute(APPLIED).fetchall())
    for name, text in files.items():
        if applied.get(name, _digest(text)) != _digest(text):
            raise MigrationChanged(
                f"{name} was changed after it had been applied: write a new migration instead"
            )
    return applied


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
