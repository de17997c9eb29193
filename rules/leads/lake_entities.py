"""The entities of leads: events, memory and features; and how items become rows.

In this order: events, memory, features; what rows of memory and of features share.

A lead's state is text in the lake, which SQL can fold at any instant. The state of a series has
`count:amount:priced:first:last`, then `date:count:amount` for each date that a window may need. The state of
campaigns has the number of campaigns without a reaction, then the date on which each was sent. Example:
`1 2026-01-10`.
"""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from rules.days import stamp
from rules.lake.schema import INSERTS, Entity, Field, PublishedTable, Required, Row, StagedColumn, Type
from rules.leads.feature_items import DECLARED, DIGEST
from rules.leads.features import DECIMALS, FEATURES, Contact, Feature, Input, Unit
from rules.leads.lead_events import (
    CAMPAIGN_TYPES,
    IDENTITY_TYPES,
    PURCHASE_TYPES,
    SENTIMENT_TYPES,
    SORT_KEY,
    TYPE_KEY,
    LeadEvent,
    MalformedLeadEvent,
    from_item,
    groups_of,
)
from rules.leads.series import SERIES_INPUTS, Series, contributions, decode_contacts, decode_series
from rules.parts import Part

TEXT, INTEGER, BOOLEAN, DATE, TIMESTAMP = Type
MEMORY_KEY = "memory_type#key"
CONFIDENCE_DECIMALS = 3
# A column keeps its position for good. When the states' columns were added, there were so many features.
FEATURES_BEFORE_STATES = 14
# The values of a payload that have a column: name, type, and the event types that have it.
PAYLOAD_COLUMNS = (
    ("amount_minor", int, PURCHASE_TYPES),
    ("foreign_minor", int, PURCHASE_TYPES),
    ("order_id", str, PURCHASE_TYPES),
    ("currency", str, PURCHASE_TYPES),
    ("sentiment_milli", int, SENTIMENT_TYPES),
    ("campaign_id", str, CAMPAIGN_TYPES),
)


def lead_event_row(row: Row, *_: object) -> Row:
    """Add the event's id, which is a part of its sort key, and the payload's values as columns.

    The payload is read by the live path's own rules. If they refuse it, `unreadable` has the reason. So
    features are computed from the lake without JSON, and without the events that the live path has skipped.
    """
    shaped = dict(row)
    shaped["event_id"] = str(shaped.pop(SORT_KEY, "")).partition("#")[2]
    try:
        return shaped | _payload_values(from_item(row))
    except MalformedLeadEvent as error:
        return shaped | {"unreadable": str(error)}


def _payload_values(event: LeadEvent) -> dict[str, Any]:
    """Return the payload's values that features need; raises MalformedLeadEvent."""
    contributions(event)  # raises for a payload that the live path refuses
    if event.event_type in IDENTITY_TYPES:
        number, groups = groups_of(event)
        members = [[group.root, *(leaf for leaf in group.leaves if leaf != group.root)] for group in groups]
        return {"change_number": number, "change_groups": json.dumps(members)}
    payload = event.payload
    return {
        name: payload[name]
        for name, kind, types in PAYLOAD_COLUMNS
        if event.event_type in types and type(payload.get(name)) is kind and payload[name] != ""
    }


LEAD_EVENTS = Entity(
    "lead_events",
    "One row per event of a lead; events never change.",
    (
        Required("lead_organization_id", TEXT, "the leaf that the event belongs to, for good", 128),
        Required("event_id", TEXT, "a uuid, the same at every attempt to send it", 64),
        Required("organization_id", TEXT, "the organization", 256),
        Required("root_id", TEXT, "the root of that leaf when the event was stored", 128),
        Required("source", TEXT, "organization/integration, within which external_event_id is unique", 512),
        Required("source_type", TEXT, "the decoder that read it", 128),
        Required("external_event_id", TEXT, "the integration's own id", 2048),
        Required("event_type", TEXT, "a type of rules/leads/lead_events.py", 64),
        Required("occurred_at", TIMESTAMP, "when it happened"),
        Required("received_at", TIMESTAMP, "when it was received"),
        Field("object_id", TEXT, "its subject: an order, a message, a campaign", 2048),
        Field("object_id_ref", TEXT, "the kind of its subject", 512),
        Required("payload", TEXT, "what rules/leads/lead_events.py lists for its type, JSON text"),
        Field("raw_payload_ref", TEXT, "where the whole webhook is, if it is large: an s3:// URL", 1024),
        Field(
            "unreadable", TEXT, "why live processing could not read it; then all fields below are empty", 2048
        ),
        Field("amount_minor", INTEGER, "orders and refunds: the amount in minor units, not below 0"),
        Field("order_id", TEXT, "orders and refunds: the order", 2048),
        Field("currency", TEXT, "orders and refunds: currency of the amount", 2048),
        Field("sentiment_milli", INTEGER, "messages and forms: sentiment in thousandths, -1000 to 1000"),
        Field("campaign_id", TEXT, "campaign events: the campaign", 2048),
        Field("change_number", INTEGER, "merges: number of the change; the highest is the present state"),
        Field("change_groups", TEXT, "merges: roots with the leaves that they got, a JSON list of lists"),
        Field("foreign_minor", INTEGER, "in place of amount_minor if the currency is not the organization's"),
    ),
    key=("source", "external_event_id"),
    occurred="occurred_at",
    spread="lead_organization_id",
    # raw_payload may hold what people wrote (rule 10).
    left_out=frozenset({TYPE_KEY, "raw_payload"}),
    shape=lead_event_row,
    part=Part.LEADS,
    published=PublishedTable("Event", "PublishLeadEventsMapping", INSERTS),
)


