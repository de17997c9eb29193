"""Rows of another system's histories (rule 20). A row is an event with its time, which may be years ago.

event_poster.py posts these events as all events are posted. Afterwards history_comparison.py compares the
rows with what the ledger has.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from adapters.privacy.tombstones import ErasureCheck
from ingest.engagement.event_body import EVENT, RefusedNow, RequestContext, event_of
from ingest.web.caller import Caller
from ingest.web.validate import first_problem
from local.move_in.rows import RefusedRow, Row
from rules.book.book import Books
from rules.engagement.events import IMPORTED, InputRefused
from rules.json_values import BadValue, parse_json
from rules.privacy.tombstones import user_subject

Body = dict[str, Any]
COLUMNS = ("user_id", "event_type", "occurred_at", "timezone", "idempotency_key", "source", "properties")
OPERATOR = Caller("operator", is_admin=True)
TAKEN = frozenset({"accepted", "duplicate"})  # statuses of events that the system has


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
