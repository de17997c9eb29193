"""What is read by columns is what read_row returns: shown by valid lines of every entity, and by mutated ones.

The tests read some thousand mutated lines. MUTATED_LINES asks for more:

    MUTATED_LINES=1000000 uv run --frozen pytest tests/unit/lake/test_column_reader.py -k mutated
"""

import re
from datetime import datetime
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.curation import column_reader
from analytics.curation.column_reader import Fields, read_values
from analytics.lake.arrow import arrow_schema
from analytics.lake.layout import Partition
from rules.lake.entities import ENTITIES, EVENTS, Type, row_of
from rules.lake.packed_records import row_line
from rules.lake.valid_row import RowRefused, read_value
from tests.support.column_reading import LEFT, LINES, TAKEN, as_read_row, lines_of, read_by_columns, written
from tests.support.examples import examples
from tests.support.raw_lake import DT, PLACE, event, line
from tests.support.table_items import ITEMS


def test_which_lines_are_read_by_columns() -> None:
    lines = [line(event(number)) for number in range(20, 40)] + list(map(written, TAKEN))
    taken, left = read_by_columns(lines + list(map(written, LEFT)), PLACE)
    assert sorted(taken) == list(range(len(lines)))
    assert len(left) == len(LEFT)


@pytest.mark.parametrize("name", ITEMS)
def test_what_the_publisher_writes_is_read_by_columns(name: str) -> None:
    """A line that is left over takes ten times as long: a number of 19 digits once was too long."""
    chance, entity = Random(name), ENTITIES[name]
    moment = datetime.fromisoformat(f"{DT}T00:00:00Z")
    rows = [row_of(entity, ITEMS[name](chance, moment), moment) for _ in range(100)]
    taken, left = read_by_columns([row_line(each).text for each in rows], Partition(name, DT, "00"))
    assert (len(taken), left) == (len(rows), [])


HIDDEN = [  # fields that are no fields of the line's object, or not the first of their name
    (b'"points_awarded":5', b'"x":{"p" :1,"points_awarded":5,"y":2}'),
    (b'"points_awarded":5', b'"x":{"p" :1},"points_awarded":5,"y":{"q" :[1]}'),
    (b'"source":"app"', b'"source":"app","\\u0073ource":"b"'),
    (b'"source":"app"', b'"\\u0073ource":"b","source":"app"'),
    (b'"source":"app"', b'"source":"app","a":1,"a":2'),
    (b'"source":"app"', b'"source":"app","a":1,"zone" :"b"'),
    (b'"source":"app"', b'"source":"app","a":[1,2.50,[]],"b":"\\u00e9","c":-0'),
    (b'"source":"app"', b'"source":"app","a":[1,"b":2]'),
    (b'"source":"app"', b'"source":"app\\\\","a":"\\\\\\""'),
    (b'"source":"app"', b'"source":"app\\","a":"b"'),
    (b'"source":"app"', b'"source":"app\\\\\\","a":"b"'),
    (b'"source":"app"', b'"source":"\\\\\\/\\b\\f\\n\\r\\t\\""'),
    (b'"source":"app"', b'"source":"\\u000a\\ud83d\\ude00"'),
    (b'"source":"app"', b'"source":"\\u0000"'),
    (b'"source":"app"', b'"source":"\\ud83d","a":"\\ude00"'),
]


def test_what_looks_like_a_field_is_read_as_read_row_reads_it() -> None:
    plain = line(event(20))
    odd = [plain.replace(*each) for each in HIDDEN]
    assert plain not in odd
    for lines in ([each] * 3 for each in odd), [[each for one in odd for each in (plain, one)]]:
        for some in lines:
            rows, left = read_by_columns(some, PLACE)
            assert sorted([*rows, *left]) == list(range(len(some)))
            assert all(as_read_row(some[index], PLACE) == row for index, row in rows.items())


