"""Reads raw lines by columns: all values of one field, of some thousand lines at once.

rules/lake/valid_row.py says what a row is. A line is read here only if read_row would surely return the same
row. Every other line is left to read_row. There are three steps:

1. Lines are cut into their fields without being parsed (cut_lines). A line of a raw object is a flat JSON
   object. Before each of its fields but the first there is `,"`, and after each name `":`. Both are searched
   in some thousand lines at once. Each field is known by its name, so fields may come in any order, and
   optional ones may be absent. The line `{"user_id":"u1","version":3,"dt":"2026-03-01","hour":"05"}` has `,"`
   three times and `":` four times. Neither can be inside of a JSON text, whose quotes are escaped, but `,"`
   can be the end of one, such as "x,". Then some field of the line has no `":`, and the line is left out. So
   is a line with nested objects, or with blanks between its fields.
2. The values of a field become a column (read_values). Texts, integers and the publisher's timestamps are
   checked as whole columns. Dates, booleans and other timestamps are read by read_value, each different value
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
    Positions,
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

PIECE_BYTES = 256 * 1024  # of text that are searched at once: they stay in the processor's cache
COMMA, QUOTE, COLON, BACKSLASH, OPEN, CLOSE = b',":\\{}'
SPACE = ord(" ")
ENDS = tuple(b", \t\r")  # may come between an object and its newline
UNKNOWN = -1  # the number of a name that the entity does not have
Bytes = npt.NDArray[np.uint8]
# The inside of a JSON text whose escapes have one character each, and are no code as in \u00e9.
PLAIN = r'^(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*$'
MEANINGS = np.zeros(256, np.uint8)  # what a character behind a backslash stands for; 0: it is no such escape
MEANINGS[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')
# An integer of 19 digits that begins with 9 may be beyond 64 bits.
PLAIN_INTEGER = "^-?(?:0|[1-9][0-9]{0,17}|[1-8][0-9]{18})$"
STAMP = len("2026-01-31T00:00:00.000000Z")
MARKS = ((10, "T"), (19, "."), (STAMP - 1, "Z"))  # characters of a stamp, by position
YEARS = (ord("1"), ord("2"))  # the first characters of the years 1000 to 2999
FEW_STAMPS = 64  # a part of a column with so few is not divided further
HOUR = 3_600_000_000  # microseconds
LINES_AT_ONCE = 20_000  # their values stay in the processor's cache
SLICES_MAX = 64  # more slices of rows take longer than a copy
NULL = b"null"


def read_columns(batch: Batch, place: Place) -> Iterator[tuple[pa.Table, Positions]]:
    """Yield rows of a batch, and the indices of their lines. Lines that are not yielded are for read_row.

    Each row is the one that read_row would return for its line.
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
class Fields:
    """Fields of some lines, in the order in which they stand in the text. Each array has an item a field."""

    text: bytes  # the text of the lines
    lines: Positions  # the number of the field's line, counted from 0
    names: Positions  # the number of the field's name, or UNKNOWN
    begins: Positions  # where the field's name begins in the text
    starts: Positions  # where its value starts
    ends: Positions  # where its value ends

    def __getitem__(self, chosen: Flags | Positions | slice) -> "Fields":
        """Return some of the fields."""
        columns = (self.lines, self.names, self.begins, self.starts, self.ends)
        return Fields(self.text, *(column[chosen] for column in columns))


def cut_lines(
    text: bytes, bounds: Positions, wanted: Flags, numbers: Mapping[bytes, int]
) -> tuple[Positions, Fields]:
    """Return the indices of the lines that could be cut, and their fields.

    bounds: where the first line begins, and where each line ends, with its newline. wanted: whether to cut
    each line. numbers: the number of each known name, by the name as lines have it: `"name":`.
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
    indices = np.flatnonzero(fits).astype(np.int32)
    lines = np.repeat(np.arange(len(indices), dtype=np.int32), counts[indices])
    # A fitting line has as many `":` as fields. One of them has to be in each field.
    is_named = (colons > begins) & (colons < ends)
    starts = np.where(is_named, colons + 2, begins)
    fields = Fields(text, lines, _name_numbers(text, begins, starts, numbers), begins, starts, ends)
    if is_named.all():
        return indices, fields
    return _without_lines(indices, fields, lines[~is_named])


def _without_lines(indices: Positions, fields: Fields, unfit: Positions) -> tuple[Positions, Fields]:
    """Return lines and fields without the unfit lines. The fields' lines are numbered anew."""
    fits = np.ones(len(indices), np.bool_)
    fits[unfit] = False
    rest = fields[fits[fields.lines]]
    lines = (np.cumsum(fits, dtype=np.int32) - 1)[rest.lines].astype(np.int32)
    return indices[fits], Fields(fields.text, lines, rest.names, rest.begins, rest.starts, rest.ends)


