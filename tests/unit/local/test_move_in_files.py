"""Files that somebody wants to import as they come: of spreadsheets, of databases, cut off, in other encodings."""

import bz2
import csv
import gzip
import json
import lzma
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapters.book_store import shipped_version
from adapters.privacy.tombstones import NO_ERASURES, NoErasures
from local.cloud.patience import Patience
from local.event_sources import BadRow, from_csv
from local.move_in.histories import ATTEMPTS_MAX, REPEATED, SAME, UNDECIDED, HistoryFiles, check_row
from local.move_in.import_command import validate
from local.row_files import FileRow, RefusedFile, RefusedRow, UnreadableFile, columns_of, read_rows
from rules.book.book import Books
from rules.days import parse_moment
from rules.engagement.events import event_id
from rules.engagement.opening_positions import position_of
from rules.json_values import NO_TEXT

NOW = datetime(2026, 3, 11, tzinfo=UTC)
BOOKS = Books([shipped_version()])
HEADER = "user_id,event_type,occurred_at,timezone"
ROW = "ann,CHECK_IN,2020-03-01T09:00:00Z,Europe/Berlin"


@dataclass(frozen=True)
class Validated:
    rows: int
    taken: list[Any]
    refused: list[RefusedRow]
    file: Path

    def kept(self) -> list[dict[str, str]]:
        with self.file.open(newline="", encoding="utf-8", errors="surrogateescape") as lines:
            return list(csv.DictReader(lines)) if self.file.suffix == ".csv" else list(map(json.loads, lines))


def validated(path: Path) -> Validated:
    taken: list[Any] = []
    found: list[RefusedRow] = []

    def check(row: FileRow) -> object:
        told = check_row(row, BOOKS, NOW, NO_ERASURES)
        if not isinstance(told, RefusedRow):
            taken.append(told)
        return told

    with RefusedFile(path, columns_of(path)) as refused:
        rows = validate(path, check, refused)
        found = refused.first
    return Validated(rows, taken, found, refused.path)


def text(path: Path, *lines: str, end: str = "\n") -> Path:
    path.write_bytes(end.join((*lines, "")).encode())
    return path


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "BOM"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_what_a_spreadsheet_writes_is_read(tmp_path: Path, mark: str, end: str) -> None:
    told = validated(text(tmp_path / "a.csv", mark + HEADER, ROW, end=end))
    assert [(each["user_id"], each["timezone"]) for each in told.taken] == [("ann", "Europe/Berlin")]
    names = HEADER.split(",")
    line = json.dumps(dict(zip(names, ROW.split(","), strict=True)))
    told = validated(text(tmp_path / "a.ndjson", mark + line, line, end=end))
    assert [each["user_id"] for each in told.taken] == ["ann", "ann"]


def test_a_line_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    """It would be an event of another date: without its zone."""
    path = tmp_path / "a.csv"
    path.write_text(f"{HEADER}\n{ROW}\nben,CHECK_IN,2020-03-01T09:00:00Z")
    told = validated(path)
    assert [(each.line, each.field, each.reason) for each in told.refused] == [
        (3, "line", "has fewer cells than the header")
    ]
    assert len(told.taken) == 1
    assert told.kept()[0]["user_id"] == "ben"


@pytest.mark.parametrize(
    "header", ["user_id,event_type,occurred_at,user_id", "user_id,,occurred_at,event_type,"]
)
def test_two_columns_of_one_name_or_without_one_make_no_guess(tmp_path: Path, header: str) -> None:
    path = text(tmp_path / "a.csv", header, "ann,CHECK_IN,2020-03-01T09:00:00Z,ben,")
    with pytest.raises(UnreadableFile, match="column"):
        columns_of(path)


