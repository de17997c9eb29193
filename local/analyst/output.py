"""An engine's answer to a query, and how it is shown: as a table on a terminal, or in a file.

It has typed columns, in batches, so that a large answer need not fit into memory.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from adapters.platform.spreadsheets import QUOTE, RUNNING, cell

DIGITS_MAX = 38  # of a decimal number, on every engine
# Of a table on a terminal: rows, a cell's characters, the end of a longer cell, a NULL, what parts columns.
ROWS_MAX, CELL_MAX = 40, 40
CUT, NULL, GAP = "…", "NULL", "  "
Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)
Tell = Callable[[str], None]  # shows a line of progress
WRITERS: dict[str, Any] = {".csv": pyarrow.csv.CSVWriter, ".parquet": pyarrow.parquet.ParquetWriter}


class QueryFailed(RuntimeError):
    """An engine refused a query, or it is no query. The message is one sentence."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's rows, which can be read once."""

    engine: str  # its name, for people
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    scanned_bytes: int | None = None  # None: the engine does not say it

    @classmethod
    def of(
        cls,
        engine: str,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        scanned_bytes: int | None = None,
    ) -> "Answer":
        """Return an answer with different names for all columns, and with types that every kind of file has.

        Of two columns `id` of a join the second becomes `id_2`: no reader of Parquet takes one name twice.
        """
        names = _distinct(schema.names)
        fields = [
            pa.field(name, pa.string() if _becomes_text(field.type) else field.type, field.nullable)
            for name, field in zip(names, schema, strict=True)
        ]
        columns = pa.schema(fields)
        return cls(engine, columns, (_with_plain_columns(batch, columns) for batch in batches), scanned_bytes)

    def table(self) -> pa.Table:
        """Return all rows."""
        return pa.Table.from_batches(list(self.batches), self.schema)


def refusal_text(engine: str, reason: object) -> str:
    """Return an engine's error as one line."""
    lines = [" ".join(line.split()) for line in str(reason).splitlines()]
    return f"{engine} refused the query: {' '.join(line for line in lines if line)}"


def decimal_type(digits: int, scale: int, values: Sequence[str | Decimal | None]) -> pa.DataType:
    """Return the type of decimal numbers: as the engine declares it, or wider if values need more decimals.

    digits, scale: as declared; 0: not declared.
    """
    exponents = [Decimal(value).as_tuple().exponent for value in values if value is not None]
    needed = max((-exponent for exponent in exponents if isinstance(exponent, int)), default=0)
    return pa.decimal128(digits if digits and needed <= scale else DIGITS_MAX, max(scale, needed))


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names of which a repeated one has a number at its end, so that no two are the same.

    Names differ by more than capitals. A numbered name is none of the given ones.
    """
    given = {name.lower() for name in names}
    distinct: dict[str, str] = {}  # in small letters: as it is written
    for name in names:
        candidate, number = name, 1
        while candidate.lower() in distinct or (number > 1 and candidate.lower() in given):
            number += 1
            candidate = f"{name}_{number}"
        distinct[candidate.lower()] = candidate
    return list(distinct.values())


def _becomes_text(kind: pa.DataType) -> bool:
    """Whether values of a type become texts: nested ones JSON, as Redshift gives a SUPER, and intervals."""
    return bool(pa.types.is_nested(kind) or pa.types.is_interval(kind) or pa.types.is_duration(kind))


def _with_plain_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [_texts(column) if _becomes_text(column.type) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _texts(column: pa.Array) -> pa.Array:
    write = _json if pa.types.is_nested(column.type) else _interval
    texts = [None if value is None else write(value) for value in column.to_pylist()]
    return pa.array(texts, pa.string())


def _json(value: object) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)


def _interval(value: "pa.MonthDayNano | timedelta") -> str:
    """Return an interval as PostgreSQL and Redshift write it: 1 year 2 mons 3 days 04:05:06.5."""
    if isinstance(value, timedelta):
        value = pa.MonthDayNano([0, value.days, (value.seconds * 1_000_000 + value.microseconds) * 1000])
    years, months = _divide(value.months, 12)
    hours, rest = _divide(value.nanoseconds, 3_600_000_000_000)
    minutes, rest = _divide(rest, 60_000_000_000)
    seconds, nanoseconds = _divide(rest, 1_000_000_000)
    units = ((years, "year"), (months, "mon"), (value.days, "day"))
    parts = [f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in units if count]
    if value.nanoseconds or not parts:
        fraction = f".{abs(nanoseconds):09}".rstrip("0") if nanoseconds else ""
        sign = "-" if value.nanoseconds < 0 else ""
        parts.append(f"{sign}{abs(hours):02}:{abs(minutes):02}:{abs(seconds):02}{fraction}")
    return " ".join(parts)


def _divide(count: int, size: int) -> tuple[int, int]:
    """Return quotient and remainder, both with the sign of count."""
    whole, rest = divmod(abs(count), size)
    return (whole, rest) if count >= 0 else (-whole, -rest)


def check_file(path: Path) -> None:
    """Raise ValueError unless the file's name says in which form it is to be written."""
    if path.suffix not in WRITERS:
        raise ValueError(f"--out {path}: its name ends with {' or '.join(WRITERS)}")


