"""Starts MiniStack, on its own Python, so that all processes of a function share what is unpacked of it.

MiniStack unpacks code and layers for each process that it starts: 3,000 files, half a second of CPU, two with
the analytics layer. Here that is done once for each archive. Nobody writes into these folders: on AWS they
are read-only.
"""

import contextlib
import hashlib
import sys
import tempfile
import types
import zipfile
from pathlib import Path
from typing import Any

from ministack import app
from ministack.core import lambda_runtime


class SharedZip(zipfile.ZipFile):
    """An archive that is unpacked once: other folders become links to the first."""

    def extractall(self, path: Any = None, *_: Any) -> None:
        """Unpack into an empty folder."""
        kept = Path(tempfile.gettempdir()) / f"unpacked-{self._digest()}"
        if not kept.exists():
            fresh = tempfile.mkdtemp(prefix="unpacking-")
            super().extractall(fresh)
            with contextlib.suppress(OSError):  # somebody else was first
                Path(fresh).rename(kept)
        Path(str(self.filename)).unlink()  # a copy for this process alone
        Path(path).rmdir()
        Path(path).symlink_to(kept, target_is_directory=True)

    def _digest(self) -> str:
        told = hashlib.sha256()
        for each in self.infolist():
            told.update(f"{each.filename}\0{each.CRC}\0{each.file_size}\0".encode())
        return told.hexdigest()


if __name__ == "__main__":
    lambda_runtime.zipfile = types.SimpleNamespace(**{**vars(zipfile), "ZipFile": SharedZip})
    sys.exit(app.main())
