"""Rows of CSV, NDJSON and Parquet files, as JSON values with their lines; and the file of refused rows."""

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.spreadsheets import cell, text_of
from local.paths import opened_text
from rules.json_values import BadValue, check_strict, read_json, unique_keys

# What a file of refused lines has beside the lines: a mended one may be imported as it is.
NOTES = ("refused_line", "refused_field", "refused_reason")
BATCH_ROWS = 10_000
CELL_MAX = 2**24  # characters; without it a cell of 128 KB ends the file
PRINTED_MAX = 20  # refused lines
Values = dict[str, Any]


class UnreadableFile(RuntimeError):
    """The file as a whole cannot be read."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """A line of a file."""

    line: int  # in Parquet, the first row is line 1
    values: Values  # without those that are empty


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A line that is not taken."""

    line: int
    field: str  # the field at fault; "line" for all of it
    reason: str
    values: Values  # as they were read


def read_rows(path: Path) -> Iterator[FileRow | RefusedRow]:
    """Yield a file's rows in their order. Raises UnreadableFile for a file that is not what its name says."""
    readers = {".csv": csv_rows, ".ndjson": _ndjson_rows, ".jsonl": _ndjson_rows, ".parquet": _parquet_rows}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UnreadableFile(f"{path}: must end in {', '.join(readers)}")
    for row in reader(path):
        yield row if isinstance(row, RefusedRow) else FileRow(row.line, _without_empty(row.values))


def digest_of_file(path: Path) -> str:
    """Return a digest of a file's bytes."""
    with path.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()[:32]


