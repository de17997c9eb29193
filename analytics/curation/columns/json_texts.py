"""The insides of JSON texts become a column of the texts that they stand for."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.lake.arrow_buffers import Flags, Indices, array_of, as_array, as_flags
from rules.lake.schema import Field
from rules.lake.valid_row import RowRefused, read_value

# The inside of a JSON text whose escapes have one character each, and are no code as in \u00e9.
PLAIN = r'^(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*$'
MEANINGS = np.zeros(256, np.uint8)  # of a character behind a backslash; 0: it is no such escape
MEANINGS[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')
SPACE, QUOTE, BACKSLASH = b' "\\'


def texts_of(valid: Flags, values: pa.Array, field: Field) -> pa.Array:
    """Return texts as a column, from what stands between their quotes. Clears the flags of what is no text.

    values: no nulls.
    """
    if not _are_utf8(values):
        valid &= np.array([_is_utf8(each) for each in values.cast(pa.binary()).to_pylist()], np.bool_)
    texts = _unescaped(values)
    return _one_by_one(valid, values, field) if texts is None else texts


def _one_by_one(valid: Flags, values: pa.Array, field: Field) -> pa.Array:
    """Read texts of which some are none, or have an escape that is a code: these read_value reads."""
    some = np.flatnonzero(valid)
    is_plain = as_flags(pc.match_substring_regex(values.take(as_array(some)), PLAIN))
    plain, odd = some[is_plain], some[~is_plain]
    read = [_read(field, each) for each in values.take(as_array(odd)).to_pylist()]
    valid[odd] = [each is not None for each in read]
    places = np.full(len(values), len(some))
    places[np.concatenate([plain, odd])] = np.arange(len(some))
    parts = [_unescaped(values.take(as_array(plain))), array_of(read, pa.string()), pa.nulls(1, pa.string())]
    return pa.concat_arrays(parts).take(as_array(places))


def _unescaped(values: pa.Array) -> pa.Array | None:
    """Return texts without their backslashes; None if any of them has another escape, or is no text."""
    held = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    if len(held) and held.min() < SPACE:
        return None
    slashes, quotes = np.flatnonzero(held == BACKSLASH), np.flatnonzero(held == QUOTE)
    if not len(slashes):
        return None if len(quotes) else values
    if len(slashes) > 1 and (np.diff(slashes) == 1).any():
        slashes = _escapes(slashes)
    offsets = np.frombuffer(values.buffers()[1], np.int32)[: len(values) + 1]
    ends_within = np.zeros(len(held) + 1, np.bool_)
    ends_within[offsets] = True
    if ends_within[slashes + 1].any():
        return None
    meant = MEANINGS[held[slashes + 1]]
    if not meant.all() or np.count_nonzero(meant == QUOTE) != len(quotes):
        return None
    found = held.copy()
    found[slashes + 1] = meant
    kept = np.ones(len(held), np.bool_)
    kept[slashes] = False
    moved = (offsets - np.searchsorted(slashes, offsets)).astype(np.int32)
    buffers = [values.buffers()[0], pa.py_buffer(moved), pa.py_buffer(found[kept])]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def _escapes(slashes: Indices) -> Indices:
    """Return the backslashes that escape what follows: of some in a row the first, the third and so on."""
    places = np.arange(len(slashes))
    is_first = np.concatenate([[True], np.diff(slashes) != 1])
    behind = places - np.maximum.accumulate(np.where(is_first, places, 0))
    found: Indices = slashes[behind % 2 == 0]
    return found


def _are_utf8(values: pa.Array) -> bool:
    if np.frombuffer(values.buffers()[2] or b"", np.uint8).max(initial=0) < 128:
        return True
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _read(field: Field, inside: str) -> Any:
    try:
        return read_value(field, b'"%s"' % inside.encode())
    except RowRefused:
        return None
