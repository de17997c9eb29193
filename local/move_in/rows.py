"""Reads the rows of CSV, NDJSON and Parquet files: each with its line, and what it says as JSON values."""

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ingest.web.validate import parse_json

# What a file of refused lines has beside the lines: a mended one may be imported as it is.
NOTES = ("refused_line", "refused_field", "refused_reason")
BATCH_ROWS = 10_000
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
    """Yield a file's rows in their order. Raises UnreadableFile for another kind of file."""
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


def _of_csv(path: Path) -> Iterator[Row | RefusedRow]:
    with path.open(newline="", encoding="utf-8-sig") as lines:
        rows = csv.DictReader(lines)
        try:
            for row in rows:
                if None in row:
                    kept = {name: value for name, value in row.items() if name}
                    yield RefusedRow(rows.line_num, "line", "has more cells than the header", kept)
                    continue
                yield Row(rows.line_num, dict(row))
        except (UnicodeDecodeError, csv.Error) as error:
            raise UnreadableFile(f"{path}:{rows.line_num}: {error}") from None


def _of_ndjson(path: Path) -> Iterator[Row | RefusedRow]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                values = parse_json(line)
            except ValueError as error:
                text = line.decode(errors="replace").rstrip("\n")
                yield RefusedRow(number, "line", f"is no JSON: {error}", {"line": text})
                continue
            if isinstance(values, dict):
                yield Row(number, values)
            else:
                yield RefusedRow(number, "line", "is no JSON object", {"line": json.dumps(values)})


def _of_parquet(path: Path) -> Iterator[Row | RefusedRow]:
    number = 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(BATCH_ROWS):
            for values in batch.to_pylist():
                number += 1
                yield Row(number, {name: _plain(value) for name, value in values.items()})


def _plain(value: Any) -> Any:
    """Return a value of Parquet as JSON has it. An instant is in UTC: it tells no zone of the user."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value.isoformat()
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return list(map(_plain, value)) if isinstance(value, list) else value
