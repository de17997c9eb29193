"""What the lake holds: one declared schema per entity, and where an item's row belongs.

The publisher writes rows of this shape, curation checks them, the warehouse's tables have the same columns.
A schema only grows: new fields are optional and come last, a type is only ever widened, and nothing
is renamed. What a row has beyond its schema is kept as JSON text in the column `extra`.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from rules.days import unstamp
from rules.engagement.ledger import OPENED_AT
from rules.lake.engagement_entities import (
    DAILY_ACTIVITY,
    EVENTS,
    FIRST_STORED,
    LEDGER,
    STREAKS,
    day_row,
    event_row,
    event_version,
    streak_row,
)
from rules.lake.kept.table_items import TABLE_ITEMS
from rules.lake.lead_entities import LEAD_EVENTS, LEAD_FEATURES, LEAD_MEMORY
from rules.lake.lead_rows import lead_event_row, lead_features_row, lead_memory_row
from rules.lake.question_entities import (
    ANSWER_STATS,
    NOTIFICATIONS,
    QUESTIONS,
    RESPONSES,
    answer_stats_row,
    notification_row,
    question_row,
    response_row,
)
from rules.lake.rule_entities import RULES, rule_rows
from rules.lake.schema import EXTRA, Entity, Field, Type
from rules.leads.lead_events import TYPE_KEY

__all__ = [
    "ANSWER_STATS",
    "DAILY_ACTIVITY",
    "ENTITIES",
    "EVENTS",
    "EXTRA",
    "FIRST_STORED",
    "LEAD_EVENTS",
    "LEAD_FEATURES",
    "LEAD_MEMORY",
    "LEDGER",
    "LEFT_OUT",
    "LOADED",
    "NOTIFICATIONS",
    "QUESTIONS",
    "RENAMED",
    "RESPONSES",
    "RULES",
    "STREAKS",
    "TABLE_ITEMS",
    "Entity",
    "Field",
    "Type",
    "Unplaceable",
    "event_version",
    "row_of",
    "rows_of",
]

ENTITIES = {
    entity.name: entity
    for entity in (
        *(EVENTS, DAILY_ACTIVITY, LEDGER, STREAKS),
        *(LEAD_EVENTS, LEAD_MEMORY, LEAD_FEATURES),
        *(QUESTIONS, RESPONSES, ANSWER_STATS, NOTIFICATIONS),
        *(RULES, TABLE_ITEMS),
    )
}
# Those that the warehouse, the Glue catalog and analysts have.
LOADED = {name: entity for name, entity in ENTITIES.items() if entity.in_warehouse}

# Table attributes whose columns have another name, and those that are not columns at all.
RENAMED: dict[str, dict[str, str]] = {
    "events": {"occurred_at": "occurred_local"},
    "daily_activity": {},
    "ledger": {},
    "streaks": {"streak_updated_at": "updated_at"},
    "lead_events": {},
    "lead_memory": {},
    "lead_features": {},
    "questions": {"type": "question_type"},
    "responses": {"type": "question_type", "fingerprint_hash": "person"},
    "answer_stats": {
        "fingerprint_hash": "person",
        "created_at": "first_answer_at",
        "newest_at": "newest_answer_at",
    },
    "notifications": {},
    "rules": {},
    "table_items": {},
}
LEFT_OUT: dict[str, set[str]] = {
    "events": {"ttl", "by_server"},
    "daily_activity": {"last_event_id", "passive_events", "lots", "measures", "reversed_events"},
    "ledger": {"active", "reversed_by", "folded", "applied_through", "chain"},
    "streaks": {
        *("recent_tz_changes", "observed_zone", "observed_at", "zones_seen", "skews_seen", "amnesties"),
        "backfilled",
        *("review_state", "review_since", "review_evidence", "released_at", "alias", "applied_through"),
        *("streak_checkpoints", "holds"),
        *("expiry_shard", "expires_next", "expiry_settled_on", "expiry_settled_points"),
        *("past_entry", "chain"),
    },
    # raw_payload may hold what people wrote (rule 10).
    "lead_events": {TYPE_KEY, "raw_payload"},
    "lead_memory": {"evidence"},
    "lead_features": {"active_shard", "added", "pending", "regrouped"},
    "questions": {"expires_at", "body_hash", "idempotency_key"},
    # What could name a person or tell their other hashes stays in the table.
    "responses": {"response_id", "older_hashes", "upcoming_hashes", "zone", "timezone", "counted_at"},
    "answer_stats": {
        *("_leaderboard", "older_hashes", "zone", "days", "settled", "badge_days", "category_days"),
    },
    "notifications": {"active", "last_notified_at", "expires_at"},
    "rules": {"book"},
    "table_items": set(),
}
Row = dict[str, Any]
SHAPED: dict[str, Callable[[Row, datetime, str], Row]] = {
    "events": lambda row, _, change: event_row(row, change),
    "daily_activity": lambda row, *_: day_row(row),
    "streaks": lambda row, *_: streak_row(row),
    "lead_events": lambda row, *_: lead_event_row(row),
    "lead_memory": lambda row, arrived, _: lead_memory_row(row, arrived),
    "lead_features": lambda row, arrived, _: lead_features_row(row, arrived),
    "questions": question_row,
    "responses": lambda row, *_: response_row(row),
    "answer_stats": lambda row, *_: answer_stats_row(row),
    "notifications": lambda row, _, change: notification_row(row, change),
}
# An item of most tables is one row. One of these is several, whose attributes are told here.
EXPANDED: dict[str, Callable[[Mapping[str, Any], datetime], Iterable[Row]]] = {"rules": rule_rows}


class Unplaceable(ValueError):
    """An item has no time that places its row. The text names the attribute at fault and the reason."""


def rows_of(
    entity: Entity, attributes: Mapping[str, Any], arrived: datetime, change: str = FIRST_STORED
) -> list[dict[str, Any]]:
    """Return the rows that a table item is in the lake: usually one. Arguments and errors: see row_of.

    Raises KeyError, TypeError or ValueError too, for an item that should be several rows and cannot be read.
    """
    expanded = EXPANDED.get(entity.name)
    each_of = expanded(attributes, arrived) if expanded else [attributes]
    return [row_of(entity, each, arrived, change) for each in each_of]


def row_of(
    entity: Entity, attributes: Mapping[str, Any], arrived: datetime, change: str = FIRST_STORED
) -> dict[str, Any]:
    """Return a table item as a row of the lake, with the partition (dt, hour) that it belongs to.

    arrived: when the change came into the stream. It places an account's opening entry, which has no time of
    its own. change: the place of the change (event_version), FIRST_STORED for an item as it was first stored.
    row_of does not check values: curation does, and quarantines a row that fails. Raises Unplaceable for an
    item without a time.
    """
    renamed, left_out = RENAMED[entity.name], LEFT_OUT[entity.name]
    row = {renamed.get(name, name): value for name, value in attributes.items() if name not in left_out}
    if entity.name in SHAPED:
        row = SHAPED[entity.name](row, arrived, change)
    row = {name: _flat(value) for name, value in row.items()}
    moment = _place(entity, row.get(entity.occurred), arrived)
    # Columns come in the schema's order, because curation reads lines of one shape fastest.
    known = {field.name: row.pop(field.name) for field in entity.fields if field.name in row}
    return {**known, **row, "dt": moment.strftime("%Y-%m-%d"), "hour": moment.strftime("%H")}


def _place(entity: Entity, place: Any, arrived: datetime) -> datetime:
    if entity is LEDGER and place == OPENED_AT:
        return arrived
    try:
        return unstamp(str(place))
    except ValueError:
        raise Unplaceable(f"{entity.occurred} is no time: {place!r}") from None


def _flat(value: Any) -> Any:
    """Make a list text separated by commas (its texts have none), without nulls, and a map JSON text."""
    if isinstance(value, list):
        return ",".join(str(each) for each in value if each is not None)
    if isinstance(value, Mapping):
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return value
