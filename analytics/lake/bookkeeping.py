"""The bookkeeping of a curated file, in the metadata of its Parquet footer.

It has the counts of rows, and names the raw objects that the rows are from. One PUT writes rows and
bookkeeping together, so they agree even after a crash.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import Objects, StoredObject

FOOTER_KEY = "streakline"
TAIL_BYTES = 64 * 1024  # most footers are shorter
LENGTH_BYTES = 8  # the footer's length and the magic bytes, at a Parquet file's end
# The Redshift type for a Parquet column of each Arrow type. COPY converts no values, so the types must fit.
_REDSHIFT_TYPES = {
    pa.string(): "VARCHAR(65535)",
    pa.large_string(): "VARCHAR(65535)",
    pa.int64(): "BIGINT",
    pa.int32(): "INTEGER",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    pa.float64(): "DOUBLE PRECISION",
}


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of rows: in_, the rows that were read, is curated + duplicates + quarantined."""

    in_: int = 0
    curated: int = 0
    duplicates: int = 0
    quarantined: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        """Return the sum of both."""
        return Counts(
            self.in_ + other.in_,
            self.curated + other.curated,
            self.duplicates + other.duplicates,
            self.quarantined + other.quarantined,
        )

    def as_dict(self) -> dict[str, int]:
        """Return the counts under the names that files and messages use."""
        return {
            "in": self.in_,
            "curated": self.curated,
            "duplicates": self.duplicates,
            "quarantined": self.quarantined,
        }


@dataclass(frozen=True, slots=True)
class Bookkeeping:
    """The bookkeeping of one curated file."""

    fields_count: int  # the number of its entity's fields when it was written
    counts: Counts
    # The raw objects that its rows are from: source name (layout.source_name) -> ETag
    sources: Mapping[str, str] = field(default_factory=dict)
    # Marks of erasures that have changed its rows. If there are any, its raw objects lack some of its rows.
    erased: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the bookkeeping as JSON. Equal bookkeeping gives equal text."""
        sources = dict(sorted(self.sources.items()))
        fields: dict[str, Any] = {"schema": self.fields_count, **self.counts.as_dict(), "sources": sources}
        if self.erased:
            fields["erased"] = sorted(self.erased)
        return json.dumps(fields, separators=(",", ":"))


def read_bookkeeping(data: bytes) -> Bookkeeping:
    """Read the bookkeeping from a Parquet file, or from the file's end. Raises KeyError if there is none."""
    fields = json.loads(pq.read_metadata(pa.BufferReader(data)).metadata[FOOTER_KEY.encode()])
    counts = Counts(fields["in"], fields["curated"], fields["duplicates"], fields["quarantined"])
    return Bookkeeping(fields["schema"], counts, fields["sources"], tuple(fields.get("erased", ())))


def bookkeeping_of(objects: Objects, key: str) -> Bookkeeping:
    """Return a curated file's bookkeeping. Only the file's footer is read. Raises NoObject, KeyError."""
    return read_bookkeeping(footer_of(objects, key))


def footer_of(objects: Objects, key: str) -> bytes:
    """Return the end of a Parquet file, long enough to hold the whole footer. Raises NoObject."""
    tail = objects.tail(key, TAIL_BYTES)
    needed = int.from_bytes(tail[-LENGTH_BYTES:-4], "little") + LENGTH_BYTES
    return tail if needed <= len(tail) else objects.tail(key, needed)


def merge_bookkeeping(books: Iterable[Bookkeeping]) -> Bookkeeping:
    """Return the bookkeeping of several files merged into one. Its fields_count is the smallest one."""
    all_books = list(books)
    counts, sources, erased = Counts(), dict[str, str](), set[str]()
    for book in all_books:
        counts += book.counts
        sources |= book.sources
        erased.update(book.erased)
    fields_count = min((book.fields_count for book in all_books), default=0)
    return Bookkeeping(fields_count, counts, sources, tuple(sorted(erased)))


@dataclass(frozen=True, slots=True)
class Footer:
    """The values of a file's footer that a load needs."""

    columns: tuple[tuple[str, str], ...]  # (name, Redshift type), in the file's order
    counts: Counts


def read_footer(objects: Objects, file: StoredObject) -> Footer:
    """Read a curated file's footer. Raises KeyError if it has no bookkeeping."""
    end = footer_of(objects, file.key)
    schema = pq.read_metadata(pa.BufferReader(end)).schema.to_arrow_schema()
    columns = tuple((column.name, _redshift_type(column.type)) for column in schema)
    return Footer(columns, read_bookkeeping(end).counts)


def _redshift_type(arrow: pa.DataType) -> str:
    return "TIMESTAMP" if pa.types.is_timestamp(arrow) else _REDSHIFT_TYPES[arrow]
