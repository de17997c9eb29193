"""Curated rows in memory: which row of each key is kept, and in which order.

Sorting all rows by their whole keys takes nearly three times as long as this. Here the rows are sorted by a
number made of the first bytes in which keys differ (a code). Only rows with equal codes are compared in full.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analytics.lake.arrow import Indices, as_array, as_flags, raw_values
from rules.lake.entities import Entity

SAMPLE_ROWS = 2_000  # of a column, by which its number of different values is judged
FEW_VALUES = 50  # in a sample: a column with no more is sorted by ranks
WORD, WINDOW = 8, 24  # bytes of a code, and bytes of a text from which the code's are chosen
Codes = npt.NDArray[Any]  # integers, one a row, in the order of the rows' values


def concat_tables(parts: list[pa.Table], schema: pa.Schema) -> pa.Table:
    """Return tables as one, with one chunk a column.

    Empties the list, and frees each column as soon as it is copied, so that few rows are in memory twice.
    """
    columns_by_name = {field.name: [part[field.name] for part in parts] for field in schema}
    parts.clear()
    columns = []
    for field in schema:
        chunks = [chunk for column in columns_by_name.pop(field.name) for chunk in column.chunks]
        columns.append(pa.concat_arrays(chunks) if chunks else pa.nulls(0, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def newest_versions(entity: Entity, rows: pa.Table) -> Indices:
    """Return the indices of rows to keep, sorted: each key's newest version, among equals the first.

    rows: one chunk a column, the entity's columns and `n`, a number that says in which order they came.
    """
    if not rows.num_rows:
        return np.zeros(0, np.int64)
    order, is_tied_with_previous = _rough_order(entity, rows)
    if not is_tied_with_previous.any():
        return order
    is_tied = np.zeros(len(order), np.bool_)
    is_tied[1:] = is_tied_with_previous
    is_tied[:-1] |= is_tied_with_previous
    order[is_tied], is_first = _full_order(entity, rows, order[is_tied])
    is_newest = np.ones(len(order), np.bool_)
    is_newest[is_tied] = is_first
    return order[is_newest]


def _rough_order(entity: Entity, rows: pa.Table) -> tuple[Indices, npt.NDArray[np.bool_]]:
    """Return the order of rows by codes of their keys.

    Also returns for each row but the first whether its key may be equal to that of the row before. If the
    key's first column has few values, such as the sources of leads' events, the second column decides too.
    """
    first = rows[entity.key[0]].chunk(0)
    second = rows[entity.key[1]].chunk(0) if len(entity.key) > 1 else None
    ranks = None if second is None or second.null_count else _ranks(first)
    if second is None or ranks is None:
        codes = _codes(first)
        order = np.argsort(codes)
        codes = codes[order]
        return order, codes[1:] == codes[:-1]
    codes = _codes(second)
    order = np.argsort(codes)
    # A stable sort after the sort by codes: together they sort by rank, and within a rank by code.
    order = order[np.argsort(ranks[order], kind="stable")]
    ranks, codes = ranks[order], codes[order]
    return order, (ranks[1:] == ranks[:-1]) & (codes[1:] == codes[:-1])


def _ranks(column: pa.Array) -> Codes | None:
    """Return each value's rank among the column's different values; None if there are many of them."""
    if not pa.types.is_string(column.type) or column.null_count:
        return None
    if pc.count_distinct(column.slice(0, SAMPLE_ROWS)).as_py() > FEW_VALUES:
        return None
    encoded = column.dictionary_encode()
    if len(encoded.dictionary) > np.iinfo(np.uint16).max:
        return None
    ranks_of_values = raw_values(pc.rank(encoded.dictionary, "ascending"), np.uint64)
    ranks: Codes = (ranks_of_values - 1).astype(np.uint16)[raw_values(encoded.indices, np.int32)]
    return ranks


def _full_order(entity: Entity, rows: pa.Table, indices: Indices) -> tuple[Indices, npt.NDArray[np.bool_]]:
    """Return indices sorted by key, each key's newest version first, and whether each row begins its key."""
    names = list(dict.fromkeys([*entity.key, *([entity.version] if entity.version else []), "n"]))
    chosen = rows.select(names).take(as_array(indices))
    by: list[tuple[str, str]] = [(name, "ascending") for name in entity.key]
    if entity.version and entity.version not in entity.key:
        by.append((entity.version, "descending"))
    order = pc.sort_indices(chosen, [*by, ("n", "ascending")])
    return indices[raw_values(order, np.uint64).astype(np.int64)], begins_key(entity, chosen.take(order))


def begins_key(entity: Entity, rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Return for each row whether its key differs from that of the row before. rows: sorted by their keys."""
    begins = np.ones(rows.num_rows, np.bool_)
    begins[1:] = False
    for name in entity.key:
        column = rows[name].combine_chunks()
        begins[1:] |= ~as_flags(pc.equal(column.slice(1), column.slice(0, len(column) - 1)))
    return begins


def _codes(column: pa.Array) -> Codes:
    """Return a code for each value. Of two values, the larger one never has the smaller code.

    The code of a text leaves out the prefix that all texts share. Of the next WINDOW byte positions it takes
    the first WORD at which not all texts are equal, and reads these bytes as one big-endian number.
    """
    if not pa.types.is_string(column.type):
        return raw_values(column, np.int32 if pa.types.is_date(column.type) else np.int64)
    common = _common_prefix(column)
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    data = column.buffers()[2]
    padded = np.zeros((data.size if data else 0) + WINDOW, np.uint8)
    if data:
        padded[: data.size] = np.frombuffer(data, np.uint8)
    # A view of the bytes as overlapping windows, one at each position: no byte is copied.
    all_windows = np.ndarray((len(padded) - WINDOW + 1,), f"V{WINDOW}", padded, strides=(1,))
    windows = all_windows[offsets[:-1] + common].view(np.uint8).reshape(-1, WINDOW)
    sizes = np.diff(offsets) - common
    if sizes.min() < WINDOW:  # a short text's window has bytes of the next value, which become 0
        windows[np.arange(WINDOW) >= sizes[:, None]] = 0
    differing = np.flatnonzero((windows != windows[0]).any(axis=0))[:WORD]
    words = np.zeros((len(column), WORD), np.uint8)
    words[:, : len(differing)] = windows[:, differing]
    return words.view(">u8").ravel().astype(np.uint64)


def _common_prefix(column: pa.Array) -> int:
    """Return how many bytes all texts of a column have in common at their beginning."""
    ends = pc.min_max(column)
    low, high = ends["min"].as_py() or "", ends["max"].as_py() or ""
    low, high = low.encode(), high.encode()
    size = min(len(low), len(high))
    return next((at for at in range(size) if low[at] != high[at]), size)
