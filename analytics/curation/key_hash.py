"""A hash of the key of each row: equal keys have equal hashes, and others spread evenly."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analytics.lake.arrow_buffers import raw_values

Hashes = npt.NDArray[np.uint64]
WORD = 8  # bytes
# MurmurHash3's 64-bit finalizer mixes every bit of a word into all others.
FACTOR, SHIFT = np.uint64(0xFF51AFD7ED558CCD), np.uint64(33)
# For a text's last 1 to 7 bytes: which bits of its last word are its own.
MASKS = np.array([2 ** (8 * size) - 1 for size in range(WORD + 1)], np.uint64)


def hashes(columns: Sequence[pa.Array]) -> Hashes:
    """Return a hash for each row of a key's columns, which have no nulls."""
    found = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        if pa.types.is_string(column.type):
            _mix_texts(found, column)
        else:
            width: type[Any] = np.int32 if pa.types.is_date(column.type) else np.int64
            found = _mixed(found, raw_values(column, width).astype(np.uint64))
    return found


def _mixed(found: Hashes, words: Hashes) -> Hashes:
    found = (found ^ words) * FACTOR
    return found ^ (found >> SHIFT)


def _mix_texts(found: Hashes, column: pa.StringArray) -> None:
    """Mix texts in, word after word, each with its length."""
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    data = column.buffers()[2]
    padded = np.zeros((data.size if data else 0) + WORD, np.uint8)
    if data:
        padded[: data.size] = np.frombuffer(data, np.uint8)
    every = np.ndarray((len(padded) - WORD + 1,), "<u8", padded, strides=(1,))
    sizes = np.diff(offsets)
    found[:] = _mixed(found, sizes.astype(np.uint64))
    rows = np.arange(len(column))
    for at in range(0, int(sizes.max(initial=0)), WORD):
        rows = rows[sizes[rows] > at]
        left = np.minimum(sizes[rows] - at, WORD)
        found[rows] = _mixed(found[rows], every[offsets[rows] + at] & MASKS[left])
