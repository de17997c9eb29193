"""How the RDS Data API shows values, rows and errors of PostgreSQL."""

import json
import re
from typing import Any

from psycopg import pq

BOOL, INT8, FLOAT8, VARCHAR = 16, 20, 701, 1043
TYPES = {
    16: "bool",
    20: "int8",
    21: "int2",
    23: "int4",
    25: "text",
    701: "float8",
    1043: "varchar",
    19: "name",
}
TYPES |= {114: "json", 3802: "jsonb", 1184: "timestamptz", 2950: "uuid", 1009: "_text", 1016: "_int8"}
ROW_BYTES_MAX, RESULT_BYTES_MAX = 64 * 1024, 1024 * 1024
NAME = re.compile(r"(?<!:):([A-Za-z_]\w*)")
STATUS = {
    "AccessDeniedException": 403,
    "DatabaseNotFoundException": 404,
    "DatabaseUnavailableException": 504,
    "ForbiddenException": 403,
    "InternalServerErrorException": 500,
    "ServiceUnavailableError": 503,
    "TransactionNotFoundException": 404,
}


class Refused(Exception):
    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code, self.text, self.status = code, text, STATUS.get(code, 400)


def parameter(given: dict[str, Any]) -> tuple[bytes | None, int]:
    """Return a value as text, with its type."""
    if "typeHint" in given or "arrayValue" in given["value"]:
        raise Refused("BadRequestException", "Array parameters are not supported.")
    ((kind, value),) = given["value"].items()
    if kind == "isNull":
        return None, 0
    types = {"booleanValue": BOOL, "longValue": INT8, "doubleValue": FLOAT8, "stringValue": VARCHAR}
    return str(value).encode(), types[kind]


def bound(sql: str, parameters: list[dict[str, Any]]) -> tuple[str, tuple[list[Any], list[int]]]:
    """Return a statement with numbers for names, and its values with their types.

    How the service reads a name within quotes or comments is not documented: here it is refused.
    """
    given = {each["name"]: number for number, each in enumerate(parameters, 1)}
    if set(NAME.findall(sql)) != set(given):
        raise Refused("ValidationException", f"the names in {sql} are not those of its parameters")
    sent = [parameter(each) for each in parameters]
    return NAME.sub(lambda name: f"${given[name[1]]}", sql), (
        [each[0] for each in sent],
        [each[1] for each in sent],
    )


def failure(result: Any, connection: Any) -> Refused | None:
    """Return the error that a statement ended with."""
    if result.status in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK):
        return None
    fields = {
        name: (result.error_field(each) or b"").decode()
        for name, each in (
            ("severity", pq.DiagnosticField.SEVERITY),
            ("text", pq.DiagnosticField.MESSAGE_PRIMARY),
            ("state", pq.DiagnosticField.SQLSTATE),
            ("where", pq.DiagnosticField.CONTEXT),
            ("position", pq.DiagnosticField.STATEMENT_POSITION),
        )
    }
    if "multiple commands" in fields["text"]:
        return Refused("ValidationException", "Multistatements aren't supported.")
    if not fields["state"]:
        lost = connection.pgconn.error_message.decode().strip()
        return Refused("DatabaseErrorException", f"FATAL: {lost}; SQLState: 08006")
    more = f"\n  Where: {fields['where']}" if fields["where"] else ""
    more += f"\n  Position: {fields['position']}" if fields["position"] else ""
    return Refused(
        "DatabaseErrorException", f"{fields['severity']}: {fields['text']}{more}; SQLState: {fields['state']}"
    )


def records(result: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a statement."""
    if result.status == pq.ExecStatus.COMMAND_OK:
        return {"numberOfRecordsUpdated": result.command_tuples or 0, "generatedFields": []}
    if any(result.ftype(column) not in TYPES for column in range(result.nfields)):
        raise Refused("UnsupportedResultException", "The result contains the unsupported data type")
    kinds = [TYPES[result.ftype(column)] for column in range(result.nfields)]
    rows = [
        [_field(result.get_value(row, column), kind) for column, kind in enumerate(kinds)]
        for row in range(result.ntuples)
    ]
    sizes = [len(json.dumps(each)) for each in rows]
    if sum(sizes) > RESULT_BYTES_MAX or max(sizes, default=0) > ROW_BYTES_MAX:
        raise Refused("DatabaseErrorException", "Database response exceeded size limit")
    if not request.get("includeResultMetadata"):
        return {"numberOfRecordsUpdated": 0, "records": rows}
    columns = [
        {"name": (result.fname(column) or b"").decode(), "typeName": kind, "nullable": 1}
        for column, kind in enumerate(kinds)
    ]
    return {"numberOfRecordsUpdated": 0, "records": rows, "columnMetadata": columns}


def _field(value: bytes | None, kind: str) -> dict[str, Any]:
    if value is None:
        return {"isNull": True}
    text = value.decode()
    if kind == "bool":
        return {"booleanValue": text == "t"}
    if kind.startswith("int"):
        return {"longValue": int(text)}
    if kind == "float8":
        return {"doubleValue": float(text)}
    if kind.startswith("_"):  # the tests' arrays have no quotes in them
        listed = [each for each in text[1:-1].split(",") if each]
        longs = kind == "_int8"
        return {"arrayValue": {"longValues": [*map(int, listed)]} if longs else {"stringValues": listed}}
    if kind == "timestamptz":
        return {"stringValue": text.partition("+")[0]}
    return {"stringValue": text}
