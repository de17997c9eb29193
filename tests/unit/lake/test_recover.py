"""What Firehose could not place comes back once, and nothing of it is lost."""

import base64
import gzip
import json
from datetime import date
from pathlib import Path
from typing import Any, ClassVar

import pytest

from adapters.platform.objects import FolderObjects
from analytics.curation.recover import recover
from rules.lake.packed_records import frame_record, record_header

ROW = {"user_id": "u", "dt": "2026-01-02", "hour": "03"}
KEY = "errors/events/processing-failed/dt=2026-11-20/x"
TODAY = date(2026, 11, 21)
MOVED = "raw/events/arrived=2026-11-21/dt=2026-01-02/hour=03/recovered/processing-failed/dt=2026-11-20/x"


def record(row: Any) -> bytes:
    data = row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n"
    return json.dumps({"ErrorCode": "e", "rawData": base64.b64encode(data).decode()}).encode() + b"\n"


def moved_and_left(lake: FolderObjects, day: date = TODAY) -> tuple[int, int]:
    said: dict[str, str] = {}
    found = recover(lake, day, said.__setitem__)
    assert said.keys() == {each.key for each in lake.list("errors/")}, "what stays is told"
    return found


@pytest.fixture
def lake(tmp_path: Path) -> FolderObjects:
    return FolderObjects(tmp_path)


def test_rows_go_to_their_partitions(lake: FolderObjects) -> None:
    other = {**ROW, "hour": "04"}
    lake.put(KEY, record(ROW) + record(other) + record(ROW))
    assert moved_and_left(lake) == (3, 0)
    assert lake.get(MOVED) == 2 * (json.dumps(ROW).encode() + b"\n")
    assert [each.key for each in lake.list("raw/")] == [MOVED, MOVED.replace("hour=03", "hour=04")]
    assert list(lake.list("errors/")) == []
    assert moved_and_left(lake) == (0, 0)


def test_each_row_of_a_packed_record_goes_to_its_own_partition(lake: FolderObjects) -> None:
    other = {**ROW, "hour": "04"}
    texts = [json.dumps(each).encode() for each in (ROW, other, {**ROW, "user_id": "]}"})]
    lake.put(KEY, record(frame_record(record_header("2026-01-02", "03"), texts)) + record(ROW))
    assert moved_and_left(lake) == (4, 0)
    assert lake.get(MOVED) == b"\n".join([texts[0], texts[2], texts[0], b""])
    assert lake.get(MOVED.replace("hour=03", "hour=04")) == texts[1] + b"\n"
    assert list(lake.list("errors/")) == []


def test_a_packed_record_that_was_cut_off_gives_its_whole_rows(lake: FolderObjects) -> None:
    text = json.dumps(ROW).encode()
    whole = frame_record(record_header("2026-01-02", "03"), [text] * 3)
    lake.put(KEY, record(whole[:-20]))
    assert moved_and_left(lake) == (2, 1)
    assert lake.get(MOVED) == 2 * (text + b"\n")
    assert [each.key for each in lake.list("errors/")] == [KEY]


@pytest.mark.parametrize(
    "bad",
    [
        b"not json\n",
        b'{"rawData": 5}\n',
        record(b"\xff"),
        record(b"\n"),
        record(frame_record(record_header("2026-01-02", "03"), [b"not json"])),
        record([1]),
        record({"dt": "2026-01-02"}),
        record({**ROW, "hour": "24"}),
        record({**ROW, "dt": "2026-1-2"}),
        record({**ROW, "dt": 5}),
        record({**ROW, "dt": "../x"}),
    ],
)
def test_what_belongs_nowhere_stays_for_an_operator(lake: FolderObjects, bad: bytes) -> None:
    lake.put(KEY, record(ROW) + bad)
    assert moved_and_left(lake) == (1, 1)
    first = {each.key: each.etag for each in lake.list("")}
    assert set(first) == {KEY, MOVED}
    assert lake.get(KEY) == bad
    for day in (TODAY, date(2026, 11, 22)):
        assert moved_and_left(lake, day) == (0, 1)
    assert {each.key: each.etag for each in lake.list("")} == first


RECORDS = [record({**ROW, "event_id": f"e{number}"}) for number in range(9)]
LINES, ONE_LINE = b"".join(RECORDS), b"".join(each.strip() for each in RECORDS)
INDENTED = b"\n".join(json.dumps(json.loads(each), indent=2).encode() for each in RECORDS)
LIST = [json.loads(each) for each in RECORDS]
LAYOUTS = {
    "lines": LINES,
    "one line": ONE_LINE,
    "indented": INDENTED,
    "list": json.dumps(LIST).encode(),
    "indented list": json.dumps(LIST, indent=1).encode(),
    "byte order mark": b"\xef\xbb\xbf" + LINES,
    "CRLF": LINES.replace(b"\n", b"\r\n"),
    "blank lines": b"\n \n" + LINES.replace(b"\n", b"\n\n"),
}
ZIPPED = (
    gzip.compress,
    lambda text: gzip.compress(text[:333]) + gzip.compress(text[333:]),
    lambda text: gzip.compress(text) + bytes(512),
)


