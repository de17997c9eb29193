"""The insides of JSON texts become the texts that they stand for."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analytics.curation.line_cutter import BACKSLASH, QUOTE
from analytics.lake.arrow import (
    Flags,
    Indices,
    array_of,
    as_array,
    as_flags,
)
from rules.lake.entities import Field
from rules.lake.valid_row import RowRefused, read_value

SPACE = ord(" ")
# The inside of a JSON text whose escapes have one character each, and are no code as in \u00e9.
PLAIN = r'^(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*$'
MEANINGS = np.zeros(256, np.uint8)  # what a character behind a backslash stands for; 0: it is no such escape
MEANINGS[list(b'"\\/bfnrt')] = list(b'"\\/\b\f\n\r\t')


def texts_of(valid: Flags, values: pa.Array, field: Field) -> pa.Array:
    """Return texts as a column. Clears the flags in `valid` of values that are no texts.

    values: the insides of JSON texts, between their quotes; no nulls.
    """
    if not _are_utf8(values):
        valid &= np.array([_is_utf8(value) for value in values.cast(pa.binary()).to_pylist()], np.bool_)
    texts = _unescape(values)
    return _texts_one_by_one(valid, values, field) if texts is None else texts


def _texts_one_by_one(valid: Flags, values: pa.Array, field: Field) -> pa.Array:
    """Return texts as texts_of does, where some values are no text, or have an escape that is a code.

    Such values are read by read_value, one by one.
    """
    indices = np.flatnonzero(valid)
    is_plain = as_flags(pc.match_substring_regex(values.take(as_array(indices)), PLAIN))
    plain, odd = indices[is_plain], indices[~is_plain]
    texts = [_text_of(field, value) for value in values.take(as_array(odd)).to_pylist()]
    valid[odd] = [text is not None for text in texts]
    # First come the plain texts, then the odd ones, then a null that stands for all invalid values. `take`
    # brings them into the order of the values.
    parts = [_unescape(values.take(as_array(plain))), array_of(texts, pa.string()), pa.nulls(1, pa.string())]
    positions = np.full(len(values), len(indices))
    positions[np.concatenate([plain, odd])] = np.arange(len(indices))
    return pa.concat_arrays(parts).take(as_array(positions))


def _unescape(values: pa.Array) -> pa.Array | None:
    """Return texts without their backslashes; None if any has an escape that is a code, or is no text."""
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    if len(data) and data.min() < SPACE:
        return None
    slashes, quotes = np.flatnonzero(data == BACKSLASH), np.flatnonzero(data == QUOTE)
    if not len(slashes):
        return None if len(quotes) else values
    if len(slashes) > 1 and (np.diff(slashes) == 1).any():
        slashes = _escapes(slashes)
    offsets = np.frombuffer(values.buffers()[1], np.int32)[: len(values) + 1]
    is_end = np.zeros(len(data) + 1, np.bool_)
    is_end[offsets] = True
    if is_end[slashes + 1].any():  # a text ends with a backslash that escapes nothing
        return None
    meanings = MEANINGS[data[slashes + 1]]
    if not meanings.all() or np.count_nonzero(meanings == QUOTE) != len(quotes):
        return None
    unescaped = data.copy()
    unescaped[slashes + 1] = meanings
    stays = np.ones(len(data), np.bool_)
    stays[slashes] = False
    new_offsets = (offsets - np.searchsorted(slashes, offsets)).astype(np.int32)
    buffers = [values.buffers()[0], pa.py_buffer(new_offsets), pa.py_buffer(unescaped[stays])]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def _escapes(slashes: Indices) -> Indices:
    """Return the backslashes that escape the next character: in a row of them the first, the third ..."""
    numbers = np.arange(len(slashes))
    is_first = np.concatenate([[True], np.diff(slashes) != 1])
    number_in_run = numbers - np.maximum.accumulate(np.where(is_first, numbers, 0))
    escapes: Indices = slashes[number_in_run % 2 == 0]
    return escapes


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


def _text_of(field: Field, inside: str) -> Any:
    """Return the text that the inside of a JSON text stands for; None if it is no JSON text."""
    try:
        return read_value(field, b'"%s"' % inside.encode())
    except RowRefused:
        return None
