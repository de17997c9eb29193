"""Analysts' queries on the lake's files: Athena, which is DuckDB in the laptop cloud, answers as the warehouse does."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
import sqlglot

from analytics.lake.catalog import Catalog
from analytics.lake.layout import Partition
from analytics.warehouse.models import models
from local.analyst import read_only_sql
from local.analyst.output import QueryFailed
from local.analyst.sql import ask
from local.stack import Stack
from rules.lake.entities import LOADED
from tests.sql.conftest import Lake
from tests.sql.test_questions import QUESTIONS
from tests.support.analyst_engines import TYPED, WANTED, WRITES, plain
from tests.support.engine import running

# Question 10 asks the warehouse's own bookkeeping.
OF_THE_LAKE = [(number, sql) for number, sql in QUESTIONS if number != "10"]


@pytest.fixture(scope="module")
def stack(told: Lake) -> Iterator[Stack]:
    """The story's curated files in the emulator's S3, with their tables in its Glue catalog."""
    with running() as engine:
        s3, catalog = engine.client("s3"), Catalog(engine.client("glue"), "streakline", "lake")
        catalog.ensure()
        dates: dict[str, set[str]] = {}
        for each in told.objects.list("curated/"):
            s3.put_object(Bucket="lake", Key=each.key, Body=told.objects.get(each.key))
            _, entity, dt, _ = each.key.split("/")
            dates.setdefault(entity, set()).add(dt.removeprefix("dt="))
        for entity, some in dates.items():
            catalog.register([Partition(entity, dt, None) for dt in some])
        outputs = {"LakeBucketName": "lake", "GlueDatabaseName": "streakline"}
        yield Stack("", engine.endpoint, "us-east-1", outputs, {}, "")


def asked(stack: Stack, sql: str, **more: Any) -> list[dict[str, Any]]:
    with ask(stack, sql, on="lake", **more) as answer:
        return plain(answer.table())


@pytest.mark.parametrize("sql", [sql for _, sql in OF_THE_LAKE], ids=[number for number, _ in OF_THE_LAKE])
def test_questions_have_the_answer_of_the_warehouse(told: Lake, stack: Stack, sql: str) -> None:
    wanted = [
        {name: float(value) if isinstance(value, Decimal) else value for name, value in row.items()}
        for row in told.duck.rows(sql)
    ]
    assert wanted
    assert asked(stack, sql) == wanted


@pytest.mark.parametrize("entity", LOADED)
def test_a_lake_table_is_what_the_load_made_of_the_files(told: Lake, stack: Stack, entity: str) -> None:
    declared = LOADED[entity]
    listed = ", ".join(f'"{each.name}"' for each in declared.fields)
    sql = f"SELECT {listed} FROM lake.{entity} ORDER BY {', '.join(f'{each}' for each in declared.key)}"
    assert (loaded := told.duck.rows(sql))
    assert asked(stack, sql) == loaded


def test_values_keep_their_types(stack: Stack) -> None:
    with ask(stack, TYPED, on="lake") as answer:
        assert answer.table().to_pylist() == [WANTED]
        assert answer.scanned_bytes is not None


def test_a_day_of_files_by_its_partition(told: Lake, stack: Stack) -> None:
    day = asked(stack, "SELECT MIN(dt) AS dt FROM events")[0]["dt"]
    found = asked(stack, "SELECT COUNT(*) AS n FROM events WHERE dt = :day", parameters={"day": day})
    assert asked(stack, "SELECT MAX(occurred_at) AS at FROM events AS e") == told.duck.rows(
        "SELECT MAX(occurred_at) AS at FROM lake.events"
    )
    assert 0 < found[0]["n"] < asked(stack, "SELECT COUNT(*) AS n FROM events")[0]["n"]


def test_pages_make_one_answer(told: Lake, stack: Stack) -> None:
    sql = """SELECT a.event_id AS one, b.event_id AS other FROM lake.events AS a CROSS JOIN lake.events AS b
    ORDER BY a.event_id, a.user_id, b.event_id, b.user_id LIMIT 2345"""
    assert asked(stack, sql) == told.duck.rows(sql)


def test_what_only_the_warehouse_has(stack: Stack) -> None:
    for name in ("lake.curation", "lake.builds", "marts.data_quality", "marts.none"):
        with pytest.raises(QueryFailed, match="only the warehouse"):
            asked(stack, f"SELECT * FROM {name}")


def test_a_refusal_is_one_sentence(stack: Stack) -> None:
    with pytest.raises(QueryFailed, match=r"^Athena refused the query: .*no_such") as refused:
        asked(stack, "SELECT no_such FROM lake.events")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("sql", WRITES)
def test_what_is_no_query_is_refused(sql: str) -> None:
    outputs = {"LakeBucketName": "lake", "GlueDatabaseName": "streakline"}
    with pytest.raises(QueryFailed):
        asked(Stack("", "http://127.0.0.1:1", "", outputs, {}, ""), sql)


@pytest.mark.parametrize("sql", [sql for _, sql in OF_THE_LAKE], ids=[number for number, _ in OF_THE_LAKE])
def test_on_aws_it_is_athena_s_sql(sql: str) -> None:
    """No Trino runs here: what can be known is that the text is its SQL, and names no table that is not there."""
    text = read_only_sql.over_files(sql, "athena")
    tree = sqlglot.parse_one(text, read="athena")
    made = {each.alias for each in tree.find_all(sqlglot.exp.CTE)}
    for each in tree.find_all(sqlglot.exp.Table):
        assert not each.db
        assert each.name in made | set(LOADED), each.name


def test_what_athena_says_otherwise_is_written_otherwise() -> None:
    sunday = read_only_sql.over_files(
        "SELECT EXTRACT(dow FROM d) AS w, IS_VALID_JSON(t) AS j FROM mine", "athena"
    )
    assert "EXTRACT(DOW FROM d) % 7" in sunday
    assert "TRY(JSON_PARSE(t)) IS NULL" in sunday
    # dimensions.dates counts Sundays as 0; facts.events reads only texts that are JSON.
    assert "% 7" in read_only_sql.over_files("SELECT * FROM dimensions.dates", "athena")
    assert "IS JSON" not in read_only_sql.over_files("SELECT * FROM facts.events", "athena")


# What Athena would answer otherwise, by Trino's manual, and how it is written.
WRITTEN = [
    ("DATEDIFF(day, occurred_at, created_at)", "date_diff('day', date_trunc('day', occurred_at), date_trunc('day', created_at))"),
    ("DATEDIFF(month, occurred_at, '2026-02-01')", "date_trunc('month', CAST('2026-02-01' AS TIMESTAMP))"),
    ("DATEDIFF(week, occurred_at, created_at)", "/ 7)"),
    ("GREATEST(points_awarded, NULL)", "array_max(filter(ARRAY[points_awarded, NULL], value -> value IS NOT NULL))"),
    ("LEAST(points_awarded, 3)", "array_min(filter(ARRAY["),
    ("AVG(points_awarded)", "(sum(points_awarded) / count(points_awarded))"),
    ("user_id LIKE 'a\\\\_b'", r"user_id LIKE 'a\_b' ESCAPE '\'"),
    ("user_id NOT LIKE 'a%'", r"NOT LIKE 'a%' ESCAPE '\'"),
    ("user_id ILIKE 'É%'", "LIKE translate('É%', 'ABC"),
    ("SUBSTRING(user_id, 0, 2)", "substr(user_id, 1, greatest(0 + 2 - 1, 0))"),
    ("TO_CHAR(occurred_at, 'Day')", "rpad(date_format(occurred_at, '%W'), 9, ' ')"),
    ("TO_CHAR(occurred_at, 'YYYY-MM-DD HH24:MI')", "date_format(occurred_at, '%i')"),
    ("TRUNC(1.5)", "truncate(1.5)"),
    ("TRUNC(occurred_at)", "CAST(occurred_at AS DATE)"),
    ("1.5 / 2", "CAST(CAST(1.5 AS DECIMAL(38, 12)) / 2 AS DECIMAL(38, 12))"),
    ("1 / 0.5e0", "CAST('division by zero' AS DOUBLE)"),
    ("LN(points_awarded)", "CAST('out of range' AS DOUBLE)"),
    ("CONCAT(user_id, NULL)", "(user_id || NULL)"),
    ("user_id || points_awarded", "user_id || CAST(points_awarded AS VARCHAR)"),
    ("DATE_TRUNC('week', DATE '2026-01-31')", "AS TIMESTAMP))"),
    ("DATEADD(year, 1, occurred_at)", "= 29 AND"),
    ("SPLIT_PART(user_id, '-', 9)", "coalesce(split_part(user_id, '-', 9), '')"),
    ("DECODE(user_id, NULL, 1, 2)", "user_id IS NOT DISTINCT FROM NULL"),
    ("REPEAT(user_id, 2)", "array_join(repeat(user_id"),
    ("LISTAGG(user_id, ',') WITHIN GROUP (ORDER BY user_id)", "array_join(array_agg(user_id ORDER BY user_id), ',')"),
    ("MAX(user_id) || CAST(MAX(user_id) AS VARCHAR(3))", "from_utf8(substr(to_utf8("),
    ("LAST_VALUE(user_id IGNORE NULLS) OVER (PARTITION BY zone)", "last_value(user_id) IGNORE NULLS OVER"),
    ("CURRENT_DATE - 7", "date_add('day', -7,"),
    ("DATE '2026-01-31' - DATE '2026-01-01'", "date_diff('day',"),
    ("occurred_at > '2026-01-31'", "occurred_at > CAST('2026-01-31' AS TIMESTAMP)"),
    ("TRIM(user_id)", "'^ +| +$'"),
    ("COUNT(*) AS Total", "AS total"),
]  # fmt: skip
REFUSED_ON_ATHENA = [
    *(
        "MEDIAN(points_awarded)",
        "INITCAP(user_id)",
        "STRTOL(user_id, 16)",
        "REGEXP_REPLACE(user_id, 'a', 'b')",
    ),
    *("user_id SIMILAR TO 'a%'", "user_id ~* 'a'", "user_id ~ '[[:digit:]]'", "TO_CHAR(occurred_at, 'W')"),
    *("LISTAGG(user_id) OVER ()", "CAST(occurred_at AS VARCHAR(30))", "TRUE || user_id", "AVG(nobody)"),
    *("NOPE(1)", "COUNT(DISTINCT user_id) OVER ()", "1 AS tag", "SUBSTRING(user_id, 1, points_awarded)"),
    *("* EXCLUDE (zone)", "* REPLACE (1 AS zone)", "DATE_TRUNC('century', occurred_at)"),
]


@pytest.mark.parametrize(("asked_for", "written"), WRITTEN, ids=[each for each, _ in WRITTEN])
def test_athena_is_asked_for_what_redshift_would_answer(asked_for: str, written: str) -> None:
    text = read_only_sql.over_files(f"SELECT {asked_for} FROM events", "athena")
    assert written in text
    assert sqlglot.parse_one(text, read="athena")


@pytest.mark.parametrize("asked_for", REFUSED_ON_ATHENA)
def test_athena_is_not_asked_for_what_it_is_not_known_to_answer(asked_for: str) -> None:
    with pytest.raises(QueryFailed, match="the lake refuses this: "):
        read_only_sql.over_files(f"SELECT {asked_for} FROM events", "athena")


@pytest.mark.parametrize("name", sorted(models().keys() - {"staging.curation", "marts.data_quality"}))
def test_each_model_can_be_asked_of_athena(name: str) -> None:
    assert sqlglot.parse_one(read_only_sql.over_files(f"SELECT * FROM {name}", "athena"), read="athena")


@pytest.mark.parametrize(("settings", "days"), [("", 7), ("Currency=EUR; CampaignGraceDays=14", 14)])
def test_the_lake_goes_by_the_stack_s_setting(settings: str, days: int) -> None:
    stack = Stack("", "", "", {}, {}, "", parameters={"Settings": settings})
    text = read_only_sql.over_files(
        "SELECT * FROM marts.lead_features_recomputed", "athena", stack.model_settings
    )
    assert re.search(rf"sent_date <= .*\b{days}, as_of_date", text, re.IGNORECASE)


def test_names_of_the_query_s_own_stay() -> None:
    sql = "WITH mine AS (SELECT e.user_id FROM lake.events AS e) SELECT mine.user_id FROM mine"
    text = read_only_sql.over_files(sql, "duckdb")
    assert 0 < text.index("lake__events AS") < text.index("mine AS")
    assert text.endswith("SELECT mine.user_id FROM mine")