def write(answer: Answer, path: Path) -> int:
    """Write all rows to a .csv or .parquet file; returns how many. An older file stays until all is there."""
    convert = as_cells if path.suffix == ".csv" else lambda rows: rows
    schema = convert(pa.RecordBatch.from_pylist([], answer.schema)).schema
    count = 0
    with _replacement(path) as temporary, WRITERS[path.suffix](temporary, schema) as writer:
        for batch in answer.batches:
            writer.write_batch(convert(batch))
            count += batch.num_rows
    return count


def as_cells(rows: Rows) -> Rows:
    """Return rows for a CSV file. Texts and names that a spreadsheet would run begin with a `'`."""
    columns = [_as_cells(column) if _is_text(column.type) else column for column in rows.columns]
    return type(rows).from_arrays(columns, names=[str(cell(name)) for name in rows.schema.names])


def _is_text(kind: pa.DataType) -> bool:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(
        pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_string_view(plain)
    )


def _as_cells(column: Any) -> Any:
    texts = column.cast(pa.string())
    runs = pc.match_substring_regex(texts, RUNNING.pattern)
    return pc.if_else(runs, pc.binary_join_element_wise(QUOTE, texts, ""), texts)


@contextmanager
def _replacement(path: Path) -> Iterator[Path]:
    """Open a block for writing a temporary file. At the block's end it takes the place of a path's file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def first_rows(answer: Answer, count: int = ROWS_MAX) -> tuple[pa.Table, bool]:
    """Return the first rows, and whether there are more."""
    batches, rows_read = [], 0
    for batch in answer.batches:
        batches.append(batch)
        rows_read += batch.num_rows
        if rows_read > count:
            break
    return pa.Table.from_batches(batches, answer.schema).slice(0, count), rows_read > count


def text_table(rows: pa.Table, width: int) -> str:
    """Return rows as lines of at most `width` characters. The last line names columns that do not fit."""
    columns = [_column(name, values) for name, values in zip(rows.column_names, rows.columns, strict=True)]
    sizes = [max(map(len, column)) for column in columns]
    column_count, line_size = 1, sum(sizes[:1])  # of the columns that fit; the first is cut if it does not
    while column_count < len(columns) and line_size + len(GAP) + sizes[column_count] <= width:
        line_size += len(GAP) + sizes[column_count]
        column_count += 1
    lines = [GAP.join(cells).rstrip()[: max(width, 1)] for cells in zip(*columns[:column_count], strict=True)]
    if column_count < len(columns):
        lines.append(f"({', '.join(rows.column_names[column_count:])}: no room here, --out FILE has them)")
    return "\n".join(lines)


def _column(name: str, values: pa.ChunkedArray) -> list[str]:
    """Return the heading, a line and the cells, all of one length; numbers stand to the right."""
    cells = [_cell(name), *(_cell(value) for value in values.to_pylist())]
    size = max(map(len, cells))
    is_number = (
        pa.types.is_integer(values.type)
        or pa.types.is_decimal(values.type)
        or pa.types.is_floating(values.type)
    )
    heading, *aligned = [text.rjust(size) if is_number else text.ljust(size) for text in cells]
    return [heading, "-" * size, *aligned]


def _cell(value: Any) -> str:
    if value is None:
        return NULL
    # A vendor's text could have characters that command a terminal.
    text = "".join(character if character.isprintable() else "·" for character in str(value))
    return text if len(text) <= CELL_MAX else text[: CELL_MAX - 1] + CUT
