"""Asks the engines on AWS: Redshift through its Data API, and Athena about the lake's curated files.

Neither needs a network path. The Data API answers with 500 MB in all and 64 KB a row at most
(https://docs.aws.amazon.com/redshift/latest/mgmt/data-api-troubleshooting.html). Athena's rows come from
GetQueryResults, because there a NULL and an empty text differ. In its CSV file they do not.
"""

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import pyarrow as pa

from analytics.warehouse.translate import ATHENA, DUCKDB
from local.analyst.output import Answer, QueryFailed, Tell, decimal_type, from_texts, refusal_text
from local.stack import Stack

LOOK_SECONDS, LOOK_SECONDS_MAX, LOOK_GROWTH = 0.1, 2.0, 1.5  # the first pause, the longest, how they grow
ENDED_WELL = frozenset({"FINISHED", "SUCCEEDED"})
ENDED_BADLY = frozenset({"FAILED", "ABORTED", "CANCELLED"})
# By Redshift's names, and by Athena's. Values of all other types come as text: SUPER as JSON, times and
# intervals as the engine writes them.
TYPES = {
    **dict.fromkeys(("bool", "boolean"), pa.bool_()),
    "tinyint": pa.int8(),
    **dict.fromkeys(("int2", "smallint"), pa.int16()),
    **dict.fromkeys(("int4", "integer"), pa.int32()),
    **dict.fromkeys(("int8", "bigint"), pa.int64()),
    **dict.fromkeys(("float4", "float", "real"), pa.float32()),
    **dict.fromkeys(("float8", "double"), pa.float64()),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
NESTED = frozenset({"array", "map", "row"})
Texts = list[list[str | None]]  # rows; None is NULL
Column = tuple[str, str, int, int]  # name, type, digits, scale


@contextmanager
def by_data_api(data_api: Any, workgroup: str, database: str, query: str, tell: Tell) -> Iterator[Answer]:
    """Ask Redshift as the caller's IAM identity. data_api: a client of redshift-data. Raises QueryFailed."""
    # botocore repeats a request when the answer got lost. By the token Redshift runs the query only once.
    statement = data_api.execute_statement(
        WorkgroupName=workgroup, Database=database, Sql=query, ClientToken=uuid.uuid4().hex
    )["Id"]

    def look() -> tuple[str, str, str]:
        state = data_api.describe_statement(Id=statement)
        return state["Status"], state.get("Error", ""), ""

    _wait("Redshift", look, lambda: data_api.cancel_statement(Id=statement), tell)
    pages = iter(data_api.get_paginator("get_statement_result").paginate(Id=statement))
    first = next(pages)
    columns = [
        (column["name"], column["typeName"], column.get("precision", 0), column.get("scale", 0))
        for column in first["ColumnMetadata"]
    ]
    yield _answer("Redshift", columns, _redshift_texts(first), map(_redshift_texts, pages))


def lake_dialect(stack: Stack) -> str:
    """Return the dialect of a stack's lake: Athena's, or DuckDB's, which takes its place on a laptop."""
    return DUCKDB if stack.is_laptop else ATHENA


@contextmanager
def by_athena(stack: Stack, query: str, tell: Tell) -> Iterator[Answer]:
    """Ask a stack's lake. query: in the lake's dialect. Raises QueryFailed, and what botocore raises."""
    athena = stack.client("athena")
    # On AWS our own workgroup has settings for where answers go, and for how much a query may scan.
    if stack.is_laptop:
        bucket = stack.output("LakeBucketName", "lake")
        place: dict[str, Any] = {"ResultConfiguration": {"OutputLocation": f"s3://{bucket}/athena/"}}
    else:
        place = {"WorkGroup": stack.output("LakeQueriesWorkgroup", "workgroup of Athena")}
    database = {"Database": stack.output("GlueDatabaseName", "lake")}
    try:
        execution = athena.start_query_execution(QueryString=query, QueryExecutionContext=database, **place)
    except athena.exceptions.InvalidRequestException as error:
        raise QueryFailed(refusal_text("Athena", error)) from error
    asked = {"QueryExecutionId": execution["QueryExecutionId"]}
    scanned = 0

    def look() -> tuple[str, str, str]:
        nonlocal scanned
        description = athena.get_query_execution(**asked)["QueryExecution"]
        status, statistics = description["Status"], description.get("Statistics", {})
        scanned = int(statistics.get("DataScannedInBytes", 0))
        return status["State"], status.get("StateChangeReason", ""), f", {scanned:,} bytes scanned"

    _wait("Athena", look, lambda: athena.stop_query_execution(**asked), tell)
    pages = iter(athena.get_paginator("get_query_results").paginate(**asked))
    first = next(pages)
    columns = [
        (column["Name"], column["Type"], column.get("Precision", 0), column.get("Scale", 0))
        for column in first["ResultSet"]["ResultSetMetadata"]["ColumnInfo"]
    ]
    for name, kind, *_ in columns:
        if kind in NESTED:  # Athena writes [a, b] for what may be one text or two
            raise QueryFailed(
                f"Athena has no exact text for {name}, a value of {kind}: select what is within it"
            )
    rows = _athena_texts(first)[1:]  # the first row of all has the columns' names
    yield _answer("Athena", columns, rows, map(_athena_texts, pages), scanned)


def _wait(
    engine: str, look: Callable[[], tuple[str, str, str]], cancel: Callable[[], Any], tell: Tell
) -> None:
    """Wait until a query has ended; cancel it after Ctrl-C. Raises QueryFailed.

    look: returns the query's state, the reason of it, and what else to tell.
    """
    began, pause = time.monotonic(), LOOK_SECONDS
    try:
        while True:
            state, reason, more = look()
            if state in ENDED_WELL:
                return
            if state in ENDED_BADLY:
                raise QueryFailed(refusal_text(engine, reason or state))
            tell(f"{engine}: {state.lower()}, {time.monotonic() - began:.0f} s{more}")
            time.sleep(pause)
            pause = min(pause * LOOK_GROWTH, LOOK_SECONDS_MAX)
    except KeyboardInterrupt:
        cancel()  # it would go on, and cost
        raise


def _answer(
    engine: str, columns: Sequence[Column], first: Texts, later: Iterator[Texts], scanned: int | None = None
) -> Answer:
    """Return pages of texts as an answer with typed columns. first, later: the pages."""
    fields = []
    for index, (name, kind, digits, scale) in enumerate(columns):
        if kind in ("numeric", "decimal"):
            type_ = decimal_type(digits, scale, [row[index] for row in first])
        else:
            type_ = TYPES.get(kind, pa.string())
        fields.append(pa.field(name, type_))
    schema = pa.schema(fields)
    batches = (from_texts(schema, rows) for rows in chain([first], later))
    return Answer.of(engine, schema, batches, scanned)


def _athena_texts(page: dict[str, Any]) -> Texts:
    return [[field.get("VarCharValue") for field in row["Data"]] for row in page["ResultSet"]["Rows"]]


def _redshift_texts(page: dict[str, Any]) -> Texts:
    return [[_text(field) for field in row] for row in page["Records"]]


def _text(field: dict[str, Any]) -> str | None:
    if field.get("isNull"):
        return None
    value = next(iter(field.values()))
    return str(value).lower() if isinstance(value, bool) else str(value)
