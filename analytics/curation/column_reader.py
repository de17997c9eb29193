"""Reads raw lines by columns: all values of one field, of some thousand lines at once.

rules/lake/valid_row.py says what a row is. A line is read here only if read_row would surely return the same
row. Every other line is left to read_row. Functions get an array with a flag for each line or value, and
clear the flags of those that they cannot read.

Lines are cut into fields without being parsed. A line of a raw object is a flat JSON object. Before each of
its fields but the first there is `,"`, and after each name `":`. Both are searched in some thousand lines at
once. Each field is known by its name, so fields may come in any order, and optional ones may be absent. The
line `{"user_id":"u1","version":3,"dt":"2026-03-01","hour":"05"}` has `,"` three times and `":` four times.

Neither can be inside of a JSON text, whose quotes are escaped. But `,"` can be the end of one, such as "x,".
Then some field of the line has no `":`, and the line is left out. So is a line with nested objects, with
blanks between its fields, or with a field that the entity does not have.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise

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
from rules.lake.entities import ENTITIES, Field, Type
from rules.lake.valid_row import RowRefused, read_value

LINES_AT_ONCE = 20_000  # their values stay in the processor's cache
SLICES_MAX = 64  # more slices of rows between wrong ones take longer than a copy
PIECE_BYTES = 256 * 1024  # of text that are searched at once: they stay in the processor's cache
COMMA, QUOTE, COLON, BACKSLASH, OPEN, CLOSE = b',":\\{}'
ENDS = tuple(b", \t\r")  # may come between an object and its newline
UNKNOWN = -1  # the number of a name that the entity does not have
PARTITION = ("dt", "hour")
# The inside of a JSON text whose escapes have one character each, and are no code as in \u00e9.
PLAIN_TEXT = r'^(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*$'
SPACE = ord(" ")
MEANINGS = np.zeros(256, np.uint8)  # what a character behind a backslash stands for; 0: it is no such escape
MEANINGS[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')
# Integers of at most 18 digits, and those of 19 digits that begin with 1 to 8. Of those that begin with 9,
# only some fit 64 bits.
PLAIN_INTEGER = "^-?(?:0|[1-9][0-9]{0,17}|[1-8][0-9]{18})$"
# The form of the publisher's timestamps: its size, some of its characters by position, and the first
# characters of the years 1000 to 2999. Arrow's cast refuses a value that is wrong in any other character.
STAMP_SIZE = len("2026-01-31T00:00:00.000000Z")
STAMP_MARKS = ((10, "T"), (19, "."), (STAMP_SIZE - 1, "Z"))
YEARS = tuple(b"12")
# Timestamps that surely exist: no month is shorter.
SURE_STAMP = r"^[12]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z$"
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields of some lines, in the order in which they stand in the text. Each array has an item a field."""

    text: bytes  # the text of the lines
    lines: Positions  # the number of the field's line, counted from 0
    names: Positions  # the number of the field's name, or UNKNOWN
    starts: Positions  # where its value starts
    ends: Positions  # where its value ends

    def __getitem__(self, chosen: Flags | Positions | slice) -> "Fields":
        """Return some of the fields."""
        columns = (self.lines, self.names, self.starts, self.ends)
        return Fields(self.text, *(column[chosen] for column in columns))

    def values(self, kind: pa.DataType) -> pa.Array:
        """Return the values as a column of texts or bytes."""
        return _between(kind, self.text, self.starts, self.ends)

    def equal(self, wanted: bytes) -> Flags:
        """Return for each value whether its bytes are the wanted ones."""
        are_equal: Flags = self.ends - self.starts == len(wanted)
        places = self.starts[are_equal][:, None] + np.arange(len(wanted))
        found = np.frombuffer(self.text, np.uint8)[places]
        are_equal[are_equal] = (found == np.frombuffer(wanted, np.uint8)).all(axis=1)
        return are_equal


def read_columns(batch: Batch, place: Place) -> Iterator[tuple[pa.Table, Positions]]:
    """Yield rows of a batch, and the indices of their lines. Lines that are not yielded are for read_row.

    place: the hour of the batch's objects. Each row is the one that read_row would return for its line.
    """
    ends = np.frombuffer(batch.lines.buffers()[1], np.int32)
    for first in range(0, len(batch.lines), LINES_AT_ONCE):
        bounds = ends[first : first + LINES_AT_ONCE + 1]
        wanted = ~batch.frame[first : first + LINES_AT_ONCE]
        if not _are_utf8(batch.text, bounds):
            wanted &= [_are_utf8(batch.text, bounds[at : at + 2]) for at in range(len(wanted))]
        for rows, lines in _rows(batch.text, bounds, wanted, place):
            yield rows, lines + first


