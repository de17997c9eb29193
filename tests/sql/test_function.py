"""The warehouse function: a night's work, again, with models that fail, and after nights without a warehouse."""

import contextlib
import io
import json
import shutil
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapters import clock
from adapters.platform.objects import FolderObjects
from analytics.lake import run_notes
from analytics.steps import warehouse_function
from analytics.steps.warehouse_function import ItemWorker, WarehouseSteps
from analytics.warehouse import night as nights
from analytics.warehouse.build import Builder
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.models import models
from analytics.warehouse.night import ENDED, Item, Kind, State, WarehouseNight
from analytics.warehouse.statements import StatementFailed
from analytics.warehouse.warehouse import Warehouse
from tests.sql.conftest import family
from tests.support.effort import only_soak
from tests.support.lake_story import Story

MONDAY = datetime(2026, 3, 9, 2, 30, tzinfo=UTC)
CONTEXT = SimpleNamespace(
    function_name="warehouse",
    memory_limit_in_mb=512,
    invoked_function_arn="arn:aws:lambda:x",
    aws_request_id="1",
)


@pytest.fixture
def objects(tmp_path: Path) -> FolderObjects:
    return FolderObjects(tmp_path / "lake")


@pytest.fixture
def steps(tmp_path: Path, objects: FolderObjects, monkeypatch: pytest.MonkeyPatch) -> WarehouseSteps:
    monkeypatch.setattr(clock, "now", lambda: MONDAY)
    lake = str(tmp_path / "lake")
    return WarehouseSteps(DuckWarehouse(tmp_path / "w.duckdb", lake, objects), objects, lake, "")


@dataclass(frozen=True)
class FirstNight:
    """A lake of the story's first part, and a warehouse of the models of FIRST after its night by the handler."""

    folder: Path
    story: Story
    answers: list[dict[str, Any]]  # of the handler, which was called twice
    lines: list[dict[str, Any]]  # that it has written
    unloaded: dict[str, Any]

    def copied_to(self, folder: Path) -> Story:
        """Put lake and warehouse into a folder; returns the story, to be told on."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return deepcopy(self.story)


@pytest.fixture(scope="module")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> FirstNight:
    folder, story, written = tmp_path_factory.mktemp("first"), Story(days=3), io.StringIO()
    objects = FolderObjects(folder / "lake")
    event = planned(objects, "r0", story.first_part().write(objects))
    warehouse = DuckWarehouse(folder / "w.duckdb", str(folder / "lake"), objects)
    variables = {
        "LAKE_BUCKET": "lake",
        "WAREHOUSE_URL": f"duckdb:{warehouse.path}",
        "COPY_ROLE_ARN": "",
        "WAREHOUSE_WORKGROUP_ARN": "",
        "WAREHOUSE_DAILY_RPU_HOURS": "4",
        "CAMPAIGN_GRACE_DAYS": "7",
        "ERASURES_TABLE": "Erasures",  # not asked: nobody is to be forgotten
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    warehouse_function._parts.cache_clear()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(written):
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.setattr(clock, "now", lambda: MONDAY)
        patch.setattr(warehouse_function, "S3Objects", lambda *_: objects)
        patch.setattr("analytics.warehouse.warehouse.objects_at", lambda _: objects)
        working(patch, *FIRST)
        answers = [warehouse_function.handler(event, CONTEXT) for _ in range(2)]
    warehouse_function._parts.cache_clear()
    lines = [json.loads(line) for line in written.getvalue().splitlines()]
    return FirstNight(folder, story, answers, lines, run_notes.read_unloaded(objects))


def planned(objects: FolderObjects, run_id: str, places: list[Any]) -> dict[str, str]:
    """Return the event of a run that has curated these."""
    tasks = [{"entity": each.entity, "dt": each.dt, "hour": each.hour} for each in places]
    objects.put(f"runs/{run_id}/tasks.json", json.dumps(tasks).encode())
    return {"run_id": run_id, "tasks_key": f"runs/{run_id}/tasks.json"}


def items(objects: FolderObjects, run_id: str, *states: State) -> dict[str, Item]:
    night = WarehouseNight.read(objects, run_id)
    assert night
    return {f"{each.kind} {each.name}": each for each in night.of(*states)}


def all_rows(warehouse: Warehouse) -> dict[str, list[str]]:
    """Return the rows of all marts. Other models say which load brought a row."""
    marts = [name for name in models() if "marts" in name]
    return {name: sorted(map(repr, warehouse.rows(f"SELECT * FROM {name}"))) for name in marts}


def failing(monkeypatch: pytest.MonkeyPatch, kind: Kind, name: str) -> None:
    do = ItemWorker.do

    def fails(calls: Any, item: Item) -> bool:
        if (item.kind, item.name) == (kind, name):
            raise StatementFailed("SELECT 1", "it is broken")
        return do(calls, item)

    monkeypatch.setattr(ItemWorker, "do", fails)


# And what its tests look at.
OF_EVENTS = ("facts.events", "dimensions.event_types", "dimensions.users", "dimensions.dates")
FIRST = (*OF_EVENTS, "marts.data_quality", "marts.retention_cohorts")


def working(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Build and test no models but these and what they are made from. The nights of test_forgetting.py do all."""
    do, needed = ItemWorker.do, family(*names)

    def does(calls: Any, item: Item) -> bool:
        return do(calls, item) if item.kind is Kind.LOAD or item.name in needed else True

    monkeypatch.setattr(ItemWorker, "do", does)