CSV = "user_id,event_type,occurred_at\nann,LESSON_COMPLETED,2026-01-31T10:00:00Z\n"


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.csv", CSV.replace(",", ";").encode(), "parted by semicolons"),
        ("a.csv", b"\xef\xbb\xbf" + CSV.replace(",", ";").encode(), "parted by semicolons"),
        ("a.csv", CSV.replace(",", ";").encode("utf-16"), "parted by semicolons"),
        ("a.csv", CSV.replace(",", "\t").encode(), "parted by tabs"),
        ("a.csv", gzip.compress(CSV.encode(), mtime=0), "compressed with gzip"),
        ("a.csv", b"PK\x03\x04rest", "is a ZIP file, as spreadsheets are"),
        ("a.csv", b'[{"user_id": "ann"}]', "this is JSON"),
        ("a.csv", b'{"user_id": "ann"}', "this is JSON"),
        ("a.csv", b"PAR1rest", "name it .parquet"),
        ("a.ndjson", b'[{"user_id": "ann"}]', "an array of JSON"),
        ("a.ndjson", b'\xef\xbb\xbf[\n  {"user_id": "ann"}\n]\n', "an array of JSON"),
        ("a.jsonl", gzip.compress(b'{"user_id": "ann"}', mtime=0), "compressed with gzip"),
        ("a.ndjson", CSV.encode(), "this is CSV"),
        ("a.csv", CSV.replace(",", "|").encode(), "parted by bars"),
        ("a.csv", CSV.encode("utf-16-le"), "UTF-16 without a mark"),
        ("a.csv", b"<!DOCTYPE html><title>Sign in</title>", "HTML or XML"),
        ("a.ndjson", b'<?xml version="1.0"?><Workbook/>', "HTML or XML"),
        ("a.csv", lzma.compress(CSV.encode()), "compressed with xz"),
        ("a.ndjson", bz2.compress(b'{"user_id": "ann"}'), "compressed with bzip2"),
        ("a.ndjson", b"Obj\x01rest", "this is Avro"),
        ("a.csv", b"ORC\x00rest", "this is ORC"),
        ("a.ndjson", b"ARROW1\x00\x00", "this is Arrow"),
        ("a.csv", b"7z\xbc\xaf\x27\x1c", "7z archive"),
        ("a.csv", b"%PDF-1.7", "this is a PDF"),
    ],
)
def test_a_file_of_another_kind_is_told_what_it_is(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    for read in (columns_of, lambda file: list(read_rows(file))):
        with pytest.raises(UnreadableFile, match=said):
            read(path)
    if path.suffix == ".csv":
        with pytest.raises(BadRow, match=said):
            list(from_csv(path))


def test_two_columns_of_one_name_in_parquet_make_no_guess(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table([pa.array(["ann"]), pa.array(["ben"])], names=["user_id", "user_id"]), path)
    with pytest.raises(UnreadableFile, match="user_id"):
        columns_of(path)


def test_two_values_of_one_name_in_a_line_make_no_guess(tmp_path: Path) -> None:
    line = '{"user_id": "ann", "user_id": "ben", "event_type": "CHECK_IN", "occurred_at": "2020-03-01T09:00:00Z"}'
    told = validated(text(tmp_path / "a.ndjson", line))
    assert told.taken == []
    assert "user_id" in told.refused[0].reason


def test_a_quotation_mark_that_nobody_closes_swallows_no_lines(tmp_path: Path) -> None:
    path = text(tmp_path / "a.csv", HEADER, ROW, f'"{ROW}', *[ROW] * 5)
    with pytest.raises(UnreadableFile, match=r"a\.csv"):
        validated(path)


def test_a_large_cell_is_a_cell(tmp_path: Path) -> None:
    properties = json.dumps({"note": "x" * 200_000}).replace('"', '""')
    path = text(tmp_path / "a.csv", f"{HEADER},properties", f'{ROW},"{properties}"', f"{ROW},")
    told = validated(path)
    assert (told.rows, len(told.taken) + len(told.refused)) == (2, 2)
    assert {each.field for each in told.refused} <= {"properties"}


def test_bytes_that_are_no_utf_8_refuse_their_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(
        f"{HEADER}\n{ROW}\n".encode() + "j\xfcrgen,CHECK_IN,2020-03-01T09:00:00Z,\n".encode("latin-1")
    )
    told = validated(path)
    assert [(each.line, each.field, each.reason) for each in told.refused] == [(3, "user_id", NO_TEXT)]
    assert b"j\xfcrgen" in told.file.read_bytes(), "as it was"
    line = b'{"user_id": "j\xfcrgen", "event_type": "CHECK_IN", "occurred_at": "2020-03-01T09:00:00Z"}\n'
    (tmp_path / "b.ndjson").write_bytes(line)
    assert [each.line for each in validated(tmp_path / "b.ndjson").refused] == [1]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path, encoding: str) -> None:
    mark = "\ufeff" if encoding.endswith("e") else ""
    line = json.dumps(
        {"user_id": "j\u00fcrgen", "event_type": "CHECK_IN", "occurred_at": "2020-03-01T09:00:00Z"}
    )
    for name, text in (("a.csv", f"{HEADER}\n{ROW}\n{ROW}\n"), ("a.ndjson", f"{line}\r\n{line}\n")):
        path = tmp_path / name
        path.write_bytes((mark + text).encode(encoding))
        assert [type(each) for each in read_rows(path)] == [FileRow, FileRow]
        assert "user_id" in columns_of(path)


