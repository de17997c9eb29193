"""A stand-in for Redshift's Data API: its HTTP protocol, with a real PostgreSQL executing the statements.

Statements run in the background, a batch is one transaction, a token that was seen before runs nothing,
results come in pages. What is known to fail on Redshift alone is refused (redshift_rules.py). COPY reads Parquet from the lake as Redshift does: by position, columns of equal number.
"""

import json
import re
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import psycopg
import sqlglot
from sqlglot import exp

from adapters.platform.objects import Objects
from analytics.warehouse.statements import Copy, manifest_tables
from analytics.warehouse.translate import REDSHIFT, strip_layout
from tests.support.redshift_rules import problems

PAGE_ROWS = 1000
STATEMENT_BYTES_MAX = 100_000
TYPES = {16: "bool", 19: "name", 20: "int8", 21: "int2", 23: "int4", 25: "text", 700: "float4", 701: "float8"}
TYPES |= {1043: "varchar", 1082: "date", 1114: "timestamp", 1184: "timestamptz", 1700: "numeric"}


@lru_cache(maxsize=4096)
def for_postgres(statement: str) -> str:
    """Return one Redshift statement in PostgreSQL's dialect, adapted where sqlglot does not."""
    text = statement.strip().rstrip(";")
    if text.upper().startswith("LOCK "):
        return text.replace("LOCK ", "LOCK TABLE ", 1)
    tree: Any = sqlglot.parse_one(text.removesuffix("WITH NO SCHEMA BINDING"), read=REDSHIFT)
    strip_layout(tree)
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.upper() == "IS_VALID_JSON":
            call.replace(
                exp.Paren(this=exp.Is(this=call.expressions[0].copy(), expression=exp.Var(this="JSON")))
            )
    for call in list(tree.find_all(exp.FromBase)):  # STRTOL(digits, 16): our statements have no other base
        padded = exp.func("LPAD", call.this.copy(), exp.Literal.number(16), exp.Literal.string("0"))
        bits = exp.cast(exp.DPipe(this=exp.Literal.string("x"), expression=padded), "bit(64)")
        call.replace(exp.cast(bits, "bigint"))
    for path in list(tree.find_all(exp.JSONExtractScalar)):
        path.set("this", exp.cast(path.this, "json"))
    for group in list(tree.find_all(exp.WithinGroup)):  # a list's order is inside of STRING_AGG
        listed, order = group.this, group.expression
        if isinstance(listed, exp.GroupConcat):
            listed.set("this", exp.Order(this=listed.this, expressions=order.expressions))
            group.replace(listed)
    return str(tree.sql(dialect="postgres", copy=False))


@dataclass
class Batch:
    sqls: list[str]
    status: str = "SUBMITTED"
    subs: list[dict[str, Any]] = field(default_factory=list)
    error: str = ""
    columns: list[dict[str, Any]] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)
    looks: int = 0
    pid: int = 0


