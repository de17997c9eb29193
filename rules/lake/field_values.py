"""What a valid value of a field is, and the reason if it is none."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from rules.days import parse_moment
from rules.lake.schema import Field, Type

DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1
SHOWN_MAX = 80  # characters of a value in a reason
UTF8_BYTES_MAX = 4  # of a character


class RowRefused(ValueError):
    """A line that is no row of its partition; the text says which field and why."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number outside the schema, kept as it was written."""

    text: str


def checked(field: Field, value: Any) -> Any:
    """Return a field's value, None if it is null; raises RowRefused."""
    if value is None:
        if field.required:
            raise RowRefused(f"{field.name}: missing")
        return None
    try:
        found = READERS[field.type](value)
        if field.type is Type.TEXT:
            check_size(found, field.bytes_max)
        return found
    except ValueError as error:
        raise RowRefused(f"{field.name}: {error}: {shown(value)}") from None


def shown(value: Any) -> str:
    """Return the beginning of a value, as JSON, for a reason."""
    text = value.text if isinstance(value, Number) else json.dumps(value, default=lambda each: each.text)
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "..."


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise RowRefused("not text")
    if "\0" in value:
        raise RowRefused("holds a NUL, which the warehouse cannot")
    return value


def check_size(text: str, bytes_max: int) -> None:
    """Raise RowRefused for a text that its column in the warehouse cannot hold: Redshift counts bytes."""
    size = len(text.encode()) if len(text) * UTF8_BYTES_MAX > bytes_max else 0
    if size > bytes_max:
        raise RowRefused(f"{size} bytes, and its column holds {bytes_max}")


def _whole(value: Any) -> int:
    if isinstance(value, Number) and not value.text.lstrip("-").isdigit():
        raise RowRefused("not an integer")
    if isinstance(value, Number) or (type(value) is int and not INTEGER_MIN <= value <= INTEGER_MAX):
        raise RowRefused("beyond 64 bits")
    if type(value) is not int:
        raise RowRefused("not an integer")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise RowRefused("not a boolean")
    return value


def _date(value: Any) -> date:
    if not isinstance(value, str) or DATE.fullmatch(value) is None:
        raise RowRefused("not a date")
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise RowRefused("not a date that exists") from None


def _timestamp(value: Any) -> datetime:
    if not isinstance(value, str):
        raise RowRefused("not a timestamp")
    return parse_moment(value).utc


READERS: dict[Type, Callable[[Any], Any]] = {
    Type.TEXT: _text,
    Type.INTEGER: _whole,
    Type.BOOLEAN: _boolean,
    Type.DATE: _date,
    Type.TIMESTAMP: _timestamp,
}
