"""`streakline events import`: takes files in, and says of each row what the system shows (rule 20).

Run again, it goes on where it was killed; at the end it compares. What comes twice changes nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

import click

from adapters.engagement.goals import AchievementStore
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import chunks
from adapters.privacy.tombstones import ErasureCheck
from local.api import Api
from local.cloud.patience import Patience
from local.command import FILE, command, option
from local.move_in.histories import (
    COLUMNS,
    Body,
    Compared,
    EventsDoor,
    HistoryComparison,
    HistoryRow,
    checked,
    history_row,
    refused_by,
)
from local.move_in.positions import PositionImporter, PositionMoving
from local.move_in.rows import RefusedFile, RefusedRow, Row, columns_of, digest_of_file, read_rows
from local.stack import Stack
from local.stores import accounts_of, books_of, cache_of, tombstones_of
from rules.book.book import Books
from rules.engagement.events import RETENTION
from rules.engagement.opening_positions import COLUMNS as POSITION_COLUMNS

NOTE = "rows-taken"
STALLED_SECONDS = 60.0
SENDERS = 8
ROWS = 100  # of one sending: as many as a request may have
AHEAD = SENDERS * 2  # sendings between two notes


class MarkStore:
    """How far a file has been taken in: noted in the deployment, so any machine goes on from there.

    It is in the table IdempotencyKeys, under a name that no user can have. The note only saves work: whatever
    comes twice changes nothing.
    """

    def __init__(self, dynamodb: Any, table: str, digest: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._key = {"user_id": f"import#{digest}", "idempotency_key": NOTE}

    def get(self) -> int:
        """Return how many of the file's rows are taken in."""
        answer = self._dynamodb.get_item(
            TableName=self._table, Key=encode_item(self._key), ConsistentRead=True
        )
        return int(decode_item(answer["Item"])["rows"]) if "Item" in answer else 0

    def put(self, rows: int, now: datetime) -> None:
        """Note that so many rows are taken in."""
        ttl = int((now + RETENTION).timestamp())
        self._dynamodb.put_item(
            TableName=self._table, Item=encode_item({**self._key, "rows": rows, "ttl": ttl})
        )


Check = Callable[[Row], object]
Take = Callable[[Sequence[Row]], Sequence[RefusedRow | None]]


@dataclass(slots=True)
class TakenIn:
    """What became of a file's rows. before: taken by an earlier run."""

    rows: int = 0
    before: int = 0
    sent: int = 0
    refused: int = 0
    lines: list[str] = field(default_factory=list)


def validate(path: Path, check: Check, refused: RefusedFile) -> int:
    """Check all rows of a file, and write down those that are refused; returns how many rows it has."""
    rows = 0
    for each in read_rows(path):
        rows += 1
        found = each if isinstance(each, RefusedRow) else check(each)
        if isinstance(found, RefusedRow):
            refused.add(found)
    return rows


def take(path: Path, check: Check, send: Take, marks: MarkStore, refused: RefusedFile) -> TakenIn:
    """Send all rows that pass the check, from the mark on; writes down those that are refused meanwhile."""
    found = TakenIn(before=marks.get())
    numbered = enumerate(read_rows(path), start=1)
    for number, each in islice(numbered, found.before):
        found.rows = number
        _note(each, check, refused)

    def one(some: Sequence[tuple[int, Row | RefusedRow]]) -> Sequence[RefusedRow | None]:
        good = [each for _, each in some if isinstance(each, Row) and not isinstance(check(each), RefusedRow)]
        refusal = iter(send(good)) if good else iter(())
        sent = {each.line for each in good}
        return [
            next(refusal) if isinstance(each, Row) and each.line in sent else _refusal(each, check)
            for _, each in some
        ]

    with ThreadPoolExecutor(SENDERS) as pool:
        for some in chunks(chunks(numbered, ROWS), AHEAD):
            for refusal in chain.from_iterable(pool.map(one, some)):
                found.rows += 1
                found.sent += refusal is None
                if refusal:
                    refused.add(refusal)
            marks.put(found.rows, datetime.now(UTC))
    found.refused = refused.count
    return found


def _note(each: Row | RefusedRow, check: Check, refused: RefusedFile) -> None:
    if refusal := _refusal(each, check):
        refused.add(refusal)


