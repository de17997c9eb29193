"""What curation cannot do without: to decompress an hour's files, and to write its sorted rows."""

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from isal import isal_zlib

from analytics.curation.kept_rows import ROW_GROUP_ROWS
from bench.lake.curating.rivals import DT, inputs


def gunzip(folder: Path, entity: str, hour: str) -> float:
    """Return the seconds that ISA-L takes to decompress an hour's files, by its plain call."""
    files = sorted(Path(inputs(folder, entity, hour)).parent.glob("*.gz"))
    started = time.perf_counter()
    for file in files:
        isal_zlib.decompress(file.read_bytes(), isal_zlib.MAX_WBITS + 16)
    return time.perf_counter() - started


def write(folder: Path, entity: str, hour: str) -> float:
    """Return the seconds that writing an hour's sorted rows takes, once in memory, by a plain call."""
    parts = _parts(folder, entity, hour)
    started = time.perf_counter()
    pq.write_table(
        pa.concat_tables(parts),
        folder / f"floor-{hour}.parquet",
        compression="zstd",
        compression_level=1,
        row_group_size=ROW_GROUP_ROWS,
    )
    return time.perf_counter() - started


def _parts(folder: Path, entity: str, hour: str) -> list[pa.Table]:
    file = pq.ParquetFile(folder / f"curated/{entity}/dt={DT}" / f"hour-{hour}.parquet")
    return [file.read_row_group(number) for number in range(file.num_row_groups)]
