"""Rows of another system's histories (rule 20). A row is an event with its time, which may be years ago.

They are posted as all events are, until the API has decided each of them. Afterwards the rows are compared
with what the ledger has.
"""

import csv
import hashlib
import json
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, Protocol

from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.spreadsheets import cell
from adapters.platform.tables import BEFORE_ALL
from adapters.privacy.tombstones import ErasureCheck
from ingest.engagement.event_body import EVENT, RefusedNow, RequestContext, event_of
from ingest.web.caller import Caller
from ingest.web.validate import first_problem
from local.cloud.patience import Patience
from local.move_in.rows import RefusedRow, Row
from local.verify import local_date
from rules.book.book import Books
from rules.days import parse_moment
from rules.engagement.events import IMPORTED, InputRefused, event_id
from rules.engagement.ledger import AppliedEvents, applied_events
from rules.json_values import BadValue, parse_json
from rules.privacy.tombstones import user_subject

Body = dict[str, Any]
COLUMNS = ("user_id", "event_type", "occurred_at", "timezone", "idempotency_key", "source", "properties")
OPERATOR = Caller("operator", is_admin=True)
TAKEN = frozenset({"accepted", "duplicate"})  # statuses of events that the system has
ATTEMPTS_MAX = 8
ATTEMPT_PAUSE_SECONDS = 1.0
READERS = 8
ROWS_MAX = 500_000  # in memory; a larger file is read several times
PAUSE_SECONDS = 2.0  # between two looks at ledgers
SAME, OTHER_DATE, ABSENT = "same", "another date", "not there"
HEADER = ("line", "user_id", "event_id", "date_in_file", "date_that_counts", "points", "outcome")
WAITS = "some rows are in no ledger yet: `streakline status` and `streakline queue list` say what is wrong"


def body_of(row: Row) -> Body | RefusedRow:
    """Return a row's event as POST /v1/events takes it, or why the row has none."""
    body: Body = {"source": IMPORTED, **row.values}
    if isinstance(body.get("properties"), str):
        try:
            body["properties"] = parse_json(body["properties"])
        except BadValue as bad:
            where = "properties" if bad.field == "body" else f"properties.{bad.field}"
            return RefusedRow(row.line, where, bad.reason, row.values)
        except ValueError as error:
            return RefusedRow(row.line, "properties", f"is no JSON: {error}", row.values)
    if "user_id" not in body:
        return RefusedRow(row.line, "user_id", "is missing", row.values)
    body.setdefault("idempotency_key", _key_of(body))
    return body


def check_row(row: Row, books: Books, now: datetime, erased: ErasureCheck) -> Body | RefusedRow:
    """Return a row's event if POST /v1/events would accept it now; otherwise why not."""
    body = body_of(row)
    if isinstance(body, RefusedRow):
        return body
    if problem := first_problem(EVENT, body):
        return RefusedRow(row.line, *problem, row.values)
    try:
        event = event_of(body, RequestContext(OPERATOR, {}, now, IMPORTED, books))
        if erased.forbids(user_subject(event.user_id), event.event_id):
            return RefusedRow(row.line, "user_id", "was erased", row.values)
    except (RefusedNow, InputRefused) as refused:
        return RefusedRow(row.line, refused.field, refused.reason, row.values)
    return body


def refused_by(row: Row, result: Mapping[str, Any]) -> RefusedRow | None:
    """Return why POST /v1/events has refused a row; None if it has accepted it. result: the event's."""
    if result["status"] in TAKEN:
        return None
    error = result.get("error") or {}
    where = str(error.get("field", "line"))
    reason = str(error.get("message", result["status"])).removeprefix(f"{where} ")
    return RefusedRow(row.line, where, f"{reason} ({error.get('code', result['status'])})", row.values)


def _key_of(body: Mapping[str, Any]) -> str:
    """Return a key for an event that has none: rows that say the same get the same key, and are one event."""
    values = [body.get(name) for name in COLUMNS if name not in ("idempotency_key", "source")]
    text = json.dumps(values, sort_keys=True, default=str)
    return f"import:{hashlib.sha256(text.encode()).hexdigest()[:32]}"


class Calls(Protocol):
    """What calls the API: local.api.Api."""

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and answer."""


class EventPoster:
    """Posts events. Those that the API could not decide are sent again: their keys make that harmless."""

    def __init__(self, api: Calls, pause_seconds: float = ATTEMPT_PAUSE_SECONDS) -> None:
        self._api, self._pause_seconds = api, pause_seconds

    def send(self, bodies: Sequence[dict[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the result of each event. Raises RuntimeError if the API does not decide all of them."""
        result_of: dict[int, Mapping[str, Any]] = {}
        undecided = list(range(len(bodies)))
        for attempt in range(ATTEMPTS_MAX):
            if attempt:
                time.sleep(self._pause_seconds)
            events = [bodies[index] for index in undecided]
            status, answer = self._api.call("POST", "/v1/events", {"events": events})
            results = _results(answer)
            if len(results) != len(undecided):
                raise RuntimeError(
                    f"POST /v1/events: {status} {answer}: run this again, it goes on from here"
                )
            result_of |= dict(zip(undecided, results, strict=True))  # replaces earlier undecided results
            undecided = [index for index in undecided if _is_undecided(result_of[index])]
            if not undecided:
                return [result_of[index] for index in range(len(bodies))]
        raise RuntimeError("the API does not take events by now: run this again, it goes on from here")


def _results(answer: Any) -> list[Mapping[str, Any]]:
    """Return the result of each event, from an answer or the details of a refusal; [] if there are none."""
    if not isinstance(answer, dict):
        return []
    results = answer.get("results") or (answer.get("error") or {}).get("details")
    return results if isinstance(results, list) else []


def _is_undecided(result: Mapping[str, Any]) -> bool:
    return (result.get("error") or {}).get("code") == "unavailable"


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