def _refusal(each: Row | RefusedRow, check: Check) -> RefusedRow | None:
    found = each if isinstance(each, RefusedRow) else check(each)
    return found if isinstance(found, RefusedRow) else None


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
    erased: ErasureCheck

    def check(self, row: Row) -> Body | RefusedRow:
        """Return a row's event, or why it is refused."""
        return checked(row, self.books, self.now, self.erased)

    def send(self, some: Sequence[Row]) -> Sequence[RefusedRow | None]:
        """Send rows that pass the check."""
        bodies = [body for body in map(self.check, some) if not isinstance(body, RefusedRow)]
        return [refused_by(*each) for each in zip(some, self.door.send(bodies), strict=True)]

    def compare(self, path: Path, out: Path, rows: int) -> Compared:
        """Hold each event against the ledger of its user."""

        def rows_again() -> Iterator[HistoryRow | RefusedRow]:
            for each in read_rows(path):
                body = each if isinstance(each, RefusedRow) else self.check(each)
                yield body if isinstance(body, RefusedRow) else history_row(each.line, body)

        return HistoryComparison(rows_again, self.ledger, self.patience).write(out, rows)


@command("events import history.csv --dry-run", "events import positions.ndjson history.parquet")
@click.argument("files", metavar="FILE...", type=FILE, nargs=-1, required=True)
@option("--dry-run", is_flag=True, help="only check all lines, and write down those that are refused")
@option(
    "--leave-refused",
    is_flag=True,
    help="take in the others although some are refused; these are kept in a file, to be mended",
)
@option(
    "--stalled",
    type=float,
    default=STALLED_SECONDS,
    metavar="SECONDS",
    help="how long the comparison waits while nothing more arrives",
)
def import_command(
    stack: Stack, files: Sequence[Path], dry_run: bool, leave_refused: bool, stalled: float
) -> None:
    """Take in histories, or opening positions, of another system.

    FILE is .csv, .ndjson or .parquet: events (user_id, event_type, occurred_at, ...), or opening positions
    (user_id, as_of, streak, longest, last_date, balance, ...).
    """
    dynamodb = stack.client("dynamodb")
    left = 0
    for path in files:
        moving = _moving(path, stalled, stack)
        marks = MarkStore(dynamodb, stack.tables["IdempotencyKeys"], digest_of_file(path))
        left += move_in(path, moving, marks, dry_run=dry_run, leave_refused=leave_refused)
    if left:
        raise RuntimeError(f"{left} lines were not taken in: mend the file of refused ones and import that")


def move_in(
    path: Path, moving: Moving, marks: MarkStore, *, dry_run: bool = False, leave_refused: bool = False
) -> int:
    """Take one file in; returns how many of its lines the system does not have then."""
    columns = columns_of(path)
    with RefusedFile(path, columns) as refused:
        rows = validate(path, moving.check, refused)
        print(f"{path}: {rows} rows, {rows - refused.count} of them can be taken in")
        print("\n".join(refused.lines()), end="\n" if refused.count else "")
        if dry_run:
            return 0
        if refused.count and not leave_refused:
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


def _moving(path: Path, stalled: float, stack: Stack) -> Moving:
    dynamodb, erased, books = stack.client("dynamodb"), tombstones_of(stack), books_of(stack).look()
    if is_of_positions(columns_of(path)):
        achievements = AchievementStore(dynamodb, stack.tables["DailyActivity"])
        mover = PositionImporter(accounts_of(stack), cache_of(stack), achievements)
        return PositionMoving(mover, books, erased, partial(datetime.now, UTC))
    ledger, door = LedgerStore(dynamodb, stack.tables["RewardsLedger"]), EventsDoor(Api(stack))
    return HistoryMoving(door, ledger, books, datetime.now(UTC), lambda: Patience(stalled), erased)


def is_of_positions(columns: Sequence[str]) -> bool:
    """Whether a file with these columns has opening positions. Raises RuntimeError if it cannot be told."""
    if "occurred_at" in columns:
        return False
    if "as_of" in columns:
        return True
    events, positions = ", ".join(COLUMNS), ", ".join(POSITION_COLUMNS)
    raise RuntimeError(f"a file has events ({events}) or opening positions ({positions}): this has neither")
