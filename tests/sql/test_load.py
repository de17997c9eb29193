"""Loading: once, again, in any order, from files of older schemas; the same on both engines."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapters.platform.objects import StoredObject
from analytics.lake.arrow import arrow_schema
from analytics.lake.bookkeeping import Counts, Footer
from analytics.lake.layout import Partition, curated_key
from analytics.warehouse.load import DAYS_MAX, CuratedFile, Loader, bookkeeping_statements
from analytics.warehouse.statements import StatementFailed
from rules.lake.entities import EVENTS, LOADED
from tests.sql.conftest import ROLE, Lake, Laptop
from tests.support.lake_sample import event, write
from tests.support.lake_story import Story

HOUR = Partition("events", "2026-01-31", "23")
WHEN = datetime(2026, 1, 31, 23, 30, tzinfo=UTC)


@pytest.fixture
def lake(lake: Lake) -> Iterator[Lake]:
    with lake.duck.kept_open():
        yield lake


def some(version: int = 0, points: int = 5, **more: Any) -> dict[str, Any]:
    return event("o'brien", WHEN, "CHECK_IN", 1, version=f"{version}", points_awarded=points, **more)


def state(lake: Lake, sql: str) -> list[dict[str, Any]]:
    """The same answer from both warehouses."""
    duck, redshift = (warehouse.rows(sql) for warehouse in lake.warehouses)
    assert duck == redshift
    return duck


def test_loaded_twice_is_loaded_once(laptop: Laptop) -> None:
    """One file of each entity. Both engines: events, below."""
    told = Story(days=2).first_part().write(laptop.objects)
    places = list({each.entity: each for each in told}.values())
    laptop.load("one", places)
    tables = (*LOADED, "curation")
    query = "SELECT * FROM lake.{} ORDER BY 1, 2, 3, 4"
    before = [laptop.warehouse.rows(query.format(table)) for table in tables]
    assert before[0]
    laptop.load("two", places)
    assert before == [laptop.warehouse.rows(query.format(table)) for table in tables]


def test_redshift_loads_twice_as_once(lake: Lake) -> None:
    told = Story(days=2).first_part().write(lake.objects)
    places = list({each.entity: each for each in told}.values())
    lake.load("one", places)
    query = "SELECT * FROM lake.{} ORDER BY 1, 2, 3, 4"
    before = [state(lake, query.format(table)) for table in (*LOADED, "curation")]
    assert before[0]
    lake.load("two", places)
    assert before == [state(lake, query.format(table)) for table in (*LOADED, "curation")]


def test_newer_versions_win_and_older_files_lose(lake: Lake) -> None:
    query = "SELECT version, points_awarded, load_number FROM lake.events"
    for rows, expected in (
        ([some(0, 5)], ("0", 5, 1)),
        ([some(1, 3)], ("1", 3, 2)),
        ([some(0, 5)], ("1", 3, 2)),
        ([some(1, 2)], ("1", 2, 3)),  # the hour was curated again, by other rules
        ([some(0, 9), some(2, 7)], ("2", 7, 4)),
    ):
        write(lake.objects, HOUR, rows)
        lake.load("run", [HOUR])
        assert [tuple(row.values()) for row in state(lake, query)] == [expected]


def test_a_file_without_rows_and_a_task_without_a_file(lake: Lake) -> None:
    write(lake.objects, HOUR, [])
    lake.load("run", [HOUR, Partition("events", "2026-02-01", "00"), Partition("ledger", "2026-02-01", None)])
    assert state(lake, "SELECT COUNT(*) AS n FROM lake.events") == [{"n": 0}]
    assert [row["hour"] for row in state(lake, "SELECT hour FROM lake.curation")] == ["23"]


def test_the_bookkeeping_follows_the_files(lake: Lake) -> None:
    query = "SELECT hour, rows_in, curated, duplicates, quarantined FROM lake.curation ORDER BY hour"
    early = Partition("events", "2026-01-31", "05")
    write(lake.objects, HOUR, [some()])
    write(lake.objects, early, [])
    lake.load("run", [HOUR, early])
    lake.load("run", [HOUR])
    assert [tuple(row.values()) for row in state(lake, query)] == [("05", 3, 0, 1, 2), ("23", 4, 1, 1, 2)]
    # Compacted: one file takes the hours' place.
    write(lake.objects, Partition("events", "2026-01-31", None), [some()])
    lake.load("run", [Partition("events", "2026-01-31", None)])
    assert [tuple(row.values()) for row in state(lake, query)] == [("day", 4, 1, 1, 2)]


def test_a_month_takes_the_place_of_its_days(lake: Lake) -> None:
    """The night notes the month; a note of before may name a day of it."""
    query = "SELECT dt, hour, rows_in FROM lake.curation ORDER BY dt, hour"
    month, other = Partition("events", "2026-01", None), Partition("events", "2026-02-01", "05")
    for place in (HOUR, Partition("events", "2026-01-30", None), other):
        write(lake.objects, place, [some()])
    lake.load("run", [HOUR, Partition("events", "2026-01-30", None), other])
    assert len(state(lake, query)) == 3
    write(lake.objects, month, [some(), some() | {"event_id": "second"}])
    for tasks in ([month], [HOUR], [month, HOUR]):
        lake.load("run", tasks)
        assert [tuple(row.values()) for row in state(lake, query)] == [
            (date(2026, 1, 1), "all", 5),
            (date(2026, 2, 1), "05", 4),
        ]
        assert state(lake, "SELECT COUNT(*) AS n FROM lake.events") == [{"n": 2}]


def test_files_from_before_the_schema_grew(lake: Lake) -> None:
    """An hour whose file lacks a column, and has a narrower one, loads together with a new one."""
    old = pa.schema(
        [
            pa.field(each.name, pa.int64()) if each.name == "source" else each
            for each in arrow_schema(EVENTS)
            if each.name not in ("properties", "timezone")
        ]
    )
    row = dict.fromkeys(old.names) | some() | {"source": 17}
    write(
        lake.objects, Partition("events", "2026-01-30", "00"), [{name: row[name] for name in old.names}], old
    )
    write(lake.objects, HOUR, [event("u", WHEN, "CHECK_IN", 2, properties="{}")])
    lake.load("run", [HOUR, Partition("events", "2026-01-30", "00")])
    found = state(lake, "SELECT user_id, source, properties FROM lake.events ORDER BY user_id")
    assert [tuple(each.values()) for each in found] == [("o'brien", "17", None), ("u", "größe's", "{}")]


def test_files_of_more_schemas_than_one_transaction_takes(lake: Lake) -> None:
    """Each set of columns takes two statements. A warehouse that is made anew may meet years of them."""
    optional = ("timezone", "properties", "expiry", "extra", "rules_version")
    places = []
    for number in range(20):
        left_out = [name for place, name in enumerate(optional) if number >> place & 1]
        schema = pa.schema([each for each in arrow_schema(EVENTS) if each.name not in left_out])
        place = Partition("events", "2026-01-30", f"{number:02}")
        row = dict.fromkeys(schema.names) | some() | {"event_id": f"{number}"}
        write(lake.objects, place, [{name: row[name] for name in schema.names}], schema)
        places.append(place)
    lake.load("run", places)
    assert state(lake, "SELECT COUNT(*) AS n, COUNT(DISTINCT load_number) AS loads FROM lake.events") == [
        {"n": 20, "loads": 3}
    ]
    assert state(lake, "SELECT COUNT(*) AS n FROM lake.curation") == [{"n": 20}]
    lake.load("again", places)
    assert state(lake, "SELECT MAX(load_number) AS last FROM lake.events") == [{"last": 3}]


def test_a_footer_larger_than_the_first_look(lake: Lake) -> None:
    names = {f"hour=23/{number}": "e" * 32 for number in range(3000)}
    counts = {"schema": 15, "in": 1, "curated": 1, "duplicates": 0, "quarantined": 0, "sources": names}
    table = pa.Table.from_pylist([some()], schema=arrow_schema(EVENTS))
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({"streakline": json.dumps(counts)}), sink)
    lake.objects.put(curated_key(HOUR), sink.getvalue())
    lake.load("run", [HOUR])
    assert state(lake, "SELECT rows_in FROM lake.curation") == [{"rows_in": 1}]


def test_a_failed_load_leaves_nothing(lake: Lake) -> None:
    lake.load("run", [])
    write(lake.objects, HOUR, [some() | {"user_id": None}])  # curation would not let it pass
    for warehouse in lake.warehouses:
        with pytest.raises(StatementFailed):
            Loader(warehouse, lake.objects, str(lake.root), ROLE).load("run", [HOUR])
    assert state(lake, "SELECT 1 AS n FROM lake.events UNION ALL SELECT 2 FROM lake.curation") == []


def test_redshift_copies_by_manifest(lake: Lake) -> None:
    write(lake.objects, HOUR, [some()])
    lake.load("run-7", [HOUR])
    (sqls,) = [
        request["Sqls"] for action, request in lake.api.calls
        if action == "BatchExecuteStatement" and request["Sqls"][0].startswith("LOCK")
    ]  # fmt: skip
    key = "runs/run-7/load-events-2026-01-31-0.manifest"
    copy = f"COPY staged_0 FROM '{lake.root}/{key}' IAM_ROLE '{ROLE}' FORMAT AS PARQUET MANIFEST"
    assert copy in sqls
    (entry,) = json.loads(lake.objects.get(key))["entries"]
    assert entry["meta"] == {"content_length": len(lake.objects.get(curated_key(HOUR)))}


def test_the_statements_of_the_largest_load_are_small_enough_for_the_data_api() -> None:
    """It takes 40 statements of 100 KB. 200 days of 24 hours each, with counts as large as a column holds."""
    entity, most = max(LOADED, key=len), 2**63 - 1
    days = [(date(2026, 1, 1) + timedelta(days=number)).isoformat() for number in range(DAYS_MAX)]
    hours = [f"{hour:02}" for hour in range(24)]
    places = [Partition(entity, day, hour) for day in days for hour in hours]
    footer, stored = Footer((), Counts(most, most, most, most)), StoredObject("", 0, "", WHEN)
    files = [CuratedFile(stored, place, footer) for place in places]
    statements = list(bookkeeping_statements(entity, {day: set(hours) for day in days}, files))
    assert len(statements) < 25, "the others stage and merge the rows"
    assert max(map(len, statements)) < 100_000
