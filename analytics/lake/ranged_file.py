"""Reads parts of a stored object as those of a file."""

import io

from adapters.platform.objects import RangedObjects, StoredObject


class RangedFile(io.RawIOBase):
    """An object as a file of which parts are read; each part is a request."""

    def __init__(self, objects: RangedObjects, stored: StoredObject) -> None:
        super().__init__()
        self._objects, self._stored, self._at = objects, stored, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the place of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._stored.size}[whence]
        self._at = base + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; raises NoObject."""
        left = max(0, self._stored.size - self._at)
        wanted = left if size is None or size < 0 else min(size, left)
        found = self._objects.part(self._stored.key, self._at, wanted) if wanted else b""
        self._at += len(found)
        return found
