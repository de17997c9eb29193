"""The definition of a valid row: read_row checks a line of a raw object against its entity's declaration.

There is no other definition. Curation reads most lines by columns, which is faster, but only those for which
read_row would return the same row.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from rules.days import parse_moment
from rules.engagement.ledger import OPENED_AT
from rules.json_values import is_too_deep
from rules.lake.packed_records import row_text
from rules.lake.schema import (
    BYTES_MAX,
    EXCERPT_MAX,
    EXTRA,
    Entity,
    Field,
    Number,
    RowRefused,
    check_size,
    check_value,
    json_excerpt,
)

__all__ = ["RowRefused", "lies_in", "read_extra", "read_row", "read_value"]

PARTITION = ("dt", "hour")  # fields of each line that name its partition
TOO_DEEP = "not JSON: nested too deep"
INTEGER_CHARACTERS_MAX = 20  # of an integer of 64 bits
OPENED = parse_moment(OPENED_AT).utc


def read_row(line: bytes, entity: Entity, dt: str, hour: str) -> dict[str, Any]:
    """Return a row by its columns; raises RowRefused. A field that is null or absent is None.

    line: a line of a raw object, which is a plain row or a row of a packed record. dt: YYYY-MM-DD; hour: HH,
    UTC: the object's hour. If a line has two fields of one name, the first counts. A line of more than
    READ_LEVELS levels (rules/json_values.py) is refused.
    """
    try:
        return _row(_parse(row_text(line)), entity, dt, hour)
    except RecursionError:
        raise RowRefused(TOO_DEEP) from None


def read_value(field: Field, json_text: bytes) -> Any:
    """Return a field's value, as read_row does, from the JSON text of the value alone; raises RowRefused."""
    try:
        return check_value(field, _parse(json_text))
    except RecursionError:
        raise RowRefused(TOO_DEEP) from None


def read_extra(text: str, fields: Sequence[Field]) -> tuple[dict[str, Any], str | None]:
    """Take the values of fields out of a row's `extra`; returns them, and the `extra` that is left.

    fields: those that were declared after the row was curated. A value that its field does not take stays in
    `extra`.
    """
    extra, values = _parse(text.encode()), {}
    for field in fields:
        try:
            values[field.name] = check_value(field, extra.get(field.name))
        except RowRefused:
            continue
        extra.pop(field.name, None)
    return values, _json_text(extra) if extra else None


def lies_in(moment: date, dt: str, hour: str) -> bool:
    """Whether a timestamp (UTC) lies in an hour. A date lies in its first hour."""
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    return (moment.strftime("%Y-%m-%d"), moment.strftime("%H")) == (dt, hour)


def _row(fields: Any, entity: Entity, dt: str, hour: str) -> dict[str, Any]:
    if not isinstance(fields, dict):
        raise RowRefused("not an object")
    _check_partition(fields, "dt", dt)
    _check_partition(fields, "hour", hour)
    row = {field.name: check_value(field, fields.get(field.name)) for field in entity.fields}
    moment = row[entity.occurred]
    # An account's opening entry has no time of its own: it lies in the hour in which it was written.
    is_opening = entity.name == "ledger" and moment == OPENED
    if not is_opening and not lies_in(moment, dt, hour):
        raise RowRefused(f"{entity.occurred}: outside the partition {dt} {hour}")
    return row | {EXTRA: _extra(entity, fields)}


def _parse(json_text: bytes) -> Any:
    """Return the value of a JSON text. Raises RowRefused, RecursionError."""
    try:
        text = json_text.decode()
    except UnicodeDecodeError as error:
        raise RowRefused(f"not UTF-8: byte {error.start + 1}") from None
    try:
        value = json.loads(
            text,
            object_pairs_hook=_first_of_name,
            parse_float=Number,
            parse_int=_integer,
            parse_constant=_no_constant,
        )
        if is_too_deep(text, value):
            raise RowRefused(TOO_DEEP)
        if "\\u" in text:
            # Escapes can make half of a surrogate pair, which has no UTF-8.
            json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise RowRefused("not JSON: half of a surrogate pair") from None
    except ValueError as error:
        raise RowRefused(f"not JSON: {error}") from None
    return value


def _first_of_name(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's fields. Of two with one name, the first counts."""
    return dict(reversed(pairs))


def _integer(text: str) -> int | Number:
    return int(text) if len(text) <= INTEGER_CHARACTERS_MAX else Number(text)


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON value")


def _check_partition(fields: Mapping[str, Any], name: str, expected: str) -> None:
    if name not in fields:
        raise RowRefused(f"{name}: missing")
    if fields[name] != expected:
        raise RowRefused(f"{name}: {json_excerpt(fields[name])} in the partition {expected}")


def _extra(entity: Entity, fields: Mapping[str, Any]) -> str | None:
    """Return the fields beyond the schema as JSON text; None if there are none."""
    columns = {field.name for field in entity.fields}.union(PARTITION)
    unknown = {name: value for name, value in fields.items() if name not in columns}
    if not unknown:
        return None
    text = _json_text(unknown)
    try:
        check_size(text, BYTES_MAX)
    except RowRefused as error:
        raise RowRefused(f"{EXTRA}: {error}: {', '.join(sorted(unknown))}"[:EXCERPT_MAX]) from None
    return text


def _json_text(value: Any) -> str:
    """Return JSON text with sorted names. Numbers stay as they were written."""
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        pairs = (f"{_json_text(name)}:{_json_text(value[name])}" for name in sorted(value))
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
