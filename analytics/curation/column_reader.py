"""Lines are read by columns: all values of one field of some thousand lines.

rules/lake/valid_row.py says what a row is. A line is read here only if each of its fields has a name and a
value that are surely what read_row would take. Every other line is left to read_row.

1. Lines are cut into their fields without being parsed (cut_lines). A line of a raw object is a flat JSON
   object. Before each of its fields but the first there is `,"`, and behind each name `":`. Both are found
   for some thousand lines at once, and each field is known by its name: fields may come in any order, and
   optional ones may be absent. The line `{"user_id":"u1","version":3,"dt":"2026-03-01","hour":"05"}` has
   three places of `,"` and four of `":`. Within a JSON text neither can stand, because its quotes would be
   escaped; they can only end one, such as "x,". Then a line has not one `":` in each of its fields, and is
   left out. So is a line with nested objects, or with blanks between its fields.
2. The values of a field become a column (read_values). Texts, integers and the publisher's timestamps are
   checked as whole columns. Of dates, booleans and other timestamps, read_value reads each different one
   once.
3. The insides of JSON texts become the texts that they stand for (texts_of).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analytics.curation.raw_lines import Batch
from analytics.lake.arrow import (
    ARROW,
    Flags,
    Indices,
    Places,
    array_of,
    arrow_schema,
    as_array,
    as_flags,
    flag_array,
    raw_values,
)
from analytics.lake.layout import Place
from rules.days import EPOCH, MICROSECOND
from rules.lake.entities import ENTITIES, Entity, Field, Type
from rules.lake.valid_row import RowRefused, extra_of, lies_in, read_value

PIECE_BYTES = 256 * 1024  # stay in the processor's cache
COMMA, QUOTE, COLON, BACKSLASH, OPEN, CLOSE = b',":\\{}'
ENDS = tuple(b", \t\r")
UNKNOWN = -1
Bytes = npt.NDArray[np.uint8]
# The inside of a JSON text whose escapes have one character each, and are no code as in \u00e9.
PLAIN = r'^(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*$'
MEANINGS = np.zeros(256, np.uint8)  # of a character behind a backslash; 0: it is no such escape
MEANINGS[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')
SPACE, QUOTE_CODE, BACKSLASH_CODE = b' "\\'
# Of those of 19 digits the ones that begin with 9 may be beyond 64 bits.
PLAIN_INTEGER = "^-?(?:0|[1-9][0-9]{0,17}|[1-8][0-9]{18})$"
STAMP = len("2026-01-31T00:00:00.000000Z")
MARKS = ((10, "T"), (19, "."), (STAMP - 1, "Z"))
YEARS = (ord("1"), ord("2"))  # 1000 to 2999
FEW = 64
HOUR = 3_600_000_000  # microseconds
LINES_AT_ONCE = 20_000  # their values stay in the processor's cache
SLICES_MAX = 64
NULL = b"null"


def read_columns(batch: Batch, place: Place) -> Iterator[tuple[pa.Table, Places]]:
    """Yield rows of a batch, and the indices of their lines. Some lines are left over.

    Each row is the one that read_row returns for its line.
    """
    if first_moment(place) is None:
        return
    ends = np.frombuffer(batch.lines.buffers()[1], np.int32)
    for first in range(0, len(batch.lines), LINES_AT_ONCE):
        bounds = ends[first : first + LINES_AT_ONCE + 1]
        wanted = ~batch.frame[first : first + LINES_AT_ONCE]
        for rows, lines in _rows(batch.text, bounds, wanted, place):
            yield rows, lines + first


@dataclass(frozen=True, slots=True)
class Parts:
    """Fields of some lines, each line's in their order."""

    text: bytes
    lines: Places  # the line of each field, counted from 0
    names: Places  # the number of its name, or UNKNOWN
    begins: Places  # where its name begins
    starts: Places  # starts, ends: where its value starts and ends
    ends: Places

    def __getitem__(self, some: Flags | Places | slice) -> "Parts":
        """Return some of the fields."""
        columns = (self.lines, self.names, self.begins, self.starts, self.ends)
        return Parts(self.text, *(each[some] for each in columns))


