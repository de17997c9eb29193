"""Packed records are read by columns as read_row reads their lines, however a text was spoiled."""

from random import Random
from unittest import mock

import pytest

from analytics.curation import column_reader
from analytics.lake.layout import Partition
from rules.lake.entities import ENTITIES
from rules.lake.packed_records import frame_record, is_frame, record_header
from tests.support.column_reading import (
    LEFT,
    LINES,
    TAKEN,
    as_read_row,
    lines_of,
    read_by_columns,
    read_text,
    written,
)
from tests.support.packed_texts import lines_of as text_lines
from tests.support.packed_texts import packed_text, spoiled
from tests.support.raw_lake import DT, PLACE, event, line


def test_which_lines_of_a_record_are_read_by_columns() -> None:
    lines = [line(event(number)) for number in range(20)] + list(map(written, TAKEN))
    text = frame_record(record_header(DT, "05"), [*lines, *map(written, LEFT[:-2])])
    taken, left = read_text(text, PLACE)
    assert sorted(taken) == list(range(1, len(lines) + 1))
    assert len(left) == len(LEFT) - 2


@pytest.mark.parametrize(
    "end", [b"", b",", b" ,", b", ", b",\r", b"\r,", b"\r", b" ", b",,", b",\t", b",x", b",null", b"]}"]
)
def test_lines_of_any_end_are_read_as_read_row_reads_them(end: bytes) -> None:
    lines = [line(event(number)) + end for number in range(20)]
    rows, left = read_by_columns(lines, PLACE)
    wanted = {at: row for at, each in enumerate(lines) if (row := as_read_row(each, PLACE))}
    assert len(wanted) == (20 if not end.strip() or end == b"," else 0)
    assert rows == wanted
    assert left == [at for at in range(20) if at not in wanted]


@pytest.mark.parametrize("entity", ENTITIES)
def test_mutated_packed_texts_are_read_as_read_row_reads_them(entity: str) -> None:
    chance = Random(entity)
    read = valid = taken = frames = 0
    while read < LINES / len(ENTITIES):
        place = Partition(entity, DT, chance.choice(("00", "00", "00", "05")))
        lines, odd = lines_of(chance, place)
        text = packed_text(chance, place, [*lines, *chance.sample(odd, len(odd) // 4), *lines])
        text = spoiled(chance, text)
        found = text_lines(text)
        wanted = {at: as_read_row(each, place) for at, each in enumerate(found) if not is_frame(each)}
        with mock.patch.object(column_reader, "LINES_AT_ONCE", chance.choice((7, 1000, 1000, 1000))):
            rows, left = read_text(text, place)
        assert sorted([*rows, *left]) == list(wanted)
        for index, row in rows.items():
            assert row == wanted[index], found[index]
        read, frames = read + len(wanted), frames + len(found) - len(wanted)
        valid, taken = valid + sum(row is not None for row in wanted.values()), taken + len(rows)
    assert taken > 0.25 * valid > 0.02 * read
    assert frames > 0.1 * read
