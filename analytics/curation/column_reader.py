"""Reads raw lines by columns: all values of one field, of some thousand lines at once.

rules/lake/valid_row.py says what a row is. A line is read here only if read_row would surely return the same
row. Every other line is left to read_row. The staging (row_staging.py) calls `read_columns`, which cuts lines
into fields, then makes a column of each field. The functions stand in this order.

A line of a raw object is a flat JSON object. It is cut into fields without being parsed, at two marks: `,"`
stands before each field but the first, `":` behind each name.

    {"id":"u1","n":3}
              ^             commas: each `,"`
        ^        ^          colons: each `":`
     ^         ^            begins: where a field begins, behind the opening brace or a comma
          ^        ^        starts: where its value starts, behind its colon
              ^     ^       ends: where it ends, at the next comma or at the closing brace

Each field is known by its name, so fields may come in any order, and optional ones may be absent. Neither
mark can be inside of a JSON text, whose quotes are escaped. But `,"` can be the end of one, such as "x,".
Then some field of the line has no `":`, and the line is left out. So is a line with nested objects, with
blanks between its fields, or with a field that the entity does not have.

A column of values has null for each value that must be left to read_row. Its line is left out, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analytics.curation.raw_lines import LineBatch
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
from analytics.lake.layout import Partition
from rules.days import EPOCH, MICROSECOND
from rules.lake.entities import ENTITIES, Field, Type
from rules.lake.valid_row import RowRefused, read_value

LINES_AT_ONCE = 20_000  # their values stay in the processor's cache
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
STAMP_MARKS = {10: b"T", 19: b".", STAMP_SIZE - 1: b"Z", 0: b"12"}
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

    def having(self, flags: Flags) -> "Fields":
        """Return the fields whose flag is set."""
        return self if flags.all() else self[flags]

    def values(self, kind: pa.DataType) -> pa.Array:
        """Return the values as a column of texts or bytes."""
        return _pieces(kind, self.text, self.starts, self.ends)

    def equal(self, expected: bytes) -> Flags:
        """Return for each value whether it has the expected bytes."""
        are_equal: Flags = self.ends - self.starts == len(expected)
        partitions = self.starts[are_equal][:, None] + np.arange(len(expected))
        characters = np.frombuffer(self.text, np.uint8)[partitions]
        are_equal[are_equal] = (characters == np.frombuffer(expected, np.uint8)).all(axis=1)
        return are_equal


def read_columns(batch: LineBatch, partition: Partition) -> Iterator[tuple[pa.Table, Positions]]:
    """Yield rows of a batch, and the indices of their lines. Lines that are not yielded are for read_row.

    partition: the hour of the batch's objects. Each row is the one that read_row would return for its line.
    """
    bounds_of_batch = np.frombuffer(batch.lines.buffers()[1], np.int32)
    for first in range(0, len(batch.lines), LINES_AT_ONCE):
        line_bounds = bounds_of_batch[first : first + LINES_AT_ONCE + 1]
        candidates = ~batch.frame[first : first + LINES_AT_ONCE]
        if not _are_utf8(batch.text, line_bounds):
            candidates &= [_are_utf8(batch.text, line_bounds[at : at + 2]) for at in range(len(candidates))]
        rows, indices = _read_lines(batch.text, line_bounds, candidates, partition)
        yield rows, indices + first


def _are_utf8(text: bytes, line_bounds: Positions) -> bool:
    """Whether lines are all UTF-8. line_bounds: see _cut."""
    buffers = [None, pa.py_buffer(line_bounds), pa.py_buffer(text)]
    try:
        pa.Array.from_buffers(pa.string(), len(line_bounds) - 1, buffers).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _read_lines(
    text: bytes, line_bounds: Positions, candidates: Flags, partition: Partition
) -> tuple[pa.Table, Positions]:
    """Return rows, and the indices of their lines. line_bounds, candidates: see _cut."""
    entity = ENTITIES[partition.entity]
    names = [*(field.name for field in entity.fields), *PARTITION]
    indices, fields = _cut(text, line_bounds, candidates, names)
    count = len(indices)

    # All fields of one name come together, in the order of their lines. Unknown names have the least number.
    by_name = fields[np.argsort(fields.names.astype(np.int16), kind="stable").astype(np.int32)]
    edges = np.searchsorted(by_name.names, np.arange(UNKNOWN, len(names) + 1))
    unknown, *declared, dt, hour = (by_name[begin:end] for begin, end in pairwise(edges))

    # A line is left out if it has an unknown field, another hour, or a wrong value.
    is_read = np.ones(count, np.bool_)
    is_read[unknown.lines] = False
    for stated, expected in ((dt, partition.dt), (hour, str(partition.hour))):
        is_read &= np.bincount(stated.lines, minlength=count) == 1
        is_read[stated.lines[~stated.equal(b'"%s"' % expected.encode())]] = False
    columns = []
    for values, field in zip(declared, entity.fields, strict=True):
        column, has_right_value = _column(values, field, count)
        columns.append(column)
        is_read &= has_right_value
    schema = arrow_schema(entity)
    rows = pa.Table.from_arrays([*columns, pa.nulls(count, schema.types[-1])], schema=schema)
    is_read &= _lie_in(rows[entity.occurred].chunk(0), partition)
    if is_read.all():
        return rows, indices
    return rows.filter(flag_array(is_read)), indices[is_read]


def _cut(
    text: bytes, line_bounds: Positions, candidates: Flags, names: list[str]
) -> tuple[Positions, Fields]:
    """Return the indices of the lines that could be cut, and their fields. The module's docstring draws it.

    line_bounds: where the first line begins, and where each line ends, with its newline. candidates: the
    flags of the lines to cut. names: the known names, in the order of their numbers.
    """
    data = np.frombuffer(text, np.uint8)
    commas, colons = _marks(data, line_bounds[0], line_bounds[-1])
    closing_braces, is_object = _closing_braces(data, line_bounds)

    # Choose the lines that are objects and have as many colons as fields: one more than commas.
    first_commas = np.searchsorted(commas, line_bounds)  # of each line, the number of its first comma
    field_counts = np.diff(first_commas) + 1
    colon_counts = np.diff(np.searchsorted(colons, line_bounds))
    is_cuttable = candidates & is_object & (field_counts == colon_counts)

    # Fields are between the commas, a line's opening brace before the first one, and its closing brace behind
    # the last one. Drop the edges of fields, and the colons, of all other lines.
    begins = np.insert(commas, first_commas[:-1], line_bounds[:-1]) + 1
    ends = np.insert(commas, first_commas[1:], closing_braces)
    if not is_cuttable.all():
        is_kept = np.repeat(is_cuttable, field_counts)
        begins, ends = begins[is_kept], ends[is_kept]
        colons = colons[np.repeat(is_cuttable, colon_counts)]

    # Name the fields. A field may have two colons, and another one none: its name is empty, thus unknown.
    has_colon = (colons > begins) & (colons < ends)
    starts = np.where(has_colon, colons + 2, begins)
    indices = np.flatnonzero(is_cuttable).astype(np.int32)
    lines = np.repeat(np.arange(len(indices), dtype=np.int32), field_counts[indices])
    return indices, Fields(text, lines, _name_numbers(text, begins, starts, names), starts, ends)


def _marks(data: Bytes, begin: int, end: int) -> tuple[Positions, Positions]:
    """Return the positions of `,"`, and those of `":` whose quote is not escaped."""
    commas, colons = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for at in range(begin, end, PIECE_BYTES):
        piece = data[at : min(at + PIECE_BYTES, end - 1) + 1]  # with the next one's first byte
        quotes = piece == QUOTE
        commas.append(np.flatnonzero(quotes[1:] & (piece[:-1] == COMMA)) + at)
        colons.append(np.flatnonzero(quotes[:-1] & (piece[1:] == COLON)) + at)
    positions = np.concatenate(colons)
    positions = positions[data[positions - 1] != BACKSLASH]
    return np.concatenate(commas).astype(np.int32), positions.astype(np.int32)


def _closing_braces(data: Bytes, line_bounds: Positions) -> tuple[Positions, Flags]:
    """Return where the closing brace of each line must be, and whether the line is an object.

    After a row of a packed record there is a comma, after another row perhaps a blank.
    """
    begins, ends = line_bounds[:-1], line_bounds[1:]
    last = np.maximum(ends - 2, begins)
    braces = np.maximum(last - np.isin(data[last], ENDS), begins)
    is_object = (data[begins] == OPEN) & (data[np.minimum(begins + 1, braces)] == QUOTE)
    return braces.astype(np.int32), is_object & (data[braces] == CLOSE)


def _name_numbers(text: bytes, begins: Positions, starts: Positions, names: list[str]) -> Positions:
    """Return the number of each name. A name stands between its beginning and the start of its value."""
    numbers = {b'"%s":' % name.encode(): number for number, name in enumerate(names)}
    encoded = _pieces(pa.binary(), text, begins, starts).dictionary_encode()
    number_of_code = [numbers.get(name, UNKNOWN) for name in encoded.dictionary.to_pylist()]
    name_numbers: Positions = np.array(number_of_code, np.int32)[raw_values(encoded.indices, np.int32)]
    return name_numbers


def _pieces(kind: pa.DataType, text: bytes, starts: Positions, ends: Positions) -> pa.Array:
    """Return the pieces of a text between starts and ends as a column. The pieces do not overlap."""
    count = len(starts)
    # In an Arrow column each value begins where the one before ends. So a column that shares the text has the
    # gaps as values, too: piece, gap, piece, gap ... take copies the pieces alone.
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[:-1:2] = starts
    offsets[1::2] = ends
    offsets[-1] = ends[-1] if count else 0  # the last gap is empty
    pieces_and_gaps = pa.Array.from_buffers(kind, 2 * count, [None, *map(pa.py_buffer, (offsets, text))])
    return pieces_and_gaps.take(as_array(np.arange(0, 2 * count, 2)))


def _column(values: Fields, field: Field, count: int) -> tuple[pa.Array, Flags]:
    """Return a field of `count` lines as a column, and for each line whether it has the right value.

    values: the lines' fields of this name.
    """
    # A line has a field once, or not at all if it is optional; null is no value.
    counts = np.bincount(values.lines, minlength=count)
    is_right = counts == 1 if field.required else counts <= 1
    has_value = is_right[values.lines]
    if not field.required:
        has_value &= ~values.equal(b"null")
    values = values.having(has_value)

    # Read the values, most of which are in quotes.
    if field.type not in (Type.INTEGER, Type.BOOLEAN):
        data = np.frombuffer(values.text, np.uint8)
        has_quotes = (data[values.starts] == QUOTE) & (data[values.ends - 1] == QUOTE)
        has_quotes &= values.ends - values.starts > 1
        is_right[values.lines[~has_quotes]] = False
        values = values.having(has_quotes)
        values = replace(values, starts=values.starts + 1, ends=values.ends - 1)
    column = read_values(values, field)
    if column.null_count:
        is_right[values.lines[~as_flags(column.is_valid())]] = False

    # The column gets null for each line without a value.
    if len(values.lines) == count:
        return column, is_right
    has_value = np.zeros(count, np.bool_)
    has_value[values.lines] = True
    indices = np.zeros(count, np.int64)
    indices[values.lines] = np.arange(len(values.lines))
    buffers = [flag_array(has_value).buffers()[1], pa.py_buffer(indices)]
    return column.take(pa.Array.from_buffers(pa.int64(), count, buffers)), is_right


def read_values(fields: Fields, field: Field) -> pa.Array:
    """Return the values of one field, without their quotes, as a column."""
    if field.type is Type.TEXT:
        texts = _texts(fields.values(pa.string()))
        sizes = pc.binary_length(texts)
        is_too_long = (pc.max(sizes).as_py() or 0) > field.bytes_max
        return _where(pc.less_equal(sizes, field.bytes_max), texts) if is_too_long else texts
    if field.type is Type.TIMESTAMP:
        return _moments(fields)
    # Each different value is read once: most columns have few.
    encoded = fields.values(pa.binary()).dictionary_encode()
    different_values = encoded.dictionary
    if field.type is Type.INTEGER:
        column = _matching(PLAIN_INTEGER, different_values).cast(pa.string()).cast(ARROW[Type.INTEGER])
    else:
        column = _values_one_by_one(different_values, field)
    return column.take(encoded.indices)


def _where(is_right: pa.BooleanArray, values: pa.Array) -> pa.Array:
    """Return a column with null for each value that is not right."""
    return pc.if_else(is_right, values, pa.nulls(1, values.type)[0])  # pa.scalar() would import pandas


def _matching(pattern: str, values: pa.Array) -> pa.Array:
    """Return a column with null for each value that does not match a pattern."""
    return _where(pc.match_substring_regex(values, pattern), values)


def _values_one_by_one(values: pa.Array, field: Field) -> pa.Array:
    """Return values as read_value reads each; null for one that it refuses."""
    quote = b"" if field.type is Type.BOOLEAN else b'"'
    parsed = []
    for value in values.to_pylist():
        try:
            parsed.append(read_value(field, quote + value + quote))
        except RowRefused:
            parsed.append(None)
    return array_of(parsed, ARROW[field.type])


def _moments(fields: Fields) -> pa.Array:
    """Return timestamps of the publisher's form as a column; null for each other value."""
    values = fields.values(pa.string())
    data = np.frombuffer(fields.text, np.uint8)
    if (fields.ends - fields.starts == STAMP_SIZE).all() and all(
        np.isin(data[fields.starts + position], tuple(marks)).all() for position, marks in STAMP_MARKS.items()
    ):
        try:
            return values.cast(ARROW[Type.TIMESTAMP])
        except pa.ArrowInvalid:  # one of them does not exist, but the others do
            pass
    return _matching(SURE_STAMP, values).cast(ARROW[Type.TIMESTAMP])


