"""Stored objects: a bucket of S3, or a folder that stands for one.

A put replaces an object in one step, so no reader ever sees half of an object. A writer who has read an
object replaces it by put_if, which fails if another writer has replaced it meanwhile. So no change is lost.
"""

import fcntl
import io
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from adapters.platform.aws import client

DELETES_MAX = 1000  # keys in one DeleteObjects
LISTED_AT_ONCE = 16  # so many folders are listed at the same time
COPIED_BYTES = 2**20  # a copy moves so many bytes at a time
# S3's answers if a condition does not hold, if the object is gone, or if another conditional write of it is
# under way.
CHANGED = frozenset({"PreconditionFailed", "412", "ConditionalRequestConflict", "409", "NoSuchKey", "404"})
UNFINISHED = ".unfinished-"  # begins the names of files that are no objects
LOCK = f"{UNFINISHED}lock"


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
        """Yield the keys and folders directly below a folder. Names of folders end in /.

        The folder's own marker, an object whose key is the folder's name, is not below it.
        """

    def get(self, key: str) -> bytes:
        """Return an object's bytes; raises NoObject."""

    def save(self, key: str, path: Path) -> None:
        """Write an object's bytes to a file, without holding them in memory; raises NoObject."""

    def link(self, key: str, path: Path) -> None:
        """Make a file with an object's bytes, only for reading: it may share them; raises NoObject."""

    def tail(self, key: str, size: int) -> bytes:
        """Return an object's last `size` bytes (all of a shorter one); raises NoObject."""

    def part(self, key: str, start: int, size: int) -> bytes:
        """Return `size` bytes of an object from an offset on; it must have them all. Raises NoObject."""

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


class ForgettingObjects(Objects, Protocol):
    """Objects whose former versions and unfinished uploads can be removed for good."""

    def forget_former(self, prefix: str, *, of_deleted: bool = False) -> None:
        """Remove the former versions of objects with a prefix, if they are kept.

        of_deleted: only of objects that are deleted now.
        """

    def forget_unfinished(self, before: datetime) -> None:
        """Remove uploads that were begun before an instant and never finished."""


