"""The lake's copies of table items: whether a copy is complete, and the item made from a copy (rule 22)."""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from rules.days import stamp
from rules.lake.entities import EVENTS, Unplaceable, row_of
from rules.lake.schema import EXTRA, Entity
from rules.lake.valid_row import RowRefused, read_row

# Takes the place of the time at which an item came into the stream, which is not known here. Only items
# without a time of their own need that time, and such items do not leave their table.
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
LAKE_ONLY = frozenset({EXTRA, EVENTS.version, EVENTS.occurred})


def is_in_lake(entity: Entity, attributes: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether a row of the lake has all values of an item. The version is not compared.

    attributes: of the table's item, as Python values. row: of a curated file. The item is made into a row as
    the publisher does it, and the row is read as curation reads it. An item that curation would refuse is not
    in the lake.
    """
    try:
        raw_row = row_of(entity, attributes, NEVER)
        line = json.dumps(raw_row, separators=(",", ":")).encode()
        expected = read_row(line, entity, raw_row["dt"], raw_row["hour"])
    except (Unplaceable, RowRefused, KeyError, TypeError, ValueError):
        return False
    names = [*(field.name for field in entity.fields if field.name != entity.version), EXTRA]
    return all(expected.get(name) == row.get(name) for name in names)


def event_item(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of an event's item, made from its row. ttl and by_server are not in the lake."""
    attributes = {field.name: field.attribute for field in EVENTS.fields if field.attribute}
    values = {name: value for name, value in row.items() if name not in LAKE_ONLY and value is not None}
    return {attributes.get(name, name): _item_value(value) for name, value in values.items()}


def _item_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return stamp(value)
    return value.isoformat() if isinstance(value, date) else value
