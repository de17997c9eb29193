"""Whether a curated file is as it was written: its footer has a hash of all that is before the footer.

It shows rows that were changed by hand, and not those that somebody has sealed anew on purpose.
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
    """A curated file is not as curation wrote it: nothing is made of it."""


def check_seals(objects: Objects, files: Iterable[StoredObject], are_kept: bool) -> bool:
    """Return whether rows of some files were changed by hand; raises BrokenSeal if the files are kept."""
    broken = [each.key for each in files if is_broken(objects, each.key)]
    if broken and are_kept:
        raise BrokenSeal(f"rows were changed since they were curated: {', '.join(broken)}")
    return bool(broken)


def seal_of(path: Path, footer_bytes: int = 0) -> str:
    """Return the seal of a file whose last bytes are its footer, or which has none yet."""
    with path.open("rb") as file:
        hashed, left = hashlib.sha256(), os.fstat(file.fileno()).st_size - footer_bytes
        while left > 0 and (some := file.read(min(READ_BYTES, left))):
            hashed.update(some)
            left -= len(some)
    return hashed.hexdigest()


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
