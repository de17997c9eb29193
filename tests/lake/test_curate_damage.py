"""Damaged and displaced raw objects are accounted for exactly: what was read, kept, doubled and refused."""

import gzip
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects
from analytics.curation import raw_lines
from analytics.curation.curate import curate, curate_in_run
from analytics.curation.plan import plan
from analytics.curation.raw_lines import Unreadable, readable_text, unzip
from analytics.lake.bookkeeping import Counts
from analytics.lake.run_notes import odd_objects
from analytics.recompute.recompute import recompute
from tests.support.effort import effort
from tests.support.raw_lake import DAY, DT, PLACE, event, line, put_raw, quarantined, rows, total


def zipped(data: bytes) -> bytes:
    """A gzip member without the time, whose bytes might be those of a line's end."""
    return gzip.compress(data, mtime=0)


ONE, TWO, THREE = (line(event(number)) + b"\n" for number in (1, 2, 3))


@pytest.mark.parametrize(
    "data",
    [
        zipped(ONE) + TWO + THREE,
        zipped(ONE) + zipped(TWO) + THREE,
        zipped(ONE[:-1]) + TWO + THREE,
        zipped(ONE) + TWO + THREE[:-1],
        zipped(ONE) + TWO + zipped(TWO) + b"\n" + THREE,
    ],
    ids=["one member", "two members", "no line break between", "none at the end", "and a member again"],
)
def test_plain_lines_after_a_gzip_member_are_read(objects: FolderObjects, data: bytes) -> None:
    objects.put(put_raw(objects, "a", []), data)
    counts = curate(objects, PLACE)
    assert counts.in_ == counts.curated + counts.duplicates + counts.quarantined
    assert len(rows(objects)) == 3
    assert counts.quarantined == 0


def test_zeros_after_a_gzip_member_are_no_lines_and_anything_else_is() -> None:
    assert unzip(zipped(ONE) + bytes(512)) == ONE
    assert unzip(zipped(ONE) + b"x") == ONE + b"\nx\n"
    with pytest.raises(Unreadable) as cut:
        unzip(zipped(ONE) + zipped(TWO)[:-4])
    assert (cut.value.text, cut.value.rest, cut.value.seen) == (ONE, zipped(TWO)[:-4], TWO)


CUT = {
    "in its data": zipped(TWO)[:40],
    "in its checksum": zipped(TWO)[:-3],
    "in its head": zipped(TWO)[:5],
    "after its first bytes": b"\x1f\x8b",
    "damaged": zipped(TWO)[:-6] + b"\0" + zipped(TWO)[-5:],
}


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(zipped(ONE), id="second"),
        *(pytest.param(b"", id="first"), pytest.param(zipped(ONE) + zipped(THREE), id="third"))[
            : effort(0, soak=2)
        ],
    ],
)
@pytest.mark.parametrize("rest", CUT.values(), ids=CUT)
def test_an_object_that_is_not_whole_gives_its_whole_members_and_the_report_names_it(
    objects: FolderObjects, before: bytes, rest: bytes
) -> None:
    """Night after night, while its hour is curated; until it is replaced by a whole one."""
    key = put_raw(objects, "a", [])
    put_raw(objects, "b", [event(9)])
    objects.put(key, before + rest)
    members = before.count(b"\x1f\x8b\x08")
    for run_id in ("one", "two"):
        put_raw(objects, run_id, [event(9)])
        counts = curate_in_run(objects, run_id, PLACE, rebuild=False, arrived=None)
        assert (counts.curated, counts.quarantined) == (1 + members, 1)
        (entry,) = quarantined(objects)
        (named,) = odd_objects(objects, run_id)
        assert named == {"object": key, "reason": entry["reason"]}
        assert named["reason"].startswith(f"unreadable object: {len(rest)} of {len(before + rest)} bytes")
    objects.put(key, before + zipped(TWO))
    counts = curate_in_run(objects, "three", PLACE, rebuild=False, arrived=None)
    assert (counts.curated, counts.quarantined) == (2 + members, 0)
    assert odd_objects(objects, "three") == []


