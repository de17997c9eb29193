"""Steps about the lake: rows reach it, the night curates, loads and compares, the warehouse answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from analytics.curation.raw_lines import readable_text
from analytics.lake.layout import Place
from analytics.lake.listing import raw_objects_of_place
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.statements import StatementFailed
from analytics.warehouse.warehouse import NoWarehouse, Warehouse
from local.operate import nightly_run
from local.smoke.steps import StepSkipped, Subject, must
from local.stores import lake_of, warehouse_of

SKEW = timedelta(minutes=5)  # between this machine's clock and S3's
NOON = "12"
COPIED = "COPY reads Parquet of zstd"  # the step `warehouse` has shown it on Redshift
GUIDE = "https://docs.aws.amazon.com/redshift/latest/dg/"
EVENTS = "SELECT COUNT(*) AS events FROM lake.events WHERE user_id = '{user}' AND activity_date = '{day}'"


def rows_arrive(subject: Subject) -> str:
    """The oldest day's event comes through the publisher and Firehose."""
    day = subject.days[0].isoformat()
    what = f"the event is in the lake, for {NOON} h of {day} (on AWS Firehose gathers rows for 5 minutes)"
    return f"found as {subject.until(lambda: _object_with(subject, day), what, 'lake')}"


def _object_with(subject: Subject, day: str) -> tuple[str | None, Any]:
    """Return the new object that has this test's event; and how many new ones there are."""
    objects, count = lake_of(subject.stack), 0
    arrived = {moment.date().isoformat() for moment in (subject.began - SKEW, datetime.now(UTC) + SKEW)}
    for raw_object in raw_objects_of_place(objects, Place("events", day, NOON), arrived):
        if raw_object.modified < subject.began - SKEW:
            continue
        count += 1
        if f'"{subject.name}"'.encode() in readable_text(objects.get(raw_object.key)):
            return raw_object.key, count
    return None, f"{count} new objects without it"


def nightly(subject: Subject) -> str:
    """The state machine runs over the oldest day. It repairs nothing: it only looks."""
    stack, day = subject.stack, subject.days[0]
    execution = nightly_run.start(stack, day, day, repair=False, name=subject.name)
    subject.executions.append(execution)
    status = nightly_run.wait(stack, execution)
    must(status == "SUCCEEDED", "a nightly run that succeeds", f"{status}: {execution}")
    report = nightly_run.report_of(stack, execution)
    must(report["error"] is None, "a report without an error", report["error"])
    return f"over {day}: {report['counts']['users']} users, {report['counts']['different']} differ"


def warehouse(subject: Subject) -> str:
    """The oldest day's event is in the warehouse, once."""
    deployed = warehouse_of(subject.stack)
    if isinstance(deployed, NoWarehouse):
        raise StepSkipped("not deployed: the stack has no warehouse")
    rows = deployed.rows(EVENTS.format(user=subject.name, day=subject.days[0].isoformat()))
    must([int(row["events"]) for row in rows] == [1], "the one event of the day", rows)
    return "one query: the event of the day, once"


@dataclass(frozen=True, slots=True)
class Assumption:
    """What is known of Redshift from its documentation alone; the stack's own workgroup is asked."""

    name: str
    sql: str  # a query that needs no table of ours, and changes nothing
    answer: str  # the answer that our SQL relies on, as text
    page: str  # of GUIDE, which documents it
    on_laptop: str | None = None  # why DuckDB cannot answer it; None if it can


