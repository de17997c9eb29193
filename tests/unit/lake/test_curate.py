"""Curation of an hour or a day: what is kept, refused, merged, and upgraded."""

import gzip
import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapters.platform.objects import FolderObjects
from analytics.curation import row_staging
from analytics.curation.curate import RawGone, curate
from analytics.lake.arrow_schema import arrow_schema
from analytics.lake.bookkeeping import Counts, bookkeeping
from analytics.lake.layout import Place, curated_files
from rules.lake import entities
from rules.lake.entities import ENTITIES, EVENTS, Field, Type
from tests.support.raw_lake import (
    DAY,
    DT,
    PLACE,
    event,
    line,
    put_raw,
    quarantined,
    rows,
    table,
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
    "not JSON: NaN is no JSON value": line(event()).replace(b'"version":0', b'"version":NaN'),
    "not an object": b"[1]",
    "not UTF-8: byte 1": b"\xff\xfe",
}
KEPT = (
    event(1, source='caf\u00e9 \U0001f600 \\ " \n'),
    event(2, timezone=None, properties='{"a": "b"}'),
    event(3, points_awarded=2**63 - 1, version=-(2**63)),
    event(4, occurred_at=f"{DT}T07:30:00+02:00"),
    event(5, created_at=f"{DT}t05:00:00.123456789z"),
    event(6, activity_date="2024-02-29"),
    event(7, event_id="", user_id=""),
    json.dumps(event(8), indent=None, separators=(" , ", " : ")).encode() + b" \r",
)


