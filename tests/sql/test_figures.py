"""The report's plots of the marts can be drawn, from a full warehouse and from an empty one."""

from pathlib import Path
from xml.etree import ElementTree as ET

from analytics.warehouse.build import build
from analytics.warehouse.ddl import prepare
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from local.operate.html_report import mart_plots
from tests.sql.conftest import Lake

TABLES_ALONE = {"Leaders of the month", "Rows that came in"}


def test_every_mart_is_drawn(told: Lake) -> None:
    drawn = mart_plots(told.duck)
    assert len(drawn) == len({each.title for each in drawn}) == 10
    for each in drawn:
        assert each.rows, each.title
        assert all(len(row) == len(each.head) for row in each.rows), each.title
        if each.svg:
            ET.fromstring(each.svg)
            assert "NaN" not in each.svg
            assert "<title>" in each.svg, "what is under the pointer says itself"
    assert {each.title for each in drawn if not each.svg} >= TABLES_ALONE


def test_nothing_to_draw(tmp_path: Path) -> None:
    warehouse = DuckWarehouse(tmp_path / "empty.duckdb")
    prepare(warehouse)
    build(warehouse)
    assert mart_plots(warehouse) == []