def test_the_largest_text_of_an_object(objects: FolderObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_lines, "TEXT_BYTES_MAX", len(ONE))
    assert unzip(zipped(ONE)) == ONE
    with pytest.raises(Unreadable, match="too many") as large:
        unzip(zipped(ONE + TWO))
    assert (large.value.text, large.value.seen) == (b"", ONE + TWO)


@given(st.binary(max_size=40), st.integers(0, 200), st.integers(0, 7))
def test_any_damage_leaves_all_that_is_proven_and_nothing_else(junk: bytes, at: int, members: int) -> None:
    texts = [b'{"n":%d}\n' % number * 9 for number in range(members)]
    data = bytearray(b"".join(map(zipped, texts)))
    data[at : at + len(junk)] = junk
    try:
        text, rest = unzip(bytes(data)), b""
    except Unreadable as error:
        text, rest = error.text, error.rest
    if data.startswith(b"\x1f\x8b"):
        lines = {
            line for line in text.split(b"\n") if line in {b'{"n":%d}' % number for number in range(members)}
        }
        whole = {each.strip().split(b"\n")[0] for each in texts if zipped(each) in data}
        assert whole <= lines or rest, "a whole member is read, or the object is said to be damaged"
    assert readable_text(bytes(data)) is not None


@pytest.mark.parametrize("cut", [lambda data: data[:-20], lambda data: data[: len(data) // 2]])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_truncated_object_that_is_replaced_whole_leaves_no_trace(
    objects: FolderObjects, cut: Any, zipped: bool
) -> None:
    put_raw(objects, "a", [event(0), b"nonsense"])
    key = put_raw(objects, "b", [event(number) for number in range(1, 20)], zipped=zipped)
    whole = objects.get(key)
    objects.put(key, cut(whole))
    assert curate(objects, PLACE).quarantined == 2
    objects.put(key, whole)
    assert curate(objects, PLACE) == total(objects) == Counts(21, 20, 0, 1)
    assert [each["raw"] for each in quarantined(objects)] == ["nonsense"]
    objects.put(key, whole + whole)
    curate(objects, PLACE)
    assert curate(objects, DAY) == total(objects) == Counts(40, 20, 19, 1)


def test_an_object_that_is_replaced_when_others_are_gone_loses_nothing(objects: FolderObjects) -> None:
    """Then the file cannot be made anew: the replaced object's rows are counted twice, and none is lost."""
    gone = put_raw(objects, "a", [event(0)])
    put_raw(objects, "b", [event(1)])
    curate(objects, PLACE)
    objects.delete([gone])
    put_raw(objects, "b", [event(1), event(2)])
    assert curate(objects, PLACE) == Counts(4, 3, 1, 0)
    assert len(rows(objects)) == 3


@pytest.mark.parametrize("entity", ["daily_activity", "ledger"])
def test_an_object_of_no_date_stops_no_recompute(objects: FolderObjects, entity: str) -> None:
    objects.put(f"raw/{entity}/dt=2026-02-31/hour=00/a", b"{}\n")
    objects.put(f"raw/{entity}/arrived=2026-03-01/dt=0001-01-01/hour=00/a", b"{}\n")
    assert plan(objects, today()).tasks == []
    assert recompute(objects, date(2026, 11, 1)).table.num_rows == 0


def today() -> date:
    return date(2026, 3, 1)


def test_files_of_impossible_dates_from_before_are_left_alone(objects: FolderObjects) -> None:
    put_raw(objects, "a", [event(1)])
    curate(objects, PLACE)
    objects.put("curated/events/dt=2026-02-31/hour-05.parquet", b"PAR1")
    made = plan(objects, today())
    assert {task.dt for task in made.tasks} == {DT}
    assert made.strays == ["curated/events/dt=2026-02-31/"]
