"""A row of the lake as the attributes of the item that it was made of."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from rules.days import stamp
from rules.lake.entities import EVENTS, RENAMED
from rules.lake.schema import EXTRA

OF_THE_LAKE = frozenset({EXTRA, EVENTS.version, EVENTS.occurred})


def event_item(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event's attributes, but for those that the lake does not have (ttl, by_server)."""
    names = {column: attribute for attribute, column in RENAMED["events"].items()}
    told = {name: each for name, each in row.items() if name not in OF_THE_LAKE and each is not None}
    return {names.get(name, name): _told(each) for name, each in told.items()}


def _told(value: Any) -> Any:
    if isinstance(value, datetime):
        return stamp(value)
    return value.isoformat() if isinstance(value, date) else value
