"""Any rows, cut into any objects, curated in any steps with crashes between any two writes: one answer."""

import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects, StoredObject
from analytics.curation import row_staging
from analytics.curation.curate import Task, curate
from analytics.lake.layout import curated_files
from tests.support.raw_lake import (
    DAY,
    DT,
    PLACE,
    event,
    expected,
    line,
    put_raw,
    quarantined,
    rows,
    total,
)

SETTINGS = settings(max_examples=25, suppress_health_check=list(HealthCheck))
NUMBERS = (5, -0, 1.5, 1e2, 2**63, -(2**63), True, None)
TEXTS = ("5", "", "x\0", '\u00e9"\\', DT, "2026-02-30", "2024-02-29")
TIMES = tuple(f"{DT}{rest}" for rest in ("T05:59:59.999999Z", "T05:00:60Z", "T07:00:00+02:00", " 05:00:00Z"))
ODD: st.SearchStrategy[Any] = st.sampled_from([*NUMBERS, *TEXTS, *TIMES, [], {}, {"a": [1]}, ...])
FIELD = st.sampled_from([*event(), "timezone", "properties", "mood", "user_id ", "Version"])
# Few keys and equal rows for equal versions: then nothing but the version decides which row stays.
PLAIN = st.builds(
    lambda number, version: event(number, version=version, points_awarded=version * 7 % 10),
    st.integers(0, 5),
    st.integers(0, 3),
)


def changed(row: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    """A row with one field changed, under a key of its own."""
    unique = "user_id" if name == "event_id" else "event_id"
    row = row | {unique: f"{name}={value!r} of {row}"} | {name: value}
    return {name: value for name, value in row.items() if value is not ...}


def torn(number: int, version: int, at: int, inserted: bytes) -> bytes:
    """A line with bytes inserted, under a key of its own."""
    whole = line(event(number, version=version, user_id=f"{at} {inserted.hex()} {version}"))
    return (whole[:at] + inserted + whole[at:]).replace(b"\n", b"")


NUMBER, VERSION = st.integers(0, 5), st.integers(0, 3)
CHANGED = st.builds(changed, PLAIN, FIELD, ODD)
BROKEN = st.one_of(
    st.binary(max_size=12).filter(lambda data: b"\n" not in data and not data.startswith(b"\x1f\x8b")),
    st.builds(torn, NUMBER, VERSION, st.integers(0, 330), st.binary(max_size=2)),
    st.builds(lambda row, size: line(row)[:size], PLAIN, st.integers(0, 330)),
)
WRITTEN = st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")])
LINE = st.one_of(
    PLAIN.map(line),
    st.tuples(CHANGED, WRITTEN, st.booleans()).map(
        lambda parts: json.dumps(parts[0], separators=parts[1], ensure_ascii=parts[2]).encode(
            errors="replace"
        )
    ),
    BROKEN,
)


# How many lines are read by columns: all, none, and now and then.
LIMITS = (0, 10**9, 8)


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

    def get(self, key: str) -> bytes:
        return self.inner.get(key)

    def tail(self, key: str, size: int) -> bytes:
        return self.inner.tail(key, size)

    def put(self, key: str, data: bytes) -> None:
        self._count()
        self.inner.put(key, data)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._count()
            self.inner.delete([key])

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


@given(st.lists(LINE, max_size=30), st.sampled_from(LIMITS))
@SETTINGS
def test_as_a_plain_reading_of_the_rules(lines: list[bytes], limit: int) -> None:
    """Whatever way a line takes, its row or refusal is that of read_row."""
    wanted, counts = expected(lines)
    with folder() as objects, by_columns_from(limit):
        put_raw(objects, "a", lines, zipped=False)
        assert curate(objects, PLACE) == counts == (total(objects) if counts.in_ else counts)
        assert comparable(rows(objects)) == comparable(wanted)
        assert len(quarantined(objects)) == counts.quarantined


@given(
    pieces=st.lists(st.lists(LINE, max_size=8), min_size=1, max_size=5),
    order=st.randoms(use_true_random=False),
    steps=st.lists(
        st.tuples(st.integers(0, 2), st.integers(-1, 3), st.booleans(), st.booleans()), max_size=5
    ),
    limit=st.sampled_from(LIMITS),
)
@SETTINGS
def test_any_steps_and_crashes_one_answer(
    pieces: list[list[bytes]], order: Any, steps: Any, limit: int
) -> None:
    with folder() as whole, folder() as inner, by_columns_from(limit):
        for number, piece in enumerate(pieces):
            put_raw(whole, f"{number}", piece)
        wanted = curate(whole, PLACE)
        objects, arriving = Crashing(inner), list(enumerate(pieces))
        order.shuffle(arriving)
        for arrived, crash_before, whole_day, rebuild in steps:
            for number, piece in (arriving.pop() for _ in range(min(arrived, len(arriving)))):
                put_raw(inner, f"{number}", piece)
            step(objects, DAY if whole_day else PLACE, crash_before, rebuild)
        for number, piece in arriving:
            put_raw(inner, f"{number}", piece)
        assert (
            curate(objects, PLACE) == wanted == (total(inner) if curated_files(inner, "events") else wanted)
        )
        assert comparable(rows(inner)) == comparable(rows(whole))
        assert wanted.in_ == wanted.curated + wanted.duplicates + wanted.quarantined
        assert quarantined(inner) == quarantined(whole)


def step(objects: Crashing, task: Task, crash_before: int, rebuild: bool) -> None:
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
    found, counts = expected([line(event(1)), line(event(1, version=2)), b"{}", b" "])
    assert (counts.in_, counts.curated, counts.duplicates, counts.quarantined) == (3, 1, 1, 1)
    assert found[0]["version"] == 2
    assert found[0]["activity_date"] == date(2026, 3, 1)
    assert found[0]["occurred_at"] == datetime(2026, 3, 1, 5, 0, 0, 1, UTC)
