"""Migrations: numbered SQL files, each applied once, in order, in a transaction of its own."""

import hashlib
from pathlib import Path
from typing import Any

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


class MigrationChanged(Exception):
    """Somebody changed a file after it had been applied."""


def migrate(connection: Any, folder: Path = FOLDER) -> list[str]:
    """Apply the files that are not applied yet; returns their names. Safe to run concurrently.

    connection: the owner's, autocommit; nobody else may use it meanwhile. Migrations without a file here are
    ignored: a newer version may have applied them. Raises MigrationChanged before anything is applied, and
    what psycopg raises; the files before the failing one then stay applied.
    """
    connection.execute("SELECT pg_advisory_lock(%s)", [LOCK])
    try:
        connection.execute(PREPARE)
        applied = dict(connection.execute(f"SELECT name, digest FROM {SCHEMA}.migration").fetchall())  # noqa: S608 (a constant)
        files = {path.name: path.read_text() for path in sorted(folder.glob("*.sql"))}
        if not files:
            raise FileNotFoundError(f"no migrations in {folder}")
        for name, text in files.items():
            if applied.get(name, _digest(text)) != _digest(text):
                raise MigrationChanged(
                    f"{name} was changed after it had been applied: write a new migration instead"
                )
        new = [name for name in files if name not in applied]
        for name in new:
            _apply(connection, name, files[name])
        return new
    finally:
        connection.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


def _apply(connection: Any, name: str, text: str) -> None:
    with connection.transaction():
        connection.execute(f"SET LOCAL search_path = {SCHEMA}, pg_temp")
        connection.execute(text)
        connection.execute(
            f"INSERT INTO {SCHEMA}.migration (name, digest) VALUES (%s, %s)",  # noqa: S608 (a constant)
            [name, _digest(text)],
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
