"""Any rows, cut into any objects, curated in any steps with crashes between any two writes: one answer."""

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects, StoredObject
from analytics.curation import row_staging
from analytics.curation.curate import curate
from analytics.curation.raw_lines import GZIP
from analytics.lake.layout import Partition, curated_files
from tests.support.examples import examples
from tests.support.packed_texts import lines_of, spoiled
from tests.support.raw_lake import (
    DAY,
    PLACE,
    event,
    expected,
    line,
    put_raw,
    quarantined,
    raw_text,
    rows,
    total,
)
from tests.support.raw_line_strategies import LINE

SETTINGS = settings(max_examples=examples(25), suppress_health_check=list(HealthCheck))
# How many lines are read by columns: all, none, and now and then.
LIMITS = (0, 10**9, 8)
# How many lines a packed record has; 0: plain lines.
PACKED = (0, 0, 1, 3, 20)


def by_columns_from(limit: int) -> Any:
    return mock.patch.object(row_staging, "FEW_LINES", limit)


class Crash(Exception):
    pass


@dataclass(slots=True)
class Crashing:
    """Objects that die before one of their writes (puts and deletes), then work again."""

    inner: FolderObjects
    writes_left: int = -1

    def list(self, prefix: str) -> Iterator[StoredObject]:
        return self.inner.list(prefix)

    def below(self, folder: str) -> Iterator[str]:
        return self.inner.below(folder)

    def get(self, key: str) -> bytes:
        return self.inner.get(key)

    def save(self, key: str, path: Path) -> None:
        self.inner.save(key, path)

    def link(self, key: str, path: Path) -> None:
        self.inner.link(key, path)

    def part(self, key: str, start: int, size: int) -> bytes:
        return self.inner.part(key, start, size)

    def tail(self, key: str, size: int) -> bytes:
        return self.inner.tail(key, size)

    def put(self, key: str, data: bytes) -> None:
        self._count()
        self.inner.put(key, data)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._count()
            self.inner.delete([key])

    def etag(self, key: str) -> str | None:
        return self.inner.etag(key)

    def put_if(self, key: str, data: bytes | Path, etag: str | None) -> None:
        self._count()
        self.inner.put_if(key, data, etag)

    def delete_if(self, key: str, etag: str) -> None:
        self._count()
        self.inner.delete_if(key, etag)

    def _count(self) -> None:
        if self.writes_left == 0:
            self.writes_left = -1
            raise Crash
        self.writes_left -= 1


@contextmanager
def folder() -> Iterator[FolderObjects]:
    path = Path(tempfile.mkdtemp())
    try:
        yield FolderObjects(path)
    finally:
        shutil.rmtree(path)


def comparable(found: list[dict[str, Any]]) -> list[str]:
    return [json.dumps(row, default=lambda moment: moment.isoformat()) for row in found]


@given(st.lists(LINE, max_size=30), st.sampled_from(PACKED), st.integers(0, 10**6), st.sampled_from(LIMITS))
@SETTINGS
def test_as_a_plain_reading_of_the_rules(
    lines: list[bytes], packed: int, spoiled_by: int, limit: int
) -> None:
    """Whatever way a line takes, its row or refusal is that of read_row; also in a text that was spoiled."""
    text = raw_text(lines, PLACE, packed)
    if packed:
        text = spoiled(Random(spoiled_by), text)
    text = text if not text.startswith(GZIP) else b""
    wanted, counts = expected(lines_of(text))
    with folder() as objects, by_columns_from(limit):
        objects.put(put_raw(objects, "a", []), text)
        assert curate(objects, PLACE) == counts == (total(objects) if counts.in_ else counts)
        assert comparable(rows(objects)) == comparable(wanted)
        assert len(quarantined(objects)) == counts.quarantined


@given(
    pieces=st.lists(st.lists(LINE, max_size=8), min_size=1, max_size=5),
    order=st.randoms(use_true_random=False),
    steps=st.lists(
        st.tuples(st.integers(0, 2), st.integers(-1, 3), st.booleans(), st.booleans()), max_size=5
    ),
    packed=st.sampled_from(PACKED),
    limit=st.sampled_from(LIMITS),
)
@SETTINGS
def test_any_steps_and_crashes_one_answer(
    pieces: list[list[bytes]], order: Any, steps: Any, packed: int, limit: int
) -> None:
    with folder() as whole, folder() as inner, by_columns_from(limit):
        for number, piece in enumerate(pieces):
            put_raw(whole, f"{number}", piece, packed=packed)
        wanted = curate(whole, PLACE)
        objects, arriving = Crashing(inner), list(enumerate(pieces))
        order.shuffle(arriving)
        for arrived, crash_before, whole_day, rebuild in steps:
            for number, piece in (arriving.pop() for _ in range(min(arrived, len(arriving)))):
                put_raw(inner, f"{number}", piece, packed=packed)
            step(objects, DAY if whole_day else PLACE, crash_before, rebuild)
        for number, piece in arriving:
            put_raw(inner, f"{number}", piece, packed=packed)
        assert (
            curate(objects, PLACE) == wanted == (total(inner) if curated_files(inner, "events") else wanted)
        )
        assert comparable(rows(inner)) == comparable(rows(whole))
        assert wanted.in_ == wanted.curated + wanted.duplicates + wanted.quarantined
        assert quarantined(inner) == quarantined(whole)


def step(objects: Crashing, task: Partition, crash_before: int, rebuild: bool) -> None:
    objects.writes_left = crash_before
    try:
        curate(objects, task, rebuild=rebuild)
    except Crash:
        objects.writes_left = -1
        counts, found = total(objects.inner), rows(objects.inner)  # what a reader sees meanwhile
        assert counts.curated == len(found)
        assert counts.in_ == counts.curated + counts.duplicates + counts.quarantined
    objects.writes_left = -1


def test_the_model_itself() -> None:
    """The plain reading is not empty-handed: it keeps, drops and refuses."""
    found, counts = expected([line(event(1)), line(event(1, version="2")), b"{}", b" "])
    assert (counts.in_, counts.curated, counts.duplicates, counts.quarantined) == (3, 1, 1, 1)
    assert found[0]["version"] == "2"
    assert found[0]["activity_date"] == date(2026, 3, 1)
    assert found[0]["occurred_at"] == datetime(2026, 3, 1, 5, 0, 0, 1, UTC)
