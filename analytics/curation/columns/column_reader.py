"""Lines are read by columns: all values of one field of some thousand lines together (see line_parts.py).

rules/lake/valid_row.py says what a row is. A line is read here only if each of its fields has a name and a
value that are surely what read_row would take. Every other line is left to read_row.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from analytics.curation.columns.line_parts import QUOTE, UNKNOWN, Parts, cut
from analytics.curation.columns.value_columns import Cuts, first_moment, read_values
from analytics.curation.raw_lines import Batch
from analytics.lake.arrow_buffers import Flags, Places, array_of, as_array, flag_array
from analytics.lake.arrow_schema import arrow_schema
from analytics.lake.layout import Place
from rules.lake.entities import ENTITIES, Entity, Field, Type
from rules.lake.valid_row import RowRefused, extra_of

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


def _rows(text: bytes, bounds: Places, wanted: Flags, place: Place) -> Iterator[tuple[pa.Table, Places]]:
    entity = ENTITIES[place.entity]
    names = [*(field.name for field in entity.fields), "dt", "hour"]
    numbers = {b'"%s":' % name.encode(): number for number, name in enumerate(names)}
    lines, parts = cut(text, bounds, wanted, numbers)
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
    values = _once(valid, values, field.required)
    if not field.required:
        are_null = _are(values, NULL)
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


def _once(valid: Flags, values: Parts, required: bool) -> Parts:
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


def _are(values: Parts, wanted: bytes) -> Flags:
    """Tell which values are written as wanted."""
    size = len(wanted)
    found: Flags = values.ends - values.starts == size
    some = values.starts[found]
    if len(some):
        there = np.ndarray((len(values.text) - size + 1,), f"V{size}", values.text, strides=(1,))[some]
        if there.tobytes() != wanted * len(some):
            found[found] = there == np.frombuffer(wanted, f"V{size}")[0]
    return found


def _check_partition(valid: Flags, values: Parts, wanted: bytes) -> None:
    values = _once(valid, values, required=True)
    valid[values.lines[~_are(values, wanted)]] = False


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
