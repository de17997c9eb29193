"""Lines are read by columns where they differ in their values alone (see line_shapes.py).

A line's fields begin at the places of `,"`, so no line is parsed. These two bytes cannot stand within a
JSON text, where the quote would be escaped. They can only end one, such as "x,"; then the text around the
values is not that of a shape, and the line is left to read_row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from analytics.curation.line_shapes import Shape, shape_of
from analytics.curation.raw_lines import Batch
from analytics.curation.value_columns import Cuts, read_values
from analytics.lake.arrow_buffers import Flags, Places, as_array
from analytics.lake.arrow_schema import arrow_schema
from analytics.lake.layout import Place
from rules.lake.entities import ENTITIES

PIECE_BYTES = 256 * 1024
COMMA, QUOTE = ord(","), ord('"')
LINES_AT_ONCE = 20_000  # their values stay in the processor's cache
LEFT_MAX = 100  # one line of so many may be left over
SHAPES_MAX = 8
LINES_LOOKED_AT = 4


@dataclass(slots=True)
class ColumnReader:
    """Reads lines by columns, and remembers the shapes that it has met."""

    known: list[Shape] = field(default_factory=list)

    def read(self, batch: Batch, place: Place) -> Iterator[tuple[pa.Table, Places]]:
        """Yield rows of a batch, and the indices of their lines. Some lines are left over.

        Each row is the one that read_row returns for its line.
        """
        ends = np.frombuffer(batch.lines.buffers()[1], np.int32)
        for first in range(0, len(batch.lines), LINES_AT_ONCE):
            bounds = ends[first : first + LINES_AT_ONCE + 1]
            frame = batch.frame[first : first + LINES_AT_ONCE]
            for rows, lines in self._piece(batch.text, bounds, ~frame, place):
                yield rows, lines + first

    def _piece(
        self, text: bytes, bounds: Places, left: Flags, place: Place
    ) -> Iterator[tuple[pa.Table, Places]]:
        """left: the lines to read; which of them are still left is noted there."""
        commas = commas_of(text, bounds[0], bounds[-1])
        first = np.searchsorted(commas, bounds).astype(np.int32)
        counts = np.diff(first)
        tried: list[Shape] = []
        while np.count_nonzero(left) * LEFT_MAX > len(counts):
            some = np.flatnonzero(left)[:LINES_LOOKED_AT]
            shape = self._next(place, tried, [text[bounds[i] : bounds[i + 1]] for i in some])
            if not shape:
                return
            tried.append(shape)
            lines = np.flatnonzero(left & (counts == shape.commas)).astype(np.int32)
            rows, found = _read(shape, text, (bounds[lines], bounds[lines + 1]), commas, first[lines])
            left[lines[found]] = False
            yield rows, lines[found]

    def _next(self, place: Place, tried: Sequence[Shape], lines: Sequence[bytes]) -> Shape | None:
        """Return a shape not tried yet: a known one, or that of one of these lines."""
        known = [shape for shape in self.known if shape.place == place]
        for shape in known:
            if shape not in tried:
                return shape
        for line in lines if len(known) < SHAPES_MAX else ():
            found = shape_of(line, place)
            if found and found not in known:
                self.known.append(found)
                return found
        return None


def commas_of(text: bytes, begin: int, end: int) -> Places:
    """Return the places of `,"`; found in pieces that stay in the processor's cache."""
    data = np.frombuffer(text, np.uint8)
    found = []
    for at in range(begin, end, PIECE_BYTES):
        piece = data[at : min(at + PIECE_BYTES, end - 1) + 1]
        found.append(np.flatnonzero((piece[:-1] == COMMA) & (piece[1:] == QUOTE)) + at)
    return np.concatenate(found).astype(np.int32) if found else np.zeros(0, np.int32)


def _read(
    shape: Shape, text: bytes, bounds: tuple[Places, Places], commas: Places, first: Places
) -> tuple[pa.Table, Places]:
    """Return the rows among lines that have as many commas as a shape, and which lines they are of.

    bounds: where each line begins and ends. first: the index of each line's first in commas.
    """
    begin, end = bounds
    starts, ends = _value_bounds(shape, begin, end, commas, first)
    lines = np.flatnonzero(_fits(shape, begin, end, starts, ends)).astype(np.int32)
    if len(lines) < len(begin):
        begin, starts, ends = begin[lines], [s[lines] for s in starts], [e[lines] for e in ends]
    valid = np.ones(len(lines), np.bool_)
    columns: dict[str, pa.Array] = {}
    previous = begin
    for slot, start, stop in zip(shape.slots, starts, ends, strict=True):
        _check_text(valid, text, previous, slot.text)
        columns[slot.field.name] = read_values(valid, Cuts(text, start, stop), slot.field, shape.place)
        previous = stop
    _check_text(valid, text, previous, shape.end)
    schema = arrow_schema(ENTITIES[shape.place.entity])
    arrays = [columns.get(each.name, pa.nulls(len(lines), each.type)) for each in schema]
    table = pa.Table.from_arrays(arrays, schema=schema)
    if not valid.all():
        kept = np.flatnonzero(valid)
        table, lines = table.take(as_array(kept)), lines[kept]
    return table, lines


def _value_bounds(
    shape: Shape, begin: Places, end: Places, commas: Places, first: Places
) -> tuple[list[Places], list[Places]]:
    """Return where the values of each slot start and end, if lines have the shape."""
    edges = {0: begin - 1, shape.commas + 1: end}
    needed = {slot.part for slot in shape.slots} | {slot.part + 1 for slot in shape.slots}
    edges |= {part: commas[first + (part - 1)] for part in needed - edges.keys()}
    starts = [edges[slot.part] + (1 + slot.before) for slot in shape.slots]
    return starts, [edges[slot.part + 1] - slot.after for slot in shape.slots]


def _fits(
    shape: Shape, begin: Places, end: Places, starts: Sequence[Places], ends: Sequence[Places]
) -> Flags:
    """Tell for which lines the texts around the values have the shape's lengths."""
    previous, fits = begin, np.ones(len(begin), np.bool_)
    for slot, start, stop in zip(shape.slots, starts, ends, strict=True):
        fits &= (start - previous == len(slot.text)) & (stop >= start)
        previous = stop
    fits &= end - previous == len(shape.end)
    return fits


def _check_text(valid: Flags, text: bytes, places: Places, wanted: bytes) -> None:
    """Clear the flags of lines that have something else than the wanted bytes at a place."""
    size = len(wanted)
    if size and len(places):
        there = np.ndarray((len(text) - size + 1,), f"V{size}", text, strides=(1,))[places]
        if there.tobytes() != wanted * len(places):
            valid &= there == np.frombuffer(wanted, f"V{size}")[0]
