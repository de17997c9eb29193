"""Checks whether all users have earned the points of the book, recomputed from the whole lake.

DuckDB runs the statement of facts.user_point_weeks in a temporary file. A night does not do this: it asks the
warehouse, and checks the accounts that it examines (rules.engagement.points).
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from adapters.platform.objects import Objects
from analytics.lake import curated_files
from analytics.lake.curated_files import arrow_table
from analytics.warehouse.build import build
from analytics.warehouse.ddl import LOAD_NUMBER, prepare
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.models import ancestors, entities_of, models
from rules.lake.entities import ENTITIES

# ruff: noqa: S608 (names of our own)
WEEKS = "facts.user_point_weeks"
COUNT = f"SELECT COUNT(*) AS number FROM {WEEKS}"
DIFFERING = f"""
SELECT user_id, week_start, points_by_book, points_by_events, points_in_ledger FROM {WEEKS}
WHERE points_by_book <> points_in_ledger OR points_by_events <> points_in_ledger ORDER BY user_id, week_start
"""


def differing_weeks(objects: Objects) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of users' weeks, and the weeks whose three sums differ, by user and week.

    A row has user_id, week_start (a Monday), points_by_book, points_by_events and points_in_ledger.
    """
    all_models = models()
    weeks = all_models[WEEKS]
    with TemporaryDirectory() as folder:
        warehouse = DuckWarehouse(Path(folder, "weeks.duckdb"))
        with warehouse.kept_open():
            prepare(warehouse)
            for entity in entities_of(weeks, all_models):
                _load(warehouse, objects, entity)
            build(warehouse, {WEEKS, *(ancestor.name for ancestor in ancestors(weeks, all_models))})
            return int(warehouse.rows(COUNT)[0]["number"]), warehouse.rows(DIFFERING)


def _load(warehouse: DuckWarehouse, objects: Objects, entity: str) -> None:
    """Fill an entity's table with all rows of the lake, as one load."""
    names = [field.name for field in ENTITIES[entity].fields]
    rows = curated_files.reader(objects, entity, names)
    with warehouse.reading() as db, arrow_table(db, "curated", rows):
        db.execute(f"INSERT INTO lake.{entity} BY NAME SELECT *, 1 AS {LOAD_NUMBER} FROM curated")
