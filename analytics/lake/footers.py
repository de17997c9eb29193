"""Reads a curated file's columns and counts from its footer, without reading the rows."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import Objects, StoredObject
from analytics.lake.bookkeeping import footer_of, read_bookkeeping

# Which Redshift type takes a Parquet column of an Arrow type. COPY converts nothing, so they must fit.
_TYPES = {
    pa.string(): "VARCHAR(65535)",
    pa.large_string(): "VARCHAR(65535)",
    pa.int64(): "BIGINT",
    pa.int32(): "INTEGER",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    pa.float64(): "DOUBLE PRECISION",
}


@dataclass(frozen=True, slots=True)
class Footer:
    """What a footer says. rows_in = curated + duplicates + quarantined.

    columns: (name, Redshift type), in the file's order.
    """

    columns: tuple[tuple[str, str], ...]
    rows_in: int
    curated: int
    duplicates: int
    quarantined: int


def read_footer(objects: Objects, file: StoredObject) -> Footer:
    """Read a curated file's footer. Raises KeyError if it has no bookkeeping."""
    end = footer_of(objects, file.key)
    counts = read_bookkeeping(end).counts
    schema = pq.read_metadata(pa.BufferReader(end)).schema.to_arrow_schema()
    columns = tuple((each.name, _type(each.type)) for each in schema)
    return Footer(columns, counts.in_, counts.curated, counts.duplicates, counts.quarantined)


def _type(arrow: pa.DataType) -> str:
    return "TIMESTAMP" if pa.types.is_timestamp(arrow) else _TYPES[arrow]