_TWO = "SELECT 1 AS n UNION ALL SELECT 3"
_WALK = "SELECT 1 AS n UNION ALL SELECT n + 1 FROM walk WHERE n < 40"
ASSUMPTIONS: tuple[Assumption, ...] = (
    Assumption(
        "microseconds are kept",
        "SELECT CAST(CAST('2026-01-31 23:59:59.123456' AS TIMESTAMP) AS VARCHAR(32)) AS v",
        "2026-01-31 23:59:59.123456",
        "r_Datetime_types.html",
    ),
    Assumption(
        "a text's size counts bytes",
        "SELECT OCTET_LENGTH('é€') AS v",
        "5",
        "r_OCTET_LENGTH.html",
        "DuckDB's texts have no size",
    ),
    Assumption(
        "a backslash escapes in a literal",
        r"SELECT LENGTH('a\\b') AS v",
        "3",
        "r_Character_types.html",
        "the translation writes it as DuckDB does",
    ),
    Assumption(
        "dates subtract to whole days",
        "SELECT CAST('2026-03-01' AS DATE) - CAST('2026-02-27' AS DATE) AS v",
        "2",
        "r_Dateparts_for_datetime_functions.html",
    ),
    Assumption("whole numbers divide to whole numbers", "SELECT 7 / 2 AS v", "3", "r_OPERATOR_SYMBOLS.html"),
    Assumption(
        "a Sunday is day 0",
        "SELECT CAST(EXTRACT(dow FROM CAST('2026-02-01' AS DATE)) AS INTEGER) AS v",
        "0",
        "r_EXTRACT_function.html",
    ),
    Assumption(
        "EXCEPT takes two NULLs as equal",
        "SELECT COUNT(*) AS v FROM "
        "(SELECT CAST(NULL AS INTEGER) AS n EXCEPT SELECT CAST(NULL AS INTEGER)) AS distinct_rows",
        "0",
        "r_UNION.html",
    ),
    Assumption(
        "descending, NULL comes first",
        "SELECT COALESCE(n, 0) AS v FROM (SELECT 1 AS n UNION ALL SELECT CAST(NULL AS INTEGER)) AS t "
        "ORDER BY n DESC LIMIT 1",
        "0",
        "r_ORDER_BY_clause.html",
    ),
    Assumption(
        "texts sort by their bytes",
        "SELECT MIN(t) AS v FROM (SELECT 'a' AS t UNION ALL SELECT 'B') AS texts",
        "B",
        "c_collation_sequences.html",
    ),
    Assumption(
        "LEAST leaves out NULL",
        "SELECT LEAST(2, CAST(NULL AS INTEGER), 1) AS v",
        "1",
        "r_GREATEST_LEAST.html",
    ),
    Assumption(
        "a frame of ROWS looks forward",
        "SELECT MIN(later) AS v FROM (SELECT MIN(n) OVER (ORDER BY n ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED "
        f"FOLLOWING) AS later FROM ({_TWO}) AS two) AS w",
        "3",
        "r_Window_function_synopsis.html",
    ),
    Assumption(
        "a recursion goes 40 steps",
        f"WITH RECURSIVE walk (n) AS ({_WALK}) SELECT MAX(n) AS v FROM walk",
        "40",
        "r_WITH_clause.html",
    ),
    Assumption(
        "a text knows whether it is JSON",
        "SELECT CASE WHEN IS_VALID_JSON('{\"a\": 1}') AND NOT IS_VALID_JSON('{a') THEN 1 ELSE 0 END AS v",
        "1",
        "IS_VALID_JSON.html",
    ),
    Assumption(
        "hundredths stay exact",
        "SELECT CAST(CAST(12345678901234567 AS DECIMAL(22, 2)) / 100 AS DECIMAL(24, 2)) AS v",
        "123456789012345.67",
        "r_numeric_computations201.html",
        "DuckDB divides decimals as doubles",
    ),
)


def check_assumptions(
    warehouse: Warehouse, assumptions: Sequence[Assumption] = ASSUMPTIONS
) -> tuple[list[str], dict[str, str]]:
    """Ask a warehouse; returns the names of the assumptions that hold, and of the others what it answered.

    Assumptions that DuckDB cannot answer are left out on a laptop.
    """
    holding, wrong = [], {}
    is_laptop = isinstance(warehouse, DuckWarehouse)
    for assumption in assumptions:
        if is_laptop and assumption.on_laptop is not None:
            continue
        answer = _answer(warehouse, assumption.sql)
        if answer == assumption.answer:
            holding.append(assumption.name)
        else:
            wrong[assumption.name] = f"{answer}, not {assumption.answer}"
    return holding, wrong


def _answer(warehouse: Warehouse, sql: str) -> str:
    try:
        rows: list[dict[str, Any]] = warehouse.rows(sql)
    except StatementFailed as error:
        return error.reason
    return ", ".join(str(value) for row in rows for value in row.values())


def redshift(subject: Subject) -> str:
    """What the warehouse's SQL relies on holds on this workgroup."""
    warehouse = warehouse_of(subject.stack)
    if isinstance(warehouse, NoWarehouse):
        raise StepSkipped("not deployed: the stack has no warehouse")
    holding, wrong = check_assumptions(warehouse)
    must(not wrong, "an answer as documented", wrong)
    if not isinstance(warehouse, DuckWarehouse):
        holding.append(COPIED)
    unanswered = [name for name in (*(each.name for each in ASSUMPTIONS), COPIED) if name not in holding]
    rest = f"; DuckDB cannot say whether {', '.join(unanswered)}" if unanswered else ""
    return f"{len(holding)} hold{rest}"