def _marks(data: Bytes, begin: int, end: int) -> tuple[Positions, Positions]:
    """Return the positions of `,"`, and those of `":` whose quote is not escaped."""
    commas, colons = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for at in range(begin, end, PIECE_BYTES):
        piece = data[at : min(at + PIECE_BYTES, end - 1) + 1]
        quotes = piece == QUOTE
        commas.append(np.flatnonzero(quotes[1:] & (piece[:-1] == COMMA)) + at)
        colons.append(np.flatnonzero(quotes[:-1] & (piece[1:] == COLON)) + at)
    places = np.concatenate(colons)
    places = places[data[places - 1] != BACKSLASH]
    return np.concatenate(commas).astype(np.int32), places.astype(np.int32)


def _stops(data: Bytes, bounds: Positions) -> Positions:
    """Return the position of the brace that ends each line; for a line that is no object, its beginning.

    After a row of a packed record there is a comma, after another row perhaps a blank.
    """
    begins, ends = bounds[:-1], bounds[1:]
    last = np.maximum(ends - 2, begins)
    stops = np.maximum(last - np.isin(data[last], ENDS), begins)
    is_object = (data[begins] == OPEN) & (data[np.minimum(begins + 1, stops)] == QUOTE)
    return np.where(is_object & (data[stops] == CLOSE), stops, begins).astype(np.int32)


def _fields(
    bounds: Positions, stops: Positions, commas: Positions, first: Positions
) -> tuple[Positions, Positions]:
    """Return where the fields of lines begin and end.

    stops: the position of each line's last brace. commas: the positions of `,"`. first: for each line the
    index of its first comma.
    """
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


def _name_numbers(
    text: bytes, begins: Positions, starts: Positions, numbers: Mapping[bytes, int]
) -> Positions:
    """Return the number of each name. A name stands between its beginning and the start of its value."""
    encoded = column_between(pa.binary(), text, begins, starts).dictionary_encode()
    numbers_by_code = np.array(
        [numbers.get(name, UNKNOWN) for name in encoded.dictionary.to_pylist()], np.int32
    )
    names: Positions = numbers_by_code[raw_values(encoded.indices, np.int32)]
    return names


