"""A line is read by its shape, by the pattern, or by itself, in memory or on disk: the same rows each way."""

import gzip
import json
import re
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects
from analytics.curation import intake, line_shapes, row_staging, small_staging
from analytics.curation.curate import curate
from analytics.curation.line_pattern import VALUES
from analytics.curation.line_shapes import Shapes, shape_of
from analytics.curation.raw_lines import batches, unpacked
from analytics.curation.value_columns import Cuts, read_values
from analytics.lake.arrow_schema import arrow_schema
from analytics.lake.bookkeeping import Counts
from rules.lake.entities import EVENTS, Type
from tests.support.raw_lake import (
    DT,
    PLACE,
    event,
    expected,
    line,
    put_raw,
    quarantined,
    rows,
)

SHAPED = [
    event(1, source="caf\u00e9", properties='{"a":"b"}'),
    event(2, source="x, ", zone=""),
    event(3, properties='{"a":1,"b":2}', timezone="UTC"),
    dict(reversed(event(4).items())),
]
UNSHAPED = [
    event(4, user_id="ends in a comma,"),
    event(5, source="a\nb"),
    event(6, source="\\"),
    event(7, points_awarded="5"),
    event(8, activity_date="2026-02-30"),
    event(9, occurred_at=f"{DT}T06:00:00.000000Z"),
    event(10, created_at=f"{DT}T05:61:00.000000Z"),
    event(11, user_id=...),
    event(12, hour="06"),
    line(event(13)).replace(b'"version"', b'"Version"'),
    line(event(14)) + b"}",
    line(event(15)).replace(b'"app"', b'"a\x01p"'),
    line(event(16)).replace(b'"app"', b'"a\xffp"'),
    line(event(17)).replace(b'"app"', b'"a" p"'),
    line(event(18)).replace(b":5,", b":05,"),
    line(event(19))[:100],
    b"",
    b"null",
]


def by_shape(lines: list[bytes]) -> set[int]:
    [batch] = batches([("a", b"\n".join(lines))])
    return {int(index) for _, found in Shapes().read(batch, PLACE) for index in found}


def test_what_is_read_by_shape() -> None:
    """Every line that it takes is valid, and what the publisher writes is taken."""
    plain = [line(event(number)) for number in range(20, 40)]
    lines = plain + list(map(_raw, SHAPED + UNSHAPED))
    assert by_shape(lines) == set(range(len(plain) + len(SHAPED)))


def _raw(row: Any) -> bytes:
    return (
        row if isinstance(row, bytes) else json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode()
    )


@pytest.mark.parametrize(
    "broken", [b"", b"null", b"{}", b'{"dt":"x"}', line(event(dt="2026-03-02")), line(event(1, mood="good"))]
)
def test_lines_without_a_shape(broken: bytes) -> None:
    assert shape_of(broken + b"\n", PLACE) is None
    assert shape_of(line(event()) + b"\n", PLACE)


@pytest.mark.parametrize("held", [0, 3_000, 10**9])
@pytest.mark.parametrize("at_once", [1, 7, 10**6])
def test_memory_or_disk(tmp_path: Any, held: int, at_once: int) -> None:
    """Duplicates and versions across objects, merged with what was curated before."""
    some = [event(number % 9, version=number % 4, points_awarded=number) for number in range(60)]
    lines = [*map(_raw, some), *map(_raw, SHAPED + UNSHAPED)]
    wanted, counts = expected(lines)
    with (
        mock.patch.object(small_staging, "BYTES_MAX", -1),
        mock.patch.object(row_staging, "HELD_BYTES_MAX", held),
        mock.patch.object(line_shapes, "LINES_AT_ONCE", at_once),
    ):
        objects = FolderObjects(tmp_path)
        put_raw(objects, "a", lines[:40])
        curate(objects, PLACE)
        put_raw(objects, "b", lines[40:])
        assert curate(objects, PLACE) == counts
    assert rows(objects) == wanted
    assert len(quarantined(objects)) == counts.quarantined


def test_many_lines_of_the_publisher_are_not_read_singly(tmp_path: Any) -> None:
    objects = FolderObjects(tmp_path)
    put_raw(objects, "a", [event(number, properties='{"a":"b"}') for number in range(500)])
    alone = mock.Mock(side_effect=AssertionError)
    with mock.patch.object(small_staging, "BYTES_MAX", -1), mock.patch.object(intake, "read_row", alone):
        assert curate(objects, PLACE) == Counts(500, 500, 0, 0)


DIGITS = st.from_regex(
    r"[0-9]{4}-[0-1][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9]\.[0-9]{6}Z", fullmatch=True
)
TYPED = {
    Type.TIMESTAMP: st.one_of(
        DIGITS,
        st.from_regex(VALUES[Type.TIMESTAMP], fullmatch=True),
        st.text(st.sampled_from("0129-:.TZ+ "), min_size=27, max_size=27),
    ),
    Type.DATE: st.one_of(st.dates().map(str), st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", fullmatch=True)),
    Type.INTEGER: st.one_of(st.integers().map(str), st.text(st.sampled_from("-+0159x.e "), max_size=4)),
}


@given(data=st.data(), name=st.sampled_from(["created_at", "activity_date", "version"]))
@settings(max_examples=150, deadline=None)
def test_values_are_valid_as_the_pattern_says(data: Any, name: str) -> None:
    field = EVENTS.field(name)
    texts = [each.encode() for each in data.draw(st.lists(TYPED[field.type], min_size=1, max_size=5))]
    ends = np.cumsum([len(each) + 1 for each in texts]).astype(np.int32) - 1
    starts = (ends - [len(each) for each in texts]).astype(np.int32)
    valid = np.ones(len(texts), np.bool_)
    column = read_values(valid, Cuts(b",".join(texts) + b",", starts, ends), field, PLACE)
    fits = re.compile(VALUES[field.type].encode(), re.ASCII)
    assert valid.tolist() == [fits.fullmatch(each) is not None for each in texts]
    assert column.type == arrow_schema(EVENTS).field(name).type
    assert column.filter(pa.array(valid)).null_count == 0


def test_objects_that_look_like_many_members() -> None:
    one = gzip.compress(b"abc\n")
    assert unpacked(one) == b"abc\n"
    assert unpacked(one + one) == b"abc\nabc\n"
    assert unpacked(gzip.compress(b"\x1f\x8b\x08" * 3, 0)) == b"\x1f\x8b\x08" * 3
    assert unpacked(gzip.compress(b"")) == b""
