"""What a nightly run has to curate."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects, NoObject
from analytics.curation.curate import curate
from analytics.curation.plan import (
    BATCH_BYTES_MAX,
    BATCH_TASKS_MAX,
    FIRST_MARK,
    Plan,
    commit,
    move_watermark,
    plan,
    read_tasks,
    read_watermark,
    write_plan,
)
from analytics.lake import layout, run_notes
from analytics.lake.bookkeeping import bookkeeping_of
from analytics.lake.layout import Partition
from tests.support.raw_lake import ARRIVED, DAY, DT, PLACE, event, put_raw

TODAY, SOON = date(2026, 3, 3), date(2026, 3, 20)
NOW = datetime(2026, 3, 3, tzinfo=UTC)
OTHER = replace(PLACE, hour="06")


class Lake(FolderObjects):
    """A folder in which raw objects have the times that a test gives them."""

    def put_at(self, name: str, place: Partition, when: datetime) -> None:
        key = put_raw(
            self,
            name,
            [event(1, occurred_at=f"{place.dt}T{place.hour}:00:00Z", dt=place.dt, hour=place.hour)],
            place,
        )
        os.utime(self.root / key, (when.timestamp(), when.timestamp()))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def run(lake: Lake, today: date = TODAY, name: str = "run") -> Sequence[Partition]:
    """One nightly run."""
    key, _ = write_plan(lake, name, plan(lake, today))
    for task in read_tasks(lake, key):
        curate(lake, task)
    commit(lake, name)
    return read_tasks(lake, key)


def test_only_what_is_new_since_the_last_run(lake: Lake) -> None:
    lake.put_at("a", PLACE, NOW)
    lake.put_at("a", OTHER, NOW + timedelta(hours=2))
    assert read_watermark(lake) < NOW - timedelta(days=9999)
    assert run(lake) == [PLACE, OTHER]
    assert read_watermark(lake) == NOW + timedelta(hours=2)
    assert run(lake) == []
    lake.put_at("b", PLACE, NOW + timedelta(hours=4))
    assert run(lake) == [PLACE]
    assert run(lake) == []


def test_what_is_within_the_overlap_is_planned_unless_its_file_has_it(lake: Lake) -> None:
    lake.put_at("a", PLACE, NOW)
    assert run(lake) == [PLACE]
    assert run(lake) == []
    lake.put_at("b", PLACE, NOW - timedelta(minutes=30))  # it was not listed yet
    assert run(lake) == [PLACE]
    put_raw(lake, "b", [event(2), event(3)], PLACE)  # another one in its place
    os.utime(lake.root / list(lake.list("raw/"))[1].key, (NOW.timestamp(), NOW.timestamp()))
    assert run(lake) == [PLACE]
    assert run(lake) == []
    lake.put(layout.curated_key(PLACE), b"no Parquet")
    assert plan(lake, TODAY).tasks == [PLACE]
    lake.delete([layout.curated_key(PLACE)])
    assert run(lake) == [PLACE]


def test_an_object_that_shows_up_late_is_not_missed(lake: Lake) -> None:
    lake.put_at("a", PLACE, NOW)
    run(lake)
    lake.put_at("b", OTHER, NOW - timedelta(minutes=30))
    assert OTHER in run(lake)


def test_a_run_that_fails_leaves_the_watermark(lake: Lake) -> None:
    lake.put_at("a", PLACE, NOW)
    write_plan(lake, "failed", plan(lake, TODAY))
    assert run(lake) == [PLACE]
    commit(lake, "failed")
    assert read_watermark(lake) == NOW
    move_watermark(lake, NOW - timedelta(days=1))
    assert read_watermark(lake) == NOW
    with pytest.raises(NoObject):
        commit(lake, "never planned")


def test_an_empty_lake(lake: Lake) -> None:
    made = plan(lake, TODAY)
    assert (made.tasks, made.watermark) == ([], read_watermark(lake))
    assert read_watermark(lake) == FIRST_MARK


def test_a_range_of_dates_takes_all_that_is_there(lake: Lake) -> None:
    places = [replace(PLACE, dt=dt) for dt in ("2026-02-27", "2026-02-28", DT, "2026-03-02")]
    for place in places:
        lake.put_at("a", place, NOW)
    run(lake)
    assert plan(lake, SOON, since_dt="2026-02-28", until_dt=DT).tasks == places[1:3]
    assert plan(lake, SOON, since_dt=DT).tasks == places[2:]
    assert plan(lake, SOON, until_dt="2026-02-27").tasks == [replace(places[0], hour=None)]
    lake.delete([each.key for each in list(lake.list("raw/"))])  # archived: still to be loaded again
    assert plan(lake, SOON, since_dt=DT, until_dt=DT).tasks == [PLACE]
    assert plan(lake, SOON, since_dt=DT).watermark == NOW


def test_a_range_of_dates_leaves_other_days_alone(lake: Lake) -> None:
    lake.put_at("a", PLACE, NOW)
    lake.put_at("b", replace(PLACE, dt="2026-02-01"), NOW)
    found = plan(lake, SOON, since_dt=DT, until_dt=DT)
    assert {each.dt for each in found.tasks} == {DT}


def test_small_past_days_are_compacted_once(lake: Lake) -> None:
    for place in (PLACE, OTHER):
        lake.put_at("a", place, NOW)
    run(lake)
    assert run(lake, date(2026, 3, 4)) == []  # not yet: three days have to pass
    assert run(lake, date(2026, 3, 5)) == [DAY]
    assert [each.key for each in layout.curated_files(lake, "events")] == [layout.curated_key(DAY)]
    assert run(lake, SOON) == []
    lake.put_at("late", OTHER, NOW + timedelta(days=30))
    assert run(lake, SOON) == [DAY]
    assert len(list(lake.list("curated/"))) == 1
    lake.put_at("other", replace(PLACE, dt="2026-04-01"), NOW + timedelta(days=40))
    run(lake, SOON)
    assert DAY not in run(lake, SOON)


def test_one_hour_or_a_large_day_is_left_alone(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.put_at("a", PLACE, NOW)
    run(lake)
    assert run(lake, SOON) == []
    lake.put_at("a", OTHER, NOW)
    run(lake)
    monkeypatch.setattr("analytics.curation.plan.COMPACTED_BYTES_MAX", 100)
    assert run(lake, SOON) == []


def test_an_unfinished_compaction_is_finished(lake: Lake) -> None:
    for place in (PLACE, OTHER):
        lake.put_at("a", place, NOW)
    run(lake)
    files = {each.key: lake.get(each.key) for each in layout.curated_files(lake, "events")}
    assert plan(lake, SOON).tasks == [DAY]
    curate(lake, DAY)
    for key, data in files.items():  # as if the run had died before its deletes, and so never committed
        lake.put(key, data)
    assert DAY in run(lake, SOON)
    assert [each.key for each in layout.curated_files(lake, "events", DT, DT)] == [layout.curated_key(DAY)]
    assert len(list(lake.list(f"curated/events/dt={DT}/"))) == 1


def test_a_past_day_of_which_little_has_come_needs_no_hours(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (PLACE, OTHER):
        lake.put_at("a", place, NOW)
    assert plan(lake, SOON).tasks == [DAY]
    assert plan(lake, TODAY).tasks == [PLACE, OTHER]
    monkeypatch.setattr("analytics.curation.plan.NEW_BYTES_MAX", 100)
    assert plan(lake, SOON).tasks == [PLACE, OTHER]


def test_a_history_gets_a_file_a_month(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of many hours that come long after their months: as many files as there are months."""
    places = [
        replace(PLACE, dt=f"2014-{month:02}-{day:02}", hour=f"{day:02}")
        for month in (1, 2, 12)
        for day in (1, 9, 22)
    ]
    for place in places:
        lake.put_at("a", place, NOW)
    months = [Partition("events", f"2014-{month}", None) for month in ("01", "02", "12")]
    assert run(lake) == months
    assert [each.key for each in lake.list("curated/")] == [
        f"curated/events/dt={month.dt}/month.parquet" for month in months
    ]
    assert all(len(bookkeeping_of(lake, layout.curated_key(month)).sources) == 3 for month in months)
    # What comes for such a month later goes into its file, an hour of a new day too.
    for place in (places[0], replace(PLACE, dt="2014-02-28")):
        lake.put_at("late", place, NOW + timedelta(days=1))
    assert run(lake, date(2026, 3, 4), "late") == months[:2]
    assert len(list(lake.list("curated/"))) == len(months)
    monkeypatch.setattr("analytics.curation.plan.NEW_BYTES_MAX", 100)
    lake.put_at("much", replace(PLACE, dt="2015-01-01"), NOW + timedelta(days=2))
    assert run(lake, date(2026, 3, 5), "much") == [replace(PLACE, dt="2015-01-01")]


