"""Cuts raw lines into their fields without parsing them.

A line of a raw object is a flat JSON object. Before each of its fields but the first there is `,"`, and after
each name `":`. Both are searched in some thousand lines at once. Each field is known by its name, so fields
may come in any order, and optional ones may be absent. The line
`{"user_id":"u1","version":3,"dt":"2026-03-01","hour":"05"}` has `,"` three times and `":` four times.

Neither can be inside of a JSON text, whose quotes are escaped. But `,"` can be the end of one, such as "x,".
Then some field of the line has no `":`, and the line is left out. So is a line with nested objects, or with
blanks between its fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analytics.lake.arrow import (
    Flags,
    Positions,
    as_array,
    raw_values,
)

PIECE_BYTES = 256 * 1024  # of text that are searched at once: they stay in the processor's cache
COMMA, QUOTE, COLON, BACKSLASH, OPEN, CLOSE = b',":\\{}'
ENDS = tuple(b", \t\r")  # may come between an object and its newline
UNKNOWN = -1  # the number of a name that the entity does not have
Bytes = npt.NDArray[np.uint8]


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
