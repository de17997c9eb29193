"""What a curated file says of itself, in the metadata of its Parquet footer.

Rows and bookkeeping change in the same put: after a crash anywhere, a file's counts and the raw
objects that it holds are those of its rows.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import Objects

FOOTER_KEY = "streakline"
TAIL_BYTES = 64 * 1024
LENGTH_BYTES = 8  # the footer's length and the magic bytes, at a Parquet file's end


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows read, and what became of them: in_ = curated + duplicates + quarantined."""

    in_: int = 0
    curated: int = 0
    duplicates: int = 0
    quarantined: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        """Return the counts of both together."""
        return Counts(
            self.in_ + other.in_,
            self.curated + other.curated,
            self.duplicates + other.duplicates,
            self.quarantined + other.quarantined,
        )

    def as_dict(self) -> dict[str, int]:
        """Return them under the names that files and messages use."""
        return {
            "in": self.in_,
            "curated": self.curated,
            "duplicates": self.duplicates,
            "quarantined": self.quarantined,
        }


@dataclass(frozen=True, slots=True)
class Bookkeeping:
    """A curated file's own account. schema: its number of declared fields. sources: hour=HH/NAME -> etag."""

    schema: int
    counts: Counts
    sources: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Return it as JSON, always the same for the same content."""
        sources = dict(sorted(self.sources.items()))
        held = {"schema": self.schema, **self.counts.as_dict(), "sources": sources}
        return json.dumps(held, separators=(",", ":"))


def read_bookkeeping(data: bytes) -> Bookkeeping:
    """Read it from a Parquet file, or from the file's end; raises KeyError if it has none."""
    held = json.loads(pq.read_metadata(pa.BufferReader(data)).metadata[FOOTER_KEY.encode()])
    counts = Counts(held["in"], held["curated"], held["duplicates"], held["quarantined"])
    return Bookkeeping(held["schema"], counts, held["sources"])


def bookkeeping(objects: Objects, key: str) -> Bookkeeping:
    """Return a curated file's bookkeeping, reading its footer alone; raises NoObject."""
    return read_bookkeeping(footer_of(objects, key))


def footer_of(objects: Objects, key: str) -> bytes:
    """Return the end of a Parquet file that holds its whole footer; raises NoObject."""
    tail = objects.tail(key, TAIL_BYTES)
    needed = int.from_bytes(tail[-LENGTH_BYTES:-4], "little") + LENGTH_BYTES
    return tail if needed <= len(tail) else objects.tail(key, needed)


def merged_bookkeeping(all_: Iterable[Bookkeeping]) -> Bookkeeping:
    """Return the account of files that are merged; schema is the oldest's."""
    listed = list(all_)
    sources: dict[str, str] = {}
    for each in listed:
        sources |= each.sources
    schema = min((each.schema for each in listed), default=0)
    return Bookkeeping(schema, sum((each.counts for each in listed), Counts()), sources)
