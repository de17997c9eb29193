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

__all__ = ["RowRefused", "extra_of", "lies_in", "read_extra", "read_row", "read_value"]

PARTITION = ("dt", "hour")  # fields of each line that name its partition
TOO_DEEP = "not JSON: nested too deep"
OPENED = parse_moment(OPENED_AT).utc


def read_row(line: bytes, entity: Entity, dt: str, hour: str) -> dict[str, Any]:
    """Return the columns of a line found in a raw object of an hour; raises RowRefused.

    line: a plain row, or one of a packed record. dt: YYYY-MM-DD; hour: HH, UTC. None stands for a field that
    is null or absent. Of fields with one name the first counts.
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
    """Return the values of fields that wait in a row's `extra`, and the rest of `extra`.

    fields: declared after the row was curated. A value that its field does not take stays in `extra`.
    """
    rest, values = _parse(text.encode()), {}
    for field in fields:
        try:
            values[field.name] = check_value(field, rest.get(field.name))
        except RowRefused:
            continue
        rest.pop(field.name, None)
    return values, _json_text(rest) if rest else None


def extra_of(fields: Sequence[bytes], entity: Entity) -> str | None:
    """Return `extra` of a row. Raises RowRefused for a field that is not surely one beyond the schema.

    fields: each as its line has it, `"name":value`.
    """
    extra: dict[str, Any] = {}
    columns = {field.name for field in entity.fields}.union(PARTITION)
    for field in fields:
        try:
            parsed = _parse(b"{%s}" % field)
        except RecursionError:
            raise RowRefused(TOO_DEEP) from None
        if len(parsed) != 1 or not columns.union(extra).isdisjoint(parsed):
            raise RowRefused("not one field")
        extra |= parsed
    return _extra(entity, extra)


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
    # An account's opening entry has no time of its own: it lies where it was written.
    if not (entity.name == "ledger" and moment == OPENED) and not lies_in(moment, dt, hour):
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
            parse_float=_real,
            parse_int=_integer,
            parse_constant=_no_constant,
        )
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False, default=str).encode()  # half a surrogate pair is no text
    except UnicodeEncodeError:
        raise RowRefused("not JSON: half of a surrogate pair") from None
    except ValueError as error:
        raise RowRefused(f"not JSON: {error}") from None
    return value


def _first_of_name(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's fields: of those with one name the first."""
    return dict(reversed(pairs))


def _real(text: str) -> Number:
    return Number(text)


def _integer(text: str) -> int | Number:
    return int(text) if len(text) <= 20 else Number(text)


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
    """Write JSON with sorted names; numbers as they came."""
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        pairs = (f"{_json_text(name)}:{_json_text(value[name])}" for name in sorted(value))
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
