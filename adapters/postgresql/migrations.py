"""Migrations: numbered SQL files, each applied once, in order, in a transaction of its own.

The Data API keeps no session and takes one statement a call. So each transaction takes the lock for itself,
and then looks what has been applied meanwhile.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rules.privacy.tombstones import SafeToLog

# Splits a SQL script into its statements, as PostgreSQL reads it: the Data API takes one statement a call.
#
# A semicolon ends a statement unless it is quoted, or in a comment. Scripts of psql do more (BEGIN ATOMIC,
# semicolons within parentheses); who needs that writes a function with a quoted body.


_ESCAPED = r"'(?:[^'\\]|\\.|'')*'"
# An escaped string goes on after a line break, by the same rules; comments may stand around it. A name may
# hold a $, which quotes nothing.
_BREAK = r"[^\S\n]*(?:--[^\n]*)?\n(?:\s|--[^\n]*\n)*"
_TOKEN = re.compile(
    rf"""
      --[^\n]*
    | (?P<comment>/\*)
    | [eE]{_ESCAPED}(?:{_BREAK}{_ESCAPED})*
    | '(?:[^']|'')*'
    | "(?:[^"]|"")*"
    | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
    | (?P<open>[eE]'|['"])
    | [^\W\d][\w$]*
    | (?P<end>;)
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")
_IGNORED = re.compile(r"(?:\s|--[^\n]*)+")
_ATOMIC = re.compile(r"\bBEGIN\s+ATOMIC\b", re.IGNORECASE)
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


def split_script(text: str) -> list[str]:
    """Return the statements of a script, each with its semicolon and what stands before it.

    Joined they are the text. The last one may hold nothing but space and comments. Raises ValueError if a
    quote or a comment has no end.
    """
    ends = [*_ends(text), len(text)]
    pieces = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return pieces if pieces[-1] or len(pieces) == 1 else pieces[:-1]


def statements(text: str) -> list[str]:
    """Return the statements to be executed: without semicolons, and without those that are empty.

    Raises ValueError as `split` does, and if a statement is BEGIN ATOMIC, which split cuts in pieces.
    """
    found = [each.strip() for each in split_script(text)]
    if any(_ATOMIC.search(each) for each in found):
        raise ValueError("BEGIN ATOMIC cannot be split into statements: quote the function's body")
    return [bare for each in found if not is_empty(bare := each.removesuffix(";").rstrip())]


def is_empty(statement: str) -> bool:
    """Whether a piece of `split` holds nothing but space, comments and its semicolon."""
    at = 0
    while at < len(statement):
        if ignored := _IGNORED.match(statement, at):
            at = ignored.end()
        elif statement.startswith("/*", at):
            at = _after_comment(statement, at)
        else:
            return statement[at:] == ";"
    return True


def _ends(text: str) -> Iterator[int]:
    """Yield the place after each semicolon that ends a statement."""
    at = 0
    while token := _TOKEN.match(text, at):
        at = token.end()
        if token["end"]:
            yield at
        elif token["comment"]:
            at = _after_comment(text, token.start())
        elif token["dollar"]:
            at = text.find(token["dollar"], at) + len(token["dollar"])
            if at < token.end():
                raise _unended_error(text, token.start())
        elif token["open"]:
            raise _unended_error(text, token.start())


def _after_comment(text: str, start: int) -> int:
    """Return the place after a comment, which may hold others."""
    depth = 0
    for mark in _COMMENT.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise _unended_error(text, start)


def _unended_error(text: str, start: int) -> ValueError:
    line = text.count("\n", 0, start) + 1
    return ValueError(f"what begins with {text[start : start + 20]!r} in line {line} has no end")


FOLDER = Path(__file__).resolve().parents[2] / "sql" / "identity"


class MigrationChanged(SafeToLog, Exception):
    """Somebody changed a file after it had been applied."""


def apply_migrations(connection: Any, folder: Path = FOLDER) -> list[str]:
    """Apply the files that are not applied yet; returns their names. Safe to repeat and to run concurrently.

    connection: the owner's, as adapters.postgresql.sql describes it. Migrations without a file here are
    ignored: a newer version may have applied them. Raises MigrationChanged before anything is applied, and
    what the connection raises; the files before the failing one then stay applied.
    """
    files = {path.name: path.read_text() for path in sorted(folder.glob("*.sql"))}
    if not files:
        raise FileNotFoundError(f"no migrations in {folder}")
    with _locked_transaction(connection):
        for statement in statements(PREPARE):
            connection.execute(statement)
        applied = _applied_digests(connection, files)
    return [name for name in files if name not in applied and _apply(connection, name, files)]


def _apply(connection: Any, name: str, files: dict[str, str]) -> bool:
    """Apply a file; returns False if somebody else has done so meanwhile."""
    with _locked_transaction(connection):
        if name in _applied_digests(connection, files):
            return False
        connection.execute(f"SET LOCAL search_path = {SCHEMA}, pg_temp")
        for statement in statements(files[name]):
            connection.execute(statement)
        connection.execute(NOTE, [name, _digest(files[name])])
    return True


@contextmanager
def _locked_transaction(connection: Any) -> Iterator[None]:
    """Run a transaction that no other migration runs beside."""
    with connection.transaction():
        connection.execute("SET LOCAL statement_timeout = '60s'")
        connection.execute("SELECT 1 FROM pg_advisory_xact_lock(%s::bigint)", [LOCK])
        yield


def _applied_digests(connection: Any, files: dict[str, str]) -> dict[str, str]:
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
