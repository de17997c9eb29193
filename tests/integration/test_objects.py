"""One contract for stored objects, on a folder and on S3 (by moto)."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from moto import mock_aws

from adapters.platform import aws
from adapters.platform.objects import (
    UNFINISHED,
    FolderObjects,
    NoObject,
    ObjectChanged,
    Objects,
    S3Objects,
    objects_at,
    objects_of_entry,
)


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        aws.client.cache_clear()
        client = aws.client("s3")
        client.create_bucket(Bucket="lake")
        yield client
    aws.client.cache_clear()


@pytest.fixture(params=["folder", "s3"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    if request.param == "folder":
        return FolderObjects(tmp_path)
    return S3Objects(request.getfixturevalue("s3"), "lake")


def test_what_is_put_is_what_is_got(objects: Objects) -> None:
    data = bytes(range(256)) * 5
    objects.put("a/b/c", data)
    assert objects.get("a/b/c") == data
    assert [objects.tail("a/b/c", size) for size in (1, 8, 5000)] == [data[-1:], data[-8:], data]
    objects.put("a/b/c", b"")
    assert objects.get("a/b/c") == objects.tail("a/b/c", 8) == b""


def test_a_linked_file_keeps_what_the_object_was(objects: Objects, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("files") / "seen"
    with pytest.raises(NoObject):
        objects.link("a/b", path)
    path.unlink(missing_ok=True)
    objects.put("a/b", b"before")
    objects.link("a/b", path)
    objects.put("a/b", b"after")
    assert (path.read_bytes(), objects.get("a/b")) == (b"before", b"after")
    path.unlink()
    assert objects.get("a/b") == b"after"


def test_files_come_and_go_without_their_bytes_in_memory(objects: Objects, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("files")
    (folder / "in").write_bytes(bytes(range(256)) * 10_000)
    objects.put_if("a/b", folder / "in", None)
    objects.save("a/b", folder / "out")
    assert (folder / "out").read_bytes() == (folder / "in").read_bytes() == objects.get("a/b")
    with pytest.raises(ObjectChanged):
        objects.put_if("a/b", folder / "out", None)
    (folder / "in").write_bytes(b"other")
    objects.put_if("a/b", folder / "in", objects.etag("a/b"))
    objects.save("a/b", folder / "out")
    assert (folder / "out").read_bytes() == b"other"


def test_a_key_that_is_not_there(objects: Objects, tmp_path_factory: Any) -> None:
    objects.put("a/b", b"x")
    path = tmp_path_factory.mktemp("files") / "out"
    for read in (objects.get, lambda key: objects.tail(key, 8), lambda key: objects.save(key, path)):
        for key in ("a", "a/b/c", "z"):
            with pytest.raises(NoObject):
                read(key)
    objects.delete(["z", "a/z"])
    objects.delete([])


def test_a_listing_is_in_the_order_of_keys(objects: Objects) -> None:
    keys = ["a/1", "a/10", "a/2", "a/b/c", "a-", "a.b", "b"]
    for key in keys:
        objects.put(key, key.encode())
    assert [each.key for each in objects.list("")] == sorted(keys)
    assert [each.key for each in objects.list("a/")] == ["a/1", "a/10", "a/2", "a/b/c"]
    assert [each.key for each in objects.list("a/1")] == ["a/1", "a/10"]
    first, second = objects.list("a/1")
    assert (first.size, second.size) == (3, 4)
    assert abs(first.modified - datetime.now(UTC)) < timedelta(minutes=1)
    assert list(objects.list("nothing/here/")) == []
    objects.delete(["a/10", "b"])
    assert [each.key for each in objects.list("a/1")] == ["a/1"]


def test_what_is_directly_below_a_folder(objects: Objects) -> None:
    """A console's marker of a folder is an object with the folder's name. A folder's own is not below it."""
    markers = ("raw/", "raw/events/", "raw/empty/") if isinstance(objects, S3Objects) else ()
    for key in ("raw/events/arrived=1/a", "raw/events/stray", "raw/z", "rawer", *markers):
        objects.put(key, b"")
    empty = ["raw/empty/"] if markers else []
    assert sorted(objects.below("raw/")) == [*empty, "raw/events/", "raw/z"]
    assert sorted(objects.below("raw/events/")) == ["raw/events/arrived=1/", "raw/events/stray"]
    assert sorted(objects.below("")) == ["raw/", "rawer"]
    assert list(objects.below("raw/empty/")) == []
    found = [each.key for entry in objects.below("raw/events/") for each in objects_of_entry(objects, entry)]
    assert sorted(found) == ["raw/events/arrived=1/a", "raw/events/stray"]


