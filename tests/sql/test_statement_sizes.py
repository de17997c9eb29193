"""Each statement fits into the Data API's 100 KB, and each transaction into its 40, whatever a night has to do."""

from datetime import date
from pathlib import Path

import pytest

from adapters.platform.objects import FolderObjects
from analytics.forgetting.erasees import Erasee
from analytics.forgetting.warehouse_rows import TABLES, WarehouseRows
from analytics.ledger_copies import warehouse_copies
from analytics.warehouse.build import Builder, ModelBuild, build
from analytics.warehouse.ddl import prepare
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.load import Loader
from analytics.warehouse.models import ALL, check_model, fingerprint, models
from analytics.warehouse.statements import StatementFailed, literal, literal_lists, refuse_oversized
from rules.days import DAY
from rules.lake.entities import LOADED
from rules.lake.residues import ErasureNames
from tests.sql.conftest import Lake
from tests.sql.test_incremental import FIRST, Nights, tables
from tests.support.effort import only_soak
from tests.support.shipped_sql import Recorder, shipped

BEGIN = date(2016, 1, 2)
THIRD_DAYS = [BEGIN + 3 * number * DAY for number in range(1217)]
WITHIN_MONTHS = [date(2016 + number // 12, 1 + number % 12, 15) for number in range(120)]
MANY_LOADS = 2**62


def check_all(warehouse: DuckWarehouse) -> None:
    """Test what came, as a night does. The sample's rows are no town: what the tests find is not asked."""
    builder = Builder.read(warehouse)
    for model in models().values():
        scope = builder.scope(model)
        if scope == ALL:
            builder.note_tested(model)
        elif scope is not None:
            check_model(warehouse, model, scope)


@only_soak(
    "tests/unit/lake/test_touched.py test_many_dates_are_few_spans_and_all_that_their_periods_follow_from, "
    "and tests/sql/test_incremental.py test_night_by_night_is_at_once"
)
def test_a_night_after_ten_years_of_gaps_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It makes more dates anew than were touched, and no table differs from one that is made anew whole."""
    monkeypatch.setattr("analytics.warehouse.build.SPANS_MAX", 4)
    objects = FolderObjects(tmp_path / "lake")
    warehouse = DuckWarehouse(tmp_path / "w.duckdb", str(tmp_path / "lake"), objects)
    told, first = Nights(objects), (BEGIN - FIRST.date()).days
    # More gaps than a condition has spans: between dates, and between months.
    days = [*range(0, 18, 3), *range(100, 3_700, 600)]
    gaps = [(0, first + day, number % 30) for number, day in enumerate(days)]
    with warehouse.kept_open():
        prepare(warehouse)
        for run_id, night in (("one", [(0, 0, 5)]), ("two", gaps)):
            Loader(warehouse, objects, str(tmp_path / "lake")).load(run_id, told.write(night))
            build(warehouse)
            check_all(warehouse)
        by_night = tables(warehouse)
        build(warehouse, full=True)
        assert by_night == tables(warehouse)


@pytest.mark.parametrize("days", [THIRD_DAYS, WITHIN_MONTHS, THIRD_DAYS[:20]])
def test_every_model_and_its_tests_after_gaps(days: list[date]) -> None:
    known = models()
    recorder = Recorder([{"dt": day, "test": "", "broken": 0} for day in days])
    loads = dict.fromkeys(LOADED, MANY_LOADS)
    before = dict.fromkeys(loads, MANY_LOADS - 1)
    built = {name: ModelBuild(fingerprint(each, known), before, before) for name, each in known.items()}
    kinds = {name: "VIEW" if each.materialized == "view" else "BASE TABLE" for name, each in known.items()}
    builder = Builder(recorder, False, known, kinds, built, loads)
    for model in known.values():
        builder.build(model.name)
        if (scope := builder.scope(model)) is not None:
            check_model(recorder, model, scope)
        builder.note_tested(model)
    assert max(len(sql.encode()) for sql in recorder.sent) < 60_000, "models and tests may still grow"


def test_all_that_is_shipped() -> None:
    for name, sql in shipped():
        try:
            refuse_oversized([sql])
        except StatementFailed as error:
            pytest.fail(f"{name}: {error.reason}")


@pytest.mark.parametrize(
    "person",
    ["{:06}" + more for more in ("\\" * 250, "é" * 250, "", "'" * 250)],
)
def test_many_who_are_erased_with_long_names(person: str) -> None:
    names = [person.format(number) for number in range(400)]
    waiting = {name: Erasee("one", ErasureNames("00" * 16)) for name in names}
    by_kind = dict.fromkeys(("users", "leads", "persons", "phones"), waiting)
    columns = ("user_id", "account_id", "lead_organization_id", "person", "phone")
    tables_of = [{"name": "lake.events", "col": column} for column in columns]

    class Tables(Recorder):
        def rows(self, sql: str) -> list[dict[str, str]]:
            super().rows(sql)
            return tables_of if sql == TABLES else []

    recorder = Tables()
    WarehouseRows(recorder, by_kind).count()
    WarehouseRows(recorder, by_kind).remove()
    warehouse_copies(recorder, names)
    sent = "".join(recorder.sent)
    # Counted; the dates noted, and the rows deleted, of each column; and copies.
    assert {sent.count(literal(name)) for name in names} == {3 * len(columns) + 1}


def test_each_value_stands_in_one_list() -> None:
    values = [f"{number}{'x' * (number % 300)}" for number in range(5_000)]
    assert ", ".join(literal_lists(values)) == ", ".join(f"'{each}'" for each in values)
    assert max(len(some.encode()) for some in literal_lists(values)) <= 50_000
    assert list(literal_lists([])) == []
    assert list(literal_lists(["x" * 60_000, "y"])) == [f"'{'x' * 60_000}'", "'y'"]


def test_both_engines_refuse_what_is_too_large(lake: Lake) -> None:
    long = f"SELECT '{'é' * 50_000}' AS a"
    for warehouse in lake.warehouses:
        assert warehouse.rows("SELECT '" + "x" * 90_000 + "' AS a")
        with pytest.raises(StatementFailed, match="100014 bytes: a statement may have 100000"):
            warehouse.rows(long)
        with pytest.raises(StatementFailed, match="a statement may have 100000"):
            warehouse.run(["SELECT 1", long])
        with pytest.raises(StatementFailed, match="41 statements: a transaction may have 40"):
            warehouse.run(["SELECT 1"] * 41)
