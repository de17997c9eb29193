"""`streakline import`: takes files in, and says of each row what the system shows (rule 20).

Run again, it goes on where it was killed; at the end it compares. What comes twice changes nothing.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from adapters.book import BookStore
from adapters.engagement.goals import AchievementStore
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.position_mover import PositionMover
from adapters.platform.keyed_hash import KeyedHash
from adapters.privacy.tombstones import Erased, Tombstones
from local.api import Api
from local.cloud.patience import Patience
from local.move_in.comparing import Compared, HistoryComparison, ToldRow, told_by
from local.move_in.door import EventsDoor
from local.move_in.histories import COLUMNS, Body, checked, refused_by
from local.move_in.mark_store import MarkStore
from local.move_in.positions import PositionMoving
from local.move_in.refused_file import RefusedFile
from local.move_in.rows import RefusedRow, Row, columns_of, digest_of_file, read_rows
from local.move_in.taking import TakenIn, take, validate
from local.stack import Stack, accounts_of, cache_of
from rules.book.book import Books
from rules.engagement.opening_positions import COLUMNS as POSITION_COLUMNS


class Moving(Protocol):
    """One kind of file: how its rows are checked, taken in, and compared."""

    def check(self, row: Row) -> object:
        """Return a RefusedRow for a row that is not taken."""

    def send(self, some: Sequence[Row]) -> Sequence[RefusedRow | None]:
        """Take rows in; returns for each why it is refused, None if it is taken."""

    def compare(self, path: Path, out: Path, rows: int) -> Compared:
        """Hold all rows against what the system has, and write a line for each."""


@dataclass(frozen=True, slots=True)
class HistoryMoving:
    """Files of events."""

    door: EventsDoor
    ledger: LedgerStore
    books: Books
    now: datetime
    patience: Callable[[], Patience]
    erased: Erased

    def check(self, row: Row) -> Body | RefusedRow:
        """Return a row's event, or why it is refused."""
        return checked(row, self.books, self.now, self.erased)

    def send(self, some: Sequence[Row]) -> Sequence[RefusedRow | None]:
        """Send rows that pass the check."""
        bodies = [body for body in map(self.check, some) if not isinstance(body, RefusedRow)]
        return [refused_by(*each) for each in zip(some, self.door.send(bodies), strict=True)]

    def compare(self, path: Path, out: Path, rows: int) -> Compared:
        """Hold each event against the ledger of its user."""

        def told() -> Iterator[ToldRow | RefusedRow]:
            for each in read_rows(path):
                body = each if isinstance(each, RefusedRow) else self.check(each)
                yield body if isinstance(body, RefusedRow) else told_by(each.line, body)

        return HistoryComparison(told, self.ledger, self.patience).write(out, rows)


def run(arguments: argparse.Namespace, stack: Stack) -> None:
    """Take files in, one after another."""
    dynamodb = stack.client("dynamodb")
    left = 0
    for path in arguments.files:
        moving = _moving(path, arguments, stack)
        marks = MarkStore(dynamodb, stack.tables["IdempotencyKeys"], digest_of_file(path))
        left += move_in(path, moving, marks, arguments)
    if left:
        raise RuntimeError(f"{left} lines were not taken in: mend the file of refused ones and import that")


def move_in(path: Path, moving: Moving, marks: MarkStore, arguments: argparse.Namespace) -> int:
    """Take one file in; returns how many of its lines the system does not have then."""
    columns = columns_of(path)
    with RefusedFile(path, columns) as refused:
        rows = validate(path, moving.check, refused)
        print(f"{path}: {rows} rows, {rows - refused.count} of them can be taken in")
        print("\n".join(refused.lines()), end="\n" if refused.count else "")
        if arguments.dry_run:
            return 0
        if refused.count and not arguments.leave_refused:
            raise RuntimeError("nothing is taken in; --leave-refused takes in the others")
    with RefusedFile(path, columns) as refused:
        found = take(path, moving.check, moving.send, marks, refused)
        print("\n".join(_lines(found)))
        out = path.with_name(f"{path.stem}.compared.csv")
        compared = moving.compare(path, out, rows)
        _note_absent(path, compared, refused)
        print("\n".join([*compared.lines(out), *refused.lines()]))
        return refused.count


def _note_absent(path: Path, compared: Compared, refused: RefusedFile) -> None:
    """Keep the rows, too, that an earlier run could not take in, or that are still under way."""
    lacking = compared.absent - refused.places
    for each in read_rows(path) if lacking else ():
        if each.line in lacking:
            refused.add(RefusedRow(each.line, "line", "is not in the system", each.values))


def _lines(found: TakenIn) -> Iterator[str]:
    if found.before:
        yield f"{found.before} rows were taken in by an earlier run: this one goes on from there"
    yield f"{found.sent} rows are sent"


def _moving(path: Path, arguments: argparse.Namespace, stack: Stack) -> Moving:
    dynamodb, erased = stack.client("dynamodb"), _tombstones(stack)
    books = BookStore(dynamodb, stack.tables["RuleBooks"]).look()
    if is_of_positions(columns_of(path)):
        achievements = AchievementStore(dynamodb, stack.tables["DailyActivity"])
        mover = PositionMover(accounts_of(stack), cache_of(stack), achievements)
        return PositionMoving(mover, books, erased, partial(datetime.now, UTC))
    ledger, door = LedgerStore(dynamodb, stack.tables["RewardsLedger"]), EventsDoor(Api(stack))
    return HistoryMoving(door, ledger, books, datetime.now(UTC), lambda: Patience(arguments.stalled), erased)


def is_of_positions(columns: Sequence[str]) -> bool:
    """Whether a file with these columns has opening positions. Raises RuntimeError if it cannot be told."""
    if "occurred_at" in columns:
        return False
    if "as_of" in columns:
        return True
    events, positions = ", ".join(COLUMNS), ", ".join(POSITION_COLUMNS)
    raise RuntimeError(f"a file has events ({events}) or opening positions ({positions}): this has neither")


def _tombstones(stack: Stack) -> Tombstones:
    key = KeyedHash(lambda: stack.client("secretsmanager"), stack.output("ErasureSecretId", "erasures"))
    return Tombstones(stack.client("dynamodb"), stack.tables["Erasures"], key)