def lead_memory_row(row: Row, arrived: datetime, *_: object) -> Row:
    """Split the sort key; make the value JSON text, and the confidence whole thousandths.

    arrived: when the change came into the stream; stands in for a missing updated_at.
    """
    shaped = {"updated_at": stamp(arrived), **row}
    kind, key = str(shaped.pop(MEMORY_KEY, "")).partition("#")[::2]
    shaped |= {"memory_type": kind, "memory_key": key}
    if "value" in shaped:
        shaped["value"] = _json_text(shaped["value"])
    if "confidence" in shaped:
        shaped["confidence_milli"] = scaled_integer(shaped.pop("confidence"), CONFIDENCE_DECIMALS)
    if type(expiry := shaped.get("expires_at")) is int:
        shaped["expires_at"] = stamp(datetime.fromtimestamp(expiry, UTC))
    return shaped


def _json_text(value: Any) -> str:
    """Return JSON text of a table's value, keys sorted; numbers with decimals as they were written."""
    number = _number(value)
    if number is not None:
        return number
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(name)}:{_json_text(value[name])}" for name in sorted(value))
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json_text, value)) + "]"
    return json.dumps(value)


LEAD_MEMORY = Entity(
    "lead_memory",
    "One row per version of something remembered about a lead.",
    (
        Required("lead_organization_id", TEXT, "the root that it was written for", 128),
        Required("memory_type", TEXT, "preference, purchase, sentiment and so on", 128),
        Required("memory_key", TEXT, "which memory of that type", 2048),
        Required("version", INTEGER, "grows with each write of this memory"),
        Field(
            "value", TEXT, "what is remembered, JSON text", staged=(StagedColumn("memory_value", '"value"'),)
        ),
        Field("confidence_milli", INTEGER, "how certain it is, in thousandths"),
        Field("source", TEXT, "the source of its newest evidence", 512),
        Field("source_event_ids", TEXT, "the events that prove it, separated by commas"),
        Field("created_at", TIMESTAMP, "the time of its earliest evidence, even if deleted"),
        Required("updated_at", TIMESTAMP, "the time of its newest evidence, or of its withdrawal"),
        Field("expires_at", TIMESTAMP, "when it is forgotten; in the past if it was withdrawn"),
    ),
    key=("lead_organization_id", "memory_type", "memory_key", "version"),
    occurred="updated_at",
    spread="lead_organization_id",
    left_out=frozenset({"evidence"}),
    shape=lead_memory_row,
    part=Part.LEADS,
    published=PublishedTable("Memory", "PublishMemoryMapping"),
)


def lead_features_row(row: Row, arrived: datetime, *_: object) -> Row:
    """Give each value of the maps `features`, `as_of` and `inputs` its column.

    Undeclared values stay in the first two. arrived: when the change came into the stream, the same for every
    attempt. It becomes changed_at, because a merge changes items of leads without changing their computed_at.
    """
    shaped = row | {"changed_at": stamp(arrived)}
    values, moments = _pop_map(shaped, "features"), _pop_map(shaped, "as_of")
    for feature in FEATURES:
        if feature.name in values:
            value = values.pop(feature.name)
            shaped[column_of(feature)] = scaled_integer(value, DECIMALS.get(feature.unit, 0))
    for input_ in Input:
        if input_ in moments:
            shaped[as_of_column(input_)] = moments.pop(input_)
    states = states_of(shaped.pop("inputs", None))
    shaped |= {state_column(input_): text for input_, text in states.items()}
    undeclared = {"features": values, "as_of": moments}
    return shaped | {name: rest for name, rest in undeclared.items() if rest}


