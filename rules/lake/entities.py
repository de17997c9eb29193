"""The entities of the lake: a declared schema for each; how items become rows, and events' rows items again.

The publisher writes rows of this shape, curation checks them, the warehouse's tables have the same columns.
A schema only grows: new fields are optional and come last, a type is only ever widened, and nothing
is renamed. What a row has beyond its schema is kept as JSON text in the column `extra`.
"""

import json
from collections.abc import Collection, Mapping
from datetime import date, datetime
from typing import Any

from rules.days import EPOCH, stamp, unstamp
from rules.engagement.ledger import OPENED_AT
from rules.lake.engagement_entities import (
    DAILY_ACTIVITY,
    EVENTS,
    FIRST_STORED,
    FRIENDSHIPS,
    LEAGUE_RESULTS,
    LEDGER,
    STREAKS,
    USER_GOALS,
    event_version,
)
from rules.lake.rule_entities import RULES
from rules.lake.schema import EXTRA, Entity, Field, Type
from rules.lake.table_items import TABLE_ITEMS
from rules.lake.valid_row import RowRefused, read_row
from rules.parts import Part, is_deployed, said

__all__ = [
    "DAILY_ACTIVITY",
    "ENTITIES",
    "EVENTS",
    "EXTRA",
    "FIRST_STORED",
    "FRIENDSHIPS",
    "LEAGUE_RESULTS",
    "LEDGER",
    "LOADED",
    "RULES",
    "STREAKS",
    "TABLE_ITEMS",
    "USER_GOALS",
    "Entity",
    "Field",
    "Type",
    "Unplaceable",
    "event_item",
    "event_version",
    "is_in_lake",
    "loaded_entities",
    "row_of",
    "rows_of",
]

ENTITIES: dict[str, Entity] = {
    entity.name: entity
    for entity in (
        *(EVENTS, DAILY_ACTIVITY, LEDGER, STREAKS, USER_GOALS, FRIENDSHIPS, LEAGUE_RESULTS),
        *(entity for entities in said("lake_entities") for entity in entities),
        *(RULES, TABLE_ITEMS),
    )
}
# Those that the warehouse, the Glue catalog and analysts have.
LOADED = {name: entity for name, entity in ENTITIES.items() if entity.in_warehouse}


def loaded_entities(deployed: Collection[Part]) -> dict[str, Entity]:
    """Return those of LOADED that a deployment with some parts has, by name."""
    return {name: entity for name, entity in LOADED.items() if is_deployed(entity.part, deployed)}


class Unplaceable(ValueError):
    """An item has no time that places its row. The text names the attribute at fault and the reason."""


def rows_of(
    entity: Entity, attributes: Mapping[str, Any], arrived: datetime, change: str = FIRST_STORED
) -> list[dict[str, Any]]:
    """Return the rows that a table item is in the lake: usually one. Arguments and errors: see row_of.

    Raises KeyError, TypeError or ValueError too, for an item that should be several rows and cannot be read.
    """
    items = entity.expand(attributes, arrived) if entity.expand else [attributes]
    return [row_of(entity, item, arrived, change) for item in items]


def row_of(
    entity: Entity, attributes: Mapping[str, Any], arrived: datetime, change: str = FIRST_STORED
) -> dict[str, Any]:
    """Return a table item as a row of the lake, with the partition (dt, hour) that it belongs to.

    arrived: when the change came into the stream. It places an account's opening entry, which has no time of
    its own. change: the place of the change (event_version), FIRST_STORED for an item as it was first stored.
    row_of does not check values: curation does, and quarantines a row that fails. Raises Unplaceable for an
    item without a time.
    """
    columns = {field.attribute: field.name for field in entity.fields if field.attribute}
    row = {
        columns.get(name, name): value for name, value in attributes.items() if name not in entity.left_out
    }
    row = {name: _flat(value) for name, value in entity.shape(row, arrived, change).items()}
    occurred = row.get(entity.occurred)
    try:
        moment = arrived if entity is LEDGER and occurred == OPENED_AT else unstamp(str(occurred))
    except ValueError:
        raise Unplaceable(f"{entity.occurred} is no time: {occurred!r}") from None
    # Columns come in the schema's order, because curation reads lines of one shape fastest.
    ordered = {field.name: row.pop(field.name) for field in entity.fields if field.name in row}
    return {**ordered, **row, "dt": moment.strftime("%Y-%m-%d"), "hour": moment.strftime("%H")}


def _flat(value: Any) -> Any:
    """Return a value as one column has it: a list as texts with commas between them, a map as JSON text.

    Texts of lists have no commas. Nulls are left out.
    """
    if isinstance(value, list):
        return ",".join(str(item) for item in value if item is not None)
    if isinstance(value, Mapping):
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return value


def is_in_lake(entity: Entity, attributes: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether a row of the lake has all values of an item. The version is not compared.

    attributes: of the table's item, as Python values. row: of a curated file. The item is made into a row as
    the publisher does it, and the row is read as curation reads it. An item that curation would refuse is not
    in the lake.
    """
    try:
        # An item without a time of its own would lie where it arrived, but no such item leaves its table.
        raw_row = row_of(entity, attributes, EPOCH)
        line = json.dumps(raw_row, separators=(",", ":")).encode()
        expected = read_row(line, entity, raw_row["dt"], raw_row["hour"])
    except (Unplaceable, RowRefused, KeyError, TypeError, ValueError):
        return False
    names = [*(field.name for field in entity.fields if field.name != entity.version), EXTRA]
    return all(expected.get(name) == row.get(name) for name in names)


def event_item(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of an event's item, made from its row. ttl and by_server are not in the lake."""
    attributes = {field.name: field.attribute for field in EVENTS.fields if field.attribute}
    lake_only = (EXTRA, EVENTS.version, EVENTS.occurred)
    values = {name: value for name, value in row.items() if name not in lake_only and value is not None}
    return {attributes.get(name, name): _item_value(value) for name, value in values.items()}


def _item_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return stamp(value)
    return value.isoformat() if isinstance(value, date) else value
