"""How the items of leads become rows of the lake."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from rules.days import stamp
from rules.lake.lead_entities import as_of_column, column_of, state_column
from rules.lake.lead_states import states_of
from rules.leads.features import DECIMALS, FEATURES, Input
from rules.leads.lead_events import (
    CAMPAIGN_TYPES,
    IDENTITY_TYPES,
    PURCHASE_TYPES,
    SENTIMENT_TYPES,
    SORT_KEY,
    LeadEvent,
    MalformedLeadEvent,
    from_item,
)
from rules.leads.lead_groups import groups_of
from rules.leads.series import contributions

MEMORY_KEY = "memory_type#key"
CONFIDENCE_DECIMALS = 3
# The values of a payload that have a column: name, type, and the event types that have it.
READ_OF = (
    ("amount_minor", int, PURCHASE_TYPES),
    ("foreign_minor", int, PURCHASE_TYPES),
    ("order_id", str, PURCHASE_TYPES),
    ("currency", str, PURCHASE_TYPES),
    ("sentiment_milli", int, SENTIMENT_TYPES),
    ("campaign_id", str, CAMPAIGN_TYPES),
)


def lead_event_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Add the event's id, cut from its sort key, and the payload's values as columns.

    It reads the payload by the live path's own rules, and gives the reason in `unreadable` if they refuse. So
    whoever computes features from the lake needs no JSON, and skips what the live path has skipped.
    """
    shaped = dict(row)
    shaped["event_id"] = str(shaped.pop(SORT_KEY, "")).partition("#")[2]
    try:
        return shaped | _read(from_item(row))
    except MalformedLeadEvent as error:
        return shaped | {"unreadable": str(error)}


def _read(event: LeadEvent) -> dict[str, Any]:
    """Return the payload's values that features need; raises MalformedLeadEvent."""
    contributions(event)
    if event.event_type in IDENTITY_TYPES:
        number, groups = groups_of(event)
        told = [[each.root, *(leaf for leaf in each.leaves if leaf != each.root)] for each in groups]
        return {"change_number": number, "change_groups": json.dumps(told)}
    given = event.payload
    return {
        name: given[name]
        for name, kind, types in READ_OF
        if event.event_type in types and type(given.get(name)) is kind and given[name] != ""
    }


def lead_memory_row(row: Mapping[str, Any], arrived: datetime) -> dict[str, Any]:
    """Split the sort key; make the value JSON text, and the confidence whole thousandths.

    arrived: when the change came into the stream; stands in for a missing updated_at.
    """
    shaped = {"updated_at": stamp(arrived), **row}
    kind, _, key = str(shaped.pop(MEMORY_KEY, "")).partition("#")
    shaped |= {"memory_type": kind, "memory_key": key}
    if "value" in shaped:
        shaped["value"] = json_text(shaped["value"])
    if "confidence" in shaped:
        shaped["confidence_milli"] = scaled(shaped.pop("confidence"), CONFIDENCE_DECIMALS)
    if type(expiry := shaped.get("expires_at")) is int:
        shaped["expires_at"] = stamp(datetime.fromtimestamp(expiry, UTC))
    return shaped


def lead_features_row(row: dict[str, Any], arrived: datetime) -> dict[str, Any]:
    """Give each value of the maps `features`, `as_of` and `inputs` its column.

    Undeclared values stay in the first two.

    arrived: when the change came into the stream, the same for every attempt; it becomes changed_at.
    computed_at would not do, because a merge changes the items of leads without computing anything.
    """
    shaped = row | {"changed_at": stamp(arrived)}
    values, moments = _taken(shaped, "features"), _taken(shaped, "as_of")
    for feature in FEATURES:
        if feature.name in values:
            value = values.pop(feature.name)
            shaped[column_of(feature)] = scaled(value, DECIMALS.get(feature.unit, 0))
    for each in Input:
        if each in moments:
            shaped[as_of_column(each)] = moments.pop(each)
    shaped |= {state_column(each): text for each, text in states_of(shaped.pop("inputs", None)).items()}
    rest = {"features": values, "as_of": moments}
    return shaped | {name: left for name, left in rest.items() if left}


def _taken(row: dict[str, Any], name: str) -> dict[str, Any]:
    """Take a map out of a row. Anything else stays in the row, so that curation sees it."""
    return dict(row.pop(name)) if isinstance(row.get(name), Mapping) else {}


def scaled(value: Any, decimals: int) -> Any:
    """Return a number as a whole number of its smallest unit, exactly; any other value as it is.

    Example: {"N": "11.77"} with 2 decimals is 1177. That is the table's wire format of a number with
    decimals. A number with more decimals than its unit has becomes text: curation quarantines it, with the
    reason.
    """
    text = _number(value)
    if text is None:
        return value
    try:
        found = Decimal(text).scaleb(decimals)
    except InvalidOperation:
        return text
    return int(found) if found == found.to_integral_value() else text


def _number(value: Any) -> str | None:
    if isinstance(value, Mapping) and set(value) == {"N"}:
        return str(value["N"])
    return str(value) if type(value) is int else None


def json_text(value: Any) -> str:
    """Return JSON text of a table's value, keys sorted; numbers with decimals as they were written."""
    number = _number(value)
    if number is not None:
        return number
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(name)}:{json_text(value[name])}" for name in sorted(value))
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    return json.dumps(value)
