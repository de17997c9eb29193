"""What Firehose could not place comes back once, and nothing of it is lost."""

import base64
import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from adapters.platform.objects import FolderObjects
from analytics.curation.recover import recover
from rules.lake.packed_records import framed, head_of

ROW = {"user_id": "u", "dt": "2026-01-02", "hour": "03"}
KEY = "errors/events/processing-failed/dt=2026-11-20/x"
TODAY = date(2026, 11, 21)
MOVED = "raw/events/arrived=2026-11-21/dt=2026-01-02/hour=03/recovered/processing-failed/dt=2026-11-20/x"


def record(row: Any) -> bytes:
    data = row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n"
    return json.dumps({"ErrorCode": "e", "rawData": base64.b64encode(data).decode()}).encode() + b"\n"


@pytest.fixture
def lake(tmp_path: Path) -> FolderObjects:
    return FolderObjects(tmp_path)


def test_rows_go_to_their_partitions(lake: FolderObjects) -> None:
    other = {**ROW, "hour": "04"}
    lake.put(KEY, record(ROW) + record(other) + record(ROW))
    assert recover(lake, TODAY) == (3, 0)
    assert lake.get(MOVED) == 2 * (json.dumps(ROW).encode() + b"\n")
    assert [each.key for each in lake.list("raw/")] == [MOVED, MOVED.replace("hour=03", "hour=04")]
    assert list(lake.list("errors/")) == []
    assert recover(lake, TODAY) == (0, 0)


def test_each_row_of_a_packed_record_goes_to_its_own_partition(lake: FolderObjects) -> None:
    other = {**ROW, "hour": "04"}
    texts = [json.dumps(each).encode() for each in (ROW, other, {**ROW, "user_id": "]}"})]
    lake.put(KEY, record(framed(head_of("2026-01-02", "03"), texts)) + record(ROW))
    assert recover(lake, TODAY) == (4, 0)
    assert lake.get(MOVED) == b"\n".join([texts[0], texts[2], texts[0], b""])
    assert lake.get(MOVED.replace("hour=03", "hour=04")) == texts[1] + b"\n"
    assert list(lake.list("errors/")) == []


def test_a_packed_record_that_was_cut_off_gives_its_whole_rows(lake: FolderObjects) -> None:
    text = json.dumps(ROW).encode()
    whole = framed(head_of("2026-01-02", "03"), [text] * 3)
    lake.put(KEY, record(whole[:-20]))
    assert recover(lake, TODAY) == (2, 1)
    assert lake.get(MOVED) == 2 * (text + b"\n")
    assert [each.key for each in lake.list("errors/")] == [KEY]


@pytest.mark.parametrize(
    "bad",
    [
        b"not json\n",
        b'{"rawData": 5}\n',
        record(b"\xff"),
        record(b"\n"),
        record(framed(head_of("2026-01-02", "03"), [b"not json"])),
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
    assert recover(lake, TODAY) == (1, 1)
    first = {each.key: each.etag for each in lake.list("")}
    assert set(first) == {KEY, MOVED}
    assert recover(lake, TODAY) == (1, 1)
    assert {each.key: each.etag for each in lake.list("")} == first
