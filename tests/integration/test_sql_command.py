"""`streakline sql` as one types it: what is printed, what is written, how it ends."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.warehouse.build import build
from analytics.warehouse.ddl import prepare
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from local import cli
from local.analyst import catalog, output
from local.analyst import sql as asking
from local.analyst.output import Answer
from local.paths import ROOT
from local.stack import Stack


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a warehouse with all models, and with sixty builds noted."""
    warehouse = DuckWarehouse(tmp_path_factory.mktemp("built") / "warehouse.duckdb")
    prepare(warehouse)
    build(warehouse)
    noted = ", ".join(f"('m{number:03}', 'x')" for number in range(60))
    warehouse.run([f"INSERT INTO lake.builds (model, fingerprint) VALUES {noted}"])
    return warehouse.path


@pytest.fixture
def laptop(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a laptop cloud's warehouse; its emulator is not asked."""
    warehouse = Path(shutil.copy(built, tmp_path))
    monkeypatch.setattr("local.stack.load", lambda: Stack("", "http://127.0.0.1:1", "us-east-1", {}, {}, ""))
    monkeypatch.setattr(asking, "WAREHOUSE", warehouse)
    return tmp_path


def typed(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr("sys.argv", ["streakline", "sql", *map(str, words)])
    try:
        cli.main()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code)
        return 1 if isinstance(end.code, str) else int(end.code or 0)
    return 0


def test_a_table_on_the_terminal(
    laptop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT 12 AS n, CAST('1.50' AS DECIMAL(4, 2)) AS money, 'a' AS t, CAST(NULL AS INTEGER) AS nothing"
    assert typed(monkeypatch, f"{sql} UNION ALL SELECT 3, 20.25, '', 4 ORDER BY n DESC") == 0
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        " n  money  t  nothing",
        "--  -----  -  -------",
        "12   1.50  a     NULL",
        " 3  20.25           4",
    ]
    assert told.err.startswith("2 rows; DuckDB, ")


def test_many_rows_are_cut_and_it_says_so(
    laptop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(monkeypatch, "SELECT model FROM lake.builds WHERE fingerprint = 'x' ORDER BY model") == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 2 + output.ROWS_MAX
    assert "the first 40 rows: --out FILE has all" in told.err


def test_files_have_all_rows_with_types_and_nulls(
    laptop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = """SELECT model, CAST('1.50' AS DECIMAL(4, 2)) AS money, TIMESTAMP '2026-01-31 12:00:00.000001' AS at,
    CAST(NULL AS VARCHAR(3)) AS absent, '' AS empty FROM lake.builds WHERE fingerprint = 'x' ORDER BY model"""
    for name in ("a.parquet", "a.csv"):
        assert typed(monkeypatch, sql, "--out", laptop / name) == 0
        assert "60 rows in" in capsys.readouterr().err
    (first, *_), rows = pq.read_table(laptop / "a.parquet").to_pylist(), 60
    assert first == {
        "model": "m000",
        "money": Decimal("1.50"),
        "at": datetime(2026, 1, 31, 12, 0, 0, 1),  # noqa: DTZ001 (UTC, as all timestamps of the warehouse)
        "absent": None,
        "empty": "",
    }
    assert pq.read_metadata(laptop / "a.parquet").num_rows == rows
    lines = (laptop / "a.csv").read_text().splitlines()
    assert len(list(csv.reader(lines))) == rows + 1
    assert lines[1] == '"m000",1.50,2026-01-31 12:00:00.000001,,""'
    assert sorted(each.name for each in laptop.iterdir()) == ["a.csv", "a.parquet", "warehouse.duckdb"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["DELETE FROM lake.builds"], "only a query that reads is run here"),
        (["SELECT * FROM marts.none"], "DuckDB refused the query"),
        (["SELECT FROM WHERE"], "streakline: "),
        (["SELECT 1", "--out", "x.xls"], "its name ends with .csv or .parquet"),
        (["SELECT CAST('x' AS INTEGER) AS b"], "this is no whole number: x"),
        (["SELECT 1/0 AS a"], "Division by zero"),
        (["SELECT 1", "--on", "lake"], "has no lake"),
    ],
)
def test_a_failure_is_one_line_and_status_1(
    laptop: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    assert typed(monkeypatch, *words) == 1
    told = capsys.readouterr().out
    assert said in told
    assert told.startswith("streakline: ")
    assert len(told.splitlines()) == 1


def test_a_file_stays_if_the_query_fails_on_the_way(laptop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (laptop / "a.csv").write_text("before")
    sql = "SELECT CAST(model AS INTEGER) AS a FROM lake.builds"
    assert typed(monkeypatch, sql, "--out", laptop / "a.csv") == 1
    assert (laptop / "a.csv").read_text() == "before"
    assert sorted(each.name for each in laptop.iterdir()) == ["a.csv", "warehouse.duckdb"]


def table(**columns: list[object]) -> pa.Table:
    return pa.table(columns)


def test_what_is_too_wide_is_cut() -> None:
    rows = table(a=["x" * 100], b=[1], c=["y" * 30], d=["z"])
    text = output.text_table(rows, 60)
    assert max(map(len, text.splitlines())) <= 60 or text.splitlines()[-1].startswith("(")
    assert "x" * 39 + "…" in text
    assert text.splitlines()[-1] == "(c, d: no room here, --out FILE has them)"


def test_characters_that_command_a_terminal_are_not_sent_to_it() -> None:
    text = output.text_table(table(a=["\x1b[2J\x07evil\nline\u202e"]), 80)
    assert "\x1b" not in text and "\x07" not in text and "\u202e" not in text
    assert len(text.splitlines()) == 3


def test_no_more_than_needed_is_read() -> None:
    schema, read = pa.schema([("n", pa.int64())]), []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(100):
            read.append(number)
            yield pa.RecordBatch.from_pydict({"n": list(range(30))}, schema)

    rows, are_more = output.first_rows(Answer("e", schema, batches()))
    assert (rows.num_rows, are_more, len(read)) == (40, True, 2)


@pytest.mark.parametrize("query", ["SHOW TABLES", "show  tables;", ".tables"])
def test_what_there_is_to_ask(
    query: str, laptop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(monkeypatch, query) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("marts.")
    assert any(each.startswith("lake.events ") for each in lines)
    assert typed(monkeypatch, query, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert {"name", "grain"} == told[0].keys()
    assert all(each["grain"] for each in told)


@pytest.mark.parametrize(
    "query", ["DESCRIBE marts.daily_actives", "desc daily_actives;", ".describe Marts.Daily_Actives"]
)
def test_a_table_is_described(
    query: str, laptop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(monkeypatch, query, "--json") == 0
    said = {each["column"]: each["says"] for each in json.loads(capsys.readouterr().out)}
    assert "date_day" in said
    assert all(said.values())


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("DESCRIBE daily_active", "did you mean daily_actives"),
        ("DESCRIBE zzzz", "`.tables` lists all"),
        ("DESCRIBE", "`.tables` lists all"),
        (".tabels", "there are .tables, .describe NAME and .quit"),
    ],
)
def test_what_is_no_table_says_what_there_is(
    query: str, why: str, laptop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(monkeypatch, query) == 1
    assert why in capsys.readouterr().out


def test_every_column_of_every_table_is_described() -> None:
    for name in catalog.names():
        assert [each["column"] for each in catalog.describe(name) if not each["says"]] == [], name


def test_rows_are_json_for_programs(
    laptop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "SELECT 1 AS n, CAST('1.50' AS DECIMAL(4, 2)) AS money, CAST(NULL AS INTEGER) AS nothing"
    assert typed(monkeypatch, query, "--json") == 0
    assert json.loads(capsys.readouterr().out) == [{"n": 1, "money": "1.50", "nothing": None}]


def test_without_a_query_it_is_a_shell_that_goes_on_after_a_mistake(
    laptop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        "SELECT 1",
        "  AS one;",
        "",
        "SELECT nope;",
        ".tabels",
        ".describe daily_actives",
        "SELECT 2 AS two",
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    assert typed(monkeypatch) == 1
    told = capsys.readouterr()
    shown = [line.strip() for line in told.out.splitlines()]
    assert shown[:3] == ["one", "---", "1"]
    assert shown[-3:] == ["two", "---", "2"]
    assert any(line.startswith("date_day ") for line in shown)
    assert "nope" in told.err
    assert "there is no .tabels" in told.err


def test_quit_ends_the_shell(
    laptop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(".quit\nSELECT 1 AS one;\n"))
    assert typed(monkeypatch) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("text", "status", "answers"),
    [
        ("SELECT 'a;b' AS t;", 0, ["a;b"]),
        ("SELECT 'a;\nb' AS t;", 0, ["a;·b"]),
        ("SELECT 1 AS t -- one; or two\n;", 0, ["1"]),
        ("SELECT 1 /* a;\nb; */ AS t;", 0, ["1"]),
        ("SELECT 1 AS t; -- the end", 0, ["1"]),
        ("SELECT 1 AS t; /* the;\nend */\n-- of all;\n", 0, ["1"]),
        ("SELECT 1 AS t; SELECT 2 AS t;\nSELECT 3\nAS t", 0, ["1", "2", "3"]),
        (";;\n; SELECT 1 AS t;;", 0, ["1"]),
        ('SELECT 1 AS "t;";', 0, ["1"]),
        ("\ufeffSELECT 1 AS t;", 0, ["1"]),
        ("-- nothing", 0, []),
        ("", 0, []),
        ("SELECT nope; SELECT 2 AS t;", 1, ["2"]),
        ("SELECT 'open", 1, []),
        ("DELETE FROM lake.builds;", 1, []),
        (".nope\nSELECT 1 AS t;", 1, ["1"]),
    ],
)
def test_one_query_of_the_standard_input_is_one_query(
    text: str,
    status: int,
    answers: list[str],
    laptop: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert typed(monkeypatch) == status
    told = capsys.readouterr()
    assert [line.strip() for line in told.out.splitlines()[2::3]] == answers
    assert bool("refused" in told.err or "this is" in told.err or "there is no" in told.err) == bool(status)


@pytest.mark.parametrize(
    "query",
    [
        "\ufeffSELECT 1 AS n",
        "SELECT 1 AS n; -- done",
        "/* one */ SELECT 1 AS n /* ; */ ;;",
        "; SELECT 1 AS n",
    ],
)
def test_what_stands_around_a_query_is_left_out(
    query: str, laptop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(monkeypatch, query, "--json") == 0
    assert json.loads(capsys.readouterr().out) == [{"n": 1}]
    assert typed(monkeypatch, "\ufeffDESCRIBE daily_actives") == 0


def test_numbers_that_json_lacks_are_null(
    laptop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "SELECT CAST('NaN' AS FLOAT) AS a, CAST('Infinity' AS FLOAT) AS b, CAST('-Infinity' AS REAL) AS c, 0.5e0 AS d"
    assert typed(monkeypatch, query, "--json") == 0
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert told == [{"a": None, "b": None, "c": None, "d": 0.5}]


def run(laptop: Path, *words: str, **options: Any) -> "subprocess.Popen[bytes]":
    """`streakline sql` as a process of its own, over this laptop's warehouse."""
    script = (
        "import sys; from pathlib import Path; from local import cli; from local.analyst import sql\n"
        "from local.stack import Stack; import local.stack\n"
        "local.stack.load = lambda: Stack('', 'http://127.0.0.1:1', 'us-east-1', {}, {}, '')\n"
        f"sql.WAREHOUSE = Path({str(laptop / 'warehouse.duckdb')!r})\n"
        f"sys.argv = ['streakline', 'sql', *{list(words)!r}]\n"
        "cli.main()"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
    command = [*options.pop("before", []), sys.executable, "-c", script]
    return subprocess.Popen(command, cwd=laptop, env=environment, **options)


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_terminal_that_lacks_a_letter_shows_a_question_mark(laptop: Path, encoding: str) -> None:
    query = "SELECT 'né 小明' AS t, REPEAT('x', 60) AS long"
    process = run(
        laptop, query, env={"PYTHONIOENCODING": encoding}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out.decode(encoding).splitlines()[2].startswith("né ??" if encoding == "latin-1" else "n? ??")
    assert b"Traceback" not in err


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", [["SELECT 1 AS one"], []])
def test_closed_streams_end_in_no_traceback(laptop: Path, redirection: str, words: list[str]) -> None:
    script = f'exec {redirection}; exec "$@"'
    process = run(
        laptop,
        *words,
        before=["bash", "-c", script, "bash"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    _, err = process.communicate(timeout=60)
    assert (process.returncode, b"Traceback" in err, b"Exception" in err) == (0, False, False)


@pytest.mark.parametrize("to", ["stdout", "stderr", "both"])
def test_a_reader_that_has_left_ends_it_quietly(laptop: Path, to: str) -> None:
    streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    reader, writer = os.pipe()
    os.close(reader)
    streams |= {name: writer for name in streams if to in (name, "both")}
    streams["stderr"] = subprocess.PIPE if to == "stdout" else streams["stderr"]
    process = run(laptop, "SELECT model FROM lake.builds", **streams)
    os.close(writer)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 141
    assert b"Traceback" not in (err or b"")
    assert b"Exception" not in (err or b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_a_file_that_is_not_completed_leaves_no_rest(laptop: Path, number: signal.Signals, name: str) -> None:
    rows = (
        "lake.builds AS a CROSS JOIN lake.builds AS b CROSS JOIN lake.builds AS c CROSS JOIN lake.builds AS d"
    )
    (laptop / name).write_text("an older file")
    process = run(laptop, f"SELECT a.model FROM {rows}", "--out", name, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not list(laptop.glob(f".{name}.*")) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert b"Traceback" not in err
    assert sorted(each.name for each in laptop.iterdir()) == sorted([name, "warehouse.duckdb"])
    assert (laptop / name).read_text() == "an older file"