def test_a_month_that_has_files_of_days_keeps_them(lake: Lake) -> None:
    lake.put_at("a", PLACE, NOW)
    run(lake)
    lake.put_at("b", replace(PLACE, dt="2026-03-02"), NOW + timedelta(days=100))
    assert run(lake, date(2026, 6, 15)) == [Partition("events", "2026-03-02", None)]
    assert {each.key for each in lake.list("curated/")} == {
        "curated/events/dt=2026-03-01/hour-05.parquet",
        "curated/events/dt=2026-03-02/day.parquet",
    }


def test_a_range_of_dates_takes_a_month_that_has_one_file_as_a_whole(lake: Lake) -> None:
    days = [replace(PLACE, dt=f"2014-01-{day:02}") for day in (1, 9, 22)]
    for place in days:
        lake.put_at("a", place, NOW)
    month = Partition("events", "2014-01", None)
    # A range within a month that has no file yet leaves the month's other days alone.
    assert plan(lake, TODAY, since_dt="2014-01-05", until_dt="2014-01-15").tasks == [
        replace(days[1], hour=None)
    ]
    run(lake)
    ranged = plan(lake, TODAY, since_dt="2014-01-05", until_dt="2014-01-15")
    assert (ranged.tasks, ranged.sizes[month] > 0) == ([month], True)
    assert plan(lake, TODAY, since_dt="2014-02-01", until_dt="2014-02-15").tasks == []
    assert ranged.of_days({"events": ["2014-01-30"]}).tasks == [month]
    assert ranged.of_days({"events": ["2014-02-01"]}).tasks == []
    assert set(ranged.arrived) == {ARRIVED}
    curate(lake, month, rebuild=True, arrived=ranged.arrived, note_lack=pytest.fail)


