"""A night that brings nothing does not ask the warehouse; whatever is left to be done there does."""

import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from adapters import clock
from adapters.platform.objects import FolderObjects
from analytics.forgetting.lake_pass import Progress
from analytics.lake import run_notes
from analytics.lake.layout import Partition
from analytics.reconcile.findings import Findings
from analytics.reconcile.run_report import gather, is_settled, is_whole, markdown
from analytics.steps import warehouse_function
from analytics.steps.warehouse_function import ItemWorker, WarehouseSteps
from analytics.warehouse import night as warehouse_night
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.models import models
from analytics.warehouse.night import Item, Kind, LastWarehouseRun, WarehouseNight, settle
from analytics.warehouse.statements import StatementFailed
from rules.turns import NIGHTS
from tests.sql.conftest import family
from tests.sql.test_function import planned

MONDAY = datetime(2026, 3, 9, 2, 30, tzinfo=UTC)
DAY = timedelta(days=1)
FEW = family("marts.points_liability")
COUNTS = [{"entity": "events", "rows_in": 3, "curated": 3, "duplicates": 0, "quarantined": 0}]


class Watched:
    """A warehouse whose users are counted."""

    def __init__(self, warehouse: DuckWarehouse) -> None:
        self.warehouse, self.asked = warehouse, 0

    def run(self, statements: Sequence[str]) -> None:
        self.asked += 1
        self.warehouse.run(statements)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        self.asked += 1
        return self.warehouse.rows(sql)

    def kept_open(self) -> AbstractContextManager[None]:
        self.asked += 1
        return self.warehouse.kept_open()


class Nights:
    """Nights over few models of the warehouse's function and of the report: items are done if `fails` does not raise."""

    def __init__(self, objects: FolderObjects, warehouse: Watched) -> None:
        self.objects, self.warehouse = objects, warehouse
        self.steps = WarehouseSteps(warehouse, objects, str(objects.root), "")
        self.fails: Callable[[Item], None] = lambda _: None
        self.number, self.now = 0, MONDAY

    def night(self, at: datetime, places: Sequence[Partition] = (), **event: Any) -> bool:
        """Do one night; returns whether the warehouse was asked."""
        self.number, self.now = self.number + 1, at
        run_id, before = f"n{self.number}", self.warehouse.asked
        asked = {**planned(self.objects, run_id, list(places)), **event}
        while self.steps.work(asked, at)["left"]:
            pass
        Findings().save(self.objects, run_id)
        if is_settled(self.report(at)):
            settle(self.objects, run_id, COUNTS)
        return self.warehouse.asked > before

    def report(self, at: datetime) -> Any:
        return gather(self.objects, f"n{self.number}", at, None)


@pytest.fixture
def nights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:
    objects = FolderObjects(tmp_path / "lake")
    made = Nights(objects, Watched(DuckWarehouse(tmp_path / "w.duckdb", str(tmp_path / "lake"), objects)))
    monkeypatch.setattr(clock, "now", lambda: made.now)
    few = {name: each for name, each in models().items() if name in FEW}
    monkeypatch.setattr(warehouse_function, "models", lambda *_: few)

    def do(calls: ItemWorker, item: Item) -> bool:
        made.fails(item)
        if item.kind is Kind.LOAD:
            notes = run_notes.read_unloaded(objects)
            run_notes.strike_out_unloaded(objects, notes, {each for some in notes.values() for each in some})
        return True

    monkeypatch.setattr(ItemWorker, "do", do)
    return made


def failing(kind: Kind) -> Callable[[Item], None]:
    def fails(item: Item) -> None:
        if item.kind is kind:
            raise StatementFailed("SELECT 1", "it is broken")

    return fails


PLACE = Partition("events", "2026-03-08", "05")


def test_a_night_that_brings_nothing_does_not_ask_the_warehouse_and_says_so(nights: Nights) -> None:
    assert nights.night(MONDAY, [PLACE])
    assert not nights.night(MONDAY + DAY)
    assert not nights.night(MONDAY + 2 * DAY)
    report = nights.report(MONDAY)
    assert report["warehouse"]["quiet_since"] == "n1"
    assert is_whole(report)
    assert "**The warehouse was not asked.** Since run n1 there is nothing to be loaded" in markdown(report)
    assert nights.night(MONDAY + 3 * DAY, [PLACE])
    report = nights.report(MONDAY)
    assert report["warehouse"]["quiet_since"] == ""
    assert "was not asked" not in markdown(report)


def test_the_first_night_asks_though_nothing_has_come(nights: Nights) -> None:
    assert nights.night(MONDAY)
    assert not nights.night(MONDAY + DAY)


@pytest.mark.parametrize("kind", [Kind.LOAD, Kind.MODEL, Kind.TEST])
def test_what_failed_is_tried_every_night_until_it_is_done(nights: Nights, kind: Kind) -> None:
    nights.fails = failing(kind)
    assert nights.night(MONDAY, [PLACE])
    assert nights.night(MONDAY + DAY)
    nights.fails = lambda _: None
    assert nights.night(MONDAY + 2 * DAY)
    assert not nights.night(MONDAY + 3 * DAY)


