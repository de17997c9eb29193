"""`streakline events import`: imports files of another system, and compares their rows (rule 20).

An import that was killed is run again, and goes on where it was. A row that is sent twice changes nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import click

from adapters.engagement.achievements import AchievementStore
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import chunks
from local.api import Api
from local.cloud.patience import Patience
from local.command import FILE, command, option
from local.move_in.histories import COLUMNS, ComparisonResult, HistoryFiles
from local.move_in.positions import PositionFiles, PositionImporter
from local.row_files import FileRow, RefusedFile, RefusedRow, columns_of, digest_of_file, read_rows
from local.stack import Stack
from local.stores import accounts_of, books_of, cache_of, tombstones_of
from rules.engagement.events import RETENTION
from rules.engagement.opening_positions import COLUMNS as POSITION_COLUMNS

Importer = HistoryFiles | PositionFiles  # both check, send and compare rows of a file
MARK = "rows-taken"
STALLED_SECONDS = 60.0
SENDERS = 8
REQUEST_ROWS = 100  # as many as a request may have
REQUESTS_PER_MARK = SENDERS * 2


class MarkStore:
    """How far a file has been imported: stored in the deployment, so any machine goes on from there.

    The mark is in the table IdempotencyKeys, under a name that no user can have. It only saves work, because
    a row that is sent twice changes nothing.
    """

    def __init__(self, dynamodb: Any, table: str, digest: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._key = {"user_id": f"import#{digest}", "idempotency_key": MARK}

    def get(self) -> int:
        """Return how many of the file's rows an earlier run has sent."""
        answer = self._dynamodb.get_item(
            TableName=self._table, Key=encode_item(self._key), ConsistentRead=True
        )
        return int(decode_item(answer["Item"])["rows"]) if "Item" in answer else 0

    def put(self, rows: int, now: datetime) -> None:
        """Store how many of the file's rows are sent."""
        ttl = int((now + RETENTION).timestamp())
        self._dynamodb.put_item(
            TableName=self._table, Item=encode_item({**self._key, "rows": rows, "ttl": ttl})
        )


@dataclass(slots=True)
class SendingResult:
    """What became of a file's rows."""

    rows: int = 0  # of the file, read so far
    earlier: int = 0  # of these: sent, or refused, by an earlier run
    sent: int = 0  # of these: sent and taken by this run


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
    refused = 0
    for path in files:
        importer = _importer_of(path, stalled, stack)
        marks = MarkStore(dynamodb, stack.tables["IdempotencyKeys"], digest_of_file(path))
        refused += move_in(path, importer, marks, dry_run=dry_run, leave_refused=leave_refused)
    if refused:
        raise RuntimeError(
            f"{refused} lines were not taken in: mend the file of refused ones and import that"
        )


def move_in(
    path: Path, importer: Importer, marks: MarkStore, *, dry_run: bool = False, leave_refused: bool = False
) -> int:
    """Import one file; returns how many of its lines the system does not have then.

    Raises RuntimeError if lines are refused before anything is sent, unless `leave_refused` is set.
    """
    columns = columns_of(path)
    with RefusedFile(path, columns) as refused:
        rows = validate(path, importer.check, refused)
        print(f"{path}: {rows} rows, {rows - refused.count} of them can be taken in")
        print("\n".join(refused.lines()), end="\n" if refused.count else "")
        if dry_run:
            return 0
        if refused.count and not leave_refused:
            raise RuntimeError("nothing is taken in; --leave-refused takes in the others")
    # The file is written anew: the rows before the mark are checked again, so that it lists all refused ones.
    with RefusedFile(path, columns) as refused:
        result = send_rows(path, importer, marks, refused)
        if result.earlier:
            print(f"{result.earlier} rows were handled by an earlier run: this one goes on from there")
        print(f"{result.sent} rows are sent")
        out = path.with_name(f"{path.stem}.compared.csv")
        comparison = importer.compare(path, out)
        _add_absent(path, comparison, refused)
        print("\n".join([*comparison.lines(out), *refused.lines()]))
        return refused.count


def validate(path: Path, check: Callable[[FileRow], object], refused: RefusedFile) -> int:
    """Check all rows of a file, and write down those that are refused; returns how many rows it has."""
    return _check_rows(read_rows(path), check, refused)


def _check_rows(
    rows: Iterable[FileRow | RefusedRow], check: Callable[[FileRow], object], refused: RefusedFile
) -> int:
    count = 0
    for row in rows:
        count += 1
        outcome = row if isinstance(row, RefusedRow) else check(row)
        if isinstance(outcome, RefusedRow):
            refused.add(outcome)
    return count


def send_rows(path: Path, importer: Importer, marks: MarkStore, refused: RefusedFile) -> SendingResult:
    """Send all rows from the mark on; writes down those that are refused."""
    result = SendingResult(earlier=marks.get())
    rows = read_rows(path)
    result.rows = _check_rows(islice(rows, result.earlier), importer.check, refused)

    def send_chunk(chunk: Sequence[FileRow | RefusedRow]) -> list[RefusedRow | None]:
        """Send the rows of a request; returns for each why it is refused, or None."""
        answers = iter(importer.send([row for row in chunk if isinstance(row, FileRow)]))
        return [row if isinstance(row, RefusedRow) else next(answers) for row in chunk]

    with ThreadPoolExecutor(SENDERS) as pool:
        for requests in chunks(chunks(rows, REQUEST_ROWS), REQUESTS_PER_MARK):
            for refusal in chain.from_iterable(pool.map(send_chunk, requests)):
                result.rows += 1
                result.sent += refusal is None
                if refusal:
                    refused.add(refusal)
            marks.put(result.rows, datetime.now(UTC))
    return result


def is_of_positions(columns: Sequence[str]) -> bool:
    """Whether a file with these columns has positions, not events. Raises RuntimeError for neither."""
    if "occurred_at" in columns:
        return False
    if "as_of" in columns:
        return True
    events, positions = ", ".join(COLUMNS), ", ".join(POSITION_COLUMNS)
    raise RuntimeError(f"a file has events ({events}) or opening positions ({positions}): this has neither")


def _importer_of(path: Path, stalled: float, stack: Stack) -> Importer:
    """Return what imports a file. Raises RuntimeError for one that has neither events nor positions."""
    dynamodb, erased, books = stack.client("dynamodb"), tombstones_of(stack), books_of(stack).look()
    if is_of_positions(columns_of(path)):
        achievements = AchievementStore(dynamodb, stack.tables["DailyActivity"])
        accounts = PositionImporter(accounts_of(stack), cache_of(stack), achievements, lambda: books)
        return PositionFiles(accounts, books, erased, partial(datetime.now, UTC))
    ledger = LedgerStore(dynamodb, stack.tables["RewardsLedger"])
    return HistoryFiles(Api(stack), ledger, books, datetime.now(UTC), lambda: Patience(stalled), erased)


def _add_absent(path: Path, comparison: ComparisonResult, refused: RefusedFile) -> None:
    """Add the rows that are not in the system although nothing has refused them in this run."""
    absent = comparison.absent - refused.line_numbers
    for row in read_rows(path) if absent else ():
        if row.line in absent:
            refused.add(RefusedRow(row.line, "line", "is not in the system", row.values))
