"""New raw objects are found by the date on which they arrived, whatever else the lake holds."""

import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects, StoredObject
from analytics.curation.curate import curate
from analytics.curation.plan import Plan, commit, plan, read_tasks, write_plan
from analytics.lake import run_notes
from analytics.lake.bookkeeping import Counts
from analytics.lake.layout import Partition, quarantine_key, raw_key, raw_partition, source_key, source_name
from analytics.lake.listing import arrival_dates, raw_objects_of_dates, raw_objects_of_partition
from rules.lake.entities import ENTITIES
from tests.support.examples import examples
from tests.support.raw_lake import DAY, DT, MONTH, PLACE, event, put_raw, quarantined, rows, total

FIRST = date(2026, 3, 1)
PLACES = [replace(PLACE, dt=dt, hour=hour) for dt in ("2026-02-20", DT) for hour in ("05", "06")]
ARRIVED = "raw/events/arrived=2026-03-02"
STRAYS = [
    "raw/events/a",  # begins as arrived= does
    "raw/events/_SUCCESS",
    "raw/events/arrived=2026-03-02_$folder$",
    "raw/events/x.tmp",
    "raw/events/dt=2026-03-01/hour=05/no_date_of_arrival",
    "raw/events/arrived=/dt=2026-03-01/hour=05/a",
    "raw/events/arrived=x/a",
    "raw/events/arrived=2026-02-30/dt=2026-03-01/hour=05/a",
    "raw/events/arrived=0001-01-01/dt=2026-03-01/hour=05/a",
    f"{ARRIVED}/_SUCCESS",
    f"{ARRIVED}/a/b/c/d",
    f"{ARRIVED}/dt=/hour=05/a",
    f"{ARRIVED}/dt=2026-02-31/hour=05/a",
    f"{ARRIVED}/dt=2026-3-1/hour=05/a",
    f"{ARRIVED}/dt=0001-01-01/hour=00/a",
    f"{ARRIVED}/dt=0000-00-00/hour=00/a",
    f"{ARRIVED}/dt=1969-12-31/hour=00/a",
    f"{ARRIVED}/dt=3000-01-01/hour=00/a",
    f"{ARRIVED}/dt=9999-12-31/hour=00/a",
    f"{ARRIVED}/dt=2026-03-01/hour=24/a",
    f"{ARRIVED}/dt=2026-03-01/hour=5/a",
    f"{ARRIVED}/dt=2026-03-01/hour=05_$folder$",
    f"{ARRIVED}/dt=2026-03-01/a",
    "curated/events/_SUCCESS",
    "curated/events/2026-03-01",
]
# The first of the nights, at which the places are days ago, or months.
FIRST_NIGHTS = [FIRST, date(2026, 6, 1)]
# A night brings objects: where, how long on their way, a row.
COMES = st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from([0, 1]), st.integers(0, 5)), max_size=4)


class Counted(FolderObjects):
    """A folder that notes the prefixes that are listed."""

    prefixes: list[str] = []  # noqa: RUF012 (each test has a class of its own: see `counted`)

    def list(self, prefix: str) -> Iterator[StoredObject]:
        self.prefixes.append(prefix)
        return super().list(prefix)

    def below(self, folder: str) -> Iterator[str]:
        self.prefixes.append(folder)
        return super().below(folder)


def counted(folder: Path) -> Counted:
    made: Counted = type("Counted", (Counted,), {"prefixes": []})(folder)
    return made


def put_at(lake: FolderObjects, name: str, place: Partition, number: int, came: datetime, days: int) -> str:
    """Store an object that is ready `days` after the date under which it lies."""
    arrived = (came.date() - timedelta(days=days)).isoformat()
    row = event(number, occurred_at=f"{place.dt}T{place.hour}:00:00Z", dt=place.dt, hour=place.hour)
    key = put_raw(lake, name, [row, b"nonsense"], place, arrived=arrived)
    os.utime(lake.root / key, (came.timestamp(), came.timestamp()))
    return key


def night(lake: FolderObjects, today: date) -> Plan:
    made = plan(lake, today)
    key, _ = write_plan(lake, today.isoformat(), made)
    for task in read_tasks(lake, key):
        curate(lake, task, arrived=made.arrived)
    commit(lake, today.isoformat())
    return made


def held(lake: FolderObjects) -> tuple[list[str], Counts, list[str]]:
    return sorted(map(str, rows(lake))), total(lake), sorted(map(str, quarantined(lake)))


@given(
    st.sampled_from(FIRST_NIGHTS),
    st.lists(COMES, max_size=6),
    st.sampled_from([None, *STRAYS]),
    st.sampled_from([b"", b"lost\n"]),
)
@settings(max_examples=examples(60))
def test_nights_by_arrival_make_what_one_night_over_all_makes(
    tmp_path_factory: pytest.TempPathFactory,
    first: date,
    nights: list[list[tuple[Partition, int, int]]],
    stray: str | None,
    text: bytes,
) -> None:
    """Whatever lies beside it; and each night names a stray, until it is gone."""
    stray = stray if first == FIRST else None  # the strays have arrived in the first nights
    lake = FolderObjects(tmp_path_factory.mktemp("lake"))
    for number, comes in enumerate(nights):
        today = first + timedelta(days=number)
        came = datetime(today.year, today.month, today.day, 2, tzinfo=UTC)
        for at, (place, days, row) in enumerate(comes):
            put_at(lake, f"{number}-{at}", place, 10 * PLACES.index(place) + row, came, days)
        if stray and number == 1:
            lake.put(stray, text)
            os.utime(lake.root / stray, (came.timestamp(), came.timestamp()))
        if stray and number == 3:
            lake.delete([stray])
        is_there = bool(stray) and number in {1, 2}
        assert night(lake, today).strays == ([stray] if is_there else [])
    found = held(lake)
    if stray:
        lake.delete([stray])
    for each in list(lake.list("curated/")) + list(lake.list("quarantine/")) + list(lake.list("state/")):
        lake.delete([each.key])
    night(lake, first + timedelta(days=len(nights)))
    assert held(lake) == found
    are_months = [each.key.endswith("/month.parquet") for each in lake.list("curated/")]
    assert all(are_months) if first > FIRST else not any(are_months)


