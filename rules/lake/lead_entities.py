"""The leads' side of the lake: their events, memory and features; and how their items become rows.

Memory and features are kept in every written version, as streaks are. Were the version no part of the key,
versions of one key would lie in several hours, and a file holds one of each key within its hour only; and
what was known at an earlier time could not be asked for. A version of features lies at the time of its own
change, one of memory at that of its newest evidence, which no attempt to publish it changes.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from rules.days import stamp
from rules.lake.schema import Entity, Field, Type
from rules.leads.features import DECIMALS, FEATURES, Feature, Input, Unit
from rules.leads.lead_events import (
    CAMPAIGN_TYPES,
    IDENTITY_TYPES,
    PURCHASE_TYPES,
    SENTIMENT_TYPES,
    SORT_KEY,
    LeadEvent,
    MalformedLeadEvent,
    from_item,
    groups_of,
)
from rules.leads.series import contributions

TEXT, INTEGER, BOOLEAN, DATE, TIMESTAMP = Type
MEMORY_KEY = "memory_type#key"
CONFIDENCE_DECIMALS = 3
# What of a payload has a column: its type here, and of which events.
READ_OF = (
    ("amount_minor", int, PURCHASE_TYPES),
    ("order_id", str, PURCHASE_TYPES),
    ("currency", str, PURCHASE_TYPES),
    ("sentiment_milli", int, SENTIMENT_TYPES),
    ("campaign_id", str, CAMPAIGN_TYPES),
)

LEAD_EVENTS = Entity(
    "lead_events",
    (
        Field("lead_organization_id", TEXT, "the leaf whose event it is, for good", True),
        Field("event_id", TEXT, "a uuid, the same for every attempt to send it", True),
        Field("organization_id", TEXT, "the organization", True),
        Field("root_id", TEXT, "the root of that leaf when the event was stored", True),
        Field("source", TEXT, "organization/integration: the scope of external_event_id", True),
        Field("source_type", TEXT, "the decoder that read it", True),
        Field("external_event_id", TEXT, "the integration's own id", True),
        Field("event_type", TEXT, "a type of rules/leads/lead_events.py", True),
        Field("occurred_at", TIMESTAMP, "when it happened", True),
        Field("received_at", TIMESTAMP, "when it was received", True),
        Field("object_id", TEXT, "what it is about: an order, a message, a campaign"),
        Field("object_id_ref", TEXT, "what kind of thing that is"),
        Field("payload", TEXT, "what rules/leads/lead_events.py lists for its type, JSON text", True),
        Field("raw_payload_ref", TEXT, "where the integration's own words are, if large: an s3:// URL"),
        Field("unreadable", TEXT, "why nothing follows from it, as the live path said; then, none of these:"),
        Field("amount_minor", INTEGER, "orders and refunds: the amount in minor units, as sent, not below 0"),
        Field("order_id", TEXT, "orders and refunds: the order"),
        Field("currency", TEXT, "orders and refunds: currency of the amount"),
        Field("sentiment_milli", INTEGER, "messages and forms: sentiment in thousandths, -1000 to 1000"),
        Field("campaign_id", TEXT, "campaign events: the campaign"),
        Field("change_number", INTEGER, "merges: number of the change; of two, the higher one holds"),
        Field("change_groups", TEXT, "merges: leaves of each group after it, JSON text: lists in a list"),
    ),
    key=("source", "external_event_id"),
    occurred="occurred_at",
    order=("source", "external_event_id"),
)

LEAD_MEMORY = Entity(
    "lead_memory",
    (
        Field("lead_organization_id", TEXT, "the root that it was written for", True),
        Field("memory_type", TEXT, "preference, purchase, sentiment and so on", True),
        Field("memory_key", TEXT, "which one of that type", True),
        Field("version", INTEGER, "counts the writes of this memory", True),
        Field("value", TEXT, "what is remembered, JSON text"),
        Field("confidence_milli", INTEGER, "how sure it is, in thousandths"),
        Field("source", TEXT, "where it was learnt"),
        Field("source_event_ids", TEXT, "the events that it follows from, separated by commas"),
        Field("created_at", TIMESTAMP, "when it was first written"),
        Field(
            "updated_at",
            TIMESTAMP,
            "the time of its newest evidence; of one without, when it was written",
            True,
        ),
        Field("expires_at", TIMESTAMP, "when it is forgotten; in the past once it was withdrawn"),
    ),
    key=("lead_organization_id", "memory_type", "memory_key", "version"),
    occurred="updated_at",
    order=("lead_organization_id", "memory_type", "memory_key", "version"),
)


def column_of(feature: Feature) -> str:
    """Return the name of a feature's column: amounts and thousandths have their unit at the end."""
    return f"{feature.name}_{feature.unit}" if feature.unit in DECIMALS else feature.name


