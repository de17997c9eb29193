"""Seals of curated files: a file's footer has a hash of all bytes before the footer.

A seal shows that rows were changed by hand, unless somebody has sealed the file anew on purpose.
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
END_BYTES = 8  # the footer's length and the magic bytes
READ_BYTES = 2**20


class BrokenSeal(ValueError):
    """A curated file is not as curation wrote it, so its rows are not used."""


def check_seals(objects: Objects, files: Iterable[StoredObject], are_kept: bool) -> bool:
    """Return whether any file's rows were changed by hand. Raises BrokenSeal if so and the files are kept."""
    broken = [file.key for file in files if is_broken(objects, file.key)]
    if broken and are_kept:
        raise BrokenSeal(f"rows were changed since they were curated: {', '.join(broken)}")
    return bool(broken)


def seal_of(path: Path, footer_bytes: int = 0) -> str:
    """Return the seal of a file. footer_bytes: the size of its footer, 0 if it has none yet."""
    with path.open("rb") as file:
        digest, rest = hashlib.sha256(), os.fstat(file.fileno()).st_size - footer_bytes
        while rest > 0 and (data := file.read(min(READ_BYTES, rest))):
            digest.update(data)
            rest -= len(data)
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
        return bool(seal_of(path, footer) != seal.decode())


def _footer_bytes(file: BinaryIO) -> int:
    file.seek(-END_BYTES, SEEK_END)
    return int.from_bytes(file.read(4), "little") + END_BYTES
