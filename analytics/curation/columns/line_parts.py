"""Lines are cut into their fields without being parsed.

A line of a raw object is a flat JSON object. Before each of its fields but the first there is `,"`, and
behind each name `":`. Both are found for some thousand lines at once, and each field is known by its name:
fields may come in any order, and optional ones may be absent. Example:

    {"user_id":"u1","version":3,"dt":"2026-03-01","hour":"05"}

has three places of `,"` and four of `":`. Within a JSON text neither can stand, because its quotes would be
escaped; they can only end one, such as "x,". Then a line has not one `":` in each of its fields, and is
left out. So is a line with nested objects, or with blanks between its fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analytics.lake.arrow_buffers import Flags, Places, as_array, raw_values

PIECE_BYTES = 256 * 1024  # stay in the processor's cache
COMMA, QUOTE, COLON, BACKSLASH, OPEN, CLOSE = b',":\\{}'
ENDS = tuple(b", \t\r")
UNKNOWN = -1
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Parts:
    """Fields of some lines, each line's in their order.

    lines: the line of each field, counted from 0. names: the number of its name, or UNKNOWN.
    begins: where its name begins. starts, ends: where its value starts and ends.
    """

    text: bytes
    lines: Places
    names: Places
    begins: Places
    starts: Places
    ends: Places

    def __getitem__(self, some: Flags | Places | slice) -> "Parts":
        """Return some of the fields."""
        columns = (self.lines, self.names, self.begins, self.starts, self.ends)
        return Parts(self.text, *(each[some] for each in columns))


def cut(text: bytes, bounds: Places, wanted: Flags, numbers: Mapping[bytes, int]) -> tuple[Places, Parts]:
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
    parts = Parts(text, lines, _numbered(text, begins, starts, numbers), begins, starts, ends)
    if is_named.all():
        return found, parts
    return _without(found, parts, lines[~is_named])


def _without(found: Places, parts: Parts, unfit: Places) -> tuple[Places, Parts]:
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


def _numbered(text: bytes, begins: Places, starts: Places, numbers: Mapping[bytes, int]) -> Places:
    """Return the number of each name."""
    coded = between(pa.binary(), text, begins, starts).dictionary_encode()
    known = np.array([numbers.get(name, UNKNOWN) for name in coded.dictionary.to_pylist()], np.int32)
    found: Places = known[raw_values(coded.indices, np.int32)]
    return found


def between(kind: pa.DataType, text: bytes, starts: Places, ends: Places) -> pa.Array:
    """Return what stands between places of a text, each start at or after the end before it, as a column."""
    count = len(starts)
    # The offsets describe the values and what lies between them. take copies the values alone.
    offsets = np.empty(2 * count + 1, np.int32)
    offsets[:-1:2] = starts
    offsets[1::2] = ends
    offsets[-1] = ends[-1] if count else 0
    both = pa.Array.from_buffers(kind, 2 * count, [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    return both.take(as_array(np.arange(0, 2 * count, 2)))
