"""Asks the engines on AWS: Redshift, by its driver or its Data API, and Athena about the curated files.

The Data API needs no network path. It answers with 500 MB in all and 64 KB a row at most
(https://docs.aws.amazon.com/redshift/latest/mgmt/data-api-troubleshooting.html). awswrangler could read its
answers and Athena's, too. But it leaves decimal numbers and timestamps of the Data API as texts, and reads
Athena's CSV file, in which a NULL and an empty text are the same.
"""

import socket
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

import awswrangler
import boto3
import pyarrow as pa
from awswrangler import exceptions
from redshift_connector.error import Error
from redshift_connector.utils.oids import RedshiftOID

from analytics.warehouse.redshift_client import PORT
from analytics.warehouse.translate import ATHENA, DUCKDB
from local.analyst.output import Answer, QueryFailed, Tell, decimal_type, refusal_text
from local.stack import EMULATOR_KEY, EMULATOR_SECRET, Stack

REACH_SECONDS_MAX = 1.0
ROWS_AT_ONCE = 10_000  # of the driver
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
BY_OID = {
    RedshiftOID.BOOLEAN: "bool",
    RedshiftOID.SMALLINT: "int2",
    RedshiftOID.INTEGER: "int4",
    RedshiftOID.BIGINT: "int8",
    RedshiftOID.REAL: "float4",
    RedshiftOID.FLOAT: "float8",
    RedshiftOID.DATE: "date",
    RedshiftOID.TIMESTAMP: "timestamp",
    RedshiftOID.TIMESTAMPTZ: "timestamptz",
    RedshiftOID.NUMERIC: "numeric",
}
DECIMALS = frozenset({"numeric", "decimal"})
NESTED = frozenset({"array", "map", "row"})
Rows = Sequence[Sequence[Any]]  # of texts, or of the driver's values; None is NULL
Column = tuple[str, str, int, int]  # name, type, digits, scale


def is_reachable(host: str, port: int = PORT) -> bool:
    """Whether this machine has a network path to a workgroup's endpoint."""
    try:
        socket.create_connection((host, port), REACH_SECONDS_MAX).close()
    except OSError:
        return False
    return True


@contextmanager
def by_driver(connection: Any, query: str) -> Iterator[Answer]:
    """Ask by a connection of redshift_connector, in a transaction that cannot write. Raises QueryFailed."""
    connection.autocommit = True  # or the driver would begin a transaction that can write
    cursor = connection.cursor()
    cursor.paramstyle = "qmark"  # `format` would take the % of a remainder for a parameter
    try:
        cursor.execute("BEGIN READ ONLY")
        cursor.execute(query)
        pages = iter(lambda: cursor.fetchmany(ROWS_AT_ONCE), ())
        columns = []
        for column in cursor.ps["row_desc"]:
            label, modifier = column["label"], max(column["type_modifier"] - 4, 0)
            name = label.decode() if isinstance(label, bytes) else label
            # Of a decimal, the modifier has the digits in its upper half, the scale in its lower.
            columns.append((name, BY_OID.get(column["type_oid"], ""), modifier >> 16, modifier & 0xFFFF))
        yield _answer("Redshift", columns, next(pages, ()), pages)
    except Error as error:
        reason = error.args[0] if error.args else error
        raise QueryFailed(
            refusal_text("Redshift", reason["M"] if isinstance(reason, dict) else reason)
        ) from error
    finally:
        connection.rollback()


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
    awswrangler.config.athena_endpoint_url = stack.endpoint_url or None
    key, secret = (EMULATOR_KEY, EMULATOR_SECRET) if stack.is_laptop else (None, None)
    session = boto3.Session(key, secret, region_name=stack.region or None)
    # On AWS our own workgroup has settings for where answers go, and for how much a query may scan.
    output_url, workgroup = None, None
    if stack.is_laptop:
        output_url = f"s3://{stack.output('LakeBucketName', 'lake')}/athena/"
    else:
        workgroup = stack.output("LakeQueriesWorkgroup", "workgroup of Athena")
    database = stack.output("GlueDatabaseName", "lake")
    try:
        execution = awswrangler.athena.start_query_execution(
            query, database, workgroup=workgroup, s3_output=output_url, boto3_session=session
        )
    except exceptions.QueryFailed as error:
        raise QueryFailed(refusal_text("Athena", error)) from error
    scanned = 0

    def look() -> tuple[str, str, str]:
        nonlocal scanned
        description = awswrangler.athena.get_query_execution(execution, boto3_session=session)
        status, statistics = description["Status"], description.get("Statistics", {})
        scanned = int(statistics.get("DataScannedInBytes", 0))
        return status["State"], status.get("StateChangeReason", ""), f", {scanned:,} bytes scanned"

    cancel = partial(awswrangler.athena.stop_query_execution, execution, boto3_session=session)
    _wait("Athena", look, cancel, tell)
    paginator = stack.client("athena").get_paginator("get_query_results")
    pages = iter(paginator.paginate(QueryExecutionId=execution))
    first = next(pages)
    columns = [
        # The laptop's Athena says DECIMAL(38, 0) of each decimal number.
        (
            column["Name"],
            column["Type"],
            0 if stack.is_laptop else column.get("Precision", 0),
            column.get("Scale", 0),
        )
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
    engine: str, columns: Sequence[Column], first: Rows, later: Iterator[Rows], scanned: int | None = None
) -> Answer:
    """Return pages of rows as an answer with typed columns. first, later: the pages.

    Decimal numbers whose digits are not declared, as PostgreSQL's that are computed, need all pages for their
    type.
    """
    if any(kind in DECIMALS and not digits for _, kind, digits, _ in columns):
        first, later = [*first, *chain.from_iterable(later)], iter(())
    fields = []
    for index, (name, kind, digits, scale) in enumerate(columns):
        if kind in DECIMALS:
            type_ = decimal_type(digits, scale, [row[index] for row in first])
        else:
            type_ = TYPES.get(kind, pa.string())
        fields.append(pa.field(name, type_))
    schema = pa.schema(fields)
    return Answer.of(engine, schema, (_batch(schema, rows) for rows in chain([first], later)), scanned)


def _batch(schema: pa.Schema, rows: Rows) -> pa.RecordBatch:
    arrays = []
    for index, field in enumerate(schema):
        values = [row[index] for row in rows]
        is_text = field.type == pa.string() or all(isinstance(value, str | None) for value in values)
        if is_text:
            texts = [None if value is None else str(value) for value in values]
            arrays.append(pa.array(texts, pa.string()).cast(field.type))
        else:
            arrays.append(pa.array(values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _athena_texts(page: dict[str, Any]) -> Rows:
    return [[field.get("VarCharValue") for field in row["Data"]] for row in page["ResultSet"]["Rows"]]


def _redshift_texts(page: dict[str, Any]) -> Rows:
    return [[_text(field) for field in row] for row in page["Records"]]


def _text(field: dict[str, Any]) -> str | None:
    if field.get("isNull"):
        return None
    value = next(iter(field.values()))
    return str(value).lower() if isinstance(value, bool) else str(value)
