"""Stored objects: a bucket of S3, or a folder that stands for one (both keep the contract of Objects).

An object is whole or absent: a put replaces it in one step, so no reader ever sees half of one.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from adapters.platform.aws import client

DELETES_MAX = 1000  # keys in one DeleteObjects


class NoObject(LookupError):
    """There is no object of that key."""


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

    def get(self, key: str) -> bytes:
        """Return an object's bytes; raises NoObject."""

    def tail(self, key: str, size: int) -> bytes:
        """Return an object's last `size` bytes (all of a shorter one); raises NoObject."""

    def put(self, key: str, data: bytes) -> None:
        """Store an object; it replaces the one with that key."""

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects; a key without an object is no error."""


@dataclass(frozen=True, slots=True)
class S3Objects:
    """The objects of a bucket. s3: a botocore client."""

    s3: Any
    bucket: str

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield objects, a page of 1,000 per request."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        for page in pages:
            for each in page.get("Contents", ()):
                etag = each["ETag"].strip('"')
                yield StoredObject(each["Key"], each["Size"], etag, each["LastModified"])

    def get(self, key: str) -> bytes:
        """Return the object's bytes; raises NoObject."""
        return self._read(Key=key)

    def tail(self, key: str, size: int) -> bytes:
        """Return the last bytes by a ranged read; raises NoObject."""
        return self._read(Key=key, Range=f"bytes=-{size}")

    def _read(self, **request: Any) -> bytes:
        try:
            body = self.s3.get_object(Bucket=self.bucket, **request)["Body"]
        except self.s3.exceptions.NoSuchKey:
            raise NoObject(request["Key"]) from None
        with body:
            return bytes(body.read())

    def put(self, key: str, data: bytes) -> None:
        """Store an object."""
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=data)

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects, 1,000 per request; raises RuntimeError if S3 kept one."""
        rest = iter(keys)
        while some := [{"Key": key} for key in islice(rest, DELETES_MAX)]:
            answer = self.s3.delete_objects(Bucket=self.bucket, Delete={"Objects": some, "Quiet": True})
            if answer.get("Errors"):
                raise RuntimeError(f"not deleted: {answer['Errors'][:3]}")


@dataclass(frozen=True, slots=True)
class FolderObjects:
    """The files below a folder; their keys are the paths from it."""

    root: Path

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield files in the order of their keys; a file that vanishes meanwhile is left out."""
        start = self.root / prefix.rpartition("/")[0]
        keys = (path.relative_to(self.root).as_posix() for path in start.rglob("*"))
        for key in sorted(key for key in keys if key.startswith(prefix) and not _is_unfinished(key)):
            try:
                status = (self.root / key).stat()
            except FileNotFoundError:
                continue
            if (self.root / key).is_file():
                # A put makes a new file, so etags differ by the inode even if size and time are equal.
                etag = f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"
                yield StoredObject(key, status.st_size, etag, datetime.fromtimestamp(status.st_mtime, UTC))

    def get(self, key: str) -> bytes:
        """Return the file's bytes; raises NoObject."""
        return self.tail(key, -1)

    def tail(self, key: str, size: int) -> bytes:
        """Return the file's last bytes; raises NoObject."""
        try:
            with (self.root / key).open("rb") as file:
                if size >= 0:
                    file.seek(max(0, file.seek(0, os.SEEK_END) - size))
                return file.read()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise NoObject(key) from None

    def put(self, key: str, data: bytes) -> None:
        """Write a temporary file, then rename it. A file that has this content already stays untouched."""
        path = self.root / key
        if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=UNFINISHED, delete=False) as file:
            file.write(data)
        Path(file.name).replace(path)

    def delete(self, keys: Iterable[str]) -> None:
        """Remove files."""
        for key in keys:
            (self.root / key).unlink(missing_ok=True)


UNFINISHED = ".unfinished-"


def _is_unfinished(key: str) -> bool:
    return key.rpartition("/")[2].startswith(UNFINISHED)


def objects_at(url: str) -> Objects:
    """Return the objects at `s3://bucket`, or in a folder."""
    if url.startswith("s3://"):
        return S3Objects(client("s3"), url.removeprefix("s3://").strip("/"))
    return FolderObjects(Path(url))