class DataApi:
    """failures: errors that the next batches end with, instead of being run; calls: what was asked."""

    def __init__(self, dsn: str, lake: str, objects: Objects) -> None:
        self.dsn, self.lake, self.objects = dsn, lake, objects
        self.batches: dict[str, Batch] = {}
        self.tokens: dict[str, str] = {}
        self.failures: list[str] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.page_rows = PAGE_ROWS
        self.pool = ThreadPoolExecutor(4)

    def answer(self, action: str, request: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((action, request))
        answers = {
            "BatchExecuteStatement": self.execute,
            "ExecuteStatement": self.execute_one,
            "DescribeStatement": self.describe,
            "GetStatementResult": self.result,
            "CancelStatement": self.cancel,
        }
        return answers[action](request)

    def execute(self, request: dict[str, Any]) -> dict[str, Any]:
        assert 1 <= len(request["Sqls"]) <= 40, "the API takes 1 to 40 statements"
        assert max(len(sql.encode()) for sql in request["Sqls"]) <= STATEMENT_BYTES_MAX
        assert not (refused := [each for sql in request["Sqls"] for each in problems(sql)]), refused
        if request["ClientToken"] not in self.tokens:
            name = str(uuid.uuid4())
            self.tokens[request["ClientToken"]] = name
            self.batches[name] = Batch(request["Sqls"])
            self.pool.submit(self._run, self.batches[name])
        return {"Id": self.tokens[request["ClientToken"]]}

    def execute_one(self, request: dict[str, Any]) -> dict[str, Any]:
        """The call for one statement; here a value takes the place of its :name, quoted."""
        sql = request["Sql"]
        for each in request.get("Parameters", []):
            quoted = each["value"].replace("'", "''").replace("\\", r"\\")
            sql = re.sub(rf":{each['name']}\b", f"'{quoted}'", sql)
        return self.execute({"Sqls": [sql], "ClientToken": request.get("ClientToken") or str(uuid.uuid4())})

    def describe(self, request: dict[str, Any]) -> dict[str, Any]:
        batch = self.batches[request["Id"]]
        batch.looks += 1
        if batch.looks == 1:  # an answer is never there at the first look
            return {"Id": request["Id"], "Status": "STARTED"}
        return {
            "Id": request["Id"],
            "Status": batch.status,
            "Error": batch.error,
            "SubStatements": batch.subs,
            "HasResultSet": bool(batch.columns),
        }

    def cancel(self, request: dict[str, Any]) -> dict[str, Any]:
        """End the batch's transaction, also if it waits for a lock; nothing of it stays."""
        batch = self.batches[request["Id"]]
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("SELECT pg_cancel_backend(%s)", [batch.pid])
        return {"Status": True}

    def result(self, request: dict[str, Any]) -> dict[str, Any]:
        name, _, number = request["Id"].partition(":")
        batch = self.batches[name]
        assert int(number or 1) == len(batch.sqls)
        start = int(request.get("NextToken", "0"))
        more = {"NextToken": str(start + self.page_rows)} if start + self.page_rows < len(batch.rows) else {}
        return {
            "ColumnMetadata": batch.columns,
            "Records": [
                [_field(value) for value in row] for row in batch.rows[start : start + self.page_rows]
            ],
            **more,
        }

    def _run(self, batch: Batch) -> None:
        if self.failures:
            batch.error = self.failures.pop(0)
            batch.subs = [{"Id": "x:1", "Status": "FAILED", "Error": batch.error}]
            batch.status = "FAILED"
            return
        try:
            with psycopg.connect(self.dsn) as connection:
                batch.pid = connection.info.backend_pid
                for sql in batch.sqls:
                    self._execute(connection, sql, batch)
                    batch.subs.append({"Id": "x", "Status": "FINISHED"})
            batch.status = "FINISHED"
        except Exception as error:
            batch.error = f"ERROR: {error}"
            batch.subs.append({"Id": "x", "Status": "FAILED", "Error": batch.error})
            batch.status = "FAILED"

    def _execute(self, connection: Any, sql: str, batch: Batch) -> None:
        copy = Copy.parse(sql)
        if copy is not None:
            for table in manifest_tables(self.objects, self.lake, copy.manifest):
                with connection.cursor().copy(f"COPY {copy.table} FROM STDIN") as sink:
                    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                        sink.write_row(row)
            return
        cursor = connection.execute(for_postgres(sql))
        if cursor.description:
            batch.columns = [
                {
                    "name": column.name,
                    "typeName": TYPES[column.type_code],
                    "precision": column.precision or 0,
                    "scale": column.scale or 0,
                }
                for column in cursor.description
            ]
            batch.rows = cursor.fetchall()


def _field(value: Any) -> dict[str, Any]:
    if value is None:
        return {"isNull": True}
    kinds = {bool: "booleanValue", int: "longValue", float: "doubleValue"}
    kind = kinds.get(type(value))
    return {kind: value} if kind else {"stringValue": str(value)}


@contextmanager
def serving(api: DataApi) -> Iterator[str]:
    """Serve on a loopback port; yields the URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer leaves in one packet, not waiting for the first one's acknowledgement

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = 200
            try:
                answer = api.answer(self.headers["X-Amz-Target"].partition(".")[2], request)
            except AssertionError as error:
                status, answer = 400, {"__type": "ValidationException", "message": str(error)}
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        api.pool.shutdown()