def _texts(values: pa.Array) -> pa.Array:
    """Return texts as a column. values: the insides of JSON texts, between their quotes; no nulls."""
    texts = _unescape(values)
    if texts is not None:
        return texts
    # One of them must be left to read_row, but the others need not.
    is_plain = pc.match_substring_regex(values, PLAIN_TEXT)
    plain_texts = _where(is_plain, values).fill_null("")  # a null would keep its characters
    return _where(is_plain, _unescape(plain_texts))


def _unescape(values: pa.Array) -> pa.Array | None:
    """Return texts without their backslashes; None if any has an escape that is a code, or is no text."""
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    if (data < SPACE).any():  # a control character
        return None
    backslashes, quotes = np.flatnonzero(data == BACKSLASH), np.flatnonzero(data == QUOTE)
    if not len(backslashes):
        return None if len(quotes) else values

    # Each escape must be within one text, and have a meaning. No quote may stand outside of an escape.
    escapes = _escapes(backslashes)
    offsets = np.frombuffer(values.buffers()[1], np.int32)[: len(values) + 1]
    is_edge = np.zeros(len(data) + 1, np.bool_)
    is_edge[offsets] = True
    if is_edge[escapes + 1].any():
        return None
    meanings = MEANINGS[data[escapes + 1]]
    if not meanings.all() or np.count_nonzero(meanings == QUOTE) != len(quotes):
        return None

    # Put each meaning in the place of the character behind the backslash, then leave out the backslashes.
    unescaped = data.copy()
    unescaped[escapes + 1] = meanings
    is_kept = np.ones(len(data), np.bool_)
    is_kept[escapes] = False
    new_offsets = (offsets - np.searchsorted(escapes, offsets)).astype(np.int32)
    buffers = [values.buffers()[0], pa.py_buffer(new_offsets), pa.py_buffer(unescaped[is_kept])]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def _escapes(backslashes: Indices) -> Indices:
    """Return the backslashes that escape the next character: of neighbours the first, the third ..."""
    is_first = np.concatenate([[True], np.diff(backslashes) != 1])
    numbers = np.arange(len(backslashes))
    number_of_first = np.maximum.accumulate(np.where(is_first, numbers, 0))
    escapes: Indices = backslashes[(numbers - number_of_first) % 2 == 0]
    return escapes


def _lie_in(moments: pa.Array, partition: Partition) -> Flags:
    """Return for each instant or date whether it lies in an hour. A date lies in its first hour."""
    begin = datetime.fromisoformat(f"{partition.dt}T{partition.hour}:00:00Z") - EPOCH
    if pa.types.is_date(moments.type):
        dates: Flags = (raw_values(moments, np.int32) == begin.days) & (partition.hour == "00")
        return dates
    passed = raw_values(moments, np.int64) - begin // MICROSECOND
    return (passed >= 0) & (passed < timedelta(hours=1) // MICROSECOND)