@pytest.mark.parametrize("name", ["a.csv", "a.ndjson", "a.parquet"])
def test_what_is_no_such_file_is_told_so(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"\x1f\x8b" + f"{HEADER}\n{ROW}\n".encode("utf-32-le"))
    try:
        told = validated(path)
    except UnreadableFile as error:
        assert str(path) in str(error)
    else:
        assert told.taken == []


def test_a_refused_line_keeps_columns_that_the_first_hundred_rows_do_not_have(tmp_path: Path) -> None:
    """Mended without its zone it would count on another date."""
    plain = "ann,CHECK_IN,2020-03-01T09:00:00Z,"
    told = validated(
        text(tmp_path / "a.csv", HEADER, *[plain] * 120, "ben,JUGGLED,2020-03-01T23:30:00Z,Asia/Tokyo")
    )
    assert [(each["user_id"], each["timezone"]) for each in told.kept()] == [("ben", "Asia/Tokyo")]


def test_values_of_a_database_that_json_does_not_have_are_read_or_refused(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"user_id": "ann", "as_of": NOW.date(), "balance": Decimal("120.00")},
        {"user_id": "ben", "as_of": NOW.date(), "balance": Decimal("120.50")},
    ]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    first, second = (each for each in read_rows(path) if isinstance(each, FileRow))
    assert position_of(first.values, NOW.date()).balance == 120
    events = [{"user_id": b"ann", "event_type": "CHECK_IN", "occurred_at": NOW, "points": float("nan")}]
    pq.write_table(pa.Table.from_pylist([*events, {**events[0], "user_id": b"\xff"}]), path)
    told = validated(path)
    assert (told.rows, len(told.refused)) == (2, 2)
    assert len(told.kept()) == 2
    with pytest.raises(ValueError, match="balance"):
        position_of(second.values, NOW.date())


def test_a_row_that_fails_after_it_was_checked_is_refused_and_spoils_no_neighbour(tmp_path: Path) -> None:
    """Somebody may be erased between the check of a file and the sending of a row."""
    rows = list(read_rows(text(tmp_path / "h.csv", HEADER, ROW, ROW.replace("ann", "bob"))))

    class Erased(NoErasures):
        def forbids(self, subject: str, _: str) -> bool:
            return "ann" in subject

        def of(self, _: str) -> None:
            return None

    class Door:
        def call(self, _: str, __: str, body: dict[str, Any]) -> tuple[int, Any]:
            return 202, {"results": [{"status": "accepted"} for _ in body["events"]]}

    nothing: Any = None
    door: Any = Door()
    kind = HistoryFiles(door, nothing, BOOKS, NOW, nothing, Erased())
    refused, fine = kind.send([row for row in rows if isinstance(row, FileRow)])
    assert refused
    assert (refused.field, refused.reason) == ("user_id", "was erased")
    assert fine is None


@pytest.mark.parametrize("refusals", [ATTEMPTS_MAX - 1, ATTEMPTS_MAX])
def test_the_last_attempt_may_decide(tmp_path: Path, refusals: int) -> None:
    results = [{"status": "rejected", "error": {"code": UNDECIDED}}] * refusals + [{"status": "accepted"}]

    class Door:
        def call(self, *_: object) -> tuple[int, Any]:
            return 207, {"results": [results.pop(0)]}

    door: Any = Door()
    kind = HistoryFiles(door, None, BOOKS, NOW, None, NO_ERASURES, pause_seconds=0)  # type: ignore[arg-type]
    rows = [row for row in read_rows(text(tmp_path / "h.csv", HEADER, ROW)) if isinstance(row, FileRow)]
    if refusals == ATTEMPTS_MAX:
        with pytest.raises(RuntimeError, match="by now"):
            kind.send(rows)
    else:
        assert kind.send(rows) == [None]


