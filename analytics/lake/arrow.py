"""Arrow's types of the lake's columns, and conversions between Arrow and NumPy.

The conversions read and write the arrays' buffers directly. pyarrow's own would import pandas wherever it is
installed.
"""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rules.days import EPOCH, MICROSECOND
from rules.lake.entities import EXTRA, Entity, Type

Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int32]  # positions in a text
# The types of an entity's fields, as Arrow and as the Glue catalog write them
ARROW = {
    Type.TEXT: pa.string(),
    Type.INTEGER: pa.int64(),
    Type.BOOLEAN: pa.bool_(),
    Type.DATE: pa.date32(),
    Type.TIMESTAMP: pa.timestamp("us", tz="UTC"),
}
HIVE = {
    Type.TEXT: "string",
    Type.INTEGER: "bigint",
    Type.BOOLEAN: "boolean",
    Type.DATE: "date",
    Type.TIMESTAMP: "timestamp",
}


def as_array(numbers: Indices) -> pa.Int64Array:
    """Return numbers as an Arrow array that shares their memory."""
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def array_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return Python values, None for null, as an Arrow array of a type that the lake's columns have."""
    is_valid = np.array([value is not None for value in values], np.bool_)
    buffers: list[Any] = [np.packbits(is_valid, bitorder="little")]
    if pa.types.is_string(kind):
        texts = [(value or "").encode() for value in values]
        buffers += [np.cumsum([0, *map(len, texts)]).astype(np.int32), b"".join(texts)]
    elif pa.types.is_boolean(kind):
        buffers.append(np.packbits(np.array(values, np.bool_), bitorder="little"))
    else:
        width = np.int32 if pa.types.is_date(kind) else np.int64
        buffers.append(np.array([_stored_number(value) for value in values], width))
    return pa.Array.from_buffers(kind, len(values), [pa.py_buffer(buffer) for buffer in buffers])


def _stored_number(value: Any) -> int:
    """Return a value as the number that Arrow stores for it: days, or microseconds."""
    if isinstance(value, datetime):
        return (value - EPOCH) // MICROSECOND
    if isinstance(value, date):
        return (value - EPOCH.date()).days
    return value or 0


def as_flags(array: pa.BooleanArray) -> Flags:
    """Return the values of an array of Booleans; a null becomes False."""
    values, valid = (_bits(array, buffer) for buffer in reversed(array.buffers()))
    return values & valid


def flag_array(flags: Flags) -> pa.BooleanArray:
    """Return flags as an Arrow array."""
    bits = np.packbits(flags, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(flags), [None, pa.py_buffer(bits)])


def raw_values(array: pa.Array, kind: type[np.generic]) -> npt.NDArray[Any]:
    """Return the stored values of an array of fixed width as `kind`. The value of a null is undefined."""
    size = array.offset + len(array)
    return np.frombuffer(array.buffers()[1], kind, size)[array.offset :] if len(array) else np.zeros(0, kind)


def _bits(array: pa.BooleanArray, buffer: pa.Buffer | None) -> Flags:
    """Return the bits of an array's buffer as flags. A buffer that is not there means that all are set."""
    if buffer is None or not len(array):
        return np.ones(len(array), np.bool_)
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].view(np.bool_)


def arrow_schema(entity: Entity) -> pa.Schema:
    """Return the columns of an entity's curated files: its fields as declared, then `extra`."""
    # In the files every column is nullable, even a required one: curation has checked the rows.
    fields = [pa.field(field.name, ARROW[field.type]) for field in entity.fields]
    return pa.schema([*fields, pa.field(EXTRA, pa.string())])


def glue_columns(entity: Entity) -> list[dict[str, str]]:
    """Return the columns of an entity's curated files as the Glue catalog lists them, in the same order."""
    fields = [{"Name": field.name, "Type": HIVE[field.type], "Comment": field.doc} for field in entity.fields]
    comment = "fields beyond the schema, JSON text"
    return [*fields, {"Name": EXTRA, "Type": HIVE[Type.TEXT], "Comment": comment}]