def _are_utf8(text: bytes, bounds: Positions) -> bool:
    """Whether lines are all UTF-8. bounds: where the first line begins, and where each ends."""
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(text)]
    try:
        pa.Array.from_buffers(pa.string(), len(bounds) - 1, buffers).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _rows(
    text: bytes, bounds: Positions, wanted: Flags, place: Place
) -> Iterator[tuple[pa.Table, Positions]]:
    """Yield rows, and the indices of their lines. bounds, wanted: see _cut."""
    entity = ENTITIES[place.entity]
    names = [*(field.name for field in entity.fields), *PARTITION]
    lines, fields = _cut(text, bounds, wanted, names)
    valid = np.ones(len(lines), np.bool_)
    # All fields of one name come together, in the order of their lines. Unknown names have the least number.
    by_name = fields[np.argsort(fields.names.astype(np.int16), kind="stable").astype(np.int32)]
    edges = np.searchsorted(by_name.names, np.arange(UNKNOWN, len(names) + 1))
    unknown, *declared, dt, hour = (by_name[first:last] for first, last in pairwise(edges))
    valid[unknown.lines] = False
    for field, name in ((dt, place.dt), (hour, str(place.hour))):
        values = _one_a_line(valid, field, required=True)
        valid[values.lines[~values.equal(b'"%s"' % name.encode())]] = False
    schema = arrow_schema(entity)
    columns = list(map(partial(_column, valid), declared, entity.fields))
    rows = pa.Table.from_arrays([*columns, pa.nulls(len(valid), schema.types[-1])], schema=schema)
    _check_hour(valid, rows[entity.occurred].chunk(0), place)
    wrong = np.flatnonzero(~valid)
    if len(wrong) > SLICES_MAX:
        yield rows.filter(flag_array(valid)), lines[valid]
        return
    for before, last in pairwise([-1, *wrong.tolist(), len(valid)]):
        if last - before > 1:
            yield rows.slice(before + 1, last - before - 1), lines[before + 1 : last]


def _cut(text: bytes, bounds: Positions, wanted: Flags, names: list[str]) -> tuple[Positions, Fields]:
    """Return the indices of the lines that could be cut, and their fields.

    bounds: where the first line begins, and where each line ends, with its newline. wanted: whether to cut
    each line. names: the known names, in the order of their numbers.
    """
    data = np.frombuffer(text, np.uint8)
    commas, colons = _marks(data, bounds[0], bounds[-1])
    first, first_colon = (np.searchsorted(marks, bounds).astype(np.int32) for marks in (commas, colons))
    counts = np.diff(first) + 1
    stops = _stops(data, bounds)
    fits = wanted & (stops > bounds[:-1]) & (counts == np.diff(first_colon))
    begins, ends = _spans(bounds, stops, commas, first)
    if not fits.all():
        chosen = np.repeat(fits, counts)
        begins, ends = begins[chosen], ends[chosen]
        colons = colons[np.repeat(fits, np.diff(first_colon))]
    indices = np.flatnonzero(fits).astype(np.int32)
    lines = np.repeat(np.arange(len(indices), dtype=np.int32), counts[indices])
    # A fitting line has as many `":` as fields. One of them has to be in each field.
    is_named = (colons > begins) & (colons < ends)
    starts = np.where(is_named, colons + 2, begins)
    fields = Fields(text, lines, _name_numbers(text, begins, starts, names), starts, ends)
    return indices, fields


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


