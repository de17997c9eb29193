"""Two curations at once: whoever is second reads what the first one wrote. Nothing is lost, whoever waits."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from adapters.platform.objects import FolderObjects, ObjectChanged, StoredObject
from analytics.curation.curate import curate
from analytics.lake.bookkeeping import Counts
from analytics.lake.layout import Partition, curated_files, curated_key
from tests.support.effort import effort
from tests.support.raw_lake import DAY, MONTH, PLACE, event, put_raw, rows, total


@dataclass
class Interrupted:
    """Objects that let something else happen just before one of their calls, counted from 1."""

    inner: FolderObjects
    at: int
    other: Callable[[], object]
    calls: int = 0

    def _count(self) -> FolderObjects:
        self.calls += 1
        if self.calls == self.at:
            self.other()
        return self.inner

    def list(self, prefix: str) -> Iterator[StoredObject]:
        return self._count().list(prefix)

    def below(self, folder: str) -> Iterator[str]:
        return self._count().below(folder)

    def get(self, key: str) -> bytes:
        return self._count().get(key)

    def save(self, key: str, path: Path) -> None:
        self._count().save(key, path)

    def link(self, key: str, path: Path) -> None:
        self._count().link(key, path)

    def part(self, key: str, start: int, size: int) -> bytes:
        return self._count().part(key, start, size)

    def tail(self, key: str, size: int) -> bytes:
        return self._count().tail(key, size)

    def put(self, key: str, data: bytes) -> None:
        self._count().put(key, data)

    def delete(self, keys: Iterable[str]) -> None:
        self._count().delete(keys)

    def etag(self, key: str) -> str | None:
        return self._count().etag(key)

    def put_if(self, key: str, data: bytes | Path, etag: str | None) -> None:
        self._count().put_if(key, data, etag)

    def delete_if(self, key: str, etag: str) -> None:
        self._count().delete_if(key, etag)


@pytest.fixture
def objects(tmp_path: Path) -> FolderObjects:
    return FolderObjects(tmp_path)


@pytest.mark.parametrize("there", [False, True], ids=["a new file", "a file that is there"])
@pytest.mark.parametrize("first", [PLACE, DAY, MONTH], ids=["an hour", "a day", "a month"])
@pytest.mark.parametrize("second", [PLACE, DAY, MONTH], ids=["while an hour", "while a day", "while a month"])
def test_whatever_happens_in_between_all_rows_stay(
    objects: FolderObjects, there: bool, first: Partition, second: Partition
) -> None:
    """Another run curates a further object before each of the first one's calls in turn."""
    for at in range(1, 40, effort(2, soak=1)):
        objects.delete([each.key for each in objects.list("")])
        put_raw(objects, "a", [event(0), b"nonsense"])
        if there:
            curate(objects, PLACE)
        put_raw(objects, "b", [event(1)])

        def other() -> None:
            put_raw(objects, "c", [event(2)])
            curate(objects, second)

        interrupted = Interrupted(objects, at, other)
        curate(interrupted, first)
        if interrupted.calls < at:
            break
        assert sorted(row["event_id"][-2:] for row in rows(objects)) == ["e0", "e1", "e2"], at
        assert total(objects) == Counts(4, 3, 0, 1), at
        assert len({each.key for each in curated_files(objects, "events")}) == 1
    else:
        raise AssertionError("it never ends")


def test_who_is_never_first_says_so(objects: FolderObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    put_raw(objects, "a", [event(0)])

    def taken(*_: object) -> None:
        raise ObjectChanged(curated_key(PLACE))

    monkeypatch.setattr(FolderObjects, "put_if", taken)
    monkeypatch.setattr("analytics.curation.curate.pauses", range)
    with pytest.raises(ObjectChanged):
        curate(objects, PLACE)
