"""Rows on disk: a key's rows are in one piece, and memory holds one piece, or less of it, at a time."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects
from analytics.curation import curate as intake
from analytics.curation import kept_rows, row_staging
from analytics.curation.curate import curate
from analytics.curation.raw_lines import Batch, batches
from analytics.curation.row_staging import Staging, hashes
from analytics.lake.arrow import array_of
from analytics.lake.bookkeeping import Bookkeeping, Counts
from rules.lake.entities import EVENTS
from tests.support.raw_lake import PLACE, event, expected, line, put_raw, quarantined, rows, total

KEYS = st.lists(st.tuples(st.text(max_size=30), st.dates(), st.integers(-(2**63), 2**63 - 1)), min_size=1)


def hashed(keys: Sequence[tuple[str, date, int]]) -> list[int]:
    columns = zip(zip(*keys, strict=True), (pa.string(), pa.date32(), pa.int64()), strict=True)
    found: list[int] = hashes([array_of(values, kind) for values, kind in columns]).tolist()
    return found


@given(KEYS)
def test_a_key_s_hash_depends_on_the_key_alone(keys: list[tuple[str, date, int]]) -> None:
    assert hashed(keys) == [hashed([each])[0] for each in keys]
    texts = pa.concat_arrays([pa.array(["", "xyz"]), pa.array([text for text, *_ in keys])])
    assert hashes([texts.slice(2)]).tolist() == hashes([pa.array([text for text, *_ in keys])]).tolist()
    assert len(set(hashed(keys))) == len(set(keys))


@pytest.mark.parametrize("form", ["u{}", "usr_{:032x}", "{:08}-suffix-that-all-have"])
def test_keys_spread_evenly(form: str) -> None:
    texts = pa.array([form.format(number) for number in range(32_000)])
    sizes = np.bincount(hashes([texts]) % row_staging.PIECES, minlength=row_staging.PIECES)
    assert sizes.min() > 800
    assert sizes.max() < 1200
    numbers = np.bincount(hashes([pa.array(range(0, 320_000, 10))]) % row_staging.PIECES)
    assert numbers.min() > 800


def test_texts_are_not_run_together() -> None:
    one, other = (hashes([pa.array([a]), pa.array([b])]) for a, b in (("ab", "c"), ("a", "bc")))
    assert one != other
    assert hashes([pa.array(["a"])]) != hashes([pa.array(["a\0"])])


def test_very_many_versions_of_one_key(tmp_path: Path) -> None:
    """Its piece is deduplicated while it is read: memory never has more than it may, and the newest stays."""
    objects, most = FolderObjects(tmp_path), 0
    lines = [line(event(0, version=f"{number % 377:03}", points_awarded=number)) for number in range(3_000)]
    put_raw(objects, "a", lines)
    real = kept_rows.newest_versions

    def seen(entity: object, some: pa.Table) -> object:
        nonlocal most
        most = max(most, some.num_rows)
        return real(entity, some)  # type: ignore[arg-type]

    with (
        mock.patch.object(row_staging, "HELD_BYTES_MAX", 10_000),
        mock.patch("analytics.curation.column_reader.LINES_AT_ONCE", 50),
        mock.patch.object(row_staging, "PIECE_BYTES_MAX", 50_000),
        mock.patch.object(kept_rows, "newest_versions", seen),
    ):
        curate(objects, PLACE)
    assert rows(objects) == expected(lines)[0]
    assert 1 < most < 1_000


def test_disk_is_given_back_piece_by_piece(tmp_path: Path) -> None:
    staging = Staging(EVENTS, tmp_path / "spill")
    lines = [event(number) for number in range(2_000)]
    objects = FolderObjects(tmp_path / "lake")
    with mock.patch.object(row_staging, "HELD_BYTES_MAX", 1_000):
        key = put_raw(objects, "a", lines)
        intake.Intake(objects, staging).take(list(objects.list(key)))
    left: list[int] = []

    def book(kept: int) -> Bookkeeping:
        left.append(len(list((tmp_path / "spill").iterdir())))
        return Bookkeeping(1, Counts(kept, kept))

    assert staging.write(tmp_path / "rows.parquet", book).counts.curated == 2_000
    assert left[0] == 0
    staging.close()


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
) -> Iterator[Batch]:
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