@pytest.mark.parametrize(
    ("layout", "zipped"), [*((layout, bytes) for layout in LAYOUTS), *(("lines", each) for each in ZIPPED)]
)
def test_however_an_error_object_is_laid_out(lake: FolderObjects, layout: str, zipped: Any) -> None:
    lake.put(KEY, zipped(LAYOUTS[layout]))
    assert moved_and_left(lake) == (9, 0)
    moved = [json.loads(line)["event_id"] for line in lake.get(MOVED).splitlines()]
    assert moved == [f"e{number}" for number in range(9)]
    assert list(lake.list("errors/")) == []


@pytest.mark.parametrize(
    "between",
    [
        b"garbage",
        b"garbage\n",
        b'{"rawData": "',
        b'{"a": [{"b": \n',
        b"\xff\xfe\n",
        b"]]}\n",
        b"5\n",
        b"null",
    ],
)
@pytest.mark.parametrize("text", [LINES, ONE_LINE], ids=["lines", "one line"])
def test_what_stands_between_records_stays_alone(lake: FolderObjects, text: bytes, between: bytes) -> None:
    """A record right behind it, in the same line, cannot be told from it: it stays, and is not lost."""
    at = len(b"".join(each if text is LINES else each.strip() for each in RECORDS[:4]))
    lake.put(KEY, text[:at] + between + text[at:])
    moved, left = moved_and_left(lake)
    assert moved == (9 if between.endswith(b"\n") else 8)
    assert left >= 1
    stays = lake.get(KEY)
    kept = {json.loads(line)["event_id"] for line in lake.get(MOVED).splitlines()}
    assert all(each.strip() in stays or f"e{number}" in kept for number, each in enumerate(RECORDS))
    assert moved_and_left(lake, date(2026, 11, 22)) == (0, left)


@pytest.mark.parametrize("cut", [1, 8, 30])
def test_an_object_that_was_cut_off_gives_its_whole_members(lake: FolderObjects, cut: int) -> None:
    rest = gzip.compress(ONE_LINE[600:])[:-cut]
    lake.put(KEY, gzip.compress(b"".join(RECORDS[:3])) + rest)
    said: dict[str, str] = {}
    assert recover(lake, TODAY, said.__setitem__) == (3, 1)
    assert said[KEY].startswith(f"{len(rest)} of ")
    assert "cannot be unzipped" in said[KEY]
    assert lake.get(KEY) == rest, "for an operator, who may have more luck"
    assert moved_and_left(lake, date(2026, 11, 22)) == (0, 1)


def test_a_record_with_some_rows_astray_keeps_these(lake: FolderObjects) -> None:
    good, bad = json.dumps(ROW).encode(), json.dumps({**ROW, "hour": "99"}).encode()
    lake.put(KEY, gzip.compress(record(good + b"\n" + bad + b"\n" + good)))
    assert moved_and_left(lake) == (2, 1)
    (left,) = gzip.decompress(lake.get(KEY)).splitlines()
    assert json.loads(left)["ErrorCode"] == "e"
    assert base64.b64decode(json.loads(left)["rawData"]) == bad + b"\n"
    assert moved_and_left(lake, date(2026, 11, 22)) == (0, 1)


class InBetween(FolderObjects):
    """A folder in which another night recovers too, before a write of this one."""

    writes: ClassVar[list[int]] = []

    def _other(self) -> None:
        if self.writes and self.writes.pop() == 0:
            recover(FolderObjects(self.root), TODAY, lambda _key, _reason: None)

    def put(self, key: str, data: bytes) -> None:
        self._other()
        super().put(key, data)

    def put_if(self, key: str, data: bytes | Path, etag: str | None) -> None:
        self._other()
        super().put_if(key, data, etag)

    def delete_if(self, key: str, etag: str) -> None:
        self._other()
        super().delete_if(key, etag)


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("bad", [b"", b"not json\n"])
def test_two_nights_at_once_move_each_row_and_keep_the_rest(tmp_path: Path, bad: bytes, at: int) -> None:
    lake = InBetween(tmp_path)
    lake.put(KEY, gzip.compress(record(ROW) + record({**ROW, "hour": "04"}) + bad))
    InBetween.writes[:] = [1] * (3 - at) + [0] + [1] * at
    recover(lake, TODAY, lambda _key, _reason: None)
    InBetween.writes.clear()
    assert {each.key for each in lake.list("raw/")} == {MOVED, MOVED.replace("hour=03", "hour=04")}
    assert lake.get(MOVED) == json.dumps(ROW).encode() + b"\n"
    assert [gzip.decompress(lake.get(each.key)) for each in lake.list("errors/")] == ([bad] if bad else [])


def test_objects_of_no_entity_are_told(lake: FolderObjects) -> None:
    for key in ("errors/x", "errors/other/x", "errors/event/x"):
        lake.put(key, record(ROW))
    assert moved_and_left(lake) == (0, 3)


def test_an_empty_object_goes(lake: FolderObjects) -> None:
    for number, data in enumerate([b"", b"\n", gzip.compress(b""), b"\xef\xbb\xbf", b"[]"]):
        lake.put(f"errors/events/{number}", data)
    assert moved_and_left(lake) == (0, 0)
