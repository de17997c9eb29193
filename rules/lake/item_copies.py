"""What the lake has of a table's item: the proof before it leaves the table, and what it was (rule 22); and
which curated files may be deleted when they are old.
"""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from rules.days import stamp
from rules.lake.entities import EVENTS, Unplaceable, row_of
from rules.lake.schema import EXTRA, Entity
from rules.lake.valid_row import RowRefused, read_row

# It places an item without a time of its own alone, and such items do not leave.
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
LAKE_ONLY = frozenset({EXTRA, EVENTS.version, EVENTS.occurred})


def is_in_lake(entity: Entity, attributes: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether a row of the lake has all that an item has, but for the number of its change.

    attributes: of the table's item, as Python values. row: of a curated file. The item is made a row as the
    publisher makes it, and read as curation reads it; an item that would be refused is not held.
    """
    try:
        raw_row = row_of(entity, attributes, NEVER)
        line = json.dumps(raw_row, separators=(",", ":")).encode()
        wanted = read_row(line, entity, raw_row["dt"], raw_row["hour"])
    except (Unplaceable, RowRefused, KeyError, TypeError, ValueError):
        return False
    names = [*(field.name for field in entity.fields if field.name != entity.version), EXTRA]
    return all(wanted.get(name) == row.get(name) for name in names)


def event_item(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event's attributes, but for those that the lake does not have (ttl, by_server)."""
    names = {field.name: field.attribute for field in EVENTS.fields if field.attribute}
    values = {name: each for name, each in row.items() if name not in LAKE_ONLY and each is not None}
    return {names.get(name, name): _item_value(each) for name, each in values.items()}


def _item_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return stamp(value)
    return value.isoformat() if isinstance(value, date) else value
