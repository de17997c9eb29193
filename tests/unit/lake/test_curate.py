"""Curation of an hour or a day: what is merged, what stays, and what a repetition changes."""

from dataclasses import replace

from adapters.platform.objects import FolderObjects
from analytics.curation.curate import curate
from analytics.lake.bookkeeping import Counts
from analytics.lake.layout import Partition, curated_files
from tests.support.raw_lake import (
    DAY,
    DT,
    PLACE,
    event,
    put_raw,
    quarantined,
    rows,
    total,
)


def test_nothing_raw_makes_nothing(objects: FolderObjects) -> None:
    assert curate(objects, PLACE) == curate(objects, DAY) == curate(objects, PLACE, rebuild=True) == Counts()
    assert not list(objects.list(""))


def test_the_newest_version_stays_and_the_first_among_equals(objects: FolderObjects) -> None:
    put_raw(objects, "a", [event(1, source="first"), event(1, source="second"), event(2, version="1")])
    curate(objects, PLACE)
    put_raw(objects, "0", [event(1, source="third"), event(2), event(3)])
    put_raw(objects, "b", [event(3, version="2", source="newest"), event(1, version="")])
    assert curate(objects, PLACE) == Counts(8, 3, 5, 0)
    assert [(row["source"], row["version"]) for row in rows(objects)] == [
        ("first", "0"),
        ("app", "1"),
        ("newest", "2"),
    ]


def test_versions_may_be_timestamps(objects: FolderObjects) -> None:
    place = Partition("daily_activity", DT, "00")
    day = {"user_id": "u", "activity_date": DT, "first_event_id": "e", "points_earned": 5}
    day |= {"created_at": f"{DT}T12:00:00Z", "dt": DT, "hour": "00"}
    heads = [f"{DT}T12:00:00.{micros:06}Z" for micros in (2, 3, 1)]
    put_raw(
        objects, "a", [day | {"events_count": n, "ledger_head": head} for n, head in enumerate(heads)], place
    )
    assert curate(objects, place) == Counts(3, 1, 2, 0)
    assert rows(objects, "daily_activity")[0]["events_count"] == 1


def test_an_opening_entry_lies_where_it_was_written(objects: FolderObjects) -> None:
    place = Partition("ledger", DT, "05")
    entry = {"account_id": "u", "created_at": "1970-01-01T00:00:00.000000Z", "seq": 0, "kind": "OPEN"}
    entry |= {"points": 0, "balance": 0, "dt": DT, "hour": "05"}
    put_raw(objects, "a", [entry, entry | {"created_at": "1970-01-01T00:00:01Z"}], place)
    assert curate(objects, place) == Counts(2, 1, 0, 1)


def test_again_changes_nothing(objects: FolderObjects) -> None:
    put_raw(objects, "a", [event(1), event(1), b"nonsense"])
    first = curate(objects, PLACE)
    stored = list(objects.list(""))
    put_raw(objects, "a", [event(1), event(1), b"nonsense"])  # delivered twice
    assert curate(objects, PLACE) == first == total(objects)
    assert list(objects.list("")) == stored
    data = [objects.get(each.key) for each in stored]
    assert curate(objects, PLACE, rebuild=True) == first
    assert [objects.get(each.key) for each in objects.list("")] == data


def test_a_day_takes_the_place_of_its_hours(objects: FolderObjects) -> None:
    hours = [replace(PLACE, hour=hour) for hour in ("03", "05", "11")]
    for hour in hours:
        at = f"{DT}T{hour.hour}:00:00Z"
        some = [event(n, occurred_at=at, hour=hour.hour, event_id=f"{at}#{n}") for n in (1, 2, 1)]
        put_raw(objects, "a", [*some, b"nonsense"], hour)
    for hour in hours[:2]:
        curate(objects, hour)
    assert curate(objects, DAY) == total(objects) == Counts(12, 6, 3, 3)
    assert [each.key for each in objects.list("curated/")] == [f"curated/events/dt={DT}/day.parquet"]
    assert len(quarantined(objects)) == 3
    stored = list(objects.list("curated/"))
    assert curate(objects, DAY) == curate(objects, hours[0]) == Counts(12, 6, 3, 3)
    assert list(objects.list("curated/")) == stored
    put_raw(objects, "late", [event(9)])
    assert curate(objects, PLACE) == total(objects) == Counts(13, 7, 3, 3)
    assert [each.key for each in objects.list("curated/")] == [f"curated/events/dt={DT}/day.parquet"]


def test_readers_see_a_day_once_while_its_hours_are_still_there(objects: FolderObjects) -> None:
    put_raw(objects, "a", [event(1)])
    curate(objects, PLACE)
    hour = objects.get(curated_files(objects, "events")[0].key)
    curate(objects, DAY)
    objects.put(f"curated/events/dt={DT}/hour-05.parquet", hour)
    assert len(rows(objects)) == 1
    assert curated_files(objects, "events", DT, DT) == curated_files(objects, "events")
    assert curated_files(objects, "events", "2026-03-02", "2026-03-03") == []
    curate(objects, DAY)
    assert len(list(objects.list("curated/"))) == 1


def test_a_rebuild_loses_no_rows(objects: FolderObjects) -> None:
    key = put_raw(objects, "a", [event(1)])
    curate(objects, PLACE)
    objects.delete([key])
    assert curate(objects, PLACE) == Counts(1, 1, 0, 0)
    assert curate(objects, PLACE, rebuild=True) == Counts(1, 1, 0, 0)
    assert len(rows(objects)) == 1
