"""What curation cannot do without: to decompress an hour's files, and to write its sorted rows."""

import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from isal import igzip

from analytics.curation.kept_rows import ROW_GROUP_ROWS, write_groups
from analytics.curation.raw_lines import unzipped
from bench.lake.raw_day import DT
from bench.lake.rivals import inputs


def gunzip(folder: Path, hour: str) -> float:
    """Return the seconds that ISA-L takes to decompress an hour's files, by its plain call."""
    return _decompress(folder, hour, igzip.decompress)


def own_gunzip(folder: Path, hour: str) -> float:
    """Return the same for our own call, which knows the size beforehand."""
    return _decompress(folder, hour, unzipped)


def _decompress(folder: Path, hour: str, how: Callable[[bytes], object]) -> float:
    files = sorted(Path(inputs(folder, hour)).parent.glob("*.gz"))
    started = time.perf_counter()
    for file in files:
        how(file.read_bytes())
    return time.perf_counter() - started


def write(folder: Path, hour: str) -> float:
    """Return the seconds that writing an hour's sorted rows takes, once in memory, by a plain call."""
    parts = _parts(folder, hour)
    started = time.perf_counter()
    pq.write_table(
        pa.concat_tables(parts),
        folder / f"floor-{hour}.parquet",
        compression="zstd",
        compression_level=1,
        row_group_size=ROW_GROUP_ROWS,
    )
    return time.perf_counter() - started


def own_write(folder: Path, hour: str) -> float:
    """Return the same for our own writer, with its settings."""
    parts = _parts(folder, hour)
    started = time.perf_counter()
    write_groups(folder / f"floor-{hour}.parquet", iter(parts))
    return time.perf_counter() - started


def _parts(folder: Path, hour: str) -> list[pa.Table]:
    file = pq.ParquetFile(folder / f"curated/events/dt={DT}" / f"hour-{hour}.parquet")
    return [file.read_row_group(number) for number in range(file.num_row_groups)]
