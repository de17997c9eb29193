"""Rows that were packed come back byte for byte: whatever they hold, wherever the text was cut, in any mixture."""

import json
import shutil
import subprocess
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.lake.packed_records import (
    FRAME_BYTES,
    RowLine,
    frame_record,
    is_frame,
    pack_rows,
    record_header,
    row_line,
    row_text,
    row_texts,
)
from tests.support.raw_lake import event

PARTITION = {"dt": "2026-11-21", "hour": "05"}
# What could be taken for a line's end, a frame or the comma between two rows.
TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.sampled_from(["\nnull]}\n", "},\n", "null]}", "{", "\u2028"]),
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=3,
)
HOURS = st.builds(
    lambda days, hour: {"dt": str(date(2026, 11, 21) - timedelta(days)), "hour": f"{hour:02}"},
    st.integers(0, 2),
    st.integers(4, 6),
)
ROWS = st.lists(
    st.builds(lambda row, hour: row_line(row | hour), st.dictionaries(TEXT, JSON, max_size=4), HOURS),
    max_size=20,
)


@given(rows=ROWS, spare=st.integers(0, 300), plain=st.lists(st.booleans(), min_size=20, max_size=20))
def test_rows_come_back_in_the_order_of_their_hour(
    rows: list[RowLine], spare: int, plain: list[bool]
) -> None:
    size = max((len(row.text) for row in rows), default=0) + FRAME_BYTES + 2 + spare
    records = pack_rows(rows, size)
    assert sorted(index for each in records for index in each.indices) == list(range(len(rows)))
    assert all(len(each.data) <= size for each in records)
    by_hour: dict[bytes, list[int]] = {}
    for each in records:
        (head,) = {rows[index].head for index in each.indices}
        by_hour.setdefault(head, []).extend(each.indices)
        assert row_texts(each.data) == [rows[index].text for index in each.indices]
        assert json.loads(each.data) == {
            **json.loads(head + b"]}"),
            "rows": [*(json.loads(rows[at].text) for at in each.indices), None],
        }
        assert each.data.count(b"\n") == len(each.indices) + 2
    assert all(places == sorted(places) for places in by_hour.values())
    # Old rows stand among records, one a line.
    mixed = [(each.data, [rows[index].text for index in each.indices]) for each in records]
    mixed += [(row.text + b"\n", [row.text]) for row, is_old in zip(rows, plain, strict=False) if is_old]
    assert row_texts(b"".join(data for data, _ in mixed)) == [text for _, texts in mixed for text in texts]


def is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@given(rows=ROWS.filter(bool), cuts=st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_a_text_cut_anywhere_keeps_every_row_that_is_whole(rows: list[RowLine], cuts: list[float]) -> None:
    texts = [row.text for row in rows]
    record = frame_record(rows[0].head, texts)
    for at in {round(cut * len(record)) for cut in cuts} | {len(record) - back for back in range(1, 12)}:
        found = row_texts(record[:at])
        ends = [
            len(rows[0].head) + sum(len(text) + 2 for text in texts[: number + 1]) - 2
            for number in range(len(texts))
        ]
        whole = [text for text, end in zip(texts, ends, strict=True) if end <= at]
        assert found[: len(whole)] == whole
        assert len(found) <= len(whole) + 1
        for piece in found[len(whole) :]:  # the line that was cut: of the head, of a row, or of the end
            assert b"null".startswith(piece) or not is_json(piece)
        rest, behind = texts[len(found) :], row_texts(record[at:])  # the other half keeps the others
        assert behind[len(behind) - len(rest) :] == rest


@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 90)), max_size=60))
def test_no_record_could_have_taken_the_next_one_s_first_row(rows: list[tuple[int, int]]) -> None:
    lines = [row_line({"x": "x" * size, "dt": "2026-11-21", "hour": f"{hour:02}"}) for hour, size in rows]
    filled: dict[bytes, int] = {}
    for each in pack_rows(lines, 300):
        first = lines[each.indices[0]]
        assert filled.get(first.head, 300) + len(first.text) + 2 > 300
        filled[first.head] = len(each.data)


@pytest.mark.parametrize("text", [b"", b"{}\n", b"{\n}", b"[]", b"null]}", b'{"a":1', b'{"a":{},'])
def test_only_an_object_on_one_line_is_packed(text: bytes) -> None:
    with pytest.raises(ValueError, match="line of its own"):
        RowLine(record_header(**PARTITION), text)


@pytest.mark.parametrize(
    ("dt", "hour"), [("1-01-01", "05"), ("2026-11-21", "5"), ('2026-11-21","x":"', "05"), ("", "")]
)
def test_a_partition_that_raw_has_no_place_for_is_refused(dt: str, hour: str) -> None:
    with pytest.raises(ValueError, match="no partition"):
        row_line({"dt": dt, "hour": hour})


def test_a_row_that_no_record_holds_is_refused() -> None:
    row = row_line(event())
    fits = len(row.text) + FRAME_BYTES + 2
    assert len(pack_rows([row], fits)) == 1
    with pytest.raises(ValueError, match="a record holds"):
        pack_rows([row], fits - 1)


@given(st.one_of(st.binary(max_size=60), JSON.map(lambda value: json.dumps(value).encode())))
def test_no_row_is_taken_for_a_frame_nor_loses_anything_but_its_comma(line: bytes) -> None:
    if is_frame(line):
        with pytest.raises(ValueError):
            json.loads(line)
    assert row_text(line) in (line, line[:-1], line[:-2])
    if row_text(line) != line:
        assert line.removesuffix(b"\n") == row_text(line) + b","


@pytest.mark.parametrize("line", [b"null]}", b'{"dt":"2026-11-21","hour":"05","rows":['])
def test_frames_are_exact(line: bytes) -> None:
    assert is_frame(line)
    assert is_frame(line + b"\n")
    for other in (b" " + line, line + b" ", line + b"\r\n", line + b"\n\n", line[1:], line[:-1], line + line):
        assert not is_frame(other)


@pytest.mark.skipif(shutil.which("jq") is None, reason="what Firehose partitions by is jq, which is not here")
def test_jq_finds_the_partition() -> None:
    rows: list[dict[str, Any]] = [event(number, source="null]}\n") | PARTITION for number in range(500)]
    [record] = pack_rows([row_line(row) for row in rows], 2**20)
    found = subprocess.run(
        ["jq", "-c", "{dt: .dt, hour: .hour}"], input=record.data, capture_output=True, check=True
    )
    assert json.loads(found.stdout) == PARTITION
