"""Seals of curated files: a file's footer has a hash of all bytes before the footer.

A seal shows that rows were changed by hand, unless somebody has sealed the file anew on purpose. A ledger
entry's seal (rule 19) is another thing: its hash also binds the entries before it.
"""

import hashlib
import os
from collections.abc import Iterable
from io import SEEK_END
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import pyarrow.parquet as pq

from adapters.platform.objects import Objects, StoredObject

SEAL_KEY = "streakline.seal"
LENGTH_BYTES, MAGIC_BYTES = 4, 4  # the end of a Parquet file: the footer's length, and the letters PAR1
END_BYTES = LENGTH_BYTES + MAGIC_BYTES
READ_BYTES = 2**20


class BrokenSeal(ValueError):
    """A curated file is not as curation wrote it, so its rows are not used."""


def is_any_broken(objects: Objects, files: Iterable[StoredObject], *, can_be_rebuilt: bool) -> bool:
    """Whether the rows of any file were changed by hand, so that it must be made anew from raw objects.

    can_be_rebuilt: whether that is possible. If it is not, a broken seal raises BrokenSeal.
    """
    broken_keys = [file.key for file in files if is_broken(objects, file.key)]
    if broken_keys and not can_be_rebuilt:
        raise BrokenSeal(f"rows were changed since they were curated: {', '.join(broken_keys)}")
    return bool(broken_keys)


def seal_of(path: Path, footer_bytes: int = 0) -> str:
    """Return the seal of a file. footer_bytes: the size of its footer, 0 if it has none yet."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        bytes_left = os.fstat(file.fileno()).st_size - footer_bytes
        while bytes_left > 0 and (data := file.read(min(READ_BYTES, bytes_left))):
            digest.update(data)
            bytes_left -= len(data)
    return digest.hexdigest()


def is_broken(objects: Objects, key: str) -> bool:
    """Whether a curated file has other rows than it was sealed with, or no seal. Raises NoObject."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        objects.save(key, path)
        seal = (pq.read_metadata(path).metadata or {}).get(SEAL_KEY.encode())
        if seal is None:
            return True
        with path.open("rb") as file:
            footer = _footer_bytes(file)
        return bool(seal_of(path, footer) != seal.decode())  # bool: pyarrow has no types


def _footer_bytes(file: BinaryIO) -> int:
    """Return how many bytes the footer of a Parquet file has, with the end of the file."""
    file.seek(-END_BYTES, SEEK_END)
    return int.from_bytes(file.read(LENGTH_BYTES), "little") + END_BYTES
