"""Lines that differ in their values alone are read by columns: the publisher writes all but all lines so.

A shape is a line without its values. Whatever has the same text around its values, and values of the
declared types, is a row; line_pattern.py and strict_reader.py see to all other lines.
Nothing parses a line: its fields begin at the places of `,"`, which cannot stand in a JSON text
(where the quote would be escaped) but at its end, and then the text around the values differs.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from analytics.curation.raw_lines import Batch
from analytics.curation.value_columns import Cuts, exists, read_values
from analytics.lake.arrow_buffers import Flags, Places, as_array
from analytics.lake.arrow_schema import arrow_schema
from analytics.lake.layout import Place
from rules.lake.entities import ENTITIES, Field, Type

FIELD = re.compile(
    rb'(\{?[ \t]*"([^"\\]*)"[ \t]*:[ \t]*)("(?:[^"\\]|\\.)*"|[-0-9a-z]+)([ \t]*\}?[ \t\r\n]*)', re.DOTALL
)
PIECE_BYTES = 256 * 1024
COMMA, QUOTE = 44, 34
LINES_AT_ONCE = 20_000  # their values stay in the processor's cache
LEFT_MAX = 100  # one line of so many may be left over
SHAPES_MAX = 8
LINES_LOOKED_AT = 4


@dataclass(frozen=True, slots=True)
class Slot:
    """A value of a shape: the field at `at` (counted from 0), after `before` and ahead of `after`."""

    field: Field
    at: int
    before: int
    after: int
    text: bytes  # all that is between the value before this one and this one


@dataclass(frozen=True, slots=True)
class Shape:
    """The text around the values of lines. commas: how many `,"` a line has. end: what is last."""

    place: Place
    commas: int
    slots: tuple[Slot, ...]
    end: bytes

    def read(
        self, text: bytes, bounds: tuple[Places, Places], commas: Places, first: Places
    ) -> tuple[pa.Table, Places]:
        """Return the rows among lines of this many commas, and which lines they are of.

        bounds: where each line begins and ends. first: the index of each line's first in commas.
        """
        begin, end = bounds
        starts, ends = self._bounds(begin, end, commas, first)
        lines = np.flatnonzero(_fits(self, begin, end, starts, ends)).astype(np.int32)
        if len(lines) < len(begin):
            begin, starts, ends = begin[lines], [s[lines] for s in starts], [e[lines] for e in ends]
        valid = np.ones(len(lines), np.bool_)
        columns: dict[str, pa.Array] = {}
        previous = begin
        for slot, start, stop in zip(self.slots, starts, ends, strict=True):
            _check(valid, text, previous, slot.text)
            cuts = Cuts(text, start, stop)
            columns[slot.field.name] = read_values(valid, cuts, slot.field, self.place)
            previous = stop
        _check(valid, text, previous, self.end)
        schema = arrow_schema(ENTITIES[self.place.entity])
        arrays = [columns.get(each.name, pa.nulls(len(lines), each.type)) for each in schema]
        table = pa.Table.from_arrays(arrays, schema=schema)
        if not valid.all():
            kept = np.flatnonzero(valid)
            table, lines = table.take(as_array(kept)), lines[kept]
        return table, lines

    def _bounds(
        self, begin: Places, end: Places, commas: Places, first: Places
    ) -> tuple[list[Places], list[Places]]:
        """Return where each slot's values start and end."""
        edges = {0: begin - 1, self.commas + 1: end}
        needed = {slot.at for slot in self.slots} | {slot.at + 1 for slot in self.slots}
        edges |= {at: commas[first + (at - 1)] for at in needed - edges.keys()}
        starts = [edges[slot.at] + (1 + slot.before) for slot in self.slots]
        return starts, [edges[slot.at + 1] - slot.after for slot in self.slots]


def shape_of(line: bytes, place: Place) -> Shape | None:
    """Return the shape of a line (with its newline), if it has one and may be a row of the place."""
    entity = ENTITIES[place.entity]
    parts = re.split(rb',(?=")', line)
    found = [FIELD.fullmatch(part) for part in parts]
    names = [each[2].decode(errors="replace") for each in found if each]
    required = {field.name for field in entity.fields if field.required} | {"dt", "hour"}
    if len(names) != len(set(names)) or len(names) < len(parts) or not required <= set(names):
        return None
    fields = {field.name: field for field in entity.fields}
    slots: list[Slot] = []
    text, last = b"", len(parts) - 1
    for at, (name, part) in enumerate(zip(names, found, strict=True)):
        if part is None or not _may_stand(part, fields.get(name), at, last, place):
            return None
        before, _, value, after = part.groups()
        text += before if at == 0 else b"," + before
        if name in fields and value != b"null":
            quote = b'"' * value.startswith(b'"')
            size = len(quote)
            slots.append(Slot(fields[name], at, len(before) + size, len(after) + size, text + quote))
            text = quote + after
        else:
            text += value + after
    return Shape(place, last, tuple(slots), text)


def _may_stand(part: re.Match[bytes], field: Field | None, at: int, last: int, place: Place) -> bool:
    """Tell whether a field's text is that of a line's at-th, of a type that the field may have."""
    before, name, value, after = part.groups()
    if before.startswith(b"{") != (at == 0) or (b"}" in after) != (at == last) or not exists(place):
        return False
    if field is None:
        wanted = {b"dt": place.dt, b"hour": place.hour}.get(name)
        return wanted is not None and value == f'"{wanted}"'.encode()
    if value == b"null":
        return not field.required
    return value.startswith(b'"') != (field.type in (Type.INTEGER, Type.BOOLEAN))


@dataclass(slots=True)
class Shapes:
    """The shapes of the lines of one task, as they are met."""

    known: list[Shape] = field(default_factory=list)

    def read(self, batch: Batch, place: Place) -> Iterator[tuple[pa.Table, Places]]:
        """Yield rows of a batch, and the indices of their lines; some lines are left over."""
        ends = np.frombuffer(batch.lines.buffers()[1], np.int32)
        for first in range(0, len(batch.lines), LINES_AT_ONCE):
            bounds = ends[first : first + LINES_AT_ONCE + 1]
            for rows, lines in self._piece(batch.text, bounds, place):
                yield rows, lines + first

    def _piece(self, text: bytes, bounds: Places, place: Place) -> Iterator[tuple[pa.Table, Places]]:
        commas = commas_of(text, bounds[0], bounds[-1])
        first = np.searchsorted(commas, bounds).astype(np.int32)
        counts = np.diff(first)
        left = np.ones(len(counts), np.bool_)
        tried: list[Shape] = []
        while np.count_nonzero(left) * LEFT_MAX > len(counts):
            some = np.flatnonzero(left)[:LINES_LOOKED_AT]
            shape = self._next(place, tried, [text[bounds[i] : bounds[i + 1]] for i in some])
            if not shape:
                return
            tried.append(shape)
            lines = np.flatnonzero(left & (counts == shape.commas)).astype(np.int32)
            rows, found = shape.read(text, (bounds[lines], bounds[lines + 1]), commas, first[lines])
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


def _check(valid: Flags, text: bytes, places: Places, wanted: bytes) -> None:
    """Clear the flags of lines that have something else than the wanted bytes at a place."""
    size = len(wanted)
    if size and len(places):
        there = np.ndarray((len(text) - size + 1,), f"V{size}", text, strides=(1,))[places]
        if there.tobytes() != wanted * len(places):
            valid &= there == np.frombuffer(wanted, f"V{size}")[0]
