"""Rows of CSV, NDJSON and Parquet files: each with its line, and what it says as JSON values; and the file
of those that are refused.
"""

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.spreadsheets import cell, text_of
from local.paths import opened_text
from rules.json_values import BadValue, check_strict, read_json, unique_keys

# What a file of refused lines has beside the lines: a mended one may be imported as it is.
NOTES = ("refused_line", "refused_field", "refused_reason")
BATCH_ROWS = 10_000
CELL_MAX = 2**24  # characters; without it a cell of 128 KB ends the file
Values = dict[str, Any]


class UnreadableFile(RuntimeError):
    """The file as a whole cannot be read."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a file. values: without those that are empty. In Parquet, the first row is line 1."""

    line: int
    values: Values


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A line that is not taken: the field at fault, and why. values: as it was read."""

    line: int
    field: str
    reason: str
    values: Values


def read_rows(path: Path) -> Iterator[Row | RefusedRow]:
    """Yield a file's rows in their order. Raises UnreadableFile for what is no file of its kind."""
    readers = {".csv": _of_csv, ".ndjson": _of_ndjson, ".jsonl": _of_ndjson, ".parquet": _of_parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UnreadableFile(f"{path}: must end in {', '.join(readers)}")
    for each in reader(path):
        yield each if isinstance(each, RefusedRow) else Row(each.line, _said(each.values))


def digest_of_file(path: Path) -> str:
    """Return a digest of a file's bytes."""
    with path.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()[:32]


def _said(values: Mapping[str, Any]) -> Values:
    return {name: value for name, value in values.items() if value not in (None, "") and name not in NOTES}


def columns_of(path: Path) -> list[str]:
    """Return the names of a file's columns; of NDJSON those in its first hundred rows, in their order.

    Raises UnreadableFile, also where two columns have one name.
    """
    kind = path.suffix.lower()
    if kind == ".csv":
        with opened_text(path) as lines:
            return _header(path, csv.reader(lines, strict=True))
    if kind == ".parquet":
        with _parquet(path) as file:
            return _checked_names(path, file.schema_arrow.names)
    names: dict[str, None] = {}
    for each in islice(read_rows(path), 100):
        names |= dict.fromkeys(each.values)
    return list(names)


def _checked_names(path: Path, names: list[str]) -> list[str]:
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


def _of_csv(path: Path) -> Iterator[Row | RefusedRow]:
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
                    yield _readable(rows.line_num, values)
        except csv.Error as error:
            raise UnreadableFile(f"{path}:{rows.line_num}: {error}") from None


def _readable(line: int, values: Values) -> Row | RefusedRow:
    """Refuse a row with what JSON could not hold: bytes that are no UTF-8, a number beyond a double."""
    try:
        check_strict(values)
    except BadValue as bad:
        return RefusedRow(line, "line" if bad.field == "body" else bad.field, bad.reason, values)
    return Row(line, values)


def _of_ndjson(path: Path) -> Iterator[Row | RefusedRow]:
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
                yield _readable(number, values)
            else:
                yield RefusedRow(number, "line", "is no JSON object", {"line": json.dumps(values)})


@contextmanager
def _parquet(path: Path) -> Iterator[pq.ParquetFile]:
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise UnreadableFile(f"{path}: {error}") from None


def _of_parquet(path: Path) -> Iterator[Row | RefusedRow]:
    number = 0
    with _parquet(path) as file:
        for batch in file.iter_batches(BATCH_ROWS):
            for values in batch.to_pylist():
                number += 1
                yield _readable(number, {name: _plain(value) for name, value in values.items()})


def _plain(value: Any) -> Any:
    """Return a value of Parquet as JSON has it. An instant is in UTC: it tells no zone of the user."""
    if isinstance(value, list):
        if value and isinstance(value[0], tuple):  # a MAP
            return _plain(dict(value))
        return list(map(_plain, value))
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    return value if value is None or isinstance(value, (str, int, float)) else _text(value)


def _text(value: Any) -> str | int | float:
    """Return what JSON has no kind of as a text; an exact number as a number."""
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):  # or a time of the day without a zone, which is refused
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(value)


SHOWN_MAX = 20


class RefusedFile:
    """The file of refused lines, beside the one that they are of; without any there is no such file.

    It has the lines as they were, with line, field and reason. Mended, it is a file to import.
    """

    def __init__(self, source: Path, columns: Iterable[str]) -> None:
        self.is_csv = source.suffix.lower() == ".csv"
        self.path = source.with_name(f"{source.stem}.refused{'.csv' if self.is_csv else '.ndjson'}")
        self._columns = [*(each for each in columns if each not in NOTES), *NOTES]
        self._out: IO[str] | None = None
        self.count = 0
        self.reasons: Counter[tuple[str, str]] = Counter()
        self.first: list[RefusedRow] = []
        self.places: set[int] = set()
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
        self.places.add(refused.line)
        self.reasons[refused.field, refused.reason[:120]] += 1
        if len(self.first) < SHOWN_MAX:
            self.first.append(refused)
        values = {name: refused.values[name] for name in refused.values if name not in NOTES}
        row = {**values, **dict(zip(NOTES, (refused.line, refused.field, refused.reason), strict=True))}
        if self._out is None:
            # Bytes that are no UTF-8 are written as they were; in JSON, as what reads as them again.
            errors = "surrogateescape" if self.is_csv else "backslashreplace"
            self._out = self.path.open("w", newline="", encoding="utf-8", errors=errors)
            if self.is_csv:
                csv.writer(self._out).writerow(map(cell, self._columns))
        if self.is_csv:
            csv.writer(self._out).writerow(cell(_flat(row.get(name))) for name in self._columns)
        else:
            self._out.write(json.dumps(row, ensure_ascii=False) + "\n")

    def lines(self) -> Iterable[str]:
        """Yield what is told of it."""
        if not self.count:
            return
        yield f"{self.count} lines are refused; with their reasons: {self.path}"
        yield from (f"  line {each.line}: {each.field} {each.reason}" for each in self.first)
        if self.count > len(self.first):
            yield f"  and {self.count - len(self.first)} more"


def _flat(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
