"""Lines are read by columns or one by one, and rows are held in memory or on disk: the same comes of them."""

import gzip
from itertools import product
from random import Random
from typing import Any
from unittest import mock

import pytest

from adapters.platform.objects import FolderObjects
from analytics.curation import column_reader, intake, row_staging
from analytics.curation.curate import curate
from analytics.curation.raw_lines import unzip
from analytics.curation.row_staging import Staging
from analytics.lake.bookkeeping import Counts
from tests.support.effort import effort
from tests.support.mutated_lines import joined, mutated, texts_of
from tests.support.raw_lake import PLACE, event, expected, line, put_raw, quarantined, rows

HELD, AT_ONCE, FEW, PACKED = (0, 3_000, 10**9), (1, 7, 10**6), (0, 10**9), (0, 1, 8)
# Every eleventh in a short run.
WAYS = list(product(HELD, AT_ONCE, FEW, PACKED))[:: effort(11, soak=1)]


@pytest.mark.parametrize(("held", "at_once", "few", "packed"), WAYS)
def test_by_columns_or_not_in_memory_or_on_disk(
    tmp_path: Any, held: int, at_once: int, few: int, packed: int
) -> None:
    """Duplicates and versions across objects, merged with what was curated before."""
    some = [event(number % 9, version=f"{number % 4}", points_awarded=number) for number in range(60)]
    chance = Random(1)
    valid = [texts_of(chance, PLACE) for _ in range(20)]
    odd = [mutated(chance, each, joined(valid[0])) for each in valid]
    lines = [*map(line, some), *map(joined, valid), *odd]
    wanted, counts = expected(lines)
    with (
        mock.patch.object(row_staging, "FEW_LINES", few),
        mock.patch.object(row_staging, "MEMORY_BYTES_MAX", held),
        mock.patch.object(column_reader, "LINES_AT_ONCE", at_once),
    ):
        objects = FolderObjects(tmp_path)
        put_raw(objects, "a", lines[:40], packed=packed)
        curate(objects, PLACE)
        put_raw(objects, "b", lines[40:], packed=5 * packed)
        assert curate(objects, PLACE) == counts
    # Rows that were on disk are sorted in each piece alone.
    found = sorted(rows(objects), key=lambda row: (row["event_id"], row["user_id"]))
    assert found == wanted
    assert held < 10**9 or rows(objects) == wanted
    assert len(quarantined(objects)) == counts.quarantined


@pytest.mark.parametrize("packed", [0, 1, 7, 500])
def test_no_line_of_the_publisher_is_read_by_itself(tmp_path: Any, packed: int) -> None:
    objects = FolderObjects(tmp_path)
    texts = {"timezone": "+02:00", "properties": '{"a":"b\\n\\u00e9"}'}
    put_raw(objects, "a", [event(number, **texts) for number in range(500)], packed=packed)
    alone = mock.Mock(side_effect=AssertionError)
    with mock.patch.object(intake, "read_row", alone):
        assert curate(objects, PLACE) == Counts(500, 500, 0, 0)
    assert rows(objects)[0]["properties"] == texts["properties"]


def test_few_rows_are_in_memory_alone(tmp_path: Any) -> None:
    objects = FolderObjects(tmp_path)
    with mock.patch.object(Staging, "_newest_on_disk", mock.Mock(side_effect=AssertionError)):
        for name, number in (("a", 1), ("b", 2)):
            put_raw(objects, name, [event(number)])
            assert curate(objects, PLACE) == Counts(number, number, 0, 0)


def test_objects_that_look_like_many_members() -> None:
    one = gzip.compress(b"abc\n")
    assert unzip(one) == b"abc\n"
    assert unzip(one + one) == b"abc\nabc\n"
    assert unzip(gzip.compress(b"\x1f\x8b\x08" * 3, 0)) == b"\x1f\x8b\x08" * 3
    assert unzip(gzip.compress(b"")) == b""