def test_one_timestamp_of_another_form_costs_no_other_line_its_place() -> None:
    lines = [line(event(number)) for number in range(300)]
    lines[7] = line(event(7, created_at=f"{DT}T05:00:00Z"))
    lines[150] = line(event(150, created_at=f"{DT}T05:61:00.000000Z"))
    rows, left = read_by_columns(lines, PLACE)
    assert left == [7, 150]
    assert all(as_read_row(lines[index], PLACE) == row for index, row in rows.items())


@pytest.mark.parametrize("entity", ENTITIES)
def test_mutated_lines_are_read_as_read_row_reads_them(entity: str) -> None:
    chance = Random(entity)
    read = valid = taken = 0
    while read < LINES / len(ENTITIES):
        place = Partition(entity, DT, chance.choice(("00", "00", "00", "05")))
        lines, odd = lines_of(chance, place)
        wanted = [as_read_row(each, place) for each in lines + odd]
        order = chance.choice((range(len(wanted)), chance.sample(range(len(wanted)), len(wanted))))
        with mock.patch.object(column_reader, "LINES_AT_ONCE", chance.choice((7, 1000, 1000, 1000))):
            rows, left = read_by_columns([(lines + odd)[at] for at in order], place)
        assert sorted([*rows, *left]) == list(range(len(wanted)))
        for index, row in rows.items():
            assert row == wanted[order[index]], (lines + odd)[order[index]]
        read += len(wanted)
        valid += sum(row is not None for row in wanted[: len(lines)])
        taken += sum(order[index] < len(lines) for index in rows)
    # The test would show nothing if lines were not read by columns at all.
    assert taken > 0.25 * valid > 0.01 * read


STAMPS = r"[0-9]{4}-[0-1][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9]\.[0-9]{6}Z"
TYPED = {
    Type.TIMESTAMP: st.one_of(
        st.from_regex(STAMPS, fullmatch=True),
        st.datetimes().map(lambda moment: moment.isoformat(timespec="microseconds") + "Z"),
        st.text(st.sampled_from("0129-:.TZ+ "), min_size=27, max_size=27),
    ),
    Type.DATE: st.one_of(st.dates().map(str), st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", fullmatch=True)),
    Type.INTEGER: st.one_of(
        st.one_of(st.integers(), st.integers(-(2**63) - 9, -(2**62)), st.integers(2**62, 2**63 + 9)).map(str),
        st.text(st.sampled_from("-+0159x.e "), max_size=4),
    ),
}

SURELY_READ = {
    Type.TIMESTAMP: rb"[12]\d{3}-\d\d-([01]\d|2[0-8])T.{15}Z",
    Type.INTEGER: rb"-?(\d{1,18}|[1-8]\d{18})",
}


@given(data=st.data(), name=st.sampled_from(["created_at", "activity_date", "rules_version"]))
@settings(max_examples=examples(150))
def test_values_are_taken_as_read_value_reads_them(data: Any, name: str) -> None:
    field = EVENTS.field(name)
    texts = [each.encode() for each in data.draw(st.lists(TYPED[field.type], min_size=1, max_size=5))]
    ends = np.cumsum([len(each) + 1 for each in texts]).astype(np.int32) - 1
    starts = (ends - [len(each) for each in texts]).astype(np.int32)
    numbers = np.arange(len(texts), dtype=np.int32)
    column = read_values(Fields(b",".join(texts) + b",", numbers, numbers, starts, ends), field)
    assert column.type == arrow_schema(EVENTS).field(name).type
    surely_read = SURELY_READ.get(field.type)
    for text, is_valid, value in zip(texts, column.is_valid().to_pylist(), column.to_pylist(), strict=True):
        try:
            wanted = read_value(field, text if field.type is Type.INTEGER else b'"' + text + b'"')
        except RowRefused:
            assert not is_valid
        else:
            assert not is_valid or value == wanted
            assert is_valid or (surely_read and not re.fullmatch(surely_read, text))
