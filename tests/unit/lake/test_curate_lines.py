"""Which raw lines are rows, and which are refused and kept with their reason."""

import gzip
import json
from datetime import UTC, date, datetime
from random import Random
from typing import Any

import pytest

from adapters.platform.objects import FolderObjects
from analytics.curation.curate import curate
from analytics.lake.bookkeeping import Counts
from analytics.lake.layout import Partition
from tests.support.mutated_lines import joined, texts_of
from tests.support.raw_lake import (
    DT,
    HOUR,
    PLACE,
    event,
    line,
    put_raw,
    quarantined,
    rows,
    total,
)

BAD = {
    'points_awarded: not an integer: "5"': event(points_awarded="5"),
    "points_awarded: not an integer: 1.5": event(points_awarded=1.5),
    "points_awarded: not an integer: 100.0": event(points_awarded=100.0),
    "points_awarded: not an integer: true": event(points_awarded=True),
    "points_awarded: beyond 64 bits: 9223372036854775808": event(points_awarded=2**63),
    "points_awarded: missing": event(points_awarded=None),
    "user_id: missing": event(user_id=...),
    "source: not text: 5": event(source=5),
    'properties: not text: {"a": 1}': event(properties={"a": 1}),
    'activity_date: not a date that exists: "2026-02-30"': event(activity_date="2026-02-30"),
    'activity_date: not a date: "2026-3-1"': event(activity_date="2026-3-1"),
    "activity_date: not a date: 20260301": event(activity_date=20260301),
    'created_at: must be an RFC 3339 timestamp with Z or an offset: "2026-03-01"': event(created_at=DT),
    "created_at: not a timestamp: 1772341200": event(created_at=1772341200),
    'dt: "2026-03-02" in the partition 2026-03-01': event(dt="2026-03-02"),
    'hour: "06" in the partition 05': event(hour="06"),
    "hour: missing": event(hour=...),
    "occurred_at: outside the partition 2026-03-01 05": event(occurred_at=f"{DT}T06:00:00Z"),
    'source: holds a NUL, which the warehouse cannot: "a\\u0000b"': event(source="a\0b"),
    "not JSON: half of a surrogate pair": event(source="\ud800"),
    "not JSON: NaN is no JSON value": line(event()).replace(b'"points_awarded":5', b'"points_awarded":NaN'),
    "not an object": b"[1]",
    "not UTF-8: byte 1": b"\xff\xfe",
}
KEPT = (
    event(1, source='caf\u00e9 \U0001f600 \\ " \n'),
    event(2, timezone=None, properties='{"a": "b"}'),
    event(3, points_awarded=2**63 - 1, rules_version=-(2**63)),
    event(4, occurred_at=f"{DT}T07:30:00+02:00"),
    event(5, created_at=f"{DT}t05:00:00.123456789z"),
    event(6, activity_date="2024-02-29"),
    event(7, event_id="", user_id=""),
    json.dumps(event(8), indent=None, separators=(" , ", " : ")).encode() + b" \r",
)


def test_refused_lines_are_kept_with_place_and_reason(objects: FolderObjects) -> None:
    key = put_raw(objects, "a", [event(1), *BAD.values(), b"{", b"", b"  ", event(2)])
    counts = curate(objects, PLACE)
    assert counts == Counts(in_=len(BAD) + 3, curated=2, duplicates=0, quarantined=len(BAD) + 1)
    entries = quarantined(objects)
    assert [each["reason"] for each in entries[:-1]] == list(BAD)
    assert [each["line"] for each in entries] == list(range(2, len(BAD) + 3))
    assert {each["source"] for each in entries} == {key}
    assert entries[0]["raw"].encode() == line(event(points_awarded="5"))
    assert entries[-2]["raw_base64"] == "//4="
    assert entries[-1]["reason"].startswith("not JSON")


def test_odd_but_valid_lines_are_rows(objects: FolderObjects) -> None:
    put_raw(objects, "a", KEPT)
    assert curate(objects, PLACE) == Counts(len(KEPT), len(KEPT), 0, 0)
    by_key = {row["idempotency_key"]: row for row in rows(objects)}
    assert by_key["k1"]["source"] == 'caf\u00e9 \U0001f600 \\ " \n'
    assert (by_key["k2"]["timezone"], by_key["k2"]["properties"]) == (None, '{"a": "b"}')
    assert (by_key["k3"]["points_awarded"], by_key["k3"]["rules_version"]) == (2**63 - 1, -(2**63))
    assert by_key["k4"]["occurred_at"] == datetime(2026, 3, 1, 5, 30, tzinfo=UTC)
    assert by_key["k5"]["created_at"] == datetime(2026, 3, 1, 5, 0, 0, 123456, UTC)
    assert by_key["k6"]["activity_date"] == date(2024, 2, 29)


def test_unknown_fields_are_kept_as_json(objects: FolderObjects) -> None:
    put_raw(objects, "a", [event(1, b={"y": [1.50, None], "x": "\u00e9"}, a=10**30, extra=1), event(2)])
    curate(objects, PLACE)
    assert [row["extra"] for row in rows(objects)] == [
        '{"a":1000000000000000000000000000000,"b":{"x":"\u00e9","y":[1.5,null]},"extra":1}',
        None,
    ]


def test_objects_gzipped_plain_and_of_many_members(objects: FolderObjects) -> None:
    put_raw(objects, "a", [event(1)], zipped=False)
    parts = [gzip.compress(line(event(number)) + b"\n") for number in (2, 3)]
    objects.put(put_raw(objects, "b", []), b"".join(parts))
    assert curate(objects, PLACE) == Counts(3, 3, 0, 0)


@pytest.mark.parametrize("spoiled", [lambda data: data[:-20], lambda data: b"\x1f\x8b nonsense"])
def test_an_unreadable_object_is_one_refused_row(objects: FolderObjects, spoiled: Any) -> None:
    put_raw(objects, "a", [event(1)])
    key = put_raw(objects, "b", [event(number) for number in range(50)])
    objects.put(key, spoiled(objects.get(key)))
    assert curate(objects, PLACE) == Counts(2, 1, 0, 1)
    assert quarantined(objects)[0] | {"reason": ""} == {"source": key, "line": 0, "reason": ""}


def test_only_refused_lines_still_make_a_file(objects: FolderObjects) -> None:
    put_raw(objects, "a", [b"nonsense"])
    assert curate(objects, PLACE) == total(objects) == Counts(1, 0, 0, 1)
    assert rows(objects) == []


@pytest.mark.parametrize("others", [0, 100], ids=["line by line", "by columns"])
def test_a_webhook_of_75_kb_is_refused_and_its_neighbours_stay(objects: FolderObjects, others: int) -> None:
    """The warehouse's column holds 65,535 bytes: one such row would stop the load of all tables."""
    place = Partition("lead_events", DT, HOUR)
    lines = [joined(texts_of(Random(number), place)) for number in range(1 + others)]
    long = joined(texts_of(Random(7), place) | {b'"payload"': b'"%s"' % (b"x" * 75_000)})
    put_raw(objects, "a", [*lines, long], place)
    counts = curate(objects, place)
    assert (counts.in_, counts.quarantined) == (2 + others, 1)
    (entry,) = quarantined(objects)
    assert entry["reason"].startswith("payload: 75000 bytes, and its column holds 65535: ")
    assert entry["raw"] == long.decode()
