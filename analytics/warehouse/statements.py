"""Parts of SQL statements: literals, COPY, the limits of statements, and the error of a refused one."""

import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import Objects, StoredObject

STATEMENT_SHOWN_MAX = 2000  # characters of a statement in an error's message
# What Redshift's Data API takes: https://docs.aws.amazon.com/redshift/latest/mgmt/data-api.html
STATEMENT_BYTES_MAX = 100_000
STATEMENTS_MAX = 40  # in one batch, which is one transaction
LIST_BYTES_MAX = 50_000  # of literals in a statement
ROWS_AT_ONCE = 200_000  # in one table of Arrow
_COPY = re.compile(
    r"COPY (?P<table>\w+) FROM '(?P<manifest>[^']+)' IAM_ROLE '(?P<role>[^']*)' FORMAT AS PARQUET MANIFEST"
)


class StatementFailed(RuntimeError):
    """The warehouse refused a statement. It carries the statement's text and the engine's reason."""

    def __init__(self, statement: str, reason: str) -> None:
        super().__init__(f"{reason}\n{statement[:STATEMENT_SHOWN_MAX]}")
        self.statement, self.reason = statement, reason


def refuse_oversized(statements: Sequence[str]) -> None:
    """Raise StatementFailed if the Data API would not take these as one transaction."""
    for statement in statements:
        if (size := len(statement.encode())) > STATEMENT_BYTES_MAX:
            raise StatementFailed(statement, f"{size} bytes: a statement may have {STATEMENT_BYTES_MAX}")
    if len(statements) > STATEMENTS_MAX:
        reason = f"{len(statements)} statements: a transaction may have {STATEMENTS_MAX}"
        raise StatementFailed(statements[STATEMENTS_MAX], reason)


def literal_lists(values: Iterable[str]) -> Iterator[str]:
    """Yield lists of literals, each short enough for one statement: `'ann', 'bob'`. No values: no list."""
    texts: list[str] = []
    size = 0
    for text in map(literal, values):
        if texts and size + len(text.encode()) > LIST_BYTES_MAX:
            yield ", ".join(texts)
            texts, size = [], 0
        texts.append(text)
        size += len(text.encode()) + len(", ")
    if texts:
        yield ", ".join(texts)


def literal(value: str | int | date | None) -> str:
    """Return a value as SQL writes it. Example: O'Hara becomes 'O''Hara'."""
    if value is None:
        return "NULL"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    # Redshift reads a backslash in a literal as an escape.
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


@dataclass(frozen=True, slots=True)
class Copy:
    """COPY: appends the Parquet files of a manifest to a table. Columns are matched by position.

    DuckDB lacks it, and gets the files' rows from `manifest_tables`.
    """

    table: str
    manifest: str  # the URL of a JSON object
    role: str  # the ARN of the role with which Redshift reads the bucket

    def sql(self) -> str:
        """Return the statement's text."""
        return f"COPY {self.table} FROM '{self.manifest}' IAM_ROLE '{self.role}' FORMAT AS PARQUET MANIFEST"

    @classmethod
    def parse(cls, statement: str) -> "Copy | None":
        """Read a statement that `sql` wrote; None for any other statement."""
        match = _COPY.fullmatch(statement)
        return cls(**match.groupdict()) if match else None


def manifest(lake: str, files: Sequence[StoredObject]) -> bytes:
    """Return a manifest of Parquet files, each with its length in bytes. lake: the bucket's URL."""
    entries = [
        {"url": f"{lake}/{file.key}", "mandatory": True, "meta": {"content_length": file.size}}
        for file in files
    ]
    return json.dumps({"entries": entries}).encode()


def manifest_tables(objects: Objects, lake: str, url: str) -> Iterator[pa.Table]:
    """Yield the rows of a manifest's files as Arrow tables; many small files make one table.

    url: the manifest's. Timestamps lose their zone; they are UTC. Raises NoObject if a file is missing.
    """
    small: list[pa.Table] = []
    for entry in json.loads(objects.get(url.removeprefix(f"{lake}/")))["entries"]:
        data = objects.get(entry["url"].removeprefix(f"{lake}/"))
        small.append(_without_zones(pq.ParquetFile(io.BytesIO(data)).read()))
        if sum(table.num_rows for table in small) >= ROWS_AT_ONCE:
            yield pa.concat_tables(small)
            small = []
    if small:
        yield pa.concat_tables(small)


def _without_zones(table: pa.Table) -> pa.Table:
    """Return a table whose timestamps have no zone, as DuckDB's columns have none."""
    fields = [
        field.with_type(pa.timestamp("us")) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
