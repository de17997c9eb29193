"""Curation of packed records: rows are counted and not lines, nothing whole is lost, and old objects stay readable."""

import gzip
from pathlib import Path

import pytest

from adapters.platform.objects import FolderObjects
from analytics.curation import row_staging
from analytics.curation.curate import curate
from analytics.lake.bookkeeping import Counts
from rules.lake.packed_records import END, FOOTER, frame_record, record_header
from tests.support.raw_lake import DT, HOUR, PLACE, event, line, put_raw, quarantined, raw_text, rows, total

HEAD = record_header(DT, HOUR)


@pytest.fixture(params=[0, 10**9], ids=["by columns", "line by line"])
def objects(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FolderObjects:
    monkeypatch.setattr(row_staging, "FEW_LINES", request.param)
    return FolderObjects(tmp_path)


def put(objects: FolderObjects, name: str, text: bytes) -> str:
    key = put_raw(objects, name, [])
    objects.put(key, text)
    return key


def keys(objects: FolderObjects) -> list[str]:
    return sorted(row["idempotency_key"] for row in rows(objects))


def test_old_and_new_objects_zipped_and_plain_make_one_hour(objects: FolderObjects) -> None:
    some = [line(event(number)) for number in range(8)]
    put(objects, "a", raw_text(some[:2]))
    put(objects, "b", gzip.compress(frame_record(HEAD, some[2:4])) + gzip.compress(raw_text(some[4:5])))
    put(
        objects,
        "c",
        raw_text(some[5:6])
        + frame_record(HEAD, some[6:7])
        + frame_record(HEAD, some[7:])
        + raw_text(some[:1]),
    )
    assert curate(objects, PLACE) == total(objects) == Counts(9, 8, 1, 0)
    assert keys(objects) == [f"k{number}" for number in range(8)]


def test_a_record_that_comes_again_is_duplicates(objects: FolderObjects) -> None:
    some = [event(number) for number in range(3)]
    put_raw(objects, "a", some, packed=3)
    assert curate(objects, PLACE) == Counts(3, 3, 0, 0)
    put_raw(objects, "b", [*some, event(3)], packed=4)  # a part of it was packed anew
    assert curate(objects, PLACE) == Counts(7, 4, 3, 0)
    assert curate(objects, PLACE, rebuild=True) == Counts(7, 4, 3, 0)


def test_a_refused_row_keeps_its_place_and_reason(objects: FolderObjects) -> None:
    bad = event(1, points_awarded="5")
    key = put_raw(objects, "a", [event(0), bad, event(2), event(3, hour="06")], packed=2)
    assert curate(objects, PLACE) == Counts(4, 2, 0, 2)
    first, second = quarantined(objects)
    assert (first["source"], first["line"]) == (key, 3)
    assert first["reason"] == 'points_awarded: not an integer: "5"'
    assert first["raw"].encode() == line(bad)
    assert (second["line"], second["reason"]) == (7, 'hour: "06" in the partition 05')


@pytest.mark.parametrize("name", ["dt", "hour"])
def test_a_row_of_another_partition_than_its_record_says_is_refused(
    objects: FolderObjects, name: str
) -> None:
    put_raw(objects, "a", [event(0), event(1, **{name: ...})], packed=2)
    assert curate(objects, PLACE) == Counts(2, 1, 0, 1)
    assert quarantined(objects)[0]["reason"] == f"{name}: missing"


def test_every_cut_loses_at_most_the_row_that_it_cuts(objects: FolderObjects) -> None:
    some = [line(event(number)) for number in range(3)]
    record = frame_record(HEAD, some)
    ends = [len(frame_record(HEAD, some[: number + 1])) - len(END + FOOTER) for number in range(3)]
    cuts = {at + by for at in [len(HEAD), *ends] for by in range(-3, 11)} & set(range(1, len(record) + 1))
    for at in sorted(cuts):
        put(objects, "a", record[:at])
        counts = curate(objects, PLACE, rebuild=True)
        assert counts == total(objects)
        assert counts.curated == len(rows(objects)) == sum(end <= at for end in ends)
        assert counts.in_ == counts.curated + counts.quarantined
        assert counts.quarantined == len(quarantined(objects)) <= 1
        assert all(each["reason"].startswith(("not JSON", "not an object")) for each in quarantined(objects))


def test_a_record_without_rows_holds_none(objects: FolderObjects) -> None:
    put(objects, "a", HEAD + FOOTER + HEAD + b"\n" + FOOTER[:-1])
    assert curate(objects, PLACE) == Counts(0, 0, 0, 0)
    assert quarantined(objects) == []