def as_of_column(input_: Input) -> str:
    """Return the name of the column that tells as of when the features of an input were computed."""
    return f"{input_}_as_of"


def _feature_fields() -> tuple[Field, ...]:
    """One column a feature: in whole units, so that sums and comparisons are exact."""
    return tuple(
        Field(column_of(each), BOOLEAN if each.unit is Unit.FLAG else INTEGER, each.doc) for each in FEATURES
    )


LEAD_FEATURES = Entity(
    "lead_features",
    (
        Field("lead_organization_id", TEXT, "the root, or a leaf that was absorbed", True),
        Field("version", INTEGER, "counts the writes of this lead's features", True),
        Field("changed_at", TIMESTAMP, "when this version was written", True),
        Field("computed_at", TIMESTAMP, "as of when anything was computed last"),
        Field("merged_into", TEXT, "the root that absorbed this leaf: it has no features of its own"),
        Field("leaves", TEXT, "of a root with several: all of them, separated by commas"),
        Field("active_on", DATE, "the date of the lead's last activity"),
        Field("topology", INTEGER, "number of the change that last merged or unmerged it"),
        *(Field(as_of_column(each), TIMESTAMP, f"as of when {each} were computed") for each in Input),
        *_feature_fields(),
    ),
    key=("lead_organization_id", "version"),
    occurred="changed_at",
    order=("lead_organization_id", "version"),
)


def lead_event_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Cut the event's id out of its sort key, and read the payload: by the live path's own rules, here only.

    Whoever computes features from the lake needs no JSON, and skips what the live path has skipped.
    """
    shaped = dict(row)
    shaped["event_id"] = str(shaped.pop(SORT_KEY, "")).partition("#")[2]
    try:
        return shaped | _read(from_item(row))
    except MalformedLeadEvent as error:
        return shaped | {"unreadable": str(error)}


def _read(event: LeadEvent) -> dict[str, Any]:
    """Return what features need of a payload; raises MalformedLeadEvent."""
    contributions(event)
    if event.event_type in IDENTITY_TYPES:
        number, groups = groups_of(event)
        return {"change_number": number, "change_groups": json.dumps([each.leaves for each in groups])}
    given = event.payload
    return {
        name: given[name]
        for name, kind, types in READ_OF
        if event.event_type in types and type(given.get(name)) is kind and given[name] != ""
    }


def lead_memory_row(row: Mapping[str, Any], arrived: datetime) -> dict[str, Any]:
    """Split the sort key; values of any type become JSON text, confidence whole thousandths."""
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
    """Spread the maps `features` and `as_of` over their columns; what is not declared stays in them.

    arrived: when its change came into the stream, the same for every attempt. computed_at would not do:
    merging leads changes their items and computes nothing.
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
    rest = {"features": values, "as_of": moments}
    return shaped | {name: left for name, left in rest.items() if left}


def _taken(row: dict[str, Any], name: str) -> dict[str, Any]:
    """Take a map out of a row; anything else stays, to be seen."""
    return dict(row.pop(name)) if isinstance(row.get(name), Mapping) else {}


def scaled(value: Any, decimals: int) -> Any:
    """Return a number as a whole number of its smallest unit, exactly; what is none stays as it is.

    Numbers with decimals come in the table's wire format, {"N": "11.77"}. One with more decimals than
    its unit has stays as text: curation refuses it, and keeps it with the reason.
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
