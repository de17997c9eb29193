"""Rows of a curated file that have become old: they name the items of a table that may leave."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapters.platform.objects import Objects, StoredObject
from analytics.lake import curated_files
from analytics.lake.bookkeeping import footer_of
from rules.lake.entities import ENTITIES
from rules.lake.schema import EXTRA

BATCH_ROWS = 2000
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ages:
    """Which rows are old enough: column, a timestamp, is from since (None: from ever) and before until."""

    column: str
    since: datetime | None
    until: datetime

    def of(self, rows: pa.Table) -> pa.Table:
        """Return the rows that are."""
        old = pc.less(rows[self.column], pa.scalar(self.until))
        if self.since is not None:
            old = pc.and_(old, pc.greater_equal(rows[self.column], pa.scalar(self.since)))
        return rows.filter(old)

    def may_be_in(self, objects: Objects, stored: StoredObject) -> bool:
        """Whether a file may have such rows, by its footer alone. Raises NoObject."""
        metadata = pq.read_metadata(pa.BufferReader(footer_of(objects, stored.key)))
        spans = list(_spans(metadata, self.column))
        return not all(
            span is not None and (span[0] >= self.until or (self.since is not None and span[1] < self.since))
            for span in spans
        )


def _spans(metadata: pq.FileMetaData, column: str) -> Iterator[tuple[datetime, datetime] | None]:
    """Yield the least and the greatest value of each group of a file's rows; None where it is not told."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for place in range(group.num_columns):
            chunk = group.column(place)
            if chunk.path_in_schema == column:
                told = chunk.statistics
                yield (told.min, told.max) if told is not None and told.has_min_max else None


def old_rows(objects: Objects, entity: str, stored: StoredObject, ages: Ages) -> Iterator[list[Row]]:
    """Yield a file's rows that are old enough, two thousand rows of the file at a time; perhaps none of them.

    Raises NoObject if the file is gone.
    """
    if not ages.may_be_in(objects, stored):
        return
    names = [*(field.name for field in ENTITIES[entity].fields), EXTRA]
    with TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        objects.save(stored.key, path)
        file = pq.ParquetFile(path)
        known = set(file.schema_arrow.names)
        for batch in file.iter_batches(BATCH_ROWS, columns=[name for name in names if name in known]):
            rows = curated_files.as_declared(pa.Table.from_batches([batch]), entity, names)
            yield ages.of(rows).to_pylist()


def first_after(objects: Objects, entity: str, files: Sequence[StoredObject], ages: Ages) -> datetime | None:
    """Return the oldest instant of the rows that are not old enough yet; None if there are none."""
    found = []
    for stored in files:
        if not Ages(ages.column, ages.until, datetime.max.replace(tzinfo=UTC)).may_be_in(objects, stored):
            continue
        rows = curated_files.read(objects, entity, stored, [ages.column])[ages.column]
        oldest = pc.min(rows.filter(pc.greater_equal(rows, pa.scalar(ages.until)))).as_py()
        found += [] if oldest is None else [oldest]
    return min(found, default=None)
