"""Reads raw lines by columns: all values of one field, of some thousand lines at once.

rules/lake/valid_row.py says what a row is. A line is read here only if read_row would surely return the same
row. Every other line is left to read_row. There are three steps:

1. Lines are cut into their fields without being parsed (line_cutter.py).
2. The values of a field become a column (value_columns.py).
3. The insides of JSON texts become the texts that they stand for (json_texts.py).

Each step gets an array with a flag for each line or value, and clears the flags of those that it cannot read.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from analytics.curation.line_cutter import QUOTE, UNKNOWN, Fields, cut_lines
from analytics.curation.raw_lines import Batch
from analytics.curation.value_columns import Cuts, first_moment, read_values
from analytics.lake.arrow import (
    Flags,
    Positions,
    array_of,
    arrow_schema,
    as_array,
    flag_array,
)
from analytics.lake.layout import Place
from rules.lake.entities import ENTITIES, Entity, Field, Type
from rules.lake.valid_row import RowRefused, extra_of

LINES_AT_ONCE = 20_000  # their values stay in the processor's cache
SLICES_MAX = 64  # more slices of rows take longer than a copy
NULL = b"null"


def read_columns(batch: Batch, place: Place) -> Iterator[tuple[pa.Table, Positions]]:
    """Yield rows of a batch, and the indices of their lines. Lines that are not yielded are for read_row.

    place: the hour of the batch's objects. Each row is the one that read_row would return for its line.
    """
    if first_moment(place) is None:
        return
    ends = np.frombuffer(batch.lines.buffers()[1], np.int32)
    for first in range(0, len(batch.lines), LINES_AT_ONCE):
        bounds = ends[first : first + LINES_AT_ONCE + 1]
        wanted = ~batch.frame[first : first + LINES_AT_ONCE]
        for rows, lines in _rows(batch.text, bounds, wanted, place):
            yield rows, lines + first


def _rows(
    text: bytes, bounds: Positions, wanted: Flags, place: Place
) -> Iterator[tuple[pa.Table, Positions]]:
    """Yield rows, and the indices of their lines. bounds, wanted: see cut_lines."""
    entity = ENTITIES[place.entity]
    names = [*(field.name for field in entity.fields), "dt", "hour"]
    numbers = {b'"%s":' % name.encode(): number for number, name in enumerate(names)}
    lines, fields = cut_lines(text, bounds, wanted, numbers)
    valid = np.ones(len(lines), np.bool_)
    # All fields of one name come together, in the order of their lines. Unknown names have the least number.
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
    yield from _valid_rows(pa.Table.from_arrays(columns, schema=arrow_schema(entity)), lines, valid)


def _valid_rows(rows: pa.Table, lines: Positions, valid: Flags) -> Iterator[tuple[pa.Table, Positions]]:
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