def _pop_map(row: dict[str, Any], name: str) -> dict[str, Any]:
    """Take a map out of a row. Anything else stays in the row, so that curation sees it."""
    return dict(row.pop(name)) if isinstance(row.get(name), Mapping) else {}


def states_of(inputs: Any) -> dict[Input, str]:
    """Return the state of each of an item's `inputs`; {} if it was computed by other declarations."""
    if not isinstance(inputs, Mapping) or inputs.get(DECLARED) != DIGEST:
        return {}
    states = {name: _series_state(decode_series(inputs[name])) for name in SERIES_INPUTS if name in inputs}
    if Input.CAMPAIGNS in inputs:
        states[Input.CAMPAIGNS] = _contacts_state(decode_contacts(inputs[Input.CAMPAIGNS]))
    return states


def _series_state(series: Series) -> str:
    """Return a series as text (see the module's docstring)."""
    totals = (series.count, series.amount, series.priced, _day(series.first), _day(series.last))
    entries = (f"{_day(day)}:{sums.number}:{sums.amount}" for day, sums in series.days.items())
    return " ".join((":".join(map(str, totals)), *entries))


def _contacts_state(contacts: list[Contact]) -> str:
    """Return the campaigns without a reaction as text (see the module's docstring)."""
    return " ".join((str(len(contacts)), *(_day(contact.sent or 0) for contact in contacts)))


def _day(day: int) -> str:
    return date.fromordinal(day).isoformat() if day else ""


def column_of(feature: Feature) -> str:
    """Return the name of a feature's column, with the unit at the end: `monetary_90d_minor`.

    Only amounts and thousandths have a unit in the name.
    """
    return f"{feature.name}_{feature.unit}" if feature.unit in DECIMALS else feature.name


def as_of_column(input_: Input) -> str:
    """Return the name of the column with the instant as of which an input's features were computed.

    Example: `purchases_as_of`.
    """
    return f"{input_}_as_of"


def state_column(input_: Input) -> str:
    """Return the name of the column that has an input's state."""
    return f"{input_}_state"


def _feature_fields() -> tuple[Field, ...]:
    """Return a column for each feature, in whole units so that sums are exact, and for each state."""
    features = [
        Field(column_of(feature), BOOLEAN if feature.unit is Unit.FLAG else INTEGER, feature.doc)
        for feature in FEATURES
    ]
    states = [
        Field(state_column(input_), TEXT, f"state of the features of {input_}, by date", 65535)
        for input_ in Input
    ]
    return (*features[:FEATURES_BEFORE_STATES], *states, *features[FEATURES_BEFORE_STATES:])


LEAD_FEATURES = Entity(
    "lead_features",
    "One row per version of a lead's features.",
    (
        Required("lead_organization_id", TEXT, "the root, or a merged leaf", 128),
        Required("version", INTEGER, "grows with each write of these features"),
        Required("changed_at", TIMESTAMP, "when this version was written"),
        Field("computed_at", TIMESTAMP, "the newest instant for which a feature was computed"),
        Field("merged_into", TEXT, "a merged leaf: its root, which has the features", 128),
        Field("leaves", TEXT, "only older rows: all leaves of a root, separated by commas"),
        Field("active_on", DATE, "the newest date that a window holds"),
        Field("topology", INTEGER, "number of its newest merge or reversal"),
        *(
            Field(as_of_column(name), TIMESTAMP, f"the instant for which features of {name} were computed")
            for name in Input
        ),
        *_feature_fields(),
    ),
    key=("lead_organization_id", "version"),
    occurred="changed_at",
    spread="lead_organization_id",
    left_out=frozenset({"active_shard", "added", "pending", "regrouped"}),
    shape=lead_features_row,
    part=Part.LEADS,
    published=PublishedTable("Feature", "PublishFeaturesMapping"),
)


def scaled_integer(value: Any, decimals: int) -> Any:
    """Return a number as a whole number of its smallest unit, exactly; any other value as it is.

    Example: {"N": "11.77"} with 2 decimals is 1177. That is the table's wire format of a number with
    decimals. A number with more decimals than its unit has becomes text: curation quarantines it, with the
    reason.
    """
    text = _number(value)
    if text is None:
        return value
    try:
        scaled = Decimal(text).scaleb(decimals)
    except InvalidOperation:
        return text
    return int(scaled) if scaled == scaled.to_integral_value() else text


def _number(value: Any) -> str | None:
    """Return the digits of a table's number; None for any other value."""
    if isinstance(value, Mapping) and set(value) == {"N"}:
        return str(value["N"])
    return str(value) if type(value) is int else None


ENTITIES = (LEAD_EVENTS, LEAD_MEMORY, LEAD_FEATURES)
