"""Conversions between Arrow and NumPy that read and write the arrays' buffers directly.

pyarrow's usual conversions import pandas wherever it is installed. These do not.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]  # positions in a text


def as_array(numbers: Indices) -> pa.Int64Array:
    """Return numbers as an Arrow array that shares their memory."""
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def as_flags(array: pa.BooleanArray) -> Flags:
    """Return the values of an array of Booleans; a null becomes False."""
    values, valid = (_bits(array, buffer) for buffer in reversed(array.buffers()))
    return values & valid


def flag_array(flags: Flags) -> pa.BooleanArray:
    """Return flags as an Arrow array."""
    bits = np.packbits(flags, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(flags), [None, pa.py_buffer(bits)])


def raw_values(array: pa.Array, kind: type[np.generic]) -> npt.NDArray[Any]:
    """Return the stored values of an array of fixed width as `kind`. What stands for a null is undefined."""
    size = array.offset + len(array)
    return np.frombuffer(array.buffers()[1], kind, size)[array.offset :] if len(array) else np.zeros(0, kind)


def _bits(array: pa.BooleanArray, buffer: pa.Buffer | None) -> Flags:
    if buffer is None or not len(array):
        return np.ones(len(array), np.bool_)
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].view(np.bool_)