def test_the_etag_tells_contents_apart(objects: Objects) -> None:
    def etag() -> str:
        (found,) = objects.list("k")
        return found.etag

    objects.put("k", b"one")
    first = etag()
    objects.put("k", b"one")
    assert etag() == first
    objects.put("k", b"two")
    assert etag() != first


def test_more_than_one_request_deletes(objects: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.platform.objects.DELETES_MAX", 2)
    keys = [f"k/{number}" for number in range(6)]
    for key in keys:
        objects.put(key, b"")
    objects.delete(iter(keys[1:]))
    assert [each.key for each in objects.list("k/")] == keys[:1]


def test_a_put_that_dies_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = FolderObjects(tmp_path)
    objects.put("a/k", b"old")

    def die(*_: Any) -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", die)
        with pytest.raises(OSError, match="gone"):
            objects.put("a/k", b"new")
    assert [each.key for each in objects.list("")] == ["a/k"]
    assert objects.get("a/k") == b"old"


def test_at_an_url(s3: Any, tmp_path: Path) -> None:
    put: Callable[[str], None] = lambda url: objects_at(url).put("k", url.encode())  # noqa: E731
    put("s3://lake")
    put(str(tmp_path))
    assert objects_at("s3://lake/").get("k") == b"s3://lake"
    assert (tmp_path / "k").read_bytes() == str(tmp_path).encode()


def test_an_object_is_replaced_only_if_it_is_the_one_that_was_read(objects: Objects) -> None:
    assert objects.etag("a/b") is None
    with pytest.raises(ObjectChanged):
        objects.put_if("a/b", b"x", "0123")
    objects.put_if("a/b", b"one", None)
    (listed,) = objects.list("a/b")
    assert objects.etag("a/b") == listed.etag
    with pytest.raises(ObjectChanged):
        objects.put_if("a/b", b"two", None)
    objects.put_if("a/b", b"three", listed.etag)
    with pytest.raises(ObjectChanged):
        objects.put_if("a/b", b"four", listed.etag)
    with pytest.raises(ObjectChanged):
        objects.delete_if("a/b", listed.etag)
    assert objects.get("a/b") == b"three"
    newest = objects.etag("a/b")
    assert newest
    objects.delete_if("a/b", newest)
    assert list(objects.list("")) == []
    with pytest.raises(ObjectChanged):
        objects.put_if("a/b", b"five", newest)


@pytest.mark.parametrize("what", ["put", "etag", "forget"])
def test_a_file_that_vanishes_meanwhile_is_one_that_is_not_there(tmp_path: Path, what: str) -> None:
    """In a folder alone: a request to S3 is one step."""
    objects, is_over = FolderObjects(tmp_path), Event()
    actions: dict[str, Callable[[], object]] = {
        "put": lambda: objects.put("k", b"x"),
        "etag": lambda: (tmp_path / "k").write_bytes(b"x") and objects.etag("k"),
        "forget": lambda: objects.forget_unfinished(datetime.now(UTC) + timedelta(days=1)),
    }

    def come_and_go() -> None:
        while not is_over.is_set():
            (tmp_path / "k").unlink(missing_ok=True)
            (tmp_path / f"{UNFINISHED}x").write_bytes(b"x")
            (tmp_path / f"{UNFINISHED}x").unlink(missing_ok=True)

    seconds = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # so that the other one often comes in between
    try:
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(come_and_go)
            try:
                for _ in range(2000):
                    actions[what]()
            finally:
                is_over.set()
            other.result()
    finally:
        sys.setswitchinterval(seconds)


def test_of_many_writers_at_once_each_adds_to_what_the_others_wrote(tmp_path: Path) -> None:
    """In a folder alone: moto does not judge the conditions of requests at once in one step, as S3 does."""
    objects = FolderObjects(tmp_path)

    def add(number: int) -> None:
        while True:
            etag = objects.etag("sum")
            held = objects.get("sum") if etag else b""
            try:
                return objects.put_if("sum", held + bytes([number]), etag)
            except (ObjectChanged, NoObject):
                continue

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))
    assert sorted(objects.get("sum")) == list(range(40))
