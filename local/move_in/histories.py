"""Histories: a row is an event with its time, maybe years old. It goes through the door of all events."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.privacy.tombstones import Erased
from ingest.engagement.event_schemas import EVENT
from ingest.engagement.events import Door, RefusedNow, event_of
from ingest.web.caller import Caller
from ingest.web.validate import first_problem
from local.move_in.rows import RefusedRow, Row
from rules.book.book import Books
from rules.engagement.events import IMPORTED, InputRefused
from rules.json_values import BadValue, parse_json
from rules.privacy.tombstones import user_subject

COLUMNS = ("user_id", "event_type", "occurred_at", "timezone", "idempotency_key", "source", "properties")
OPERATOR = Caller("operator", is_admin=True)
Body = dict[str, Any]
Send = Callable[[Sequence[Body]], Sequence[Mapping[str, Any]]]
TAKEN = frozenset({"accepted", "duplicate"})


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


def checked(row: Row, books: Books, now: datetime, erased: Erased) -> Body | RefusedRow:
    """Return a row's event if the door would take it by now; otherwise why not."""
    body = body_of(row)
    if isinstance(body, RefusedRow):
        return body
    if problem := first_problem(EVENT, body):
        return RefusedRow(row.line, *problem, row.values)
    try:
        event = event_of(body, Door(OPERATOR, {}, now, IMPORTED, books))
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