@pytest.fixture(params=["line by line", "by columns", "on disk"])
def objects(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FolderObjects:
    """A lake; however lines are read, and wherever rows are held, the same must come of them."""
    monkeypatch.setattr(row_staging, "FEW_LINES", 10**9 if request.param == "line by line" else 0)
    if request.param == "on disk":
        monkeypatch.setattr(row_staging, "HELD_BYTES_MAX", 0)
    return FolderObjects(tmp_path)


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
    assert (by_key["k3"]["points_awarded"], by_key["k3"]["version"]) == (2**63 - 1, -(2**63))
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


def test_the_file_has_the_declared_schema(objects: FolderObjects) -> None:
    for name, some in (("a", []), ("b", [event(1)]), ("c", [event(2, timezone="UTC")])):
        put_raw(objects, name, [*some, b"nonsense"])
        curate(objects, PLACE, rebuild=True)
        assert table(objects).schema.remove_metadata() == arrow_schema(EVENTS)


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


def test_nothing_raw_makes_nothing(objects: FolderObjects) -> None:
    assert curate(objects, PLACE) == curate(objects, DAY) == curate(objects, PLACE, rebuild=True) == Counts()
    assert not list(objects.list(""))


def test_only_refused_lines_still_make_a_file(objects: FolderObjects) -> None:
    put_raw(objects, "a", [b"nonsense"])
    assert curate(objects, PLACE) == total(objects) == Counts(1, 0, 0, 1)
    assert rows(objects) == []


def test_the_newest_version_stays_and_the_first_among_equals(objects: FolderObjects) -> None:
    put_raw(objects, "a", [event(1, source="first"), event(1, source="second"), event(2, version=1)])
    curate(objects, PLACE)
    put_raw(objects, "0", [event(1, source="third"), event(2), event(3)])
    put_raw(objects, "b", [event(3, version=2, source="newest"), event(1, version=-1)])
    assert curate(objects, PLACE) == Counts(8, 3, 5, 0)
    assert [(row["source"], row["version"]) for row in rows(objects)] == [
        ("first", 0),
        ("app", 1),
        ("newest", 2),
    ]


def test_versions_may_be_timestamps(objects: FolderObjects) -> None:
    place = Place("daily_activity", DT, "00")
    day = {"user_id": "u", "activity_date": DT, "first_event_id": "e", "points_earned": 5}
    day |= {"created_at": f"{DT}T12:00:00Z", "dt": DT, "hour": "00"}
    heads = [f"{DT}T12:00:00.{micros:06}Z" for micros in (2, 3, 1)]
    put_raw(
        objects, "a", [day | {"events_count": n, "ledger_head": head} for n, head in enumerate(heads)], place
    )
    assert curate(objects, place) == Counts(3, 1, 2, 0)
    assert rows(objects, "daily_activity")[0]["events_count"] == 1


def test_an_opening_entry_lies_where_it_was_written(objects: FolderObjects) -> None:
    place = Place("ledger", DT, "05")
    entry = {"account_id": "u", "created_at": "1970-01-01T00:00:00.000000Z", "seq": 0, "kind": "OPEN"}
    entry |= {"points": 0, "balance": 0, "dt": DT, "hour": "05"}
    put_raw(objects, "a", [entry, entry | {"created_at": "1970-01-01T00:00:01Z"}], place)
    assert curate(objects, place) == Counts(2, 1, 0, 1)


def test_again_changes_nothing(objects: FolderObjects) -> None:
    put_raw(objects, "a", [event(1), event(1), b"nonsense"])
    first = curate(objects, PLACE)
    stored = list(objects.list(""))
    put_raw(objects, "a", [event(1), event(1), b"nonsense"])  # delivered twice
    assert curate(objects, PLACE) == first == total(objects)
    assert list(objects.list("")) == stored
    data = [objects.get(each.key) for each in stored]
    assert curate(objects, PLACE, rebuild=True) == first
    assert [objects.get(each.key) for each in objects.list("")] == data


def test_a_day_takes_the_place_of_its_hours(objects: FolderObjects) -> None:
    hours = [replace(PLACE, hour=hour) for hour in ("03", "05", "11")]
    for hour in hours:
        at = f"{DT}T{hour.hour}:00:00Z"
        some = [event(n, occurred_at=at, hour=hour.hour, event_id=f"{at}#{n}") for n in (1, 2, 1)]
        put_raw(objects, "a", [*some, b"nonsense"], hour)
    for hour in hours[:2]:
        curate(objects, hour)
    assert curate(objects, DAY) == total(objects) == Counts(12, 6, 3, 3)
    assert [each.key for each in objects.list("curated/")] == [f"curated/events/dt={DT}/day.parquet"]
    assert len(quarantined(objects)) == 3
    stored = list(objects.list("curated/"))
    assert curate(objects, DAY) == curate(objects, hours[0]) == Counts(12, 6, 3, 3)
    assert list(objects.list("curated/")) == stored
    put_raw(objects, "late", [event(9)])
    assert curate(objects, PLACE) == total(objects) == Counts(13, 7, 3, 3)
    assert [each.key for each in objects.list("curated/")] == [f"curated/events/dt={DT}/day.parquet"]


def test_readers_see_a_day_once_while_its_hours_are_still_there(objects: FolderObjects) -> None:
    put_raw(objects, "a", [event(1)])
    curate(objects, PLACE)
    hour = objects.get(curated_files(objects, "events")[0].key)
    curate(objects, DAY)
    objects.put(f"curated/events/dt={DT}/hour-05.parquet", hour)
    assert len(rows(objects)) == 1
    assert curated_files(objects, "events", DT, DT) == curated_files(objects, "events")
    assert curated_files(objects, "events", "2026-03-02", "2026-03-03") == []
    curate(objects, DAY)
    assert len(list(objects.list("curated/"))) == 1


def test_a_rebuild_refuses_to_lose_rows(objects: FolderObjects) -> None:
    key = put_raw(objects, "a", [event(1)])
    curate(objects, PLACE)
    objects.delete([key])
    assert curate(objects, PLACE) == Counts(1, 1, 0, 0)
    with pytest.raises(RawGone):
        curate(objects, PLACE, rebuild=True)
    assert len(rows(objects)) == 1


def test_a_grown_schema(objects: FolderObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new optional field: history stays as it is, merging upgrades it, a rebuild fills it in."""
    older = replace(EVENTS, fields=tuple(f for f in EVENTS.fields if f.name != "properties_ref"))
    grown = replace(EVENTS, fields=(*EVENTS.fields, Field("mood", Type.TEXT, "how it felt")))
    monkeypatch.setitem(ENTITIES, "events", older)
    put_raw(objects, "a", [event(1, mood="good", properties_ref="s3://b/k"), event(2)])
    curate(objects, PLACE)
    monkeypatch.setitem(ENTITIES, "events", grown)
    put_raw(objects, "b", [event(3, mood="fair")])
    assert curate(objects, PLACE) == Counts(3, 3, 0, 0)
    assert table(objects).schema.remove_metadata() == arrow_schema(grown)
    found = {row["idempotency_key"]: (row["mood"], row["extra"]) for row in rows(objects)}
    assert found == {
        "k1": (None, '{"mood":"good","properties_ref":"s3://b/k"}'),
        "k2": (None, None),
        "k3": ("fair", None),
    }
    curate(objects, PLACE, rebuild=True)
    assert {row["mood"] for row in rows(objects)} == {"good", "fair", None}
    assert all(row["extra"] is None for row in rows(objects))
    assert bookkeeping(objects, curated_files(objects, "events")[0].key).schema == len(grown.fields)


def test_a_widened_type_frees_what_was_refused(
    objects: FolderObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = tuple(replace(f, type=Type.TEXT) if f.name == "zone" else f for f in EVENTS.fields)
    strict = tuple(replace(f, type=Type.INTEGER) if f.name == "zone" else f for f in EVENTS.fields)
    monkeypatch.setitem(ENTITIES, "events", replace(EVENTS, fields=strict))
    put_raw(objects, "a", [event(1), event(2)])
    assert curate(objects, PLACE) == Counts(2, 0, 0, 2)
    monkeypatch.setitem(ENTITIES, "events", replace(EVENTS, fields=fields))
    assert curate(objects, PLACE, rebuild=True) == Counts(2, 2, 0, 0)
    assert quarantined(objects) == []


def test_narrow_types_of_old_files_are_widened(objects: FolderObjects) -> None:
    put_raw(objects, "a", [event(1), event(2)])
    curate(objects, PLACE)
    key = curated_files(objects, "events")[0].key
    old = pq.read_table(pa.BufferReader(objects.get(key)))
    at = old.schema.get_field_index("points_awarded")
    old = old.set_column(at, "points_awarded", old["points_awarded"].cast(pa.int32()))
    sink = pa.BufferOutputStream()
    pq.write_table(old, sink)
    objects.put(key, sink.getvalue().to_pybytes())
    put_raw(objects, "b", [event(3, points_awarded=2**40)])
    assert curate(objects, PLACE) == Counts(3, 3, 0, 0)
    assert table(objects).schema.remove_metadata() == arrow_schema(EVENTS)
    assert sorted(row["points_awarded"] for row in rows(objects)) == [5, 5, 2**40]


def test_lake_schema_is_the_contract() -> None:
    assert arrow_schema(EVENTS).names == [*(f.name for f in entities.EVENTS.fields), "extra"]
