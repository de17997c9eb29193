"""A curated file that was changed by hand is named, and made anew where its raw objects are there."""

import json
from datetime import date, timedelta
from io import BytesIO
from itertools import chain
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from adapters.platform.objects import FolderObjects
from analytics.curation.curate import BrokenSeal, curate
from analytics.curation.plan import plan, write_plan
from analytics.curation.sealed_file import is_broken
from analytics.lake.layout import Partition, curated_files, curated_key
from rules.lake.entities import ENTITIES
from rules.turns import NIGHTS
from tests.support.lake_corruptions import spoil
from tests.support.lake_story import Story
from tests.support.raw_lake import DAY, DT, PLACE, event, put_raw, rows


def spoiled(objects: FolderObjects) -> None:
    spoil(objects, "events", "points_awarded", lambda _: True)


def test_a_row_that_was_changed_by_hand_is_not_curated_on(objects: FolderObjects) -> None:
    put_raw(objects, "a", [event(1), event(2)])
    curate(objects, PLACE)
    assert curate(objects, PLACE, arrived=[]) == curate(objects, PLACE)
    right = rows(objects)
    spoiled(objects)
    with pytest.raises(BrokenSeal, match="changed since they were curated"):
        curate(objects, PLACE, arrived=[])
    put_raw(objects, "b", [event(3)], arrived="2026-03-02")
    with pytest.raises(BrokenSeal):
        curate(objects, PLACE, arrived=["2026-03-02"])
    curate(objects, PLACE)
    assert rows(objects)[:2] == right, "the raw objects are there"
    assert len(rows(objects)) == 3


def test_a_row_that_was_changed_by_hand_is_not_compacted(objects: FolderObjects) -> None:
    """No raw object is new: a night lists those that have arrived since, and compacts the hours of a past day."""
    other_hour = Partition("events", DT, "06")
    for place in (PLACE, other_hour):
        put_raw(objects, "a", [event(1)], place)
        curate(objects, place)
    right = rows(objects)
    spoiled(objects)
    with pytest.raises(BrokenSeal):
        curate(objects, DAY, arrived=["2026-03-09"])
    curate(objects, DAY)
    assert rows(objects) == right, "the raw objects are there"
    assert [each.key for each in curated_files(objects, "events")] == [curated_key(DAY)]
    spoiled(objects)
    with pytest.raises(BrokenSeal):
        curate(objects, DAY, arrived=[])


def test_where_raw_objects_are_gone_nothing_is_made_of_such_a_file(objects: FolderObjects) -> None:
    gone = put_raw(objects, "a", [event(1), event(2)])
    curate(objects, PLACE)
    objects.delete([gone])
    spoiled(objects)
    before = rows(objects)
    put_raw(objects, "b", [event(3)])
    for task in (PLACE, DAY):
        with pytest.raises(BrokenSeal):
            curate(objects, task)
    assert rows(objects) == before
    curate(objects, PLACE, rebuild=True)  # somebody has decided to keep what it has
    assert len(rows(objects)) == 3
    curate(objects, PLACE)


def test_a_file_without_its_seal_is_made_anew(objects: FolderObjects) -> None:
    put_raw(objects, "a", [event(1)])
    curate(objects, PLACE)
    unsealed(objects)
    (stored,) = curated_files(objects, "events")
    assert is_broken(objects, stored.key)
    assert curate(objects, PLACE).curated == 1
    assert not is_broken(objects, stored.key)


def unsealed(objects: FolderObjects) -> None:
    """Write files with their bookkeeping alone."""
    for each in curated_files(objects, "events"):
        table = pq.read_table(BytesIO(objects.get(each.key)))
        kept = {b"streakline": table.schema.metadata[b"streakline"]}
        data = BytesIO()
        pq.write_table(table.replace_schema_metadata(kept), data)
        objects.put(each.key, data.getvalue())


def dates_after(day: date, count: int) -> list[date]:
    return [day + timedelta(days=each) for each in range(count)]


def put_files(objects: FolderObjects, places: list[Partition]) -> None:
    """Put curated files at places, whose raw objects are gone."""
    put_raw(objects, "a", [])
    curate(objects, PLACE)
    (made,) = curated_files(objects, "events")
    file = objects.get(made.key)
    objects.delete([each.key for prefix in ("raw/", "curated/") for each in objects.list(prefix)])
    for place in places:
        objects.put(curated_key(place), file)


def checked(objects: FolderObjects, today: date) -> list[Partition]:
    """Plan a night; return the files of which only the seals are looked at."""
    made = plan(objects, today)
    assert made.tasks == []
    _, batches = write_plan(objects, "night", made)
    told = json.loads(objects.get(batches))
    assert all(batch["arrived"] == [] for batch in told)
    return [Partition(**each) for batch in told for each in batch["tasks"]]


@pytest.mark.parametrize(("count", "nights"), [(20, NIGHTS), (60, 2 * NIGHTS)])
def test_each_file_is_checked_in_its_turn(tmp_path: Path, count: int, nights: int) -> None:
    """A check reads nothing new. It is none of the night's tasks, so the warehouse does not load it again."""
    objects = FolderObjects(tmp_path)
    days = dates_after(date.fromisoformat(DT), count)
    places = [Partition(entity, day.isoformat(), "05") for day in days for entity in ("events", "questions")]
    put_files(objects, places)
    found = [checked(objects, night) for night in dates_after(date(2027, 1, 1), nights)]
    assert sorted(chain(*found), key=str) == sorted(places, key=str)
    assert max(map(len, found)) <= 4, "at most two dates of each"


def test_while_a_lake_grows_a_night_looks_at_one_date(tmp_path: Path) -> None:
    objects = FolderObjects(tmp_path)
    days = dates_after(date.fromisoformat(DT), 120)
    places = [Partition("events", day.isoformat(), "05") for day in days]
    put_files(objects, places[:1])
    file, seen = objects.get(curated_key(places[0])), set[Partition]()
    for today, place in zip(days, places, strict=True):
        objects.put(curated_key(place), file)
        found = {each for each in checked(objects, today) if each.dt != today.isoformat()}
        assert len(found) <= 1
        seen |= found
    assert set(places[:50]) <= seen, "about all of the older half"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> FolderObjects:
    """A lake of a file of each entity. Curation has sealed it, because a line of nonsense has come to it."""
    objects = FolderObjects(tmp_path_factory.mktemp("told"))
    places = {place.entity: place for place in Story(days=3).first_part().write(objects)}
    objects.delete({each.key for each in objects.list("curated/")} - set(map(curated_key, places.values())))
    for place in places.values():
        put_raw(objects, "a", [b"nonsense"], place)
        curate(objects, place)
    return objects


@pytest.mark.parametrize("entity", ["ledger", "events"])
def test_each_column_of_each_entity_is_under_the_seal(told: FolderObjects, entity: str) -> None:
    (stored, *_) = told.list(f"curated/{entity}/")
    whole = told.get(stored.key)
    assert not is_broken(told, stored.key)
    for field in ENTITIES[entity].fields:
        for is_emptied in (False, True):
            before = spoil(told, entity, field.name, lambda _: True, is_emptied=is_emptied)
            assert is_broken(told, stored.key) or (is_emptied and before[field.name] is None), field.name
            told.put(stored.key, whole)
