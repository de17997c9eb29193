"""One line of raw NDJSON against the declared schema: its row, or the reason why it is refused.

This is what curation means by a valid row. line_pattern.py recognises most valid lines faster;
whatever it does not recognise comes here, so that it may refuse too much and never accept too much.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from analytics.lake.layout import Place
from rules.days import parse_moment
from rules.engagement.ledger import OPENED_AT
from rules.lake.entities import ENTITIES, EXTRA, Entity, Field, Type

PARTITION = ("dt", "hour")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1
SHOWN_MAX = 80  # characters of a value in a reason
OPENED = parse_moment(OPENED_AT).utc


class Refused(ValueError):
    """A line that is no row of its partition; the text says which field and why."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number outside the schema, kept as it was written."""

    text: str


def read_row(line: bytes, place: Place) -> dict[str, Any]:
    """Return the columns of a line found in an hour's raw object; raises Refused.

    None stands for a field that is null or absent. Of fields with one name the first counts.
    """
    fields = _object(line)
    entity = ENTITIES[place.entity]
    for name in PARTITION:
        _check_partition(fields, name, str(getattr(place, name)))
    row = {field.name: _value(field, fields.get(field.name)) for field in entity.fields}
    _check_moment(entity, row, place)
    try:
        return row | {EXTRA: _extra(entity, fields)}
    except RecursionError:
        raise Refused("not JSON: nested too deep") from None


def _object(line: bytes) -> dict[str, Any]:
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"not UTF-8: byte {error.start + 1}") from None
    try:
        value = json.loads(
            text, object_pairs_hook=_first, parse_float=_real, parse_int=_integer, parse_constant=_no_constant
        )
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False, default=str).encode()  # half a surrogate pair is no text
    except UnicodeEncodeError:
        raise Refused("not JSON: half of a surrogate pair") from None
    except RecursionError:
        raise Refused("not JSON: nested too deep") from None
    except ValueError as error:
        raise Refused(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Refused("not an object")
    return value


def _first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(reversed(pairs))


def _real(text: str) -> Number:
    return Number(text)


def _integer(text: str) -> int | Number:
    return int(text) if len(text) <= 20 else Number(text)


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON value")


def _check_partition(fields: Mapping[str, Any], name: str, expected: str) -> None:
    if name not in fields:
        raise Refused(f"{name}: missing")
    if fields[name] != expected:
        raise Refused(f"{name}: {_shown(fields[name])} in the partition {expected}")


def _value(field: Field, value: Any) -> Any:
    if value is None:
        if field.required:
            raise Refused(f"{field.name}: missing")
        return None
    try:
        return READERS[field.type](value)
    except ValueError as error:
        raise Refused(f"{field.name}: {error}: {_shown(value)}") from None


def _shown(value: Any) -> str:
    text = value.text if isinstance(value, Number) else json.dumps(value, default=lambda each: each.text)
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "..."


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Refused("not text")
    if "\0" in value:
        raise Refused("holds a NUL, which the warehouse cannot")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, Number) and not value.text.lstrip("-").isdigit():
        raise Refused("not an integer")
    if isinstance(value, Number) or (type(value) is int and not INTEGER_MIN <= value <= INTEGER_MAX):
        raise Refused("beyond 64 bits")
    if type(value) is not int:
        raise Refused("not an integer")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Refused("not a boolean")
    return value


def _date(value: Any) -> date:
    if not isinstance(value, str) or DATE.fullmatch(value) is None:
        raise Refused("not a date")
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise Refused("not a date that exists") from None


def _timestamp(value: Any) -> datetime:
    if not isinstance(value, str):
        raise Refused("not a timestamp")
    return parse_moment(value).utc


READERS: dict[Type, Callable[[Any], Any]] = {
    Type.TEXT: _text,
    Type.INTEGER: _whole,
    Type.BOOLEAN: _boolean,
    Type.DATE: _date,
    Type.TIMESTAMP: _timestamp,
}


def _check_moment(entity: Entity, row: Mapping[str, Any], place: Place) -> None:
    """An account's opening entry has no time of its own: it lies where it was written."""
    moment = row[entity.occurred]
    if entity.name == "ledger" and moment == OPENED:
        return
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    if (moment.strftime("%Y-%m-%d"), moment.strftime("%H")) != (place.dt, place.hour):
        raise Refused(f"{entity.occurred}: outside the partition {place.dt} {place.hour}")


def _extra(entity: Entity, fields: Mapping[str, Any]) -> str | None:
    known = {field.name for field in entity.fields}.union(PARTITION)
    unknown = {name: value for name, value in fields.items() if name not in known}
    return _written(unknown) if unknown else None


def _written(value: Any) -> str:
    """Write JSON with sorted names; numbers as they came."""
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        pairs = (f"{_written(name)}:{_written(value[name])}" for name in sorted(value))
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