def test_a_night_lists_what_came_and_not_what_ever_came(tmp_path: Path) -> None:
    lake = counted(tmp_path)
    start = datetime(2025, 1, 1, 2, tzinfo=UTC)
    listed = []
    for number in range(40):
        came = start + timedelta(days=number)
        place = Partition("events", came.date().isoformat(), "05")
        put_at(lake, "a", place, number, came, 0)
        lake.prefixes.clear()
        assert place in night(lake, came.date()).tasks
        listed.append(len(lake.prefixes))
    # Files are listed by month. The nights of the first days of a month also list the last one's.
    assert max(listed[36:]) == listed[10] + 1, "the files of a date, whose seals have their turn"
    assert max(listed) <= listed[10] + len(ENTITIES) + 2


def test_an_object_that_was_replaced_is_found_among_all(tmp_path: Path) -> None:
    lake = FolderObjects(tmp_path)
    put_raw(lake, "a", [event(1)], arrived="2026-01-01")
    put_raw(lake, "b", [event(2), b"half a li"], arrived="2026-03-02")
    curate(lake, PLACE)
    put_raw(lake, "b", [event(2), event(3)], arrived="2026-03-02")
    assert curate(lake, PLACE, arrived=["2026-03-02"]) == total(lake)
    assert [row["event_id"][-2:] for row in rows(lake)] == ["e1", "e2", "e3"]
    assert quarantined(lake) == []


def test_a_rebuild_that_looks_under_too_few_dates_keeps_the_other_rows(tmp_path: Path) -> None:
    lake = FolderObjects(tmp_path)
    put_raw(lake, "a", [event(1)], arrived="2026-01-01")
    put_raw(lake, "a", [event(2)], arrived="2026-03-02")
    curate(lake, PLACE)
    reasons: list[str] = []
    dates = ["2026-03-02"]
    assert curate(lake, PLACE, rebuild=True, arrived=dates, note_lack=reasons.append).curated == 2
    assert reasons == ["1 raw objects are gone, hour=05/arrived=2026-01-01/a first"]
    made = plan(lake, FIRST, since_dt=DT, until_dt=DT)
    assert made.arrived == ["2026-01-01", "2026-03-02"]
    assert curate(lake, PLACE, rebuild=True, arrived=made.arrived).curated == 2


def test_a_task_that_failed_looks_under_all_dates_of_arrival(tmp_path: Path) -> None:
    lake = FolderObjects(tmp_path)
    came = datetime(2026, 3, 1, 2, tzinfo=UTC)
    put_at(lake, "a", PLACE, 1, came, 0)
    run_notes.note_failed_task(lake, "first", PLACE, {"Error": "OutOfMemory"})
    write_plan(lake, "first", plan(lake, FIRST))
    commit(lake, "first")
    other = replace(PLACE, dt="2026-03-20")
    put_at(lake, "b", other, 2, came + timedelta(days=19), 0)
    write_plan(lake, "later", plan(lake, date(2026, 3, 20)))
    again, ordinary = json.loads(lake.get("runs/later/batches.json"))
    assert (again["tasks"][0]["dt"], again["arrived"], again["large"]) == (DT, None, True)
    assert (ordinary["tasks"][0]["dt"], ordinary["arrived"][-1]) == ("2026-03-20", "2026-03-20")
    assert curate(lake, Partition(**again["tasks"][0]), arrived=again["arrived"]).curated == 1


def test_listings_by_date_and_by_place(tmp_path: Path) -> None:
    lake = FolderObjects(tmp_path)
    keys = [
        put_raw(lake, "a", [event(1)], place, arrived=day)
        for place in PLACES
        for day in ("2026-03-02", "2026-03-05")
    ]
    for each in STRAYS:
        lake.put(each, b"x")
    assert arrival_dates(lake, "events") == ["2026-03-02", "2026-03-05"]
    assert arrival_dates(lake, "events", "2026-03-03") == ["2026-03-05"]
    assert {each.key for each in raw_objects_of_dates(lake, "events", DT, DT)} >= set(keys[4:])
    assert [each.key for each in raw_objects_of_partition(lake, PLACE, None)] == keys[4:6]
    assert [each.key for each in raw_objects_of_partition(lake, replace(PLACE, hour=None), None)] == keys[4:]
    assert [each.key for each in raw_objects_of_partition(lake, PLACE, ["2026-03-02"])] == keys[4:5]
    assert raw_objects_of_partition(lake, PLACE, []) == []
    for key in keys:
        assert raw_key(quarantine_key(key)) == key
    assert not any(map(raw_partition, STRAYS))
    assert source_name(keys[5], DAY) == "hour=05/arrived=2026-03-05/a"
    assert source_name(keys[5], MONTH) == f"dt={DT}/hour=05/arrived=2026-03-05/a"
    for key, place in itertools.product(keys[4:], (PLACE, DAY, MONTH)):
        assert source_key(place, source_name(key, place)) == key
    assert [each.key for each in raw_objects_of_partition(lake, MONTH, None)] == keys[4:]
    assert quarantine_key(keys[5]) == f"quarantine/events/dt={DT}/hour=05/arrived=2026-03-05/a.ndjson"
