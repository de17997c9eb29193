"""Takes a file in: all rows are checked first, then sent in their order, from where a run was killed."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path

from adapters.platform.tables import chunks
from local.move_in.mark_store import MarkStore
from local.move_in.refused_file import RefusedFile
from local.move_in.rows import RefusedRow, Row, read_rows

SENDERS = 8
ROWS = 100  # of one sending: as many as a request may have
AHEAD = SENDERS * 2  # sendings between two notes
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
        told = iter(send(good)) if good else iter(())
        sent = {each.line for each in good}
        return [
            next(told) if isinstance(each, Row) and each.line in sent else _refusal(each, check)
            for _, each in some
        ]

    with ThreadPoolExecutor(SENDERS) as pool:
        for some in chunks(chunks(numbered, ROWS), AHEAD):
            for told in chain.from_iterable(pool.map(one, some)):
                found.rows += 1
                found.sent += told is None
                if told:
                    refused.add(told)
            marks.put(found.rows, datetime.now(UTC))
    found.refused = refused.count
    return found


def _note(each: Row | RefusedRow, check: Check, refused: RefusedFile) -> None:
    if told := _refusal(each, check):
        refused.add(told)


def _refusal(each: Row | RefusedRow, check: Check) -> RefusedRow | None:
    found = each if isinstance(each, RefusedRow) else check(each)
    return found if isinstance(found, RefusedRow) else None
