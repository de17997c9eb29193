"""Asks Redshift through its Data API, which needs no network path.

It answers in pages of text, 500 MB in all and 64 KB a row at most
(https://docs.aws.amazon.com/redshift/latest/mgmt/data-api-troubleshooting.html). awswrangler reads it too,
and leaves decimal numbers and timestamps as texts.
"""

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import pyarrow as pa

from analytics.warehouse.redshift_warehouse import ENDED_BADLY
from local.analyst.output import Answer, QueryFailed, Tell, decimal_type, from_texts, refusal_text

ENGINE = "Redshift"
LOOK_SECONDS, LOOK_SECONDS_MAX, LOOK_GROWTH = 0.1, 2.0, 1.5  # the first pause, the longest, how they grow
# Values of all other types come as text: SUPER as JSON, times and intervals as Redshift writes them.
TYPES = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}


@contextmanager
def by_data_api(data_api: Any, workgroup: str, database: str, query: str, tell: Tell) -> Iterator[Answer]:
    """Ask as the caller's IAM identity. data_api: a botocore client of redshift-data. Raises QueryFailed."""
    # botocore repeats a request when the answer got lost. By the token Redshift runs the query only once.
    request = {
        "WorkgroupName": workgroup,
        "Database": database,
        "Sql": query,
        "ClientToken": uuid.uuid4().hex,
    }
    statement = str(data_api.execute_statement(**request)["Id"])
    try:
        _wait(data_api, statement, tell)
    except KeyboardInterrupt:
        data_api.cancel_statement(Id=statement)  # it would go on, and cost
        raise
    yield _paged_answer(data_api, statement)


def _wait(data_api: Any, statement: str, tell: Tell) -> None:
    """Wait until a statement has ended. Raises QueryFailed."""
    began, pause = time.monotonic(), LOOK_SECONDS
    while True:
        state = data_api.describe_statement(Id=statement)
        if state["Status"] == "FINISHED":
            return
        if state["Status"] in ENDED_BADLY:
            raise QueryFailed(refusal_text(ENGINE, state.get("Error") or state["Status"]))
        tell(f"{ENGINE}: {state['Status'].lower()}, {time.monotonic() - began:.0f} s")
        time.sleep(pause)
        pause = min(pause * LOOK_GROWTH, LOOK_SECONDS_MAX)


def _paged_answer(data_api: Any, statement: str) -> Answer:
    pages = iter(data_api.get_paginator("get_statement_result").paginate(Id=statement))
    first = next(pages)
    rows, columns = _texts(first), first["ColumnMetadata"]
    fields = [
        pa.field(column["name"], _type(column, [row[index] for row in rows]))
        for index, column in enumerate(columns)
    ]
    schema = pa.schema(fields)
    batches = (from_texts(schema, page_rows) for page_rows in chain([rows], map(_texts, pages)))
    return Answer.of(ENGINE, schema, batches)


def _type(column: dict[str, Any], seen: Sequence[str | None]) -> pa.DataType:
    """Return the type of a column of the Data API. seen: its first values."""
    if column["typeName"] == "numeric":
        return decimal_type(column.get("precision", 0), column.get("scale", 0), seen)
    return TYPES.get(column["typeName"], pa.string())


def _texts(page: dict[str, Any]) -> list[list[str | None]]:
    return [[_text(field) for field in row] for row in page["Records"]]


def _text(field: dict[str, Any]) -> str | None:
    if field.get("isNull"):
        return None
    value = next(iter(field.values()))
    return str(value).lower() if isinstance(value, bool) else str(value)
