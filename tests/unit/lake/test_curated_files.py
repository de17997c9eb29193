"""Curated files of any age are read alike, one by one and by DuckDB."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapters.platform.objects import FolderObjects
from analytics.lake import curated_files
from analytics.lake.arrow import arrow_schema
from analytics.lake.curated_files import connect, query
from analytics.lake.layout import Partition, curated_key
from rules.lake.entities import EVENTS

NAMES = ("event_id", "rules_version", "points_awarded", "is_passive")


def _put(objects: FolderObjects, dt: str, rows: pa.Table) -> None:
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    objects.put(curated_key(Partition("events", dt, None)), sink.getvalue())


@pytest.mark.parametrize("all_are_old", [False, True])
def test_columns_that_came_later_are_null_and_types_are_todays(tmp_path: Path, all_are_old: bool) -> None:
    objects = FolderObjects(tmp_path / "lake")
    narrow = pa.array([3], pa.int32())
    _put(objects, "2026-01-01", pa.table({"points_awarded": narrow, "event_id": ["a"]}))
    now = pa.Table.from_pylist(
        [dict.fromkeys(NAMES, None) | {"rules_version": 2}], schema=arrow_schema(EVENTS)
    )
    if not all_are_old:
        _put(objects, "2026-01-02", now)
    one_by_one = curated_files.reader(objects, "events", NAMES).read_all()
    with connect() as db, curated_files.table_of(db, "found", objects, "events"):
        together = query(db, f"SELECT {', '.join(NAMES)} FROM found ORDER BY rules_version NULLS FIRST")
    assert together.to_pylist() == one_by_one.to_pylist()
    assert together.schema.types == one_by_one.schema.types


def test_a_lake_without_files_is_an_empty_table(tmp_path: Path) -> None:
    with connect() as db, curated_files.table_of(db, "found", FolderObjects(tmp_path), "events"):
        assert query(db, "SELECT count(*) AS n FROM found")["n"].to_pylist() == [0]
        assert query(db, "SELECT points_awarded FROM found").schema.types == [pa.int64()]