def column_between(kind: pa.DataType, text: bytes, starts: Positions, ends: Positions) -> pa.Array:
    """Return the parts of a text between starts and ends as a column. The parts do not overlap."""
    count = len(starts)
    # The offsets describe the values and what lies between them. take copies the values alone.
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[:-1:2] = starts
    offsets[1::2] = ends
    offsets[-1] = ends[-1] if count else 0
    both = pa.Array.from_buffers(kind, 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    return both.take(as_array(np.arange(0, 2 * count, 2)))


def texts_of(valid: Flags, values: pa.Array, field: Field) -> pa.Array:
    """Return texts as a column. Clears the flags in `valid` of values that are no texts.

    values: the insides of JSON texts, between their quotes; no nulls.
    """
    if not _are_utf8(values):
        valid &= np.array([_is_utf8(value) for value in values.cast(pa.binary()).to_pylist()], np.bool_)
    texts = _unescape(values)
    return _texts_one_by_one(valid, values, field) if texts is None else texts


def _texts_one_by_one(valid: Flags, values: pa.Array, field: Field) -> pa.Array:
    """Return texts as texts_of does, where some values are no text, or have an escape that is a code.

    Such values are read by read_value, one by one.
    """
    indices = np.flatnonzero(valid)
    is_plain = as_flags(pc.match_substring_regex(values.take(as_array(indices)), PLAIN))
    plain, odd = indices[is_plain], indices[~is_plain]
    texts = [_text_of(field, value) for value in values.take(as_array(odd)).to_pylist()]
    valid[odd] = [text is not None for text in texts]
    # First come the plain texts, then the odd ones, then a null that stands for all invalid values. `take`
    # brings them into the order of the values.
    parts = [_unescape(values.take(as_array(plain))), array_of(texts, pa.string()), pa.nulls(1, pa.string())]
    positions = np.full(len(values), len(indices))
    positions[np.concatenate([plain, odd])] = np.arange(len(indices))
    return pa.concat_arrays(parts).take(as_array(positions))


def _unescape(values: pa.Array) -> pa.Array | None:
    """Return texts without their backslashes; None if any has an escape that is a code, or is no text."""
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    if len(data) and data.min() < SPACE:
        return None
    slashes, quotes = np.flatnonzero(data == BACKSLASH), np.flatnonzero(data == QUOTE)
    if not len(slashes):
        return None if len(quotes) else values
    if len(slashes) > 1 and (np.diff(slashes) == 1).any():
        slashes = _escapes(slashes)
    offsets = np.frombuffer(values.buffers()[1], np.int32)[: len(values) + 1]
    is_end = np.zeros(len(data) + 1, np.bool_)
    is_end[offsets] = True
    if is_end[slashes + 1].any():  # a text ends with a backslash that escapes nothing
        return None
    meanings = MEANINGS[data[slashes + 1]]
    if not meanings.all() or np.count_nonzero(meanings == QUOTE) != len(quotes):
        return None
    unescaped = data.copy()
    unescaped[slashes + 1] = meanings
    stays = np.ones(len(data), np.bool_)
    stays[slashes] = False
    new_offsets = (offsets - np.searchsorted(slashes, offsets)).astype(np.int32)
    buffers = [values.buffers()[0], pa.py_buffer(new_offsets), pa.py_buffer(unescaped[stays])]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def _escapes(slashes: Indices) -> Indices:
    """Return the backslashes that escape the next character: in a row of them the first, the third ..."""
    numbers = np.arange(len(slashes))
    is_first = np.concatenate([[True], np.diff(slashes) != 1])
    number_in_run = numbers - np.maximum.accumulate(np.where(is_first, numbers, 0))
    escapes: Indices = slashes[number_in_run % 2 == 0]
    return escapes


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
    """Return the text that the inside of a JSON text stands for; None if it is no JSON text."""
    try:
        return read_value(field, b'"%s"' % inside.encode())
    except RowRefused:
        return None


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


def _moments(valid: Flags, values: pa.Array, plain: Flags, field: Field) -> pa.Array:
    """Return timestamps as a column: those of the publisher's form together, the few others one by one."""
    if plain.all():
        try:
            return values.cast(ARROW[Type.TIMESTAMP])
        except pa.ArrowInvalid:
            pass
    if len(values) <= FEW_STAMPS or not plain.any():
        return _convert_distinct(valid, values, field)
    # One wrong value spoils the cast of a part. By halves, only a small part is read one by one.
    middle = len(values) // 2
    halves = (slice(None, middle), slice(middle, None))
    return pa.concat_arrays([_moments(valid[half], values[half], plain[half], field) for half in halves])


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
    plain = pc.match_substring_regex(values, PLAIN_INTEGER)
    _clear(valid, plain)
    return pc.if_else(plain, values, _null(values)).cast(pa.string()).cast(ARROW[Type.INTEGER])


def _values_one_by_one(valid: Flags, values: pa.Array, field: Field) -> pa.Array:
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


def _rows(
    text: bytes, bounds: Positions, wanted: Flags, place: Place
) -> Iterator[tuple[pa.Table, Positions]]:
    """Yield rows, and the indices of their lines. bounds, wanted: see cut_lines."""
    entity = ENTITIES[place.entity]
    names = [*(field.name for field in entity.fields), "dt", "hour"]
    numbers = {b'"%s":' % name.encode(): number for number, name in enumerate(names)}
    lines, fields = cut_lines(text, bounds, wanted, numbers)
    valid = np.ones(len(lines), np.bool_)
    order = np.argsort(fields.names.astype(np.int16), kind="stable").astype(np.int32)
    by_name = fields[order]
    edges = np.searchsorted(by_name.names, np.arange(UNKNOWN, len(names) + 1))
    unknown, *declared, dt, hour = (by_name[first:last] for first, last in pairwise(edges))
    columns = [
        _column(valid, values, field, place) for field, values in zip(entity.fields, declared, strict=True)
    ]
    _check_partition(valid, dt, b'"%s"' % place.dt.encode())
    _check_partition(valid, hour, b'"%s"' % str(place.hour).encode())
    columns.append(_extra(valid, unknown, entity))
    yield from _valid(pa.Table.from_arrays(columns, schema=arrow_schema(entity)), lines, valid)


def _valid(rows: pa.Table, lines: Positions, valid: Flags) -> Iterator[tuple[pa.Table, Positions]]:
    """Yield the valid rows, and their lines' indices. Slices between few invalid rows need no copy."""
    wrong = np.flatnonzero(~valid)
    if len(wrong) > SLICES_MAX:
        indices = np.flatnonzero(valid)
        yield rows.take(as_array(indices)), lines[indices]
        return
    for before, last in pairwise([-1, *wrong.tolist(), len(valid)]):
        if last - before > 1:
            yield rows.slice(before + 1, last - before - 1), lines[before + 1 : last]


def _column(valid: Flags, values: Fields, field: Field, place: Place) -> pa.Array:
    """Return a field of all lines as a column. Clears the flags in `valid` of lines with a wrong value."""
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


def _first_values(valid: Flags, values: Fields, required: bool) -> Fields:
    """Return each line's first value. Clears the flags of lines with several values, or a missing one."""
    is_repeated = values.lines[1:] == values.lines[:-1]
    if is_repeated.any():
        valid[values.lines[1:][is_repeated]] = False
        values = values[np.concatenate([[True], ~is_repeated])]
    if required and len(values.lines) < len(valid):
        has_value = np.zeros(len(valid), np.bool_)
        has_value[values.lines] = True
        valid &= has_value
    return values


def _equal_to(values: Fields, wanted: bytes) -> Flags:
    """Return for each value whether its bytes are the wanted ones."""
    size = len(wanted)
    are_equal: Flags = values.ends - values.starts == size
    starts = values.starts[are_equal]
    if len(starts):
        # A view of the text with the bytes at each position as one item: only those at the starts are copied.
        texts = np.ndarray((len(values.text) - size + 1,), f"V{size}", values.text, strides=(1,))[starts]
        if texts.tobytes() != wanted * len(starts):
            are_equal[are_equal] = texts == np.frombuffer(wanted, f"V{size}")[0]
    return are_equal


def _check_partition(valid: Flags, values: Fields, wanted: bytes) -> None:
    """Clear the flags of lines that name another partition, or none."""
    values = _first_values(valid, values, required=True)
    valid[values.lines[~_equal_to(values, wanted)]] = False


def _spread(column: pa.Array, lines: Positions, count: int) -> pa.Array:
    """Return a column with an item for each of `count` lines: null for a line without a value.

    lines: the line of each value.
    """
    if len(lines) == count:
        return column
    has_value = np.zeros(count, np.bool_)
    has_value[lines] = True
    flags = flag_array(has_value).buffers()[1]
    if pa.types.is_string(column.type) and not column.null_count and not column.offset:
        # The same bytes: a line without a value has none of them.
        ends = np.frombuffer(column.buffers()[1], np.int32)
        offsets = np.zeros(count + 1, np.int32)
        np.cumsum(has_value, out=offsets[1:])
        buffers = [flags, pa.py_buffer(ends[offsets]), column.buffers()[2]]
        return pa.Array.from_buffers(column.type, count, buffers)
    indices = np.zeros(count, np.int64)
    indices[lines] = np.arange(len(lines))
    return column.take(pa.Array.from_buffers(pa.int64(), count, [flags, pa.py_buffer(indices)]))


def _extra(valid: Flags, unknown: Fields, entity: Entity) -> pa.Array:
    """Return the column `extra` of all lines. Clears the flags of lines whose unknown fields are wrong."""
    kind = arrow_schema(entity).types[-1]
    if not len(unknown.lines):
        return pa.nulls(len(valid), kind)
    fields_by_line: dict[int, list[bytes]] = {}
    columns = (unknown.lines.tolist(), unknown.begins.tolist(), unknown.ends.tolist())
    for line, begin, end in zip(*columns, strict=True):
        fields_by_line.setdefault(line, []).append(unknown.text[begin:end])
    texts: list[str | None] = [None] * len(valid)
    for line, fields in fields_by_line.items():
        try:
            texts[line] = extra_of(fields, entity)
        except RowRefused:
            valid[line] = False
    return array_of(texts, kind)
