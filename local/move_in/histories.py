"""Rows of another system's histories (rule 20). A row is an event with its time, which may be years ago.

They are posted as all events are, until the API has decided each of them. Afterwards the rows are compared
with what the ledger has.
"""

import csv
import hashlib
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.spreadsheets import cell
from adapters.platform.tables import BEFORE_ALL
from adapters.privacy.tombstones import ErasureCheck
from ingest.engagement.event_body import EVENT, RefusedIfNew, RequestContext, event_of
from ingest.web.caller import Caller
from ingest.web.validate import first_problem
from local.cloud.patience import Patience
from local.row_files import FileRow, RefusedRow, read_rows
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
UNDECIDED = "unavailable"  # the code of an event that the API could not decide
READERS = 8
PAUSE_SECONDS = 2.0  # between two looks at ledgers
SAME, OTHER_DATE, ABSENT = "same", "another date", "not there"
REPEATED = "one event with an earlier line"
HEADER = ("line", "user_id", "event_id", "date_in_file", "date_that_counts", "points", "outcome")
WAITS = "some rows are in no ledger yet: `streakline status` and `streakline queue list` say what is wrong"


def body_of(row: FileRow) -> Body | RefusedRow:
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


def check_row(row: FileRow, books: Books, now: datetime, erased: ErasureCheck) -> Body | RefusedRow:
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
    except (RefusedIfNew, InputRefused) as refused:
        return RefusedRow(row.line, refused.field, refused.reason, row.values)
    return body


def refused_by(row: FileRow, result: Mapping[str, Any]) -> RefusedRow | None:
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
        if repeated := self.counts[REPEATED]:
            count = self.counts.total()
            yield f"  {count} lines are {count - repeated} events: give events of their own different keys"


@dataclass(frozen=True, slots=True)
class HistoryFiles:
    """Files of events."""

    api: Any  # local.api.Api
    ledger: LedgerStore
    books: Books
    now: datetime
    patience: Callable[[], Patience]  # returns how long to wait for events that are not applied yet
    erased: ErasureCheck
    pause_seconds: float = ATTEMPT_PAUSE_SECONDS

    def check(self, row: FileRow) -> Body | RefusedRow:
        """Return a row's event, or why it is refused."""
        return check_row(row, self.books, self.now, self.erased)

    def send(self, rows: Sequence[FileRow]) -> list[RefusedRow | None]:
        """Post the events of rows; returns for each why it is refused, or None.

        Raises RuntimeError if the API does not decide all of them.
        """
        checked = [self.check(row) for row in rows]
        results = iter(self._post([body for body in checked if not isinstance(body, RefusedRow)]))
        return [
            body if isinstance(body, RefusedRow) else refused_by(row, next(results))
            for row, body in zip(rows, checked, strict=True)
        ]

    def _post(self, bodies: Sequence[Body]) -> list[Mapping[str, Any]]:
        """Return the result of each event. Those that the API could not decide are sent again."""
        result_of: dict[int, Mapping[str, Any]] = {}
        undecided = list(range(len(bodies)))
        for attempt in range(ATTEMPTS_MAX):
            if not undecided:
                break
            time.sleep(self.pause_seconds if attempt else 0)
            events = [bodies[index] for index in undecided]
            status, answer = self.api.call("POST", "/v1/events", {"events": events})
            results = answer.get("results") or (answer.get("error") or {}).get("details")
            if not isinstance(results, list) or len(results) != len(undecided):
                raise RuntimeError(
                    f"POST /v1/events: {status} {answer}: run this again, it goes on from here"
                )
            result_of |= dict(zip(undecided, results, strict=True))  # replaces earlier undecided results
            undecided = [
                index for index in undecided if (result_of[index].get("error") or {}).get("code") == UNDECIDED
            ]
        if undecided:
            raise RuntimeError("the API does not take events by now: run this again, it goes on from here")
        return [result_of[index] for index in range(len(bodies))]

    def compare(self, path: Path, out: Path) -> ComparisonResult:
        """Compare each event that is not refused with its user's ledger, and write its line."""
        by_user: dict[str, list[HistoryRow]] = defaultdict(list)
        for row in read_rows(path):
            body = row if isinstance(row, RefusedRow) else self.check(row)
            if not isinstance(body, RefusedRow):
                by_user[body["user_id"]].append(_history_row(row.line, body, self.books))
        result = ComparisonResult(users=len(by_user))
        with out.open("w", newline="", encoding="utf-8") as file:
            lines = csv.writer(file, quoting=csv.QUOTE_ALL)
            lines.writerow(HEADER)
            for user, applied in self._applied_events(by_user):
                known_ids = set[str]()  # of the events of earlier lines
                for event in by_user[user]:
                    day, points = applied.get(event.event_id) or (None, None)
                    if day is None:
                        outcome = ABSENT
                        result.absent.add(event.line)
                    elif event.event_id in known_ids:
                        outcome = REPEATED
                    else:
                        outcome = SAME if day == event.day else OTHER_DATE
                    known_ids.add(event.event_id)
                    result.counts[outcome] += 1
                    values = (event.line, user, event.event_id, event.day, day, points, outcome)
                    lines.writerow(map(cell, values))
        return result

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
                    patience.wait(WAITS, f"{missing_rows} rows", PAUSE_SECONDS)
                except RuntimeError:
                    may_wait = False  # the last look: what is missing then is written down as absent

    def _read_ledger(self, user_id: str) -> AppliedEvents:
        """Return the events that a user's ledger has, by their ids."""
        entries, _ = self.ledger.after(user_id, BEFORE_ALL)
        return applied_events(entries)


def _history_row(line: int, body: Body, books: Books) -> HistoryRow:
    """Return what an event's row says. Its date is computed independently of the product's own code."""
    identifier = event_id(body["user_id"], body["idempotency_key"], parse_moment(body["occurred_at"]))
    return HistoryRow(line, body["user_id"], identifier, local_date(body, books.day_starts))
