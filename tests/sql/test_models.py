"""Each model gives the same rows on DuckDB and PostgreSQL, however often and in whatever parts it is built."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analytics.curation.curate import curate
from analytics.lake.layout import Partition
from analytics.warehouse.build import Builder, ModelBuild, build
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.models import ALL, Scope, check, check_model, models
from analytics.warehouse.statements import literal
from analytics.warehouse.warehouse import Warehouse
from rules.lake.entities import LOADED
from tests.sql.conftest import Lake, Laptop, family
from tests.support.effort import only_soak
from tests.support.lake_story import Story
from tests.support.raw_lake import put_raw


def rows(warehouse: Warehouse, name: str) -> list[dict[str, Any]]:
    key = ", ".join(f'"{column}"' for column in models()[name].key)
    return warehouse.rows(f"SELECT * FROM {name} ORDER BY {key}")


@pytest.mark.parametrize("name", models())
def test_same_rows_on_both_engines(told: Lake, name: str) -> None:
    duck, redshift = (rows(warehouse, name) for warehouse in told.warehouses)
    # No period of a board has ended in the story: tests/sql/test_boards_twin.py has such.
    assert duck or name == "marts.board_results"
    assert duck == redshift
    assert not duck or list(duck[0]) == list(models()[name].columns)


def test_tests_hold(told: Lake) -> None:
    for warehouse in told.warehouses:
        assert check(warehouse) == []


def scopes_of(warehouse: Warehouse) -> dict[str, Scope | None]:
    """Of each model what the second load has brought."""
    builder = Builder.read(warehouse)
    builder.last_builds = replace_all(builder.last_builds, tested=dict.fromkeys(LOADED, 1))
    return {name: builder.scope(model) for name, model in models().items()}


def test_tests_look_at_what_came(told: Lake) -> None:
    """By load number, or by date."""
    scopes = scopes_of(told.redshift)
    assert scopes["facts.profiles"] == Scope("load_number > 1")
    assert str(scopes["facts.events"]).startswith('Scope(rows=\'load_number > 1 AND (("occurred_at" >= ')
    totals = scopes["facts.activity_totals"]
    assert totals
    assert totals.rows.startswith('("activity_date" >= DATE ')
    assert totals.near == totals.rows
    assert scopes["marts.retention_cohorts"] == ALL
    untested = sorted(name for name, scope in scopes.items() if scope is None)
    of_the_book = ["dimensions.event_type_versions", "staging.rule_book", "staging.rules"]  # came once
    assert untested == sorted([*of_the_book, "staging.profiles"])


@only_soak(
    "tests/sql/test_models.py test_tests_look_at_what_came and test_tests_hold; "
    "the nights of tests/sql/test_forgetting.py test what came on DuckDB"
)
def test_tests_of_what_came_hold_too(told: Lake) -> None:
    warehouse = told.redshift
    for name, scope in scopes_of(warehouse).items():
        assert check_model(warehouse, models()[name], scope or ALL) == []


def replace_all(built: Mapping[str, ModelBuild], **more: Any) -> dict[str, ModelBuild]:
    return {name: replace(each, **more) for name, each in built.items()}


def test_built_in_parts_is_built_at_once(told: Lake, tmp_path: Path) -> None:
    """And built again, without anything new, it stays as it is."""
    shutil.copy(told.duck.path, tmp_path / "copy.duckdb")
    copy = DuckWarehouse(tmp_path / "copy.duckdb")
    made = [name for name, model in models().items() if model.materialized != "view"]
    with copy.kept_open():
        in_parts = {name: rows(copy, name) for name in made}
        for full in (False, True):
            build(copy, full=full)
            assert in_parts == {name: rows(copy, name) for name in made}


def test_only_what_changed_is_taken(told: Lake, tmp_path: Path) -> None:
    """An incremental model is not made anew: rows that nothing was loaded for are left alone."""
    shutil.copy(told.duck.path, tmp_path / "copy.duckdb")
    copy = DuckWarehouse(tmp_path / "copy.duckdb")
    copy.run(["UPDATE facts.events SET points_awarded = 12345 WHERE load_number = 1"])
    build(copy, only=["facts.events"])
    marked = "SELECT COUNT(*) AS n FROM facts.events WHERE points_awarded = 12345"
    assert copy.rows(marked)[0]["n"] > 0
    copy.run(["DELETE FROM lake.builds"])  # as if its SQL had changed
    build(copy, only=["facts.events"])
    assert copy.rows(marked) == [{"n": 0}]


def marts(laptop: Laptop) -> dict[str, list[dict[str, Any]]]:
    return {name: rows(laptop.warehouse, name) for name in models() if not name.startswith("staging")}


def test_what_has_no_rows_takes_no_part_in_anything(laptop: Laptop) -> None:
    """An empty object, lines that were all refused, and the date of year 1 that once stood for no date."""
    laptop.load("one", Story(days=2).first_part().write(laptop.objects))
    build(laptop.warehouse)
    before = marts(laptop)
    assert before["marts.daily_actives"]
    far, near = Partition("events", "2031-01-01", "05"), Partition("ledger", "1970-01-01", "00")
    for place in (far, near):
        put_raw(laptop.objects, "_SUCCESS", [], place)
        assert curate(laptop.objects, place).in_ == 0
    laptop.warehouse.run(
        ["INSERT INTO lake.curation VALUES ('events', DATE '0001-01-01', 'day', 3, 0, 0, 3)"]
    )
    laptop.load("two", [far, near])
    build(laptop.warehouse)
    assert marts(laptop) == before
    refused = Partition("events", "2031-01-02", "05")
    put_raw(laptop.objects, "junk", [b"junk"], refused)
    curate(laptop.objects, refused)
    laptop.load("three", [refused])
    build(laptop.warehouse)
    after = marts(laptop)
    (told,) = (row for row in after.pop("marts.data_quality") if row not in before["marts.data_quality"])
    assert (str(told["dt"]), told["quarantined"]) == ("2031-01-02", 1)
    assert after.items() <= before.items()
    assert check(laptop.warehouse) == []


def test_a_date_whose_only_events_were_reversed_fails_no_test(laptop: Laptop) -> None:
    about_days = ("staging.daily_activity", "facts.daily_activity", "marts.daily_actives")
    needed, total = (
        family(*about_days),
        "SELECT CAST(SUM(active_users) AS BIGINT) AS n FROM marts.daily_actives",
    )
    laptop.load("one", Story(days=2).first_part().write(laptop.objects))
    build(laptop.warehouse, needed)
    (before,) = laptop.warehouse.rows(total)
    (first, *_) = rows(laptop.warehouse, "facts.daily_activity")
    whose = f"user_id = {literal(first['user_id'])} AND activity_date = {literal(first['activity_date'])}"
    laptop.warehouse.run(
        [f"UPDATE lake.daily_activity SET events_count = 0, points_earned = 0 WHERE {whose}"]
    )
    build(laptop.warehouse, needed, full=True)
    assert laptop.warehouse.rows(total) == [{"n": before["n"] - 1}]
    assert [check_model(laptop.warehouse, models()[name]) for name in about_days] == [[], [], []]


def test_a_streak_may_be_longer_than_all_dates_of_the_lake(laptop: Laptop) -> None:
    """Such a streak was moved in."""
    needed = family("marts.streak_survival")
    laptop.load("one", Story(days=2).first_part().write(laptop.objects))
    build(laptop.warehouse, needed)
    users = laptop.warehouse.rows("SELECT user_id FROM facts.profiles WHERE longest_streak > 0 ORDER BY 1")
    for length, row in zip((400, 41, 40), users, strict=False):
        whose = f"user_id = {literal(row['user_id'])}"
        laptop.warehouse.run([f"UPDATE lake.streaks SET longest_streak = {length} WHERE {whose}"])
    build(laptop.warehouse, needed, full=True)
    table = {row["streak_days"]: row for row in rows(laptop.warehouse, "marts.streak_survival")}
    assert sorted(table) == list(range(1, 401))
    assert [table[days]["reached_users"] for days in (1, 40, 41, 42, 400)] == [len(users), 3, 2, 1, 1]
    assert [table[days]["stopped_users"] for days in (39, 40, 41, 42, 400)] == [0, 1, 1, 0, 1]
    assert table[400]["survival"] == pytest.approx(1 / len(users))
    assert check_model(laptop.warehouse, models()["marts.streak_survival"]) == []


def test_all_of_a_user_s_dates_and_a_whole_date_may_be_reversed(laptop: Laptop) -> None:
    laptop.load("one", Story(days=3).first_part().write(laptop.objects))
    (last,) = laptop.warehouse.rows(
        "SELECT MAX(activity_date) AS dt, MAX(user_id) AS who FROM lake.daily_activity"
    )
    gone = f"user_id = {literal(last['who'])} OR activity_date = {literal(last['dt'])}"
    laptop.warehouse.run([f"UPDATE lake.daily_activity SET events_count = 0, points_earned = 0 WHERE {gone}"])
    build(laptop.warehouse, full=True)
    days = [str(row["date_day"]) for row in rows(laptop.warehouse, "marts.daily_actives")]
    assert days
    assert max(days) < str(last["dt"])
    failed = {name for name, model in models().items() if check_model(laptop.warehouse, model)}
    assert failed == set()
