"""Histories: a row is an event with its time, maybe years old. It goes through the door of all events."""

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
from adapters.privacy.tombstones import ErasureCheck
from ingest.engagement.events import EVENT, RefusedNow, RequestContext, event_of
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

COLUMNS = ("user_id", "event_type", "occurred_at", "timezone", "idempotency_key", "source", "properties")
OPERATOR = Caller("operator", is_admin=True)
Body = dict[str, Any]
Send = Callable[[Sequence[Body]], Sequence[Mapping[str, Any]]]
TAKEN = frozenset({"accepted", "duplicate"})
ATTEMPTS_MAX = 8
ATTEMPT_PAUSE_SECONDS = 1.0
READERS = 8
ROWS_AT_ONCE = 500_000  # are held in memory; a larger file is read several times
PAUSE_SECONDS = 2.0
SAME, OTHER_DATE, ABSENT = "same", "another date", "not there"
HEADER = ("line", "user_id", "event_id", "date_in_file", "date_that_counts", "points", "outcome")
WAITS = "some rows are in no ledger yet: `streakline status` and `streakline queue list` say what is wrong"


def body_of(row: Row) -> Body | RefusedRow:
    """Return the event that a row tells, as the door takes it."""
    body: Body = {"source": IMPORTED, **row.values}
    if isinstance(body.get("properties"), str):
        try:
            body["properties"] = parse_json(body["properties"])
        except BadValue as bad:
            field = "properties" if bad.field == "body" else f"properties.{bad.field}"
            return RefusedRow(row.line, field, bad.reason, row.values)
        except ValueError as error:
            return RefusedRow(row.line, "properties", f"is no JSON: {error}", row.values)
    if "user_id" not in body:
        return RefusedRow(row.line, "user_id", "is missing", row.values)
    body.setdefault("idempotency_key", _key_of(body))
    return body


def _key_of(body: Mapping[str, Any]) -> str:
    """Return a key for an event that has none: what says the same has the same key, and is one event."""
    said = [body.get(name) for name in COLUMNS if name not in ("idempotency_key", "source")]
    text = json.dumps(said, sort_keys=True, default=str)
    return f"import:{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def checked(row: Row, books: Books, now: datetime, erased: ErasureCheck) -> Body | RefusedRow:
    """Return a row's event if the door would take it by now; otherwise why not."""
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
    """Return why the door has refused a row; None if it has taken it."""
    if result["status"] in TAKEN:
        return None
    error = result.get("error") or {}
    field = str(error.get("field", "line"))
    reason = str(error.get("message", result["status"])).removeprefix(f"{field} ")
    return RefusedRow(row.line, field, f"{reason} ({error.get('code', result['status'])})", row.values)


class Calls(Protocol):
    """What calls the API: local.api.Api."""

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and answer."""


class EventsDoor:
    """Sends events; what is not decided is sent again, because events carry their keys."""

    def __init__(self, api: Calls, pause_seconds: float = ATTEMPT_PAUSE_SECONDS) -> None:
        self._api, self._pause_seconds = api, pause_seconds

    def send(self, bodies: Sequence[dict[str, Any]]) -> list[Mapping[str, Any]]:
        """Return what became of each event. Raises RuntimeError if that cannot be had."""
        result_of: dict[int, Mapping[str, Any]] = {}
        left = list(range(len(bodies)))
        for attempt in range(ATTEMPTS_MAX):
            if attempt:
                time.sleep(self._pause_seconds)
            status, answer = self._api.call("POST", "/v1/events", {"events": [bodies[each] for each in left]})
            results = _results(answer)
            if len(results) != len(left):
                raise RuntimeError(
                    f"POST /v1/events: {status} {answer}: run this again, it goes on from here"
                )
            result_of |= dict(zip(left, results, strict=True))
            left = [
                each for each in left if (result_of[each].get("error") or {}).get("code") == "unavailable"
            ]
            if not left:
                return [result_of[each] for each in range(len(bodies))]
        raise RuntimeError("the API does not take events by now: run this again, it goes on from here")


def _results(answer: Any) -> list[Mapping[str, Any]]:
    if not isinstance(answer, dict):
        return []
    found = answer.get("results") or (answer.get("error") or {}).get("details")
    return found if isinstance(found, list) else []


@dataclass(frozen=True, slots=True)
class HistoryRow:
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


def history_row(line: int, body: Body) -> HistoryRow:
    """Return what an event's row says; its date is worked out in another way than the product does."""
    identifier = event_id(body["user_id"], body["idempotency_key"], parse_moment(body["occurred_at"]))
    return HistoryRow(line, body["user_id"], identifier, local_date(body))


@dataclass(frozen=True, slots=True)
class HistoryComparison:
    """Compares a history that was imported with what its users have now."""

    # Yields all rows that were taken in, as often as it is called
    rows_again: Callable[[], Iterable[HistoryRow | RefusedRow]]
    ledger: LedgerStore
    patience: Callable[[], Patience]  # how long to wait
    pause: float = PAUSE_SECONDS

    def write(self, path: Path, rows: int) -> Compared:
        """Compare all rows, and write a line for each."""
        found, parts = Compared(), 1 + rows // ROWS_AT_ONCE
        with path.open("w", newline="", encoding="utf-8") as out:
            lines = csv.writer(out)
            lines.writerow(HEADER)
            for part in range(parts):
                by_user: dict[str, list[HistoryRow]] = defaultdict(list)
                for each in self.rows_again():
                    if isinstance(each, HistoryRow) and zlib.crc32(each.user_id.encode()) % parts == part:
                        by_user[each.user_id].append(each)
                self._compare(by_user, found, lines)
        return found

    def _compare(self, by_user: dict[str, list[HistoryRow]], found: Compared, lines: Any) -> None:
        found.users += len(by_user)
        for user, applied in self._applied(by_user):
            for each in by_user[user]:
                day, points = applied.get(each.event_id, (None, None))
                outcome = ABSENT if day is None else SAME if day == each.day else OTHER_DATE
                found.counts[outcome] += 1
                if outcome == ABSENT:
                    found.absent.add(each.line)
                lines.writerow(map(cell, (each.line, user, each.event_id, each.day, day, points, outcome)))

    def _applied(self, by_user: dict[str, list[HistoryRow]]) -> Iterator[tuple[str, AppliedEvents]]:
        """Yield what each user's ledger has; waits for what is on its way, as long as that goes on."""
        waiting, patience, goes_on = list(by_user), self.patience(), True
        while waiting:
            late: list[str] = []
            lacking = 0
            with ThreadPoolExecutor(READERS) as pool:
                read = pool.map(lambda user: applied_events(self.ledger.after(user, "0")[0]), waiting)
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
