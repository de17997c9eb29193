"""Values cut out of lines become an Arrow column.

rules/lake/valid_row.py says which values are valid. Only plain ones are taken here: a line with any other
value is left to read_row. Texts, integers and the publisher's timestamps are checked as whole columns. Of
dates, booleans and other timestamps, read_value reads each different one once.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.curation.columns.json_texts import texts_of
from analytics.curation.columns.line_parts import between
from analytics.lake.arrow_buffers import Flags, Places, array_of, as_flags, raw_values
from analytics.lake.arrow_schema import ARROW
from analytics.lake.layout import Place
from rules.days import EPOCH, MICROSECOND
from rules.lake.entities import ENTITIES, Field, Type
from rules.lake.valid_row import RowRefused, lies_in, read_value

# Of those of 19 digits the ones that begin with 9 may be beyond 64 bits.
PLAIN_INTEGER = "^-?(?:0|[1-9][0-9]{0,17}|[1-8][0-9]{18})$"
STAMP = len("2026-01-31T00:00:00.000000Z")
MARKS = ((10, "T"), (19, "."), (STAMP - 1, "Z"))
YEARS = (ord("1"), ord("2"))  # 1000 to 2999
FEW = 64
HOUR = 3_600_000_000  # microseconds


@dataclass(frozen=True, slots=True)
class Cuts:
    """Values in a text: where each one starts and ends, without quotes. Each starts after the one before."""

    text: bytes
    starts: Places
    ends: Places


def read_values(valid: Flags, cuts: Cuts, field: Field, place: Place) -> pa.Array:
    """Return values as a column of the field's type. Clears the flags of values that are not taken."""
    values = between(pa.string(), cuts.text, cuts.starts, cuts.ends)
    if field.type is Type.TEXT:
        texts = texts_of(valid, values, field)
        _check_sizes(valid, texts, field.bytes_max)
        return texts
    if field.type is Type.TIMESTAMP:
        column = _moments(valid, values, _are_stamps(cuts), field)
    else:
        column = _of_different(valid, values, field)
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
    """Tell which values have the publisher's form, as far as it is seen in few places.

    Arrow refuses what is wrong in any other place.
    """
    data = np.frombuffer(cuts.text, np.uint8)
    plain: Flags = cuts.ends - cuts.starts == STAMP
    starts = cuts.starts if plain.all() else cuts.starts[plain]
    found = np.isin(data[starts], YEARS)
    for at, mark in MARKS:
        found &= data[starts + at] == ord(mark)
    plain[plain] = found
    return plain


def _moments(valid: Flags, values: pa.Array, plain: Flags, field: Field) -> pa.Array:
    """Return timestamps as a column: those of the publisher's form together, the few others one by one."""
    if plain.all():
        try:
            return values.cast(ARROW[Type.TIMESTAMP])
        except pa.ArrowInvalid:
            pass
    if len(values) <= FEW or not plain.any():
        return _of_different(valid, values, field)
    middle = len(values) // 2  # the halves without the one that is wrong are cast
    halves = (slice(None, middle), slice(middle, None))
    return pa.concat_arrays([_moments(valid[half], values[half], plain[half], field) for half in halves])


def _of_different(valid: Flags, values: pa.Array, field: Field) -> pa.Array:
    """Return a column of which each different value is looked at once: of most columns there are few."""
    coded = values.cast(pa.binary()).dictionary_encode()
    fine = np.ones(len(coded.dictionary), np.bool_)
    if field.type is Type.INTEGER:
        column = _integers(fine, coded.dictionary)
    else:
        column = _one_by_one(fine, coded.dictionary, field)
    valid &= fine[raw_values(coded.indices, np.int32)]
    return column.take(coded.indices)


def _integers(valid: Flags, values: pa.Array) -> pa.Array:
    plain = pc.match_substring_regex(values, PLAIN_INTEGER)
    _clear(valid, plain)
    return pc.if_else(plain, values, _null(values)).cast(pa.string()).cast(ARROW[Type.INTEGER])


def _one_by_one(valid: Flags, values: pa.Array, field: Field) -> pa.Array:
    quote = b"" if field.type is Type.BOOLEAN else b'"'
    read = [_read(field, quote + each + quote) for each in values.to_pylist()]
    valid &= np.array([each is not None for each in read], np.bool_)
    return array_of(read, ARROW[field.type])


def _read(field: Field, json_text: bytes) -> Any:
    try:
        return read_value(field, json_text)
    except RowRefused:
        return None


def _null(values: pa.Array) -> pa.Scalar:
    return pa.nulls(1, values.type)[0]  # pa.scalar() would import pandas, too


def _clear(valid: Flags, fine: pa.BooleanArray) -> None:
    if fine.null_count or fine.true_count < len(fine):
        valid &= as_flags(fine)


def _check_moment(valid: Flags, column: pa.Array, place: Place) -> None:
    """Clear the flags of what lies outside the place."""
    first = first_moment(place)
    if first is None:
        valid[:] = False
        return
    low, size = (first - EPOCH) // MICROSECOND, HOUR
    is_date = pa.types.is_date(column.type)
    if is_date:  # a day belongs to its first hour
        low, size = (first - EPOCH).days, int(first.hour == 0)
    moments = raw_values(column, np.int32 if is_date else np.int64)
    valid &= (moments >= low) & (moments < low + size)
