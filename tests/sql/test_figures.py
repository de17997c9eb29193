"""The report's plots of the marts can be drawn, from a full warehouse and from an empty one."""

from datetime import date, timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

from analytics.warehouse.build import build
from analytics.warehouse.ddl import prepare
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from local.operate.html_report import MART_PLOTS, mart_plots
from local.plots import share
from tests.sql.conftest import Lake

TABLES_ALONE = {"Leaders of the month", "Rows that came in"}
BOARDS_PLOT = "Boards when they were last final"  # its rows are in test_boards_twin.py


def test_every_mart_is_drawn(told: Lake) -> None:
    drawn = mart_plots(told.duck)
    titles = {each.title for each in drawn}
    assert titles == {each.title for each in MART_PLOTS} - {BOARDS_PLOT}, "no period is final there"
    for each in drawn:
        assert each.rows, each.title
        assert all(len(row) == len(each.head) for row in each.rows), each.title
        if each.svg:
            ET.fromstring(each.svg)
            assert "NaN" not in each.svg
            assert all(cell in each.svg for row in each.rows for cell in row[1:]), "each value is told"
    assert {each.title for each in drawn if not each.svg} >= TABLES_ALONE


def test_retention_counts_those_who_were_there_on_the_next_date_and_in_the_next_week(told: Lake) -> None:
    active: dict[str, set[date]] = {}
    for row in told.duck.rows(
        "SELECT user_id, activity_date FROM facts.daily_activity WHERE events_count > 0"
    ):
        active.setdefault(row["user_id"], set()).add(row["activity_date"])
    last = max(max(dates) for dates in active.values())
    next_date, next_week = dict[str, list[bool]](), dict[str, list[bool]]()
    for dates in active.values():
        first = min(dates)
        if first < last:
            next_date.setdefault(str(first), []).append(first + timedelta(days=1) in dates)
        monday = first - timedelta(days=first.weekday())
        following = {monday + timedelta(days=day) for day in range(7, 14)}
        if min(following) <= last:
            next_week.setdefault(str(monday), []).append(bool(dates & following))
    drawn = {each.title: each for each in mart_plots(told.duck)}
    for title, came_back in (
        ("Who comes back on the next date", next_date),
        ("Who comes back in the next week", next_week),
    ):
        expected = [(name, share(sum(came) / len(came))) for name, came in sorted(came_back.items())]
        assert drawn[title].rows == expected
        assert expected


def test_stickiness_begins_when_there_are_30_dates(told: Lake) -> None:
    (first,) = told.duck.rows("SELECT MIN(date_day) AS day FROM marts.daily_actives")
    drawn = {each.title: each for each in mart_plots(told.duck)}
    assert drawn["Stickiness"].rows[0][0] == str(first["day"] + timedelta(days=29))


def test_an_erased_person_is_no_leader(told: Lake) -> None:
    (leaders,) = (each.sql for each in MART_PLOTS if each.title == "Leaders of the month")
    table = "marts.leaderboard_history"
    erased = f"(SELECT 'erased/1' AS user_id, * EXCLUDE (user_id) FROM {table} UNION ALL SELECT user_id, * EXCLUDE (user_id) FROM {table}) AS told"
    found = [
        row["user_id"]
        for row in told.duck.rows(leaders.replace(f"FROM {table}\nWHERE", f"FROM {erased}\nWHERE"))
    ]
    assert found
    assert "erased/1" not in found


def test_nothing_to_draw(tmp_path: Path) -> None:
    warehouse = DuckWarehouse(tmp_path / "empty.duckdb")
    with warehouse.kept_open():
        prepare(warehouse)
        build(warehouse)
        assert mart_plots(warehouse) == []
