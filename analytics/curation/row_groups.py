"""The row groups of a curated file: rows become groups of one size, and groups a sealed Parquet file."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analytics.curation.kept_rows import SAMPLE_ROWS
from analytics.curation.seals import SEAL_KEY, seal_of
from analytics.lake.arrow import Indices, as_array

ROW_GROUP_ROWS = 100_000
ZSTD_LEVEL = 1  # the fastest


def groups(rows: pa.Table, order: Indices) -> Iterator[pa.Table]:
    """Yield rows in an order, as row groups: at least one, all of one size."""
    count = max(1, -(-len(order) // ROW_GROUP_ROWS))
    for indices in np.array_split(order, count):
        yield rows.take(as_array(indices))


def write_groups(
    path: Path, groups: Iterator[pa.Table], metadata: Callable[[], Mapping[str, str]] = dict
) -> None:
    """Write row groups, at least one, as a sealed Parquet file. metadata is called after the last group."""
    first = next(groups)
    with (
        path.open("wb") as file,
        pq.ParquetWriter(
            file,
            first.schema,
            compression="zstd",
            compression_level=ZSTD_LEVEL,
            use_dictionary=_repetitive(first),
            store_schema=False,
        ) as writer,
    ):
        writer.write_table(first, ROW_GROUP_ROWS)
        del first
        for group in groups:
            writer.write_table(group, ROW_GROUP_ROWS)
            del group
        file.flush()
        writer.add_key_value_metadata({**metadata(), SEAL_KEY: seal_of(path)})


def _repetitive(rows: pa.Table) -> list[str]:
    """Return the columns that a dictionary makes smaller: those in which few values differ."""
    sample = rows.slice(0, SAMPLE_ROWS)
    return [
        name for name in rows.column_names if 2 * pc.count_distinct(sample[name]).as_py() <= len(sample) + 2
    ]
