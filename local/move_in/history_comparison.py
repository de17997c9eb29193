"""Compares a history that was imported with what the ledger has."""

import csv
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.spreadsheets import cell
from adapters.platform.tables import BEFORE_ALL
from local.cloud.patience import Patience
from local.move_in.history_rows import Body
from local.move_in.rows import RefusedRow
from local.verify import local_date
from rules.days import parse_moment
from rules.engagement.events import event_id
from rules.engagement.ledger import AppliedEvents, applied_events

READERS = 8
ROWS_MAX = 500_000  # in memory; a larger file is read several times
PAUSE_SECONDS = 2.0  # between two looks at ledgers
SAME, OTHER_DATE, ABSENT = "same", "another date", "not there"
HEADER = ("line", "user_id", "event_id", "date_in_file", "date_that_counts", "points", "outcome")
WAITS = "some rows are in no ledger yet: `streakline status` and `streakline queue list` say what is wrong"


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """What a row of a file says."""

    line: int
    user_id: str
    event_id: str
    day: date  # on which the event was, in its own time zone


@dataclass(slots=True)
class ComparisonResult:
    """How a file's rows differ from what the system has."""

    counts: Counter[str] = field(default_factory=Counter)  # rows, by outcome
    absent: set[int] = field(default_factory=set)  # numbers of lines that the system does not have
    users: int = 0

    def lines(self, path: Path) -> Iterator[str]:
        """Yield the result as lines for the operator. path: the file with the outcome of each row."""
        yield f"{self.users} users compared, row by row: {path}"
        yield from (f"  {outcome}: {count}" for outcome, count in sorted(self.counts.items()))


def history_row(line: int, body: Body) -> HistoryRow:
    """Return what an event's row says. Its date is computed independently of the product's own code."""
    identifier = event_id(body["user_id"], body["idempotency_key"], parse_moment(body["occurred_at"]))
    return HistoryRow(line, body["user_id"], identifier, local_date(body))


@dataclass(frozen=True, slots=True)
class HistoryComparison:
    """Compares a history that was imported with what its users have now."""

    # Yields all rows of the file, from the first one, at each call
    read_again: Callable[[], Iterable[HistoryRow | RefusedRow]]
    ledger: LedgerStore
    patience: Callable[[], Patience]  # returns how long to wait for events that are not applied yet
    pause: float = PAUSE_SECONDS

    def write(self, path: Path, rows: int) -> ComparisonResult:
        """Compare all rows, and write a line for each; returns a summary. rows: how many the file has.

        A user's rows are compared together, in memory. So a file of more than ROWS_MAX rows is read several
        times, each time for another part of its users.
        """
        result, parts = ComparisonResult(), 1 + rows // ROWS_MAX
        with path.open("w", newline="", encoding="utf-8") as file:
            lines = csv.writer(file)
            lines.writerow(HEADER)
            for part in range(parts):
                by_user: dict[str, list[HistoryRow]] = defaultdict(list)
                for row in self.read_again():
                    if isinstance(row, HistoryRow) and zlib.crc32(row.user_id.encode()) % parts == part:
                        by_user[row.user_id].append(row)
                self._compare(by_user, result, lines)
        return result

    def _compare(self, by_user: dict[str, list[HistoryRow]], result: ComparisonResult, lines: Any) -> None:
        """Compare some users' rows: add to the result, and write to `lines` (csv.writer)."""
        result.users += len(by_user)
        for user, applied in self._applied_events(by_user):
            for row in by_user[user]:
                day, points = applied.get(row.event_id, (None, None))
                outcome = ABSENT if day is None else SAME if day == row.day else OTHER_DATE
                result.counts[outcome] += 1
                if outcome == ABSENT:
                    result.absent.add(row.line)
                lines.writerow(map(cell, (row.line, user, row.event_id, row.day, day, points, outcome)))

    def _applied_events(self, by_user: dict[str, list[HistoryRow]]) -> Iterator[tuple[str, AppliedEvents]]:
        """Yield each user with the events that the user's ledger has.

        A ledger that lacks events of the file is read again, until it has all of them or `patience` ends.
        """
        users, patience, may_wait = list(by_user), self.patience(), True
        while users:
            incomplete: list[str] = []
            missing_rows = 0
            with ThreadPoolExecutor(READERS) as pool:
                for user, applied in zip(users, pool.map(self._read_ledger, users), strict=True):
                    missing = sum(row.event_id not in applied for row in by_user[user])
                    missing_rows += missing
                    if missing and may_wait:
                        incomplete.append(user)
                    else:
                        yield user, applied
            users = incomplete
            if users:
                try:
                    patience.wait(WAITS, f"{missing_rows} rows", self.pause)
                except RuntimeError:
                    may_wait = False  # the last look: what is missing then is written down as absent

    def _read_ledger(self, user_id: str) -> AppliedEvents:
        entries, _ = self.ledger.after(user_id, BEFORE_ALL)
        return applied_events(entries)
