"""Asks Athena about the lake's curated files, by awswrangler.

The rows come from GetQueryResults, in pages of 1,000, because there a NULL and an empty text differ. In the
CSV file that awswrangler would read they do not.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import awswrangler
import boto3
import pyarrow as pa
from awswrangler import exceptions

from analytics.warehouse.translate import ATHENA, DUCKDB
from local.analyst.output import Answer, QueryFailed, Tell, decimal_type, from_texts, refusal_text
from local.stack import EMULATOR_KEY, EMULATOR_SECRET, Stack

ENGINE = "Athena"
LOOK_SECONDS, LOOK_SECONDS_MAX, LOOK_GROWTH = 0.1, 2.0, 1.5  # the first pause, the longest, how they grow
ENDED_BADLY = frozenset({"FAILED", "CANCELLED"})
TYPES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
NESTED = frozenset({"array", "map", "row"})


@dataclass(frozen=True, slots=True)
class AthenaTarget:
    """Where queries of the lake go."""

    stack: Stack
    database: str
    workgroup: str | None  # None: the account's own, on a laptop

    @classmethod
    def of(cls, stack: Stack) -> "AthenaTarget":
        """Return a stack's lake."""
        workgroup = None if stack.is_laptop else stack.output("LakeQueriesWorkgroup", "workgroup of Athena")
        return cls(stack, stack.output("GlueDatabaseName", "lake"), workgroup)

    @property
    def dialect(self) -> str:
        """The dialect of the engine: Athena's, or DuckDB's, which takes Athena's place on a laptop."""
        return DUCKDB if self.stack.is_laptop else ATHENA

    def session(self) -> boto3.Session:
        """Return a session with the stack's credentials and region."""
        region = self.stack.region or None
        if not self.stack.is_laptop:
            return boto3.Session(region_name=region)
        return boto3.Session(EMULATOR_KEY, EMULATOR_SECRET, region_name=region)


@contextmanager
def answer(lake: AthenaTarget, query: str, tell: Tell) -> Iterator[Answer]:
    """Ask Athena. query: in the lake's dialect. Raises QueryFailed, and what botocore raises."""
    with _endpoint(lake.stack.endpoint_url):
        session = lake.session()
        execution = _start(lake, query, session)
        try:
            scanned = _wait(execution, session, tell)
        except KeyboardInterrupt:
            awswrangler.athena.stop_query_execution(
                execution, boto3_session=session
            )  # it would go on, and cost
            raise
    yield _paged_answer(lake.stack.client("athena"), execution, scanned)


@contextmanager
def _endpoint(url: str) -> Iterator[None]:
    """Let awswrangler speak to the laptop cloud, if there is a URL, for a `with` block."""
    before = awswrangler.config.athena_endpoint_url
    awswrangler.config.athena_endpoint_url = url or before
    try:
        yield
    finally:
        awswrangler.config.athena_endpoint_url = before


def _start(lake: AthenaTarget, query: str, session: boto3.Session) -> str:
    # Our own workgroup has settings for where answers go, and for how much a query may scan.
    output_url = None if lake.workgroup else f"s3://{lake.stack.output('LakeBucketName', 'lake')}/athena/"
    options: dict[str, Any] = {"workgroup": lake.workgroup, "s3_output": output_url, "boto3_session": session}
    try:
        return str(awswrangler.athena.start_query_execution(query, lake.database, **options))
    except exceptions.QueryFailed as error:
        raise QueryFailed(refusal_text(ENGINE, error)) from error


def _wait(execution: str, session: boto3.Session, tell: Tell) -> int:
    """Wait until a query has ended; returns the bytes that it scanned. Raises QueryFailed."""
    began, pause = time.monotonic(), LOOK_SECONDS
    while True:
        description = awswrangler.athena.get_query_execution(execution, boto3_session=session)
        status = description["Status"]
        state = status["State"]
        scanned = int(description.get("Statistics", {}).get("DataScannedInBytes", 0))
        if state == "SUCCEEDED":
            return scanned
        if state in ENDED_BADLY:
            raise QueryFailed(refusal_text(ENGINE, status.get("StateChangeReason") or state))
        tell(f"{ENGINE}: {state.lower()}, {time.monotonic() - began:.0f} s, {scanned:,} bytes scanned")
        time.sleep(pause)
        pause = min(pause * LOOK_GROWTH, LOOK_SECONDS_MAX)


def _paged_answer(athena: Any, execution: str, scanned: int) -> Answer:
    pages = iter(athena.get_paginator("get_query_results").paginate(QueryExecutionId=execution))
    first = next(pages)
    rows = _texts(first)[1:]  # the first row of all has the columns' names
    columns = first["ResultSet"]["ResultSetMetadata"]["ColumnInfo"]
    fields = [
        pa.field(column["Name"], _type(column, [row[index] for row in rows]))
        for index, column in enumerate(columns)
    ]
    schema = pa.schema(fields)
    batches = (from_texts(schema, page_rows) for page_rows in chain([rows], map(_texts, pages)))
    return Answer.of(ENGINE, schema, batches, scanned)


def _texts(page: dict[str, Any]) -> list[list[str | None]]:
    """Return the rows of a page; None is NULL."""
    return [[field.get("VarCharValue") for field in row["Data"]] for row in page["ResultSet"]["Rows"]]


def _type(column: dict[str, Any], seen: Sequence[str | None]) -> pa.DataType:
    """Return a column's type. seen: its first values. Raises QueryFailed for a nested type."""
    name, kind = column["Name"], column["Type"]
    if kind in NESTED:
        # Athena writes [a, b] for what may be one text or two.
        raise QueryFailed(
            f"{ENGINE} has no exact text for {name}, a value of {kind}: select what is within it"
        )
    if kind == "decimal":
        return decimal_type(column.get("Precision", 0), column.get("Scale", 0), seen)
    return TYPES.get(kind, pa.string())
