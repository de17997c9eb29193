"""Asks Redshift: by its driver where the workgroup is reachable, otherwise through the Data API.

The Data API needs no network path. It answers in pages of text, 500 MB in all and 64 KB a row at most
(https://docs.aws.amazon.com/redshift/latest/mgmt/data-api-troubleshooting.html). awswrangler reads it too,
and leaves decimal numbers and timestamps as texts.
"""

import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import pyarrow as pa
from redshift_connector.error import Error
from redshift_connector.utils.oids import RedshiftOID

from analytics.warehouse.redshift_client import PORT
from analytics.warehouse.redshift_warehouse import ENDED_BADLY
from local.analyst.output import Answer, QueryFailed, Tell, decimal_type, from_texts, refusal_text

ENGINE = "Redshift"
REACH_SECONDS_MAX = 1.0
LOOK_SECONDS, LOOK_SECONDS_MAX, LOOK_GROWTH = 0.1, 2.0, 1.5  # the first pause, the longest, how they grow
ROWS_AT_ONCE = 10_000
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
}


def is_reachable(host: str, port: int = PORT) -> bool:
    """Whether this machine has a network path to a workgroup's endpoint."""
    try:
        socket.create_connection((host, port), REACH_SECONDS_MAX).close()
    except OSError:
        return False
    return True


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


@contextmanager
def by_driver(connection: Any, query: str) -> Iterator[Answer]:
    """Ask by a connection of redshift_connector, in a transaction that cannot write. Raises QueryFailed."""
    connection.autocommit = True  # or the driver would begin a transaction that can write
    cursor = connection.cursor()
    cursor.paramstyle = "qmark"  # `format` would take the % of a remainder for a parameter
    try:
        cursor.execute("BEGIN READ ONLY")
        cursor.execute(query)
        yield _fetch(cursor)
    except Error as error:
        reason = error.args[0] if error.args else error
        raise QueryFailed(
            refusal_text(ENGINE, reason["M"] if isinstance(reason, dict) else reason)
        ) from error
    finally:
        connection.rollback()


def _fetch(cursor: Any) -> Answer:
    """Return the answer of a query that the cursor has run. Its rows are fetched as they are read."""
    rows = cursor.fetchmany(ROWS_AT_ONCE)
    fields = []
    for index, column in enumerate(cursor.ps["row_desc"]):
        label, seen = column["label"], [row[index] for row in rows]
        fields.append(pa.field(label.decode() if isinstance(label, bytes) else label, _type_of(column, seen)))
    schema = pa.schema(fields)

    def batches() -> Iterator[pa.RecordBatch]:
        batch_rows = rows
        while batch_rows:
            columns = zip(*batch_rows, strict=True)
            arrays = [
                pa.array(map(_plain, values) if field.type == pa.string() else values, field.type)
                for field, values in zip(schema, columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            batch_rows = cursor.fetchmany(ROWS_AT_ONCE)

    return Answer.of(ENGINE, schema, batches())


def _plain(value: Any) -> str | None:
    return None if value is None else str(value)


def _type_of(column: dict[str, Any], seen: Sequence[Any]) -> pa.DataType:
    """Return the type of a column of the driver. seen: its first values."""
    oid, modifier = column["type_oid"], column["type_modifier"]
    if oid == RedshiftOID.NUMERIC:
        packed = modifier - 4 if modifier > 0 else 0  # digits in the upper half, scale in the lower
        return decimal_type(packed >> 16, packed & 0xFFFF, seen)
    return TYPES.get(BY_OID.get(oid, ""), pa.string())