def cut_lines(
    text: bytes, bounds: Places, wanted: Flags, numbers: Mapping[bytes, int]
) -> tuple[Places, Parts]:
    """Return the indices of lines that could be cut, and their fields.

    bounds: where the first line begins, and where each line ends, with its newline. wanted: the lines to cut.
    numbers: of each name that is known, written as `"name":`.
    """
    data = np.frombuffer(text, np.uint8)
    commas, colons = _marks(data, bounds[0], bounds[-1])
    first, first_colon = (np.searchsorted(marks, bounds).astype(np.int32) for marks in (commas, colons))
    counts = np.diff(first) + 1
    stops = _stops(data, bounds)
    fits = wanted & (stops > bounds[:-1]) & (counts == np.diff(first_colon))
    begins, ends = _fields(bounds, stops, commas, first)
    if not fits.all():
        chosen = np.repeat(fits, counts)
        begins, ends = begins[chosen], ends[chosen]
        colons = colons[np.repeat(fits, np.diff(first_colon))]
    found = np.flatnonzero(fits).astype(np.int32)
    lines = np.repeat(np.arange(len(found), dtype=np.int32), counts[found])
    is_named = (colons > begins) & (colons < ends)
    starts = np.where(is_named, colons + 2, begins)
    parts = Parts(text, lines, _name_numbers(text, begins, starts, numbers), begins, starts, ends)
    if is_named.all():
        return found, parts
    return _without_lines(found, parts, lines[~is_named])


def _without_lines(found: Places, parts: Parts, unfit: Places) -> tuple[Places, Parts]:
    """Leave lines out."""
    fits = np.ones(len(found), np.bool_)
    fits[unfit] = False
    left = parts[fits[parts.lines]]
    lines = (np.cumsum(fits, dtype=np.int32) - 1)[left.lines].astype(np.int32)
    return found[fits], Parts(parts.text, lines, left.names, left.begins, left.starts, left.ends)


def _marks(data: Bytes, begin: int, end: int) -> tuple[Places, Places]:
    """Return the places of `,"`, and those of `":` whose quote is not escaped."""
    commas, colons = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for at in range(begin, end, PIECE_BYTES):
        piece = data[at : min(at + PIECE_BYTES, end - 1) + 1]
        quotes = piece == QUOTE
        commas.append(np.flatnonzero(quotes[1:] & (piece[:-1] == COMMA)) + at)
        colons.append(np.flatnonzero(quotes[:-1] & (piece[1:] == COLON)) + at)
    places = np.concatenate(colons)
    places = places[data[places - 1] != BACKSLASH]
    return np.concatenate(commas).astype(np.int32), places.astype(np.int32)


def _stops(data: Bytes, bounds: Places) -> Places:
    """Return where the brace is that ends each line; for a line that is no object, its beginning.

    Behind a row of a packed record there is a comma, behind another row perhaps a blank.
    """
    begins, ends = bounds[:-1], bounds[1:]
    last = np.maximum(ends - 2, begins)
    stops = np.maximum(last - np.isin(data[last], ENDS), begins)
    is_object = (data[begins] == OPEN) & (data[np.minimum(begins + 1, stops)] == QUOTE)
    return np.where(is_object & (data[stops] == CLOSE), stops, begins).astype(np.int32)


def _fields(bounds: Places, stops: Places, commas: Places, first: Places) -> tuple[Places, Places]:
    """Return where the fields of lines begin and end."""
    lines = np.arange(len(stops))
    heads = first[:-1] + lines  # the index of each line's first field among all fields
    begins = np.empty(len(commas) + len(stops), np.int32)
    is_head = np.zeros(len(begins), np.bool_)
    is_head[heads] = True
    begins[~is_head] = commas + 1
    begins[heads] = bounds[:-1] + 1
    ends = np.empty_like(begins)
    ends[:-1] = begins[1:] - 1
    ends[first[1:] + lines] = stops
    return begins, ends


