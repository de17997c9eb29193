"""Raw objects for tests of the lake, and what curation must make of them by a plain reading of the rules."""

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import Objects
from analytics.lake.bookkeeping import Counts, bookkeeping_of
from analytics.lake.layout import Partition, curated_files, raw_prefix
from rules.days import key_of_stamp
from rules.lake.entities import ENTITIES
from rules.lake.packed_records import frame_record, is_frame, record_header
from rules.lake.valid_row import RowRefused, read_row

DT, HOUR = "2026-03-01", "05"
PLACE = Partition("events", DT, HOUR)
ARRIVED = f"{datetime.now(UTC):%Y-%m-%d}"  # an object is really stored today, and nights look by that
DAY, MONTH = Partition("events", DT, None), Partition("events", DT[:7], None)


def event(number: int = 0, **changes: Any) -> dict[str, Any]:
    """A raw row of events; a change to ... leaves the field out."""
    at = f"{DT}T{HOUR}:00:00.{number:06}Z"
    row = {
        "event_id": f"{key_of_stamp(at)}#e{number}",
        "user_id": f"u{number % 7}",
        "idempotency_key": f"k{number}",
        "event_type": "CHECK_IN",
        "occurred_at": at,
        "occurred_local": at,
        "activity_date": DT,
        "zone": "UTC",
        "points_awarded": 5,
        "source": "app",
        "created_at": at,
        "version": "0",
        "dt": DT,
        "hour": HOUR,
    } | changes
    return {name: value for name, value in row.items() if value is not ...}


def line(row: Any) -> bytes:
    return row if isinstance(row, bytes) else json.dumps(row, separators=(",", ":")).encode()


def put_raw(
    objects: Objects,
    name: str,
    rows: Iterable[Any],
    place: Partition = PLACE,
    zipped: bool = True,
    packed: int = 0,
    arrived: str = ARRIVED,
) -> str:
    """Store lines (bytes as they are, anything else as JSON) as a raw object; returns its key.

    packed: how many lines a packed record has; 0 for plain lines.
    """
    key = raw_prefix(place.entity, arrived, place.dt, place.hour) + name
    data = raw_text(list(map(line, rows)), place, packed)
    objects.put(key, gzip.compress(data, mtime=0) if zipped else data)
    return key


def raw_text(lines: Sequence[bytes], place: Partition = PLACE, packed: int = 0) -> bytes:
    """Lines as the text of a raw object: plain, or so many in a packed record."""
    if not packed:
        return b"\n".join(lines) + b"\n"
    head = record_header(place.dt, str(place.hour))
    return b"".join(frame_record(head, lines[at : at + packed]) for at in range(0, len(lines), packed))


def table(objects: Objects, entity: str = "events") -> pa.Table:
    """All curated rows, in the order of files and rows."""
    files = curated_files(objects, entity)
    return pa.concat_tables(pq.read_table(pa.BufferReader(objects.get(each.key))) for each in files)


def rows(objects: Objects, entity: str = "events") -> list[dict[str, Any]]:
    return (
        table(objects, entity).replace_schema_metadata().to_pylist() if curated_files(objects, entity) else []
    )


def quarantined(objects: Objects) -> list[dict[str, Any]]:
    return [
        json.loads(each)
        for stored in objects.list("quarantine/")
        for each in objects.get(stored.key).splitlines()
    ]


def total(objects: Objects, entity: str = "events") -> Counts:
    """What the footers say."""
    return sum(
        (bookkeeping_of(objects, each.key).counts for each in curated_files(objects, entity)), Counts()
    )


def expected(lines: Sequence[bytes], place: Partition = PLACE) -> tuple[list[dict[str, Any]], Counts]:
    """The rows that must come of lines read in this order, sorted, and their counts."""
    entity = ENTITIES[place.entity]
    kept: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    refused = taken = 0
    for each in lines:
        if not each.strip() or is_frame(each):
            continue
        try:
            row = read_row(each, entity, place.dt, str(place.hour))
        except RowRefused:
            refused += 1
            continue
        taken += 1
        key = tuple(row[name] for name in entity.key)
        if key not in kept or _version(entity.version, row) > _version(entity.version, kept[key]):
            kept[key] = row
    ordered = sorted(kept.values(), key=lambda row: [str(row[name]).encode() for name in entity.key])
    return [dict(row) for row in ordered], Counts(taken + refused, len(kept), taken - len(kept), refused)


def _version(name: str | None, row: Mapping[str, Any]) -> Any:
    value = row[name] if name else 0
    if isinstance(value, datetime):
        return value.timestamp()
    return float("-inf") if value is None else value