def test_the_handler(first_night: FirstNight) -> None:
    assert first_night.answers == [{"run_id": "r0", "left": 0, "failed": 0}] * 2, "the second finds all done"
    failed = [each for line in first_night.lines for each in line.get("ModelTestsFailed", ())]
    assert set(failed) == {0.0}  # a hundred values a line
    assert first_night.unloaded == {}


def test_what_fails_hinders_what_follows_from_it_and_nobody_else(
    steps: WarehouseSteps, objects: FolderObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model, a model that the test of another compares with, and the load of an entity fail in one night."""
    working(monkeypatch, *OF_EVENTS, "marts.stickiness", "marts.points_liability", "marts.ledger_quality")
    event = planned(objects, "r1", Story(days=3).first_part().write(objects))
    with monkeypatch.context() as patch:
        failing(patch, Kind.MODEL, "facts.monthly_changes")
        failing(patch, Kind.MODEL, "dimensions.event_types")
        failing(patch, Kind.LOAD, "ledger")
        assert steps.work(event, MONDAY) == {"left": 0, "failed": 3}
    failed, skipped = (items(objects, "r1", state) for state in (State.FAILED, State.SKIPPED))
    assert failed["model facts.monthly_changes"].reason == "StatementFailed: it is broken\nSELECT 1"
    assert {name: each.reason for name, each in skipped.items()} == {
        "model marts.stickiness": "facts.monthly_changes was not built",
        "test marts.stickiness": "marts.stickiness was not built",
        "test facts.monthly_changes": "facts.monthly_changes was not built",
        "test dimensions.event_types": "dimensions.event_types was not built",
        "test facts.events": "dimensions.event_types was not built",
        "model marts.user_levels": "dimensions.event_types was not built",
        "test marts.user_levels": "marts.user_levels was not built",
        "model marts.bonuses": "dimensions.event_types was not built",
        "test marts.bonuses": "marts.bonuses was not built",
    }
    assert steps.warehouse.rows("SELECT 1 AS n FROM marts.points_liability LIMIT 1") == []
    (left,) = run_notes.read_unloaded(objects).values()
    assert {each.entity for each in left} == {"ledger"}
    assert steps.warehouse.rows("SELECT COUNT(*) AS n FROM lake.ledger") == [{"n": 0}]
    assert steps.warehouse.rows("SELECT COUNT(*) AS n FROM facts.events")[0]["n"] > 0
    # The next night makes good, though nothing new was loaded for the two models.
    assert steps.work(planned(objects, "r2", []), MONDAY) == {"left": 0, "failed": 0}
    assert run_notes.read_unloaded(objects) == {}
    for name in ("lake.ledger", "marts.points_liability", "marts.stickiness", "dimensions.event_types"):
        assert steps.warehouse.rows(f"SELECT COUNT(*) AS n FROM {name}")[0]["n"] > 0, name


@only_soak(
    "tests/sql/test_load.py for loads that come later, and in tests/e2e/test_lake.py "
    "test_the_next_night_loads_what_the_warehouse_lacked"
)
def test_a_warehouse_that_was_away_for_two_nights_is_as_if_it_had_been_there(
    steps: WarehouseSteps, objects: FolderObjects, tmp_path: Path, first_night: FirstNight
) -> None:
    late = first_night.copied_to(tmp_path).late_part().write(objects)
    there = DuckWarehouse(tmp_path / "there.duckdb", steps.lake, objects)
    shutil.copy(first_night.folder / "w.duckdb", there.path)
    WarehouseSteps(there, objects, steps.lake, "").work(planned(objects, "t1", late), MONDAY)
    away = DuckWarehouse(Path("/proc/nowhere/w"), "", objects)
    for number, places in enumerate((late[::2], late[1::2]), 1):
        event = planned(objects, f"r{number}", places)
        with pytest.raises(OSError, match="nowhere"):
            WarehouseSteps(away, objects, steps.lake, "").work(event, MONDAY)
        assert WarehouseNight.read(objects, f"r{number}") is None
        # As the commit does where the work never began.
        run_notes.note_unloaded(objects, f"r{number}", places)
    assert steps.work(planned(objects, "r3", []), MONDAY) == {"left": 0, "failed": 0}
    assert run_notes.read_unloaded(objects) == {}
    assert [each.found for each in items(objects, "r3", State.DONE).values() if each.found] == []
    with steps.warehouse.kept_open(), there.kept_open():
        points = "SELECT event_id, user_id, version, points_awarded FROM lake.events ORDER BY 1, 2"
        assert steps.warehouse.rows(points) == there.rows(points)
        assert all_rows(steps.warehouse) == all_rows(there)


def test_an_item_that_killed_its_function_is_told_and_not_begun_again(
    steps: WarehouseSteps, objects: FolderObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What items do is done by the other tests."""
    event = planned(objects, "r1", Story(days=2).first_part().write(objects))

    def dies(_: ItemWorker, item: Item) -> bool:
        if (item.kind, item.name) == (Kind.MODEL, "facts.ledger"):
            raise KeyboardInterrupt
        return True

    monkeypatch.setattr(ItemWorker, "do", dies)
    with pytest.raises(KeyboardInterrupt):
        steps.work(event, MONDAY)
    assert steps.work(event, MONDAY) == {"left": 0, "failed": 1}
    assert items(objects, "r1", State.FAILED)["model facts.ledger"].reason == ENDED
    assert "model marts.points_liability" in items(objects, "r1", State.SKIPPED)
    assert "model facts.events" in items(objects, "r1", State.DONE)


def test_a_call_ends_in_time_and_the_next_goes_on(
    steps: WarehouseSteps, objects: FolderObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look at the clock takes ten seconds of a call. What items do is done by the other tests."""
    places = Story(days=2).first_part().write(objects)
    event = planned(objects, "r1", places)
    done: list[str] = []

    def do(_: ItemWorker, item: Item) -> bool:
        done.append(f"{item.kind} {item.name}")
        return True

    ticks = count(step=10)
    monkeypatch.setattr(nights, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    monkeypatch.setattr(ItemWorker, "do", do)
    answers: list[dict[str, int]] = []
    while not answers or answers[-1]["left"]:
        answers.append(steps.work(event, MONDAY))
        assert len(answers) < len(done) < 1000
    assert done == list(items(objects, "r1", State.DONE))
    assert len(done) == len(models()) * 2 + len({each.entity for each in places})


def test_what_is_left_after_the_night_s_time_is_told(
    steps: WarehouseSteps, objects: FolderObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = planned(objects, "r1", Story(days=2).first_part().write(objects))
    monkeypatch.setattr(clock, "now", lambda: MONDAY + timedelta(hours=5))
    assert steps.work(event, MONDAY) == {"left": 0, "failed": 0}
    assert len(items(objects, "r1", State.SKIPPED)) > 40
    assert run_notes.read_unloaded(objects), "and nothing is forgotten"


def test_tests_look_at_what_came_and_at_all_of_it_on_sundays(
    steps: WarehouseSteps,
    objects: FolderObjects,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    first_night: FirstNight,
) -> None:
    """An old row's copy is found on Sunday. One that was loaded is found at once, and until it is gone."""
    working(monkeypatch, *OF_EVENTS)
    story = first_night.copied_to(tmp_path)

    def found(run_id: str, days: int, places: list[Any]) -> set[str]:
        steps.work(planned(objects, run_id, places), MONDAY + timedelta(days=days))
        return {each.name for each in items(objects, run_id, State.DONE).values() if each.found}

    steps.warehouse.run([copied("facts.events")])
    came = [each for each in story.late_part().write(objects) if each.entity == "events"]
    assert found("tuesday", 1, came) == set()
    assert found("sunday", 6, []) == {"facts.events"}
    loaded = "UPDATE lake.events SET load_number = 99 WHERE rowid = (SELECT MAX(rowid) FROM lake.events)"
    note = (
        "INSERT INTO lake.loads"
        " SELECT 'events', 99, CAST(occurred_at AS DATE) FROM lake.events WHERE load_number = 99"
    )
    steps.warehouse.run([copied("lake.events"), loaded, note])
    for day in (7, 8):
        assert "staging.events" in found(f"day {day}", day, [])
    steps.warehouse.run(["DELETE FROM lake.events WHERE load_number = 99"])
    assert "staging.events" not in found("repaired", 9, [])


def copied(table: str) -> str:
    return f"INSERT INTO {table} SELECT * FROM {table} WHERE event_id = (SELECT MIN(event_id) FROM {table})"


def test_a_builder_that_has_nothing_new_builds_nothing(
    steps: WarehouseSteps, tmp_path: Path, first_night: FirstNight
) -> None:
    first_night.copied_to(tmp_path)
    with steps.warehouse.kept_open():
        builder = Builder.read(steps.warehouse)
        again = {name for name in family(*FIRST) if builder.statements(models()[name])}
        assert all("curation" in str(builder.newest_loads(models()[name])) for name in again)
        assert "marts.retention_cohorts" not in again
