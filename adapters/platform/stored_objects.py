"""The contract of stored objects: what adapters/platform/objects.py keeps for a bucket and for a folder."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol


class NoObject(LookupError):
    """There is no object of that key."""


class ObjectChanged(Exception):
    """The object is not the one that was read: another writer was first."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as a listing shows it. size in bytes; etag differs whenever the content does."""

    key: str
    size: int
    etag: str
    modified: datetime


class Objects(Protocol):
    """A flat space of keys (parts separated by /), each with its bytes."""

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects whose keys begin with `prefix`, in the order of their keys."""

    def below(self, folder: str) -> Iterator[str]:
        """Yield the keys and folders directly below a folder. Names of folders end in /."""

    def get(self, key: str) -> bytes:
        """Return an object's bytes; raises NoObject."""

    def save(self, key: str, path: Path) -> None:
        """Write an object's bytes to a file, without holding them in memory; raises NoObject."""

    def link(self, key: str, path: Path) -> None:
        """Make a file with an object's bytes, only for reading: it may share them; raises NoObject."""

    def tail(self, key: str, size: int) -> bytes:
        """Return an object's last `size` bytes (all of a shorter one); raises NoObject."""

    def put(self, key: str, data: bytes) -> None:
        """Store an object; it replaces the one with that key."""

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; a key without an object is no error."""

    def etag(self, key: str) -> str | None:
        """Return an object's ETag; None if there is no object."""

    def put_if(self, key: str, data: bytes | Path, etag: str | None) -> None:
        """Store an object in place of the one with this ETag, or (None) of none; raises ObjectChanged.

        data: the bytes, or the file that has them: up to 5 GiB, in which S3 takes an object in one request.
        """

    def delete_if(self, key: str, etag: str) -> None:
        """Remove the object with this ETag; raises ObjectChanged, also if it is gone."""


class RangedObjects(Objects, Protocol):
    """Objects of which parts can be read."""

    def part(self, key: str, start: int, size: int) -> bytes:
        """Return `size` bytes of an object from an offset on; it must have them all. Raises NoObject."""


class ForgettingObjects(RangedObjects, Protocol):
    """Objects whose former versions and unfinished uploads can be removed for good."""

    def forget_former(self, prefix: str, *, of_deleted: bool = False) -> None:
        """Remove the former versions of objects with a prefix, if they are kept.

        of_deleted: only of objects that are deleted now.
        """

    def forget_unfinished(self, before: datetime) -> None:
        """Remove uploads that were begun before an instant and never finished."""
