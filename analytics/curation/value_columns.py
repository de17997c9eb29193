"""The values of a field become a column of the field's type.

Texts and the publisher's timestamps are checked as whole columns. Of all other values each different one is
read once: integers by one expression for all of them, the rest by read_value.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.curation.json_texts import texts_of
from analytics.curation.line_cutter import column_between
from analytics.lake.arrow import (
    ARROW,
    Flags,
    Positions,
    array_of,
    as_flags,
    raw_values,
)
from analytics.lake.layout import Place
from rules.days import EPOCH, MICROSECOND
from rules.lake.entities import ENTITIES, Field, Type
from rules.lake.valid_row import RowRefused, lies_in, read_value

# Integers of at most 18 digits, and those of 19 digits that begin with 1 to 8. The few others are left to
# read_row, because only some of those that begin with 9 fit 64 bits.
PLAIN_INTEGER = "^-?(?:0|[1-9][0-9]{0,17}|[1-8][0-9]{18})$"
STAMP = len("2026-01-31T00:00:00.000000Z")
MARKS = ((10, "T"), (19, "."), (STAMP - 1, "Z"))  # characters of a stamp, by position
YEARS = (ord("1"), ord("2"))  # the first characters of the years 1000 to 2999
FEW_STAMPS = 64  # a part of a column with so few is not divided further
HOUR = 3_600_000_000  # microseconds


@dataclass(frozen=True, slots=True)
class Cuts:
    """Values in a text: where each starts and ends, without quotes. No value overlaps the one before."""

    text: bytes
    starts: Positions
    ends: Positions


def read_values(valid: Flags, cuts: Cuts, field: Field, place: Place) -> pa.Array:
    """Return values as a column of the field's type. Clears the flags in `valid` of wrong values."""
    values = column_between(pa.string(), cuts.text, cuts.starts, cuts.ends)
    if field.type is Type.TEXT:
        texts = texts_of(valid, values, field)
        _check_sizes(valid, texts, field.bytes_max)
        return texts
    if field.type is Type.TIMESTAMP:
        column = _moments(valid, values, _are_stamps(cuts), field)
    else:
        column = _convert_distinct(valid, values, field)
    if field.name == ENTITIES[place.entity].occurred:
        _check_moment(valid, column, place)
    return column


def first_moment(place: Place) -> datetime | None:
    """Return the beginning of an hour (UTC); None if no row can lie in it."""
    try:
        moment = datetime.strptime(f"{place.dt} {place.hour}", "%Y-%m-%d %H").replace(tzinfo=UTC)
    except ValueError:
        return None
    return moment if lies_in(moment, place.dt, str(place.hour)) else None


def _check_sizes(valid: Flags, texts: pa.Array, bytes_max: int) -> None:
    """Clear the flags of texts that their column in the warehouse cannot hold."""
    sizes = pc.binary_length(texts)
    if (pc.max(sizes).as_py() or 0) > bytes_max:
        _clear(valid, pc.less_equal(sizes, bytes_max).fill_null(False))


def _are_stamps(cuts: Cuts) -> Flags:
    """Return for each value whether it has the form of the publisher's timestamps.

    Only some characters are compared. Arrow's cast refuses a value that is wrong in any other one.
    """
    data = np.frombuffer(cuts.text, np.uint8)
    are_stamps: Flags = cuts.ends - cuts.starts == STAMP
    starts = cuts.starts if are_stamps.all() else cuts.starts[are_stamps]
    has_marks = np.isin(data[starts], YEARS)
    for position, mark in MARKS:
        has_marks &= data[starts + position] == ord(mark)
    are_stamps[are_stamps] = has_marks
    return are_stamps


def _moments(valid: Flags, values: pa.Array, are_stamps: Flags, field: Field) -> pa.Array:
    """Return timestamps as a column: those of the publisher's form together, the few others one by one."""
    if are_stamps.all():
        try:
            return values.cast(ARROW[Type.TIMESTAMP])
        except pa.ArrowInvalid:
            pass
    if len(values) <= FEW_STAMPS or not are_stamps.any():
        return _convert_distinct(valid, values, field)
    # One wrong value spoils the cast of a part. By halves, only a small part is read one by one.
    # valid[half] is a view: a flag that is cleared in it is also cleared in `valid`.
    middle = len(values) // 2
    halves = (slice(None, middle), slice(middle, None))
    return pa.concat_arrays([_moments(valid[half], values[half], are_stamps[half], field) for half in halves])


def _convert_distinct(valid: Flags, values: pa.Array, field: Field) -> pa.Array:
    """Return values as a column. Each different value is read once; most columns have few."""
    encoded = values.cast(pa.binary()).dictionary_encode()
    fine = np.ones(len(encoded.dictionary), np.bool_)
    if field.type is Type.INTEGER:
        column = _integers(fine, encoded.dictionary)
    else:
        column = _values_one_by_one(fine, encoded.dictionary, field)
    valid &= fine[raw_values(encoded.indices, np.int32)]
    return column.take(encoded.indices)


def _integers(valid: Flags, values: pa.Array) -> pa.Array:
    """Return integers as a column. A value that is none becomes null, and its flag is cleared."""
    plain = pc.match_substring_regex(values, PLAIN_INTEGER)
    _clear(valid, plain)
    return pc.if_else(plain, values, _null(values)).cast(pa.string()).cast(ARROW[Type.INTEGER])


def _values_one_by_one(valid: Flags, values: pa.Array, field: Field) -> pa.Array:
    """Return values as read_value reads each. A value that it refuses becomes null, its flag is cleared."""
    quote = b"" if field.type is Type.BOOLEAN else b'"'
    parsed = [_value_of(field, quote + value + quote) for value in values.to_pylist()]
    valid &= np.array([value is not None for value in parsed], np.bool_)
    return array_of(parsed, ARROW[field.type])


def _value_of(field: Field, json_text: bytes) -> Any:
    try:
        return read_value(field, json_text)
    except RowRefused:
        return None


def _null(values: pa.Array) -> pa.Scalar:
    return pa.nulls(1, values.type)[0]  # pa.scalar() would import pandas


def _clear(valid: Flags, fine: pa.BooleanArray) -> None:
    """Clear the flags of values that are not fine."""
    if fine.null_count or fine.true_count < len(fine):
        valid &= as_flags(fine)


def _check_moment(valid: Flags, column: pa.Array, place: Place) -> None:
    """Clear the flags of the instants or dates that lie outside the place."""
    first = first_moment(place)
    if first is None:
        valid[:] = False
        return
    low, size = (first - EPOCH) // MICROSECOND, HOUR
    is_date = pa.types.is_date(column.type)
    if is_date:  # a row with a date alone belongs to the first hour of that day
        low, size = (first - EPOCH).days, int(first.hour == 0)
    moments = raw_values(column, np.int32 if is_date else np.int64)
    valid &= (moments >= low) & (moments < low + size)