def test_an_unfinished_month_is_finished(lake: Lake) -> None:
    """A run that made a month's file died before it deleted the files of its days."""
    for place in (PLACE, replace(PLACE, dt="2026-03-02")):
        lake.put_at("a", place, NOW)
    run(lake)
    files = {each.key: lake.get(each.key) for each in lake.list("curated/")}
    curate(lake, PLACE.month)
    for key, data in files.items():
        lake.put(key, data)
    assert [each.key for each in layout.curated_files(lake, "events")] == [layout.curated_key(PLACE.month)]
    lake.put_at("b", PLACE, NOW + timedelta(days=1))
    assert run(lake, SOON) == [PLACE.month]
    assert [each.key for each in lake.list("curated/")] == [layout.curated_key(PLACE.month)]


def test_a_failed_hour_is_done_with_its_month(lake: Lake) -> None:
    lake.put_at("a", PLACE, NOW)
    write_plan(lake, "r1", plan(lake, TODAY))
    run_notes.note_failed_task(lake, "r1", PLACE, {})
    commit(lake, "r1")
    curate(lake, PLACE.month)
    made = plan(lake, date(2026, 6, 1))
    assert (made.tasks, set(made.failed)) == ([PLACE.month], {PLACE.month})
    run(lake, date(2026, 6, 1), "r2")
    assert run_notes.remembered_tasks(lake) == set()


def test_tasks_are_a_plain_array_and_batches_hold_them_all(lake: Lake) -> None:
    lake.put_at("a", PLACE, NOW)
    key, batches = write_plan(lake, "r1", plan(lake, TODAY))
    assert key == "runs/r1/tasks.json"
    tasks = [{"entity": "events", "dt": DT, "hour": "05"}]
    assert json.loads(lake.get(key)) == tasks
    batch = {"run_id": "r1", "tasks": tasks, "arrived": [ARRIVED], "rebuild": False, "large": False}
    assert json.loads(lake.get(batches)) == [batch]


@given(st.lists(st.integers(0, 70), max_size=600), st.sets(st.integers(0, 600), max_size=3))
def test_batches_are_full_none_is_too_large_and_large_tasks_are_alone(
    sizes: list[int], failed: set[int]
) -> None:
    tasks = [replace(PLACE, dt=f"{number:010}") for number in range(len(sizes))]
    by_task = {task: size * 2**20 for task, size in zip(tasks, sizes, strict=True)}
    before = frozenset(task for number, task in enumerate(tasks) if number in failed)
    made = Plan(tasks, NOW, by_task, failed=before)
    batches = list(made.batches())
    large = [task for task in tasks if by_task[task] > BATCH_BYTES_MAX or task in before]
    assert batches[: len(large)] == [[task] for task in large]
    batches = batches[len(large) :]
    assert [task for batch in batches for task in batch] == [task for task in tasks if task not in large]
    weights = [sum(by_task[task] for task in batch) for batch in batches]
    for batch, weight in zip(batches, weights, strict=True):
        assert len(batch) <= BATCH_TASKS_MAX
        assert weight <= BATCH_BYTES_MAX
    for number in range(len(batches) - 1):
        more = weights[number] + by_task[batches[number + 1][0]]
        assert len(batches[number]) == BATCH_TASKS_MAX or more > BATCH_BYTES_MAX