def _spans(
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


def _name_numbers(text: bytes, begins: Positions, starts: Positions, names: list[str]) -> Positions:
    """Return the number of each name. A name stands between its beginning and the start of its value."""
    numbers = {b'"%s":' % name.encode(): number for number, name in enumerate(names)}
    encoded = _between(pa.binary(), text, begins, starts).dictionary_encode()
    numbers_by_code = np.array(
        [numbers.get(name, UNKNOWN) for name in encoded.dictionary.to_pylist()], np.int32
    )
    found: Positions = numbers_by_code[raw_values(encoded.indices, np.int32)]
    return found


def _between(kind: pa.DataType, text: bytes, starts: Positions, ends: Positions) -> pa.Array:
    """Return the parts of a text between starts and ends as a column. The parts do not overlap."""
    count = len(starts)
    # The offsets describe the values and what lies between them. take copies the values alone.
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[:-1:2] = starts
    offsets[1::2] = ends
    offsets[-1] = ends[-1] if count else 0
    both = pa.Array.from_buffers(kind, 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    return both.take(as_array(np.arange(0, 2 * count, 2)))


def _one_a_line(valid: Flags, values: Fields, *, required: bool) -> Fields:
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


def _column(valid: Flags, values: Fields, field: Field) -> pa.Array:
    """Return a field of all lines as a column. Clears the flags in `valid` of lines with a wrong value."""
    values = _one_a_line(valid, values, required=field.required)
    if not field.required:
        are_null = values.equal(b"null")
        values = values[~are_null] if are_null.any() else values
    fine = np.ones(len(values.lines), np.bool_)
    if field.type not in (Type.INTEGER, Type.BOOLEAN):
        data, starts, ends = np.frombuffer(values.text, np.uint8), values.starts, values.ends
        fine = (ends - starts > 1) & (data[starts] == QUOTE) & (data[ends - 1] == QUOTE)
        values = replace(values, starts=starts + 1, ends=np.where(fine, ends - 1, starts + 1))
    column = read_values(fine, values, field)
    valid[values.lines[~fine]] = False
    return column if len(values.lines) == len(valid) else _spread(column, values.lines, len(valid))


def _spread(column: pa.Array, lines: Positions, count: int) -> pa.Array:
    """Return a column with an item for each of `count` lines: null for a line without a value.

    lines: the line of each value.
    """
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


def read_values(valid: Flags, fields: Fields, field: Field) -> pa.Array:
    """Return values, without their quotes, as a column. Clears the flags in `valid` of wrong values."""
    if field.type is Type.TEXT:
        texts = _texts(valid, fields.values(pa.string()))
        sizes = pc.binary_length(texts)
        if (pc.max(sizes).as_py() or 0) > field.bytes_max:
            valid &= as_flags(pc.less_equal(sizes, field.bytes_max))
        return texts
    if field.type is Type.TIMESTAMP:
        return _moments(valid, fields)
    # Each different value is read once: most columns have few.
    encoded = fields.values(pa.binary()).dictionary_encode()
    fine = np.ones(len(encoded.dictionary), np.bool_)
    if field.type is Type.INTEGER:
        digits = _those_that_match(fine, encoded.dictionary, PLAIN_INTEGER)
        column = digits.cast(pa.string()).cast(ARROW[Type.INTEGER])
    else:
        column = _values_one_by_one(fine, encoded.dictionary, field)
    valid &= fine[raw_values(encoded.indices, np.int32)]
    return column.take(encoded.indices)


def _values_one_by_one(valid: Flags, values: pa.Array, field: Field) -> pa.Array:
    """Return values as read_value reads each. A value that it refuses becomes null, its flag is cleared."""
    quote = b"" if field.type is Type.BOOLEAN else b'"'
    parsed = []
    for index, value in enumerate(values.to_pylist()):
        try:
            parsed.append(read_value(field, quote + value + quote))
        except RowRefused:
            parsed.append(None)
        valid[index] = parsed[index] is not None
    return array_of(parsed, ARROW[field.type])


def _those_that_match(valid: Flags, values: pa.Array, pattern: str) -> pa.Array:
    """Return the values that match a pattern. Each other one becomes null, and its flag is cleared."""
    is_match = pc.match_substring_regex(values, pattern)
    valid &= as_flags(is_match)
    return pc.if_else(is_match, values, pa.nulls(1, values.type)[0])  # pa.scalar() would import pandas


def _moments(valid: Flags, fields: Fields) -> pa.Array:
    """Return timestamps of the publisher's form as a column. The flags of all others are cleared."""
    data = np.frombuffer(fields.text, np.uint8)
    are_stamps: Flags = fields.ends - fields.starts == STAMP_SIZE
    starts = fields.starts[are_stamps]
    has_marks = np.isin(data[starts], YEARS)
    for position, mark in STAMP_MARKS:
        has_marks &= data[starts + position] == ord(mark)
    are_stamps[are_stamps] = has_marks
    values = fields.values(pa.string())
    if are_stamps.all():
        try:
            return values.cast(ARROW[Type.TIMESTAMP])
        except pa.ArrowInvalid:
            pass
    valid &= are_stamps
    values = pc.if_else(flag_array(are_stamps), values, pa.nulls(1, values.type)[0])
    return _those_that_match(valid, values, SURE_STAMP).cast(ARROW[Type.TIMESTAMP])


def _check_hour(valid: Flags, moments: pa.Array, place: Place) -> None:
    """Clear the flags of rows whose instants or dates lie outside an hour. A date lies in its first hour."""
    begin = datetime.fromisoformat(f"{place.dt}T{place.hour}:00:00Z") - EPOCH
    if pa.types.is_date(moments.type):
        valid &= (raw_values(moments, np.int32) == begin.days) & (place.hour == "00")
    else:
        passed = raw_values(moments, np.int64) - begin // MICROSECOND
        valid &= (passed >= 0) & (passed < timedelta(hours=1) // MICROSECOND)


def _texts(valid: Flags, values: pa.Array) -> pa.Array:
    """Return texts as a column. Clears the flags in `valid` of values that are not read here.

    values: the insides of JSON texts, between their quotes; no nulls.
    """
    texts = _unescape(values)
    if texts is None:  # an escape that is a code, or something that is no text
        plain = _those_that_match(valid, values, PLAIN_TEXT)
        texts = _unescape(plain.fill_null(""))
    assert texts is not None  # noqa: S101 (none but plain texts are left)
    return texts


def _unescape(values: pa.Array) -> pa.Array | None:
    """Return texts without their backslashes; None if any has an escape that is a code, or is no text."""
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    if len(data) and data.min() < SPACE:
        return None
    slashes, quotes = np.flatnonzero(data == BACKSLASH), np.flatnonzero(data == QUOTE)
    if not len(slashes):
        return None if len(quotes) else values
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
    is_first = np.concatenate([[True], np.diff(slashes) != 1])
    numbers = np.arange(len(slashes))
    number_in_run = numbers - np.maximum.accumulate(np.where(is_first, numbers, 0))
    escapes: Indices = slashes[number_in_run % 2 == 0]
    return escapes
