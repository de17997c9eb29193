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
    """Yield rows as row groups of nearly one size, at least one. order: the indices of the rows to yield."""
    count = max(1, -(-len(order) // ROW_GROUP_ROWS))  # rounded up
    for indices in np.array_split(order, count):
        yield rows.take(as_array(indices))


def write_groups(
    path: Path, tables: Iterator[pa.Table], metadata: Callable[[], Mapping[str, str]] = dict
) -> None:
    """Write tables as a sealed Parquet file, each as one row group.

    tables: at least one, all with the same columns. metadata: returns what the file's footer has besides the
    seal. It is called after the last table, because the footer has the number of rows.
    """
    first = next(tables)
    with (
        path.open("wb") as file,
        pq.ParquetWriter(
            file,
            first.schema,
            compression="zstd",
            compression_level=ZSTD_LEVEL,
            use_dictionary=_repetitive_columns(first),
            store_schema=False,
        ) as writer,
    ):
        writer.write_table(first, ROW_GROUP_ROWS)
        del first  # its memory is given back before the next table's is taken
        for table in tables:
            writer.write_table(table, ROW_GROUP_ROWS)
            del table
        file.flush()
        writer.add_key_value_metadata({**metadata(), SEAL_KEY: seal_of(path)})


def _repetitive_columns(rows: pa.Table) -> list[str]:
    """Return the names of columns that a dictionary makes smaller: those whose values repeat.

    In a sample, each value of such a column comes twice or more on average.
    """
    sample = rows.slice(0, SAMPLE_ROWS)
    return [
        name for name in rows.column_names if 2 * pc.count_distinct(sample[name]).as_py() <= len(sample) + 2
    ]
