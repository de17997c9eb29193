"""Events of leads and questions as their tables have them, from the lake's rows (rule 21).

What the lake leaves out on purpose stays out: an integration's own words, and digests of bodies.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from adapters.leads.lead_event_store import CLAIM_KEY
from adapters.platform.items import Item, item
from rules.days import stamp, unstamp
from rules.leads.lead_events import SORT_KEY, TYPE_KEY, LeadEvent
from rules.questions.questions import KEPT, UNKNOWN, Question, QuestionStatus, QuestionType
from rules.questions.questions import to_item as question_attributes

Row = Mapping[str, Any]
AS_IN_TABLE = (
    *("lead_organization_id", "organization_id", "root_id", "source", "source_type", "external_event_id"),
    *("event_type", "payload", "object_id", "object_id_ref", "raw_payload_ref"),
)


def lead_event_item(row: Row) -> Item:
    """Return a lead's event as the table Event has it, without its raw payload.

    It is not read, so one that the live path could not read comes back as it was.
    """
    occurred_at = stamp(row["occurred_at"])
    told = {name: row[name] for name in AS_IN_TABLE}
    keys = {SORT_KEY: f"{occurred_at}#{row['event_id']}", TYPE_KEY: f"{row['event_type']}#{occurred_at}"}
    return item({**told, **keys, "occurred_at": occurred_at, "received_at": stamp(row["received_at"])})


def lead_claim_item(row: Row) -> Item:
    """Return the claim of an event's external id. It has no digest: whatever comes under it is a duplicate.

    Of an order, which has a state in its claim, it is a claim without one: what comes is kept as a conflict.
    """
    return item(
        {
            "user_id": f"{row['source']}#{row['external_event_id']}",
            "idempotency_key": CLAIM_KEY,
            "target": f"{row['lead_organization_id']}#{stamp(row['occurred_at'])}#{row['event_id']}",
            "created_at": stamp(row["received_at"]),
        }
    )


def lead_event_of(row: Row) -> LeadEvent:
    """Return whose event a row is, for whoever asks for tombstones. Its payload is read if it can be."""
    try:
        payload = json.loads(row["payload"])
    except ValueError:
        payload = {}
    texts = {name: row[name] for name in AS_IN_TABLE if name != "payload"}
    at = {name: stamp(row[name]) for name in ("occurred_at", "received_at")}
    return LeadEvent(**texts, **at, payload=payload if isinstance(payload, dict) else {})


def question_item(row: Row, answers: int, until: datetime) -> Item:
    """Return a question as the table has it before an instant. answers: how many it had by then.

    It has neither the key nor a digest of what was asked: whoever asks again under its key is told of it.
    """
    closes_at = stamp(row["closes_at"])
    found = Question(
        question_id=row["question_id"],
        agent_id=row["agent_id"],
        type=QuestionType(row["question_type"]),
        prompt=row["prompt"],
        options=tuple(json.loads(row["options"] or "[]")),
        audience=tuple(filter(None, (row["audience"] or "").split(","))),
        category=row["category"],
        required_responses=row["required_responses"],
        current_responses=answers,
        status=QuestionStatus(row["status"]),
        created_at=stamp(row["created_at"]),
        closes_at=closes_at,
        expires_at=int((unstamp(closes_at) + KEPT).timestamp()),
        body_hash=UNKNOWN,
        idempotency_key=UNKNOWN,
        closed_at=stamp(row["closed_at"]) if row["closed_at"] else None,
    )
    is_later = row["closed_at"] is not None and row["closed_at"] >= until
    if is_later or (found.status is QuestionStatus.EXPIRED and row["closes_at"] >= until):
        found = replace(found, status=QuestionStatus.OPEN, closed_at=None)
    return item(question_attributes(found))