# How files begin that people take for CSV or NDJSON.
OTHER_KINDS = (
    (b"PAR1", "is Parquet: name it .parquet"),
    (b"\x1f\x8b", "is compressed with gzip: gunzip it first"),
    (b"PK\x03\x04", "is a ZIP file, as spreadsheets are (.xlsx): save it as CSV"),
    (b"\xd0\xcf\x11\xe0", "is a spreadsheet (.xls): save it as CSV"),
    (b"SQLite format 3", "is a database of SQLite: export a table as CSV"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd: unzstd it first"),
    (b"BZh", "is compressed with bzip2: bunzip2 it first"),
    (b"\xfd7zXZ", "is compressed with xz: unxz it first"),
    (b"7z\xbc\xaf", "is a 7z archive: unpack it first"),
    (b"Obj\x01", "is Avro: write it as Parquet or NDJSON"),
    (b"ORC", "is ORC: write it as Parquet or NDJSON"),
    (b"ARROW1", "is Arrow: write it as Parquet or NDJSON"),
    (b"%PDF-", "is a PDF: export the table as CSV"),
)
OTHER_SIGNS = ((";", "semicolons"), ("\t", "tabs"), ("|", "bars"))  # in place of commas
HEAD_CHARACTERS = 4096  # of a file, in which its first line is looked for


def _refuse_other_kinds(path: Path, kind: str) -> None:
    """Raise UnreadableFile, which says what it is, for a file that is no text of a kind: .csv or .ndjson."""
    with path.open("rb") as data:
        begin = data.read(16)
    if not (problem := next((what for mark, what in OTHER_KINDS if begin.startswith(mark)), "")):
        with opened_text(path) as lines:
            problem = _kind_of_line(lines.read(HEAD_CHARACTERS).strip().partition("\n")[0], kind)
    if problem:
        raise UnreadableFile(f"{path}: this {problem}")


def _kind_of_line(line: str, kind: str) -> str:
    """Return what the first line of a file shows it to be; "" if it may be of the kind: .csv or .ndjson."""
    if "\0" in line:
        return "is no text, or in UTF-16 without a mark: write it in UTF-8"
    if line[:1] == "<":
        return "is HTML or XML: the page of a sign-in, or a spreadsheet"
    if kind == ".csv":
        if line[:1] in ("{", "["):
            return "is JSON: one object a line, in a file named .ndjson"
        signs = (name for sign, name in OTHER_SIGNS if sign in line and "," not in line)
        return next((f"has columns that are parted by {name}: in CSV commas part them" for name in signs), "")
    if line[:1] == "[":
        return "is an array of JSON: write one object a line (jq -c '.[]')"
    is_csv = line and line[:1] != "{" and "," in line and ":" not in line
    return "is CSV, and no JSON: name it .csv" if is_csv else ""


def columns_of(path: Path) -> list[str]:
    """Return the names of a file's columns; of NDJSON those in its first hundred rows, in their order.

    Raises UnreadableFile, also where two columns have one name.
    """
    kind = path.suffix.lower()
    if kind == ".csv":
        return csv_columns(path)
    if kind == ".parquet":
        with _parquet(path) as file:
            return _checked_names(path, file.schema_arrow.names)
    names: dict[str, None] = {}
    for row in islice(read_rows(path), 100):
        names |= dict.fromkeys(row.values)
    return list(names)


def csv_columns(path: Path) -> list[str]:
    """Return the names in a CSV file's header, whatever the file's name. Raises UnreadableFile."""
    _refuse_other_kinds(path, ".csv")
    with opened_text(path) as lines:
        return _header(path, csv.reader(lines, strict=True))


def _without_empty(values: Mapping[str, Any]) -> Values:
    return {name: value for name, value in values.items() if value not in (None, "") and name not in NOTES}


def _checked_names(path: Path, names: list[str]) -> list[str]:
    """Return names of columns. Raises UnreadableFile if one is empty, or there twice."""
    for number, name in enumerate(names):
        if not name.strip() or name in names[:number]:
            why = f"is there twice: {name}" if name.strip() else "has no name"
            raise UnreadableFile(f"{path}: column {number + 1} {why}")
    return names


def _header(path: Path, rows: Iterator[list[str]]) -> list[str]:
    try:
        return _checked_names(path, list(map(text_of, next(rows, []))))
    except csv.Error as error:
        raise UnreadableFile(f"{path}:1: {error}") from None


def csv_rows(path: Path) -> Iterator[FileRow | RefusedRow]:
    """Yield the rows of a CSV file, whatever its name. Raises UnreadableFile."""
    _refuse_other_kinds(path, ".csv")
    csv.field_size_limit(CELL_MAX)
    with opened_text(path) as lines:
        rows = csv.reader(lines, strict=True)
        header = _header(path, rows)
        try:
            for cells in filter(None, rows):
                values = dict(zip(header, map(text_of, cells), strict=False))
                if len(cells) != len(header):
                    how = "more" if len(cells) > len(header) else "fewer"
                    yield RefusedRow(rows.line_num, "line", f"has {how} cells than the header", values)
                else:
                    yield _checked_row(rows.line_num, values)
        except csv.Error as error:
            raise UnreadableFile(f"{path}:{rows.line_num}: {error}") from None


def _checked_row(line: int, values: Values) -> FileRow | RefusedRow:
    try:
        check_strict(values)
    except BadValue as bad:
        return RefusedRow(line, "line" if bad.field == "body" else bad.field, bad.reason, values)
    return FileRow(line, values)


def _ndjson_rows(path: Path) -> Iterator[FileRow | RefusedRow]:
    _refuse_other_kinds(path, ".ndjson")
    with opened_text(path, newline="\n") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                values = read_json(line, unique_keys)
            except ValueError as error:
                yield RefusedRow(number, "line", f"is no JSON: {error}", {"line": line.rstrip("\n")})
                continue
            if isinstance(values, dict):
                yield _checked_row(number, values)
            else:
                yield RefusedRow(number, "line", "is no JSON object", {"line": json.dumps(values)})


@contextmanager
def _parquet(path: Path) -> Iterator[pq.ParquetFile]:
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise UnreadableFile(f"{path}: {error}") from None


def _parquet_rows(path: Path) -> Iterator[FileRow | RefusedRow]:
    number = 0
    with _parquet(path) as file:
        for batch in file.iter_batches(BATCH_ROWS):
            columns = map(_python_values, batch.columns)
            for cells in zip(*columns, strict=True):
                number += 1
                yield _row_of_cells(number, dict(zip(batch.schema.names, cells, strict=True)))


@dataclass(frozen=True, slots=True)
class _NoValue:
    """A cell of Parquet that Python cannot hold, such as an instant of the year 12000."""

    text: str
    reason: str


def _python_values(column: pa.Array) -> list[Any]:
    """Return a column's cells as Python has them, or as _NoValue. Parts of a microsecond are cut off."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        unit = "us" if kind.unit == "ns" else kind.unit
        column = column.cast(pa.timestamp(unit, "UTC" if kind.tz else None), safe=False)
    try:
        cells: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    except (ArithmeticError, LookupError, ValueError, pa.ArrowException):
        return list(map(_python_value, column))
    return cells


def _python_value(cell: pa.Scalar) -> Any:
    try:
        return cell.as_py(maps_as_pydicts="strict")
    except (ArithmeticError, LookupError, ValueError, pa.ArrowException) as error:
        text = ""
        with suppress(pa.ArrowException):  # what has parts has no text
            text = cell.cast(pa.string()).as_py()
        return _NoValue(text, f"cannot be read: {error}")


def _row_of_cells(line: int, cells: Mapping[str, Any]) -> FileRow | RefusedRow:
    values = {
        name: value.text if isinstance(value, _NoValue) else _json_value(value)
        for name, value in cells.items()
    }
    for name, value in cells.items():
        if isinstance(value, _NoValue):
            return RefusedRow(line, name, value.reason, values)
    return _checked_row(line, values)


def _json_value(value: Any) -> Any:
    """Return a value of Parquet as JSON has it. An instant is written in UTC: it has no user's zone."""
    if isinstance(value, list):
        return list(map(_json_value, value))
    if isinstance(value, dict):
        return {str(_json_value(name)): _json_value(member) for name, member in value.items()}
    return value if value is None or isinstance(value, (str, int, float)) else _text_or_number(value)


def _text_or_number(value: Any) -> str | int | float:
    """Return a value of a kind that JSON lacks as a text; an exact number as a number."""
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):  # or a time of the day without a zone, which is refused
        return value.isoformat()
    if isinstance(value, np.floating):  # 16 bits
        return float(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(value)


class RefusedFile:
    """The file of refused lines, beside the imported one; there is none without refused lines.

    It has the lines as they were, with line, field and reason. Once mended, it can be imported as it is.
    """

    def __init__(self, source: Path, columns: Iterable[str]) -> None:
        self.is_csv = source.suffix.lower() == ".csv"
        self.path = source.with_name(f"{source.stem}.refused{'.csv' if self.is_csv else '.ndjson'}")
        self._columns = [*(column for column in columns if column not in NOTES), *NOTES]
        self._out: IO[str] | None = None
        self.count = 0
        self.first: list[RefusedRow] = []
        self.line_numbers: set[int] = set()
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        """Return this file."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        if self._out:
            self._out.close()

    def add(self, refused: RefusedRow) -> None:
        """Write a refused line."""
        self.count += 1
        self.line_numbers.add(refused.line)
        if len(self.first) < PRINTED_MAX:
            self.first.append(refused)
        values = {name: refused.values[name] for name in refused.values if name not in NOTES}
        row = {**values, **dict(zip(NOTES, (refused.line, refused.field, refused.reason), strict=True))}
        if self._out is None:
            # Bytes that are no UTF-8 are written as they were; in JSON, as escapes that read as them again.
            errors = "surrogateescape" if self.is_csv else "backslashreplace"
            self._out = self.path.open("w", newline="", encoding="utf-8", errors=errors)
            if self.is_csv:
                csv.writer(self._out, quoting=csv.QUOTE_ALL).writerow(map(cell, self._columns))
        if self.is_csv:
            csv.writer(self._out, quoting=csv.QUOTE_ALL).writerow(
                cell(_flat(row.get(name))) for name in self._columns
            )
        else:
            self._out.write(json.dumps(row, ensure_ascii=False) + "\n")

    def lines(self) -> Iterable[str]:
        """Yield a summary for the user: how many lines are refused, and the first of them with reasons."""
        if not self.count:
            return
        yield f"{self.count} lines are refused; with their reasons: {self.path}"
        yield from (f"  line {row.line}: {row.field} {row.reason}" for row in self.first)
        if self.count > len(self.first):
            yield f"  and {self.count - len(self.first)} more"


def _flat(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