def test_a_task_s_size_is_that_of_its_new_raw_objects(lake: Lake) -> None:
    for name, place in (("a", PLACE), ("b", PLACE), ("a", OTHER)):
        lake.put_at(name, place, NOW)
    sizes = {each.key: each.size for each in lake.list("raw/")}
    assert sum(plan(lake, TODAY).sizes.values()) == sum(sizes.values())
    assert plan(lake, SOON).sizes == {DAY: sum(sizes.values())}


def test_a_task_s_size_has_the_file_that_it_merges(lake: Lake) -> None:
    """A row more for a large file is a large task."""
    for place in (PLACE, OTHER):
        lake.put_at("a", place, NOW)
    run(lake)
    lake.put_at("b", OTHER, NOW + timedelta(minutes=1))
    hours = {each.key: each.size for each in lake.list("curated/")}
    raw = {
        each.key: each.size for each in lake.list(layout.raw_prefix("events", ARRIVED, OTHER.dt, OTHER.hour))
    }
    assert plan(lake, SOON).sizes == {DAY: sum(raw.values()) + sum(hours.values())}
    assert plan(lake, TODAY).sizes[OTHER] == sum(raw.values()) + hours[layout.curated_key(OTHER)]


def test_a_task_that_failed_is_planned_until_it_is_done(lake: Lake) -> None:
    later = replace(PLACE, dt="2026-03-02")
    lake.put_at("a", PLACE, NOW)
    lake.put_at("a", later, NOW + timedelta(days=1))
    write_plan(lake, "r1", plan(lake, TODAY))
    curate(lake, later)
    run_notes.note_failed_task(lake, "r1", PLACE, {"Error": "Runtime.ExitError", "Cause": "signal: killed"})
    commit(lake, "r1")
    made = plan(lake, TODAY)
    assert made.tasks == [PLACE]
    assert made.failed == {PLACE}
    lake.put_at("b", later, NOW + timedelta(days=2))
    made = plan(lake, TODAY)
    assert made.tasks == [PLACE, later]
    assert made.failed == {PLACE}
    assert next(made.batches()) == [PLACE]
    _, batches = write_plan(lake, "r2", made)
    assert [each["large"] for each in json.loads(lake.get(batches))] == [True, False]
    run_notes.note_failed_task(lake, "r2", PLACE, {"Error": "Runtime.ExitError", "Cause": "again"})
    commit(lake, "r2")
    assert PLACE in plan(lake, TODAY).tasks
    assert PLACE in run(lake, name="r3")
    assert PLACE not in plan(lake, TODAY).tasks
    assert run_notes.remembered_tasks(lake) == set()


def test_a_failed_hour_is_done_with_its_day(lake: Lake) -> None:
    lake.put_at("a", PLACE, NOW)
    write_plan(lake, "r1", plan(lake, TODAY))
    run_notes.note_failed_task(lake, "r1", PLACE, {})
    commit(lake, "r1")
    curate(lake, DAY)
    made = plan(lake, SOON)
    assert (made.tasks, set(made.failed)) == ([DAY], {DAY})
    run(lake, SOON, "r2")
    assert run_notes.remembered_tasks(lake) == set()


def test_a_run_over_other_dates_forgets_nothing(lake: Lake) -> None:
    for place in (PLACE, replace(PLACE, dt="2026-03-02")):
        lake.put_at("a", place, NOW)
    write_plan(lake, "r1", plan(lake, TODAY))
    run_notes.note_failed_task(lake, "r1", PLACE, {})
    commit(lake, "r1")
    write_plan(lake, "r2", plan(lake, TODAY, since_dt="2026-03-02", until_dt="2026-03-02"))
    commit(lake, "r2")
    assert run_notes.remembered_tasks(lake) == {PLACE}
    write_plan(lake, "r3", plan(lake, TODAY, since_dt=DT, until_dt=DT))
    commit(lake, "r3")
    assert run_notes.remembered_tasks(lake) == set()


def test_keys_of_another_form_are_not_ours(lake: Lake) -> None:
    lake.put(f"raw/events/dt={DT}/stray", b"x")
    lake.put("raw/other/dt=2026-03-01/hour=05/a", b"x")
    made = plan(lake, TODAY)
    assert (made.tasks, made.strays) == ([], [f"raw/events/dt={DT}/stray"])
    assert layout.raw_partition("raw/events/dt=2026-03-01/hour=5/a") is None
    assert layout.curated_partition("curated/events/dt=2026-03-01/hour-05.parquet.tmp") is None
    assert layout.curated_partition(layout.curated_key(DAY)) == DAY