@dataclass(frozen=True, slots=True)
class S3Objects:
    """The objects of a bucket."""

    s3: Any  # a botocore client
    bucket: str

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield objects, a page of 1,000 per request."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        for page in pages:
            for each in page.get("Contents", ()):
                etag = each["ETag"].strip('"')
                yield StoredObject(each["Key"], each["Size"], etag, each["LastModified"])

    def below(self, folder: str) -> Iterator[str]:
        """Yield keys and folders, a page of 1,000 per request."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=folder, Delimiter="/"
        )
        for page in pages:
            yield from (each["Prefix"] for each in page.get("CommonPrefixes", ()))
            yield from (each["Key"] for each in page.get("Contents", ()) if each["Key"] != folder)

    def get(self, key: str) -> bytes:
        """Return the object's bytes; raises NoObject."""
        return self._read(Key=key)

    def save(self, key: str, path: Path) -> None:
        """Write the object's bytes to a file, a part at a time; raises NoObject."""
        with self._body(Key=key) as body, path.open("wb") as file:
            shutil.copyfileobj(body, file, COPIED_BYTES)

    link = save

    def tail(self, key: str, size: int) -> bytes:
        """Return the last bytes by a ranged read; raises NoObject."""
        return self._read(Key=key, Range=f"bytes=-{size}")

    def part(self, key: str, start: int, size: int) -> bytes:
        """Return bytes by a ranged read; raises NoObject."""
        return self._read(Key=key, Range=f"bytes={start}-{start + size - 1}")

    def _read(self, **request: Any) -> bytes:
        with self._body(**request) as body:
            return bytes(body.read())

    def _body(self, **request: Any) -> Any:
        try:
            return self.s3.get_object(Bucket=self.bucket, **request)["Body"]
        except self.s3.exceptions.NoSuchKey:
            raise NoObject(request["Key"]) from None

    def put(self, key: str, data: bytes) -> None:
        """Store an object."""
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=data)

    def delete(self, keys: Iterable[str]) -> None:
        """Remove objects, 1,000 per request; raises RuntimeError if S3 kept one."""
        rest = iter(keys)
        while chunk := [{"Key": key} for key in islice(rest, DELETES_MAX)]:
            answer = self.s3.delete_objects(Bucket=self.bucket, Delete={"Objects": chunk, "Quiet": True})
            if answer.get("Errors"):
                raise RuntimeError(f"not deleted: {answer['Errors'][:3]}")

    def etag(self, key: str) -> str | None:
        """Return an object's ETag; None if there is no object."""
        try:
            return str(self.s3.head_object(Bucket=self.bucket, Key=key)["ETag"]).strip('"')
        except self.s3.exceptions.ClientError as error:
            if error.response["Error"]["Code"] in ("404", "NoSuchKey"):
                return None
            raise

    def put_if(self, key: str, data: bytes | Path, etag: str | None) -> None:
        """Store an object by S3's conditional write; raises ObjectChanged."""
        condition = {"IfMatch": f'"{etag}"'} if etag else {"IfNoneMatch": "*"}
        with self._condition(key), nullcontext(data) if isinstance(data, bytes) else data.open("rb") as body:
            self.s3.put_object(Bucket=self.bucket, Key=key, Body=body, **condition)

    def delete_if(self, key: str, etag: str) -> None:
        """Remove an object by S3's conditional delete; raises ObjectChanged."""
        with self._condition(key):
            self.s3.delete_object(Bucket=self.bucket, Key=key, IfMatch=f'"{etag}"')

    def forget_former(self, prefix: str, *, of_deleted: bool = False) -> None:
        """Remove the versions that are not the newest; raises RuntimeError if S3 kept one.

        The folders directly below the prefix are listed at the same time.
        """
        folders = self._forget(prefix, of_deleted, Delimiter="/")
        with ThreadPoolExecutor(LISTED_AT_ONCE) as pool:
            for _ in pool.map(partial(self._forget, of_deleted=of_deleted), folders):
                pass

    def _forget(self, prefix: str, of_deleted: bool, **options: str) -> set[str]:
        """Remove former versions; returns the folders that were not listed, if options have a Delimiter."""
        folders: set[str] = set()
        # Keys whose newest version is a delete marker. S3 lists a key's newest version first.
        deleted: set[str] = set()
        pages = self.s3.get_paginator("list_object_versions").paginate(
            Bucket=self.bucket, Prefix=prefix, **options
        )
        for page in pages:
            folders |= {each["Prefix"] for each in page.get("CommonPrefixes", ())}
            markers = page.get("DeleteMarkers", ())
            deleted |= {marker["Key"] for marker in markers if marker["IsLatest"]}
            former = [
                {"Key": each["Key"], "VersionId": each["VersionId"]}
                for each in (*page.get("Versions", ()), *markers)
                if not each["IsLatest"] and (not of_deleted or each["Key"] in deleted)
            ]
            if former:
                answer = self.s3.delete_objects(Bucket=self.bucket, Delete={"Objects": former, "Quiet": True})
                if answer.get("Errors"):
                    raise RuntimeError(f"not deleted: {len(answer['Errors'])} versions")
        return folders

    def forget_unfinished(self, before: datetime) -> None:
        """Abort multipart uploads."""
        for page in self.s3.get_paginator("list_multipart_uploads").paginate(Bucket=self.bucket):
            for each in page.get("Uploads", ()):
                if each["Initiated"] < before:
                    with suppress(self.s3.exceptions.NoSuchUpload):  # it has ended meanwhile
                        self.s3.abort_multipart_upload(
                            Bucket=self.bucket, Key=each["Key"], UploadId=each["UploadId"]
                        )

    @contextmanager
    def _condition(self, key: str) -> Iterator[None]:
        try:
            yield
        except self.s3.exceptions.ClientError as error:
            if error.response["Error"]["Code"] in CHANGED:
                raise ObjectChanged(key) from None
            raise


