"""Values cut out of lines, as an Arrow column: those of the declared type, the others are told of.

What is valid is said by the expressions of analytics/curation/line_pattern.py.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.curation.line_pattern import VALUES, line_pattern
from analytics.lake.arrow_buffers import Flags, Places, as_array, as_flags, flag_array, raw_values
from analytics.lake.arrow_schema import ARROW
from analytics.lake.layout import Place
from rules.lake.entities import ENTITIES, Field, Type

# What a JSON text may hold here: no escapes but of quotes, which texts of JSON are full of.
PLAIN = r'^(?:[^"\\\x00-\x1f]|\\")*$'
STAMP = len("2026-01-31T00:00:00.000000Z")
MARKS = ((10, "T"), (19, "."), (STAMP - 1, "Z"))
YEARS = (ord("1"), ord("2"))  # 1000 to 2999
SPACE = 32


@dataclass(frozen=True, slots=True)
class Cuts:
    """Values in a text: where each one starts and ends; they follow each other."""

    text: bytes
    starts: Places
    ends: Places


def read_values(valid: Flags, cuts: Cuts, field: Field, place: Place) -> pa.Array:
    """Return values as a column of the field's type; clears the flags of those that are not valid."""
    values = _cut(cuts)
    if field.type is Type.TEXT:
        return _texts(valid, values)
    if field.type is Type.TIMESTAMP:
        column = _timestamps(valid, cuts, values)
    else:
        column = _few(valid, values, field.type)
    if field.name == ENTITIES[place.entity].occurred:
        _check_moment(valid, column, place)
    return column


def exists(place: Place) -> bool:
    """Tell whether a place is an hour of the calendar."""
    try:
        _hour(place)
    except ValueError:
        return False
    return True


def _cut(cuts: Cuts) -> pa.Array:
    count = len(cuts.starts)
    # Every second value is what lies between two: bytes are copied once, by take.
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[:-1:2] = cuts.starts
    offsets[1::2] = cuts.ends
    offsets[-1] = cuts.ends[-1] if count else 0
    every = np.arange(0, 2 * count, 2)
    both = pa.StringArray.from_buffers(2 * count, pa.py_buffer(offsets), pa.py_buffer(cuts.text))
    return both.take(as_array(every))


def _texts(valid: Flags, values: pa.Array) -> pa.Array:
    data = values.buffers()[2]
    held = data.to_pybytes() if data else b""
    if not held.isascii() and not _are_utf8(values):
        valid &= np.array([_is_utf8(each) for each in values.cast(pa.binary()).to_pylist()], np.bool_)
    if not held or (b'"' not in held and b"\\" not in held and np.frombuffer(held, np.uint8).min() >= SPACE):
        return values
    values = pc.if_else(flag_array(valid), values, _null(values))  # an expression needs UTF-8
    _clear(valid, pc.match_substring_regex(values, PLAIN))
    return pc.replace_substring(values, '\\"', '"')


def _are_utf8(values: pa.Array) -> bool:
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _timestamps(valid: Flags, cuts: Cuts, values: pa.Array) -> pa.Array:
    """The publisher's form is looked at in few places: what else is no timestamp, Arrow refuses."""
    data, starts = np.frombuffer(cuts.text, np.uint8), cuts.starts
    if (cuts.ends - starts == STAMP).all():
        form = [(data[starts + at] == ord(mark)).all() for at, mark in MARKS]
        if all(form) and np.isin(data[starts], YEARS).all():
            try:
                return values.cast(ARROW[Type.TIMESTAMP])
            except pa.ArrowInvalid:
                pass
    return _matching(valid, values, Type.TIMESTAMP)


def _few(valid: Flags, values: pa.Array, kind: Type) -> pa.Array:
    """Values of which there are few different ones."""
    coded = values.dictionary_encode()
    fine = np.ones(len(coded.dictionary), np.bool_)
    column = _matching(fine, coded.dictionary, kind)
    if not fine.all():
        valid &= fine[raw_values(coded.indices, np.int32)]
    return column.take(coded.indices)


def _matching(valid: Flags, values: pa.Array, kind: Type) -> pa.Array:
    matching = pc.match_substring_regex(values.cast(pa.binary()), f"^{VALUES[kind]}$")
    _clear(valid, matching)
    return pc.if_else(matching, values, _null(values)).cast(ARROW[kind])


def _null(values: pa.Array) -> pa.Scalar:
    return pa.nulls(1, values.type)[0]  # pa.scalar() would import pandas, too


def _check_moment(valid: Flags, column: pa.Array, place: Place) -> None:
    """Clear the flags of what lies outside the place."""
    is_date = pa.types.is_date(column.type)
    seconds = int(_hour(place).timestamp())
    low, size = seconds * 1_000_000, 3_600_000_000
    if is_date:  # a day belongs to its first hour
        low, size = seconds // 86_400, int(seconds % 86_400 == 0)
    # What is null here was found not valid before.
    moments = raw_values(column, np.int32 if is_date else np.int64)
    valid &= (moments >= low) & (moments < low + size)


def _hour(place: Place) -> datetime:
    return datetime.strptime(f"{place.dt} {place.hour}", "%Y-%m-%d %H").replace(tzinfo=UTC)


def _clear(valid: Flags, fine: pa.BooleanArray) -> None:
    if fine.null_count or fine.true_count < len(fine):
        valid &= as_flags(fine)


def matched(lines: pa.BinaryArray, place: Place) -> pa.BooleanArray:
    """Tell for each line whether it matches the pattern of its place and is UTF-8."""
    fine = pc.match_substring_regex(lines, line_pattern(place))
    data = lines.buffers()[2]
    if not len(lines) or data.to_pybytes().isascii():
        return fine
    return pc.and_(fine, flag_array(np.array([_is_utf8(line) for line in lines.to_pylist()])))
