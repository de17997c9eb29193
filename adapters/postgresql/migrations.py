"""Migrations of PostgreSQL: numbered SQL files, each applied once, in order, in one transaction.

The Data API takes one statement a call, so a line `-- next` stands between the statements of a file.
"""

import hashlib
import re
from pathlib import Path
from typing import Any

from rules.privacy.tombstones import SafeToLog

NEXT = re.compile(r"^-- next *\r?$", re.MULTILINE)
SCHEMA = "identity"
LOCK = 7150326214980357  # any number that nobody else locks
# What the migrations' own table needs. Running it again changes nothing.
PREPARE = (
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
    f"""CREATE TABLE IF NOT EXISTS {SCHEMA}.migration (
        name text PRIMARY KEY, digest text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())""",
)
APPLIED = f"SELECT name, digest FROM {SCHEMA}.migration"  # noqa: S608 (a constant)
NOTE = f"INSERT INTO {SCHEMA}.migration (name, digest) VALUES (%s, %s)"  # noqa: S608 (a constant)
FOLDER = Path(__file__).resolve().parents[2] / "sql" / "identity"


class MigrationChanged(SafeToLog, Exception):
    """Somebody changed a file after it had been applied."""


def apply_migrations(connection: Any, folder: Path = FOLDER) -> list[str]:
    """Apply the files that are not applied yet, all or none; returns their names.

    Safe to repeat and to run concurrently. connection: the owner's, as adapters.postgresql.sql describes it.
    Migrations without a file here are ignored: a newer version may have applied them. Raises
    MigrationChanged, and what the connection raises.
    """
    files = {path.name: path.read_text() for path in sorted(folder.glob("*.sql"))}
    if not files:
        raise FileNotFoundError(f"no migrations in {folder}")
    with connection.transaction():
        connection.execute("SET LOCAL statement_timeout = '60s'")
        connection.execute("SELECT 1 FROM pg_advisory_xact_lock(%s::bigint)", [LOCK])
        for statement in PREPARE:
            connection.execute(statement)
        applied: dict[str, str] = dict(connection.execute(APPLIED).fetchall())
        for name, text in files.items():
            if applied.get(name, _digest(text)) != _digest(text):
                raise MigrationChanged(
                    f"{name} was changed after it had been applied: write a new migration instead"
                )
        missing = [name for name in files if name not in applied]
        connection.execute(f"SET LOCAL search_path = {SCHEMA}, pg_temp")
        for name in missing:
            for statement in statements(files[name]):
                connection.execute(statement)
            connection.execute(NOTE, [name, _digest(files[name])])
    return missing


def statements(script: str) -> list[str]:
    """Return a file's statements, which lines `-- next` separate; each without the semicolon at its end."""
    return [statement.strip().removesuffix(";") for statement in NEXT.split(script)]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