def test_a_test_of_a_model_that_found_something_is_repeated(nights: Nights) -> None:
    def finds(item: Item) -> None:
        item.found = [{"model": item.name, "test": "unique", "rows": 1}] if item.kind is Kind.TEST else []

    nights.fails = finds
    assert nights.night(MONDAY, [PLACE])
    assert nights.night(MONDAY + DAY)
    nights.fails = lambda _: None
    assert nights.night(MONDAY + 2 * DAY)
    assert not nights.night(MONDAY + 3 * DAY)


def test_a_night_that_died_in_the_warehouse_is_repeated(nights: Nights) -> None:
    assert nights.night(MONDAY, [PLACE])

    def dies(_: Item) -> None:
        raise KeyboardInterrupt

    nights.fails = dies
    with pytest.raises(KeyboardInterrupt):
        nights.night(MONDAY + DAY, [replace(PLACE, hour="06")])
    nights.fails = lambda _: None
    assert nights.night(MONDAY + 2 * DAY)


def test_a_part_of_the_night_that_failed_elsewhere_does_not_settle_it(nights: Nights) -> None:
    nights.night(MONDAY, [PLACE])
    report: dict[str, Any] = nights.report(MONDAY)
    assert is_settled(nights.report(MONDAY))
    for name in (
        "error",
        "curation_failures",
        "failed_shares",
        "warehouse_and_lake",
        "failed_tests",
        "findings",
    ):
        failed: Any = {**report, name: {"leads": ["x"]} if name == "findings" else ["x"]}
        assert not is_settled(failed), name
    for name, value in (("lacks", {"events": 1}), ("unread", "away")):
        failed = {**report, "warehouse": {**report["warehouse"], name: value}}
        assert not is_settled(failed), name


def test_a_new_deployment_or_another_warehouse_is_built(nights: Nights) -> None:
    nights.night(MONDAY, [PLACE])
    nights.steps = replace(nights.steps, filled_by="another")
    assert nights.night(MONDAY + DAY)
    assert not nights.night(MONDAY + 2 * DAY)


def test_models_of_an_erasure_and_what_is_asked_for_ask(nights: Nights) -> None:
    nights.night(MONDAY, [PLACE])
    assert nights.night(MONDAY + DAY, full=True)
    assert nights.night(MONDAY + DAY, everybody=True)
    assert not nights.night(MONDAY + DAY, full=False, everybody=False)
    waiting = Progress(f"n{nights.number + 1}", MONDAY.isoformat(), ["erasure"], is_done=True)
    waiting.save(nights.objects)
    assert nights.night(MONDAY + DAY)
    assert Progress.read(nights.objects, waiting.run_id).is_warehouse_done  # type: ignore[union-attr]
    nobody = Progress(f"n{nights.number + 1}", MONDAY.isoformat(), [], is_done=True)
    nobody.save(nights.objects)
    assert not nights.night(MONDAY + DAY)
    assert Progress.read(nights.objects, nobody.run_id).is_warehouse_done, "nobody is in it"  # type: ignore[union-attr]


def test_an_earlier_night_s_partitions_that_are_not_loaded_ask(nights: Nights) -> None:
    nights.night(MONDAY, [PLACE])
    run_notes.note_unloaded(nights.objects, "another run", [PLACE])
    assert nights.night(MONDAY + DAY)
    assert not nights.night(MONDAY + 2 * DAY)


def test_all_rows_are_tested_on_the_first_sunday_after_something_came(nights: Nights) -> None:
    nights.night(MONDAY, [PLACE])
    sunday = MONDAY + 6 * DAY
    assert not nights.night(sunday - DAY)
    assert nights.night(sunday)
    night = WarehouseNight.read(nights.objects, f"n{nights.number}")
    assert night
    assert night.full_tests
    assert not nights.night(sunday + DAY)
    assert not nights.night(sunday + 7 * DAY)


def test_what_has_its_turn_in_28_nights_has_it(nights: Nights) -> None:
    sunday = MONDAY - DAY
    nights.night(sunday, [PLACE])
    asked = [number for number in range(1, 60) if nights.night(sunday + number * DAY)]
    assert asked == [NIGHTS, 2 * NIGHTS]


def test_of_two_nights_at_once_the_one_that_began_later_settles(nights: Nights) -> None:
    nights.night(MONDAY, [PLACE])
    LastWarehouseRun("the other", MONDAY.isoformat(), "").save(nights.objects)
    settle(nights.objects, "n1", COUNTS)
    last = LastWarehouseRun.read(nights.objects)
    assert last
    assert (last.run_id, last.is_settled) == ("the other", False)
    assert nights.night(MONDAY + DAY)


def test_a_version_is_of_models_rules_and_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in warehouse_night.MADE_BY:
        shutil.copytree(
            warehouse_night.PACKAGED / folder,
            tmp_path / folder,
            ignore=lambda _, names: {"__pycache__"} & {*names},
        )
    monkeypatch.setattr(warehouse_night, "PACKAGED", tmp_path)
    found = partial(warehouse_night.version.__wrapped__, settings=(("campaign_grace_days", 7),))
    before = found("redshift://a/b")
    assert found("redshift://a/b") == before
    assert found("redshift://a/c") != before
    assert found("redshift://a/b", settings=(("campaign_grace_days", 8),)) != before
    for name in ("sql/models/marts/streaks_recomputed.sql", "sql/ddl/loads.sql", "rules/days.py"):
        path = tmp_path / name
        text = path.read_text()
        path.write_text(text + "\n")
        assert found("redshift://a/b") != before, name
        path.write_text(text)
    assert found("redshift://a/b") == before
