"""Shows an answer: as a table on a terminal, or in a file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from adapters.platform.spreadsheets import QUOTE, RUNNING, cell
from local.analyst.answer import Answer

ROWS_SHOWN, CELL_MAX = 40, 40
CUT, NULL, GAP = "…", "NULL", "  "
Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)
WRITERS: dict[str, Any] = {".csv": pyarrow.csv.CSVWriter, ".parquet": pyarrow.parquet.ParquetWriter}


def check_file(path: Path) -> None:
    """Raise ValueError unless the file's name says in which form it is to be written."""
    if path.suffix not in WRITERS:
        raise ValueError(f"--out {path}: its name ends with {' or '.join(WRITERS)}")


def write(answer: Answer, path: Path) -> int:
    """Write all rows to a .csv or .parquet file; returns how many. An older file stays until all is there."""
    count, written = 0, as_cells if path.suffix == ".csv" else lambda rows: rows
    schema = written(pa.RecordBatch.from_pylist([], answer.schema)).schema
    with _replacing(path) as part, WRITERS[path.suffix](part, schema) as writer:
        for batch in answer.batches:
            writer.write_batch(written(batch))
            count += batch.num_rows
    return count


def as_cells(rows: Rows) -> Rows:
    """Return rows for a CSV file: a text that a spreadsheet would run has a `'` before it; so have names."""
    columns = [_as_cells(each) if _is_text(each.type) else each for each in rows.columns]
    return type(rows).from_arrays(columns, names=[str(cell(each)) for each in rows.schema.names])


def _is_text(kind: pa.DataType) -> bool:
    held = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(held) or pa.types.is_large_string(held) or pa.types.is_string_view(held))


def _as_cells(column: Any) -> Any:
    texts = column.cast(pa.string())
    runs = pc.match_substring_regex(texts, RUNNING.pattern)
    return pc.if_else(runs, pc.binary_join_element_wise(QUOTE, texts, ""), texts)


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def first_rows(answer: Answer, count: int = ROWS_SHOWN) -> tuple[pa.Table, bool]:
    """Return the first rows, and whether there are more."""
    batches, seen = [], 0
    for batch in answer.batches:
        batches.append(batch)
        seen += batch.num_rows
        if seen > count:
            break
    return pa.Table.from_batches(batches, answer.schema).slice(0, count), seen > count


def text_table(rows: pa.Table, width: int) -> str:
    """Return rows as lines of at most `width` characters. The last line names columns that do not fit."""
    columns = [_column(name, values) for name, values in zip(rows.column_names, rows.columns, strict=True)]
    sizes = [max(map(len, column)) for column in columns]
    shown, used = 0, 0
    while shown < len(columns) and (shown == 0 or used + len(GAP) + sizes[shown] <= width):
        used += len(GAP) * (shown > 0) + sizes[shown]
        shown += 1
    lines = [
        GAP.join(cells).rstrip()[: max(width, 1)]
        for cells in islice(zip(*columns[:shown], strict=True), None)
    ]
    if shown < len(columns):
        lines.append(f"({', '.join(rows.column_names[shown:])}: no room here, --out FILE has them)")
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
    heading, *rest = [each.rjust(size) if is_number else each.ljust(size) for each in cells]
    return [heading, "-" * size, *rest]


def _cell(value: Any) -> str:
    if value is None:
        return NULL
    # What a vendor sent could hold characters that command a terminal.
    text = "".join(each if each.isprintable() else "·" for each in str(value))
    return text if len(text) <= CELL_MAX else text[: CELL_MAX - 1] + CUT
