"""A curated file: row groups of one size, a footer with bookkeeping, and a seal.

The seal is a hash of all bytes before the footer. It shows that rows were changed by hand, unless somebody
has sealed the file anew on purpose. The column `seal` of the ledger is another thing: a salt, or the
commitment of an erased person's entry (rule 19).
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from io import SEEK_END
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adapters.platform.objects import Objects

ROW_GROUP_ROWS = 100_000
ZSTD_LEVEL = 1  # the fastest
SAMPLE_ROWS = 2_000
SEAL_KEY = "streakline.seal"
LENGTH_BYTES, MAGIC_BYTES = 4, 4  # the end of a Parquet file: the footer's length, and the letters PAR1
READ_BYTES = 2**20


def write_groups(
    path: Path,
    tables: Iterator[pa.Table],
    metadata: Callable[[], Mapping[str, str]] = dict,
    *,
    is_sealed: bool = True,
) -> None:
    """Write tables as a sealed Parquet file, each in row groups of its own.

    tables: at least one, all with the same columns. metadata: returns what the file's footer has besides the
    seal. It is called after the last table, because the footer has the number of rows. is_sealed: False if
    the rows are from a broken file: then the new file has no seal, so it is one, too.
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
        writer.add_key_value_metadata({**metadata(), **({SEAL_KEY: _seal_of(path)} if is_sealed else {})})


def _repetitive_columns(rows: pa.Table) -> list[str]:
    """Return the names of columns that a dictionary makes smaller: those whose values repeat.

    In a sample, each value of such a column comes twice or more on average.
    """
    sample = rows.slice(0, SAMPLE_ROWS)
    return [
        name for name in rows.column_names if 2 * pc.count_distinct(sample[name]).as_py() <= len(sample) + 2
    ]


def is_broken(objects: Objects, key: str) -> bool:
    """Whether a curated file has other rows than it was sealed with, or no seal. Raises NoObject."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        objects.save(key, path)
        return is_broken_copy(path)


def is_broken_copy(path: Path) -> bool:
    """Whether a copy of a curated file has other rows than the file was sealed with, or no seal."""
    seal = (pq.read_metadata(path).metadata or {}).get(SEAL_KEY.encode())
    with path.open("rb") as file:
        file.seek(-LENGTH_BYTES - MAGIC_BYTES, SEEK_END)
        footer_bytes = int.from_bytes(file.read(LENGTH_BYTES), "little") + LENGTH_BYTES + MAGIC_BYTES
    return bool(seal is None or _seal_of(path, footer_bytes) != seal.decode())  # bool: pyarrow has no types


def _seal_of(path: Path, footer_bytes: int = 0) -> str:
    """Return the seal of a file. footer_bytes: the size of its footer, 0 if it has none yet."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        bytes_left = os.fstat(file.fileno()).st_size - footer_bytes
        while bytes_left > 0 and (data := file.read(min(READ_BYTES, bytes_left))):
            digest.update(data)
            bytes_left -= len(data)
    return digest.hexdigest()
