"""What a curated file says of itself, read from its end alone: its columns, and what became of the rows."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import Objects, StoredObject
from analytics.lake.bookkeeping import footer_of, read_bookkeeping

# Redshift's types that take a Parquet column as it is: COPY converts nothing.
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
    """columns: (name, Redshift type) in the file's order; rows_in = curated + duplicates + quarantined."""

    columns: tuple[tuple[str, str], ...]
    rows_in: int
    curated: int
    duplicates: int
    quarantined: int


def read_footer(objects: Objects, file: StoredObject) -> Footer:
    """Read a curated file's footer; raises KeyError if it does not carry the counts."""
    end = footer_of(objects, file.key)
    counts = read_bookkeeping(end).counts
    schema = pq.read_metadata(pa.BufferReader(end)).schema.to_arrow_schema()
    columns = tuple((each.name, _type(each.type)) for each in schema)
    return Footer(columns, counts.in_, counts.curated, counts.duplicates, counts.quarantined)


def _type(arrow: pa.DataType) -> str:
    return "TIMESTAMP" if pa.types.is_timestamp(arrow) else _TYPES[arrow]