def test_a_cell_that_python_cannot_hold_refuses_its_row_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    far = datetime(9999, 12, 31, tzinfo=UTC).timestamp() * 1e6
    micros = [1_583_053_200_000_000, int(far * 1.3), -1, None]
    columns = {
        "user_id": pa.array(["a", "b", "c", "d"]),
        "occurred_at": pa.array(micros, pa.timestamp("us", "Europe/Berlin")),
        "day": pa.array([1, 2, 2**31 - 1, 3], pa.int32()).cast(pa.date32()),
    }
    pq.write_table(pa.table(columns), path)
    rows = list(read_rows(path))
    taken = {each.line: each.values for each in rows if isinstance(each, FileRow)}
    assert taken == {
        1: {"user_id": "a", "occurred_at": "2020-03-01T09:00:00Z", "day": "1970-01-02"},
        4: {"user_id": "d", "day": "1970-01-04"},
    }
    refused = {each.line: each for each in rows if isinstance(each, RefusedRow)}
    assert {line: each.field for line, each in refused.items()} == {2: "occurred_at", 3: "day"}
    assert all("cannot be read" in each.reason for each in refused.values())
    assert refused[2].values["user_id"] == "b"
    assert refused[3].values["occurred_at"] == "1969-12-31T23:59:59.999999Z"


KINDS: list[tuple[Any, Any]] = [
    (pa.array([[]], pa.map_(pa.string(), pa.int64())), {}),
    (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), {"a": 1}),
    (
        pa.array([[("a", [("b", [])])]], pa.map_(pa.string(), pa.map_(pa.string(), pa.list_(pa.int8())))),
        {"a": {"b": []}},
    ),
    (pa.array([[]], pa.list_(pa.int64())), []),
    (
        pa.array([{"a": [], "b": None}], pa.struct({"a": pa.map_(pa.string(), pa.int8()), "b": pa.int8()})),
        {"a": {}, "b": None},
    ),
    (pa.array([1_583_053_200_000_000_999], pa.timestamp("ns", "UTC")), "2020-03-01T09:00:00Z"),
    (pa.array([-1_000], pa.timestamp("ns")), "1969-12-31T23:59:59.999999"),
    (pa.array([1_583_053_200], pa.timestamp("s", "America/New_York")), "2020-03-01T09:00:00Z"),
    (pa.array(["x"]).dictionary_encode(), "x"),
    (pa.array(["x"], pa.large_string()), "x"),
    (pa.array([b"x"], pa.large_binary()), "x"),
    (pa.array([Decimal("1.50")], pa.decimal128(10, 2)), 1.5),
    (pa.array([Decimal("2.00")], pa.decimal256(50, 2)), 2),
    (pa.array([np.float16(1.5)], pa.float16()), 1.5),
    (pa.array([[1]], pa.large_list(pa.uint64())), [1]),
]


@pytest.mark.parametrize(("column", "value"), KINDS, ids=lambda each: str(getattr(each, "type", "")))
def test_each_kind_of_parquet_is_read_as_json_has_it(tmp_path: Path, column: Any, value: Any) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"properties": column}), path)
    assert [each.values for each in read_rows(path)] == [{"properties": value}]


def test_a_map_that_has_a_name_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    column = pa.array([[("a", 1), ("a", 2)], [("a", 1)]], pa.map_(pa.string(), pa.int64()))
    pq.write_table(pa.table({"properties": column}), path)
    first, second = read_rows(path)
    assert (isinstance(first, RefusedRow), second) == (True, FileRow(2, {"properties": {"a": 1}}))


class Applied(HistoryFiles):
    """Files whose every event is in the ledger."""

    def _read_ledger(self, user_id: str) -> Any:
        at = parse_moment("2020-03-01T09:00:00Z")
        return {event_id(user_id, each, at): (date(2020, 3, 1), 5) for each in ("k", "l")}


def test_the_comparison_says_how_many_lines_became_how_many_events(tmp_path: Path) -> None:
    head, row = f"{HEADER},idempotency_key", f"{ROW},k"
    path = text(tmp_path / "a.csv", head, row, row, f"{ROW},l", row)
    files = Applied(None, cast("Any", None), BOOKS, NOW, lambda: Patience(0.0), NO_ERASURES)
    result = files.compare(path, tmp_path / "out.csv")
    assert result.counts == {SAME: 2, REPEATED: 2}
    assert "  4 lines are 2 events" in "\n".join(result.lines(path))
    with (tmp_path / "out.csv").open() as lines:
        assert [(each["line"], each["outcome"]) for each in csv.DictReader(lines)] == [
            ("2", SAME),
            ("3", REPEATED),
            ("4", SAME),
            ("5", REPEATED),
        ]