@dataclass(frozen=True, slots=True)
class FolderObjects:
    """The files below a folder; their keys are the paths from it."""

    root: Path

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield files in the order of their keys; a file that vanishes meanwhile is left out."""
        root = f"{self.root}/"
        folder, _, begin = prefix.rpartition("/")
        files = {file.path[len(root) :]: file for file in _files(root + folder, begin)}
        for key in sorted(key for key in files if not _is_unfinished(key)):
            try:
                status = files[key].stat()
            except FileNotFoundError:
                continue
            modified = datetime.fromtimestamp(status.st_mtime, UTC)
            yield StoredObject(key, status.st_size, _etag(status), modified)

    def below(self, folder: str) -> Iterator[str]:
        """Yield files and folders, by name."""
        for entry in sorted(_entries(f"{self.root}/{folder}"), key=lambda entry: entry.name):
            if not _is_unfinished(entry.name):
                yield folder + entry.name + "/" * entry.is_dir()

    def get(self, key: str) -> bytes:
        """Return the file's bytes; raises NoObject."""
        with self._open(key) as file:
            return file.read()

    def save(self, key: str, path: Path) -> None:
        """Copy the file; raises NoObject."""
        with self._open(key) as file, path.open("wb") as copy:
            shutil.copyfileobj(file, copy, COPIED_BYTES)

    def link(self, key: str, path: Path) -> None:
        """Give the file a second name, which it keeps when another one replaces it; raises NoObject."""
        try:
            os.link(f"{self.root}/{key}", path)
        except OSError:  # the path is on another disk, or there is no such file
            self.save(key, path)

    def tail(self, key: str, size: int) -> bytes:
        """Return the file's last bytes; raises NoObject."""
        with self._open(key) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - size))
            return file.read()

    def part(self, key: str, start: int, size: int) -> bytes:
        """Return some of the file's bytes; raises NoObject."""
        with self._open(key) as file:
            file.seek(start)
            return file.read(size)

    def _open(self, key: str) -> BinaryIO:
        try:
            return (self.root / key).open("rb")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise NoObject(key) from None

    def put(self, key: str, data: bytes) -> None:
        """Write a temporary file, then rename it. A file that has this content already stays untouched."""
        with suppress(NoObject), self._open(key) as file:
            if os.fstat(file.fileno()).st_size == len(data) and file.read() == data:
                return
        self._replace(self.root / key, io.BytesIO(data))

    def _replace(self, path: Path, data: BinaryIO) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=UNFINISHED, delete=False) as file:
            shutil.copyfileobj(data, file, COPIED_BYTES)
        Path(file.name).replace(path)

    def delete(self, keys: Iterable[str]) -> None:
        """Remove files."""
        for key in keys:
            (self.root / key).unlink(missing_ok=True)

    def etag(self, key: str) -> str | None:
        """Return what distinguishes a file from the one that replaces it; None if there is no file."""
        try:
            with self._open(key) as file:
                return _etag(os.fstat(file.fileno()))
        except NoObject:
            return None

    def put_if(self, key: str, data: bytes | Path, etag: str | None) -> None:
        """Write a file if it still is the one that was read; raises ObjectChanged."""
        with self._alone(key, etag), io.BytesIO(data) if isinstance(data, bytes) else data.open("rb") as body:
            self._replace(self.root / key, body)

    def delete_if(self, key: str, etag: str) -> None:
        """Remove a file if it still is the one that was read; raises ObjectChanged."""
        with self._alone(key, etag):
            self.delete([key])

    def forget_former(self, prefix: str, *, of_deleted: bool = False) -> None:
        """Do nothing: a folder keeps no former versions."""

    def forget_unfinished(self, before: datetime) -> None:
        """Remove temporary files of puts that have died."""
        for file in _files(str(self.root)):
            if _is_unfinished(file.name) and file.name != LOCK:
                with suppress(FileNotFoundError):  # its put has ended meanwhile
                    if file.stat().st_mtime < before.timestamp():
                        Path(file.path).unlink()

    @contextmanager
    def _alone(self, key: str, etag: str | None) -> Iterator[None]:
        """Keep all other conditional writers of the folder out."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / LOCK).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.etag(key) != etag:
                raise ObjectChanged(key)
            yield


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder.rstrip("/")) as entries:
        return list(entries)
    return []


def _files(folder: str, begin: str = "") -> Iterator[os.DirEntry[str]]:
    """Yield the files below a folder. begin: how the names of the folder's own entries begin."""
    for entry in _entries(folder):
        if not entry.name.startswith(begin):
            continue
        if entry.is_dir():
            yield from _files(entry.path)
        else:
            yield entry


def _etag(status: os.stat_result) -> str:
    # A put makes a new file, so etags differ by the inode even if size and time are equal.
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"


def _is_unfinished(key: str) -> bool:
    return key.rpartition("/")[2].startswith(UNFINISHED)


def objects_of_entry(objects: Objects, entry: str) -> Iterator[StoredObject]:
    """Yield the objects of what `below` has named: all of a folder, or the one object.

    Other keys may begin with an object's key, so a key is no prefix to list by.
    """
    stored_objects = objects.list(entry)
    if entry.endswith("/"):
        yield from stored_objects
    else:  # the first one, unless it is gone meanwhile
        yield from (stored for stored in islice(stored_objects, 1) if stored.key == entry)


def objects_at(url: str) -> S3Objects | FolderObjects:
    """Return the objects at `s3://bucket`, or in a folder."""
    if url.startswith("s3://"):
        return S3Objects(client("s3"), url.removeprefix("s3://").strip("/"))
    return FolderObjects(Path(url))