def _name_numbers(text: bytes, begins: Places, starts: Places, numbers: Mapping[bytes, int]) -> Places:
    """Return the number of each name."""
    coded = column_between(pa.binary(), text, begins, starts).dictionary_encode()
    known = np.array([numbers.get(name, UNKNOWN) for name in coded.dictionary.to_pylist()], np.int32)
    found: Places = known[raw_values(coded.indices, np.int32)]
    return found


def column_between(kind: pa.DataType, text: bytes, starts: Places, ends: Places) -> pa.Array:
    """Return what stands between places of a text, each start at or after the end before it, as a column."""
    count = len(starts)
    # The offsets describe the values and what lies between them. take copies the values alone.
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[:-1:2] = starts
    offsets[1::2] = ends
    offsets[-1] = ends[-1] if count else 0
    both = pa.Array.from_buffers(kind, 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    return both.take(as_array(np.arange(0, 2 * count, 2)))


def texts_of(valid: Flags, values: pa.Array, field: Field) -> pa.Array:
    """Return texts as a column, from what stands between their quotes. Clears the flags of what is no text.

    values: no nulls.
    """
    if not _are_utf8(values):
        valid &= np.array([_is_utf8(each) for each in values.cast(pa.binary()).to_pylist()], np.bool_)
    texts = _unescape(values)
    return _texts_one_by_one(valid, values, field) if texts is None else texts


def _texts_one_by_one(valid: Flags, values: pa.Array, field: Field) -> pa.Array:
    """Read texts of which some are none, or have an escape that is a code: these read_value reads."""
    some = np.flatnonzero(valid)
    is_plain = as_flags(pc.match_substring_regex(values.take(as_array(some)), PLAIN))
    plain, odd = some[is_plain], some[~is_plain]
    texts = [_text_of(field, each) for each in values.take(as_array(odd)).to_pylist()]
    valid[odd] = [each is not None for each in texts]
    places = np.full(len(values), len(some))
    places[np.concatenate([plain, odd])] = np.arange(len(some))
    parts = [_unescape(values.take(as_array(plain))), array_of(texts, pa.string()), pa.nulls(1, pa.string())]
    return pa.concat_arrays(parts).take(as_array(places))


def _unescape(values: pa.Array) -> pa.Array | None:
    """Return texts without their backslashes; None if any of them has another escape, or is no text."""
    held = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    if len(held) and held.min() < SPACE:
        return None
    slashes, quotes = np.flatnonzero(held == BACKSLASH_CODE), np.flatnonzero(held == QUOTE_CODE)
    if not len(slashes):
        return None if len(quotes) else values
    if len(slashes) > 1 and (np.diff(slashes) == 1).any():
        slashes = _escapes(slashes)
    offsets = np.frombuffer(values.buffers()[1], np.int32)[: len(values) + 1]
    ends_within = np.zeros(len(held) + 1, np.bool_)
    ends_within[offsets] = True
    if ends_within[slashes + 1].any():
        return None
    meant = MEANINGS[held[slashes + 1]]
    if not meant.all() or np.count_nonzero(meant == QUOTE_CODE) != len(quotes):
        return None
    found = held.copy()
    found[slashes + 1] = meant
    kept = np.ones(len(held), np.bool_)
    kept[slashes] = False
    moved = (offsets - np.searchsorted(slashes, offsets)).astype(np.int32)
    buffers = [values.buffers()[0], pa.py_buffer(moved), pa.py_buffer(found[kept])]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def _escapes(slashes: Indices) -> Indices:
    """Return the backslashes that escape what follows: of some in a row the first, the third and so on."""
    places = np.arange(len(slashes))
    is_first = np.concatenate([[True], np.diff(slashes) != 1])
    behind = places - np.maximum.accumulate(np.where(is_first, places, 0))
    found: Indices = slashes[behind % 2 == 0]
    return found


def _are_utf8(values: pa.Array) -> bool:
    if np.frombuffer(values.buffers()[2] or b"", np.uint8).max(initial=0) < 128:
        return True
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


def _text_of(field: Field, inside: str) -> Any:
    try:
        return read_value(field, b'"%s"' % inside.encode())
    except RowRefused:
        return None


@dataclass(frozen=True, slots=True)
class Cuts:
    """Values in a text: where each one starts and ends, without quotes. Each starts after the one before."""

    text: bytes
    starts: Places
    ends: Places


def read_values(valid: Flags, cuts: Cuts, field: Field, place: Place) -> pa.Array:
    """Return values as a column of the field's type. Clears the flags of values that are not taken."""
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
    """Return which values have the publisher's form, as far as it is seen in few places.

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
        return _convert_distinct(valid, values, field)
    middle = len(values) // 2  # the halves without the one that is wrong are cast
    halves = (slice(None, middle), slice(middle, None))
    return pa.concat_arrays([_moments(valid[half], values[half], plain[half], field) for half in halves])


def _convert_distinct(valid: Flags, values: pa.Array, field: Field) -> pa.Array:
    """Return a column of which each different value is looked at once: of most columns there are few."""
    coded = values.cast(pa.binary()).dictionary_encode()
    fine = np.ones(len(coded.dictionary), np.bool_)
    if field.type is Type.INTEGER:
        column = _integers(fine, coded.dictionary)
    else:
        column = _values_one_by_one(fine, coded.dictionary, field)
    valid &= fine[raw_values(coded.indices, np.int32)]
    return column.take(coded.indices)


def _integers(valid: Flags, values: pa.Array) -> pa.Array:
    plain = pc.match_substring_regex(values, PLAIN_INTEGER)
    _clear(valid, plain)
    return pc.if_else(plain, values, _null(values)).cast(pa.string()).cast(ARROW[Type.INTEGER])


def _values_one_by_one(valid: Flags, values: pa.Array, field: Field) -> pa.Array:
    quote = b"" if field.type is Type.BOOLEAN else b'"'
    parsed = [_value_of(field, quote + each + quote) for each in values.to_pylist()]
    valid &= np.array([each is not None for each in parsed], np.bool_)
    return array_of(parsed, ARROW[field.type])


def _value_of(field: Field, json_text: bytes) -> Any:
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


def _rows(text: bytes, bounds: Places, wanted: Flags, place: Place) -> Iterator[tuple[pa.Table, Places]]:
    entity = ENTITIES[place.entity]
    names = [*(field.name for field in entity.fields), "dt", "hour"]
    numbers = {b'"%s":' % name.encode(): number for number, name in enumerate(names)}
    lines, parts = cut_lines(text, bounds, wanted, numbers)
    valid = np.ones(len(lines), np.bool_)
    order = np.argsort(parts.names.astype(np.int16), kind="stable").astype(np.int32)
    parts = parts[order]
    edges = np.searchsorted(parts.names, np.arange(UNKNOWN, len(names) + 1))
    unknown, *known = (parts[first:last] for first, last in pairwise(edges))
    columns = [_column(valid, each, field, place) for field, each in zip(entity.fields, known, strict=False)]
    for each, value in zip(known[-2:], (place.dt, str(place.hour)), strict=True):
        _check_partition(valid, each, b'"%s"' % value.encode())
    columns.append(_extra(valid, unknown, entity))
    yield from _valid(pa.Table.from_arrays(columns, schema=arrow_schema(entity)), lines, valid)


def _valid(rows: pa.Table, lines: Places, valid: Flags) -> Iterator[tuple[pa.Table, Places]]:
    """Yield the valid rows: without a copy, in slices between the others, if these are few."""
    wrong = np.flatnonzero(~valid)
    if len(wrong) > SLICES_MAX:
        kept = np.flatnonzero(valid)
        yield rows.take(as_array(kept)), lines[kept]
        return
    for before, last in pairwise([-1, *wrong.tolist(), len(valid)]):
        if last - before > 1:
            yield rows.slice(before + 1, last - before - 1), lines[before + 1 : last]


def _column(valid: Flags, values: Parts, field: Field, place: Place) -> pa.Array:
    """Return a field of lines as a column. Clears the flags of lines whose value is not taken."""
    values = _first_values(valid, values, field.required)
    if not field.required:
        are_null = _equal_to(values, NULL)
        values = values[~are_null] if are_null.any() else values
    starts, ends = values.starts, values.ends
    fine = np.ones(len(starts), np.bool_)
    if field.type not in (Type.INTEGER, Type.BOOLEAN):
        data = np.frombuffer(values.text, np.uint8)
        fine = (ends - starts > 1) & (data[starts] == QUOTE) & (data[ends - 1] == QUOTE)
        starts, ends = starts + 1, np.where(fine, ends - 1, starts + 1)
    column = read_values(fine, Cuts(values.text, starts, ends), field, place)
    valid[values.lines[~fine]] = False
    return _spread(column, values.lines, len(valid))


def _first_values(valid: Flags, values: Parts, required: bool) -> Parts:
    """Return each line's first value. Clears the flags of lines with several, or without a required one."""
    again = values.lines[1:] == values.lines[:-1]
    if again.any():
        valid[values.lines[1:][again]] = False
        values = values[np.concatenate([[True], ~again])]
    if required and len(values.lines) < len(valid):
        there = np.zeros(len(valid), np.bool_)
        there[values.lines] = True
        valid &= there
    return values


def _equal_to(values: Parts, wanted: bytes) -> Flags:
    """Return which values are written as wanted."""
    size = len(wanted)
    found: Flags = values.ends - values.starts == size
    some = values.starts[found]
    if len(some):
        there = np.ndarray((len(values.text) - size + 1,), f"V{size}", values.text, strides=(1,))[some]
        if there.tobytes() != wanted * len(some):
            found[found] = there == np.frombuffer(wanted, f"V{size}")[0]
    return found


def _check_partition(valid: Flags, values: Parts, wanted: bytes) -> None:
    values = _first_values(valid, values, required=True)
    valid[values.lines[~_equal_to(values, wanted)]] = False


def _spread(column: pa.Array, lines: Places, count: int) -> pa.Array:
    """Return a column with nulls for the lines that have no value."""
    if len(lines) == count:
        return column
    there = np.zeros(count, np.bool_)
    there[lines] = True
    flags = flag_array(there).buffers()[1]
    if pa.types.is_string(column.type) and not column.null_count and not column.offset:
        # The same bytes: a line without a value has none of them.
        ends = np.frombuffer(column.buffers()[1], np.int32)
        offsets = np.zeros(count + 1, np.int32)
        np.cumsum(there, out=offsets[1:])
        buffers = [flags, pa.py_buffer(ends[offsets]), column.buffers()[2]]
        return pa.Array.from_buffers(column.type, count, buffers)
    places = np.zeros(count, np.int64)
    places[lines] = np.arange(len(lines))
    return column.take(pa.Array.from_buffers(pa.int64(), count, [flags, pa.py_buffer(places)]))


def _extra(valid: Flags, unknown: Parts, entity: Entity) -> pa.Array:
    """Return the column `extra` of lines. Clears the flags of lines whose unknown fields are not taken."""
    kind = arrow_schema(entity).types[-1]
    if not len(unknown.lines):
        return pa.nulls(len(valid), kind)
    found: dict[int, list[bytes]] = {}
    for line, begin, end in zip(
        *(each.tolist() for each in (unknown.lines, unknown.begins, unknown.ends)), strict=True
    ):
        found.setdefault(line, []).append(unknown.text[begin:end])
    texts: list[str | None] = [None] * len(valid)
    for line, fields in found.items():
        try:
            texts[line] = extra_of(fields, entity)
        except RowRefused:
            valid[line] = False
    return array_of(texts, kind)
