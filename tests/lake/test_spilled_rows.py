"""Rows on disk: of each key the newest stays, in the order that rows in memory have."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from unittest import mock

from adapters.platform.objects import FolderObjects
from analytics.curation import intake, row_staging, sealed_file
from analytics.curation.curate import curate
from analytics.curation.raw_lines import LineBatch, batches
from analytics.lake.bookkeeping import Counts
from tests.support.raw_lake import PLACE, event, expected, line, put_raw, quarantined, rows, total

ON_DISK = mock.patch.object(row_staging, "MEMORY_BYTES_MAX", 10_000)
FEW_AT_ONCE = mock.patch("analytics.curation.column_reader.LINES_AT_ONCE", 50)


def test_very_many_versions_of_few_keys(tmp_path: Path) -> None:
    """The newest of each key stays, also where its versions do not fit into one group of sorted rows."""
    objects = FolderObjects(tmp_path)
    lines = [
        line(event(number % 3, version=f"{number % 377:03}", points_awarded=number))
        for number in range(1_000)
    ]
    put_raw(objects, "a", lines)
    with ON_DISK, FEW_AT_ONCE, mock.patch.object(sealed_file, "ROW_GROUP_ROWS", 7):
        curate(objects, PLACE)
    assert rows(objects) == expected(lines)[0]


def test_rows_on_disk_are_sorted_as_those_in_memory(tmp_path: Path) -> None:
    texts = ["", "a", "a\0", "B", "é", "\U0001f600", "\ue000", "z", "zz", "~"]
    lines = [line(event(number, user_id=f"u{texts[number % 10]}{number % 7}")) for number in range(2_000)]
    in_memory, on_disk = FolderObjects(tmp_path / "one"), FolderObjects(tmp_path / "two")
    put_raw(in_memory, "a", lines)
    put_raw(on_disk, "a", lines)
    curate(in_memory, PLACE)
    with ON_DISK, FEW_AT_ONCE:
        curate(on_disk, PLACE)
    assert rows(on_disk) == rows(in_memory)
    assert len(rows(on_disk)) > 1_000


def test_refused_lines_do_not_wait_in_memory(tmp_path: Path) -> None:
    """Each object's are stored when it has been read, not at the end."""
    objects = FolderObjects(tmp_path)
    for name in "abc":
        put_raw(objects, name, [b"nonsense"] * 3)
    seen: list[int] = []
    with mock.patch.object(intake, "batches", lambda texts: _one_by_one(texts, seen, objects)):
        curate(objects, PLACE)
    assert seen == [0, 3, 6]
    assert total(objects) == Counts(9, 0, 0, 9)


def _one_by_one(
    texts: Iterable[tuple[str, bytes]], seen: list[int], objects: FolderObjects
) -> Iterator[LineBatch]:
    for batch in batches(texts, 1):
        seen.append(len(quarantined(objects)))
        yield batch


def test_objects_are_fetched_side_by_side_up_to_a_size(tmp_path: Path) -> None:
    objects = FolderObjects(tmp_path)
    for number in range(40):
        put_raw(objects, f"{number:02}", [event(number)])
    stored = list(objects.list("raw/"))
    assert [len(some) for some in intake._fetch_batches(stored)] == [16, 16, 8]
    with mock.patch.object(intake, "FETCHED_BYTES", 3 * max(each.size for each in stored)):
        sizes = [len(some) for some in intake._fetch_batches(stored)]
    assert max(sizes) == 3
    assert sum(sizes) == 40
    with mock.patch.object(intake, "FETCHED_BYTES", 0):
        assert [len(some) for some in intake._fetch_batches(stored)] == [1] * 40
