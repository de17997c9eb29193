"""Holds each row of a history against the ledger: what the file says, and what the system has made of it."""

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
from local.cloud.patience import Patience
from local.move_in.histories import Body
from local.move_in.rows import RefusedRow
from local.verify import local_date
from rules.days import parse_moment
from rules.engagement.events import event_id
from rules.engagement.ledger import Applied, applied_by

READERS = 8
ROWS_AT_ONCE = 500_000  # are held in memory; a larger file is read several times
PAUSE_SECONDS = 2.0
SAME, OTHER_DATE, ABSENT = "same", "another date", "not there"
HEADER = ("line", "user_id", "event_id", "date_in_file", "date_that_counts", "points", "outcome")
WAITS = (
    "some rows are in no ledger yet: `streakline status` and `streakline redrive --list` say what is wrong"
)


@dataclass(frozen=True, slots=True)
class ToldRow:
    """What a row of a file says: which event, and on which date by its own zone."""

    line: int
    user_id: str
    event_id: str
    day: date


@dataclass(slots=True)
class Compared:
    """How many rows are as the file says. absent: lines that the system does not have."""

    counts: Counter[str] = field(default_factory=Counter)
    absent: set[int] = field(default_factory=set)
    users: int = 0

    def lines(self, path: Path) -> Iterator[str]:
        """Yield what is told of it."""
        yield f"{self.users} users compared, row by row: {path}"
        yield from (f"  {outcome}: {count}" for outcome, count in sorted(self.counts.items()))


def told_by(line: int, body: Body) -> ToldRow:
    """Return what an event's row says; its date is worked out in another way than the product does."""
    identifier = event_id(body["user_id"], body["idempotency_key"], parse_moment(body["occurred_at"]))
    return ToldRow(line, body["user_id"], identifier, local_date(body))


@dataclass(frozen=True, slots=True)
class HistoryComparison:
    """told: yields all rows that were taken in, as often as it is called. patience: how long to wait."""

    told: Callable[[], Iterable[ToldRow | RefusedRow]]
    ledger: LedgerStore
    patience: Callable[[], Patience]
    pause: float = PAUSE_SECONDS

    def write(self, path: Path, rows: int) -> Compared:
        """Compare all rows, and write a line for each."""
        found, parts = Compared(), 1 + rows // ROWS_AT_ONCE
        with path.open("w", newline="", encoding="utf-8") as out:
            lines = csv.writer(out)
            lines.writerow(HEADER)
            for part in range(parts):
                by_user: dict[str, list[ToldRow]] = defaultdict(list)
                for each in self.told():
                    if isinstance(each, ToldRow) and zlib.crc32(each.user_id.encode()) % parts == part:
                        by_user[each.user_id].append(each)
                self._compare(by_user, found, lines)
        return found

    def _compare(self, by_user: dict[str, list[ToldRow]], found: Compared, lines: Any) -> None:
        found.users += len(by_user)
        for user, applied in self._applied(by_user):
            for each in by_user[user]:
                day, points = applied.get(each.event_id, (None, None))
                outcome = ABSENT if day is None else SAME if day == each.day else OTHER_DATE
                found.counts[outcome] += 1
                if outcome == ABSENT:
                    found.absent.add(each.line)
                lines.writerow(map(cell, (each.line, user, each.event_id, each.day, day, points, outcome)))

    def _applied(self, by_user: dict[str, list[ToldRow]]) -> Iterator[tuple[str, Applied]]:
        """Yield what each user's ledger has; waits for what is on its way, as long as that goes on."""
        waiting, patience, goes_on = list(by_user), self.patience(), True
        while waiting:
            late: list[str] = []
            lacking = 0
            with ThreadPoolExecutor(READERS) as pool:
                read = pool.map(lambda user: applied_by(self.ledger.after(user, "0")[0]), waiting)
                for user, applied in zip(waiting, read, strict=True):
                    missing = sum(each.event_id not in applied for each in by_user[user])
                    lacking += missing
                    if missing and goes_on:
                        late.append(user)
                    else:
                        yield user, applied
            waiting = late
            if waiting:
                try:
                    patience.wait(WAITS, f"{lacking} rows", self.pause)
                except RuntimeError:
                    goes_on = False  # what is missing is told as such, and not waited for any more
