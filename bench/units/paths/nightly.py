"""The nightly run: what its pass over the live tables reads, and what curating an hour asks of S3."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from adapters.platform.aws import client
from adapters.platform.objects import FolderObjects, StoredObject
from analytics.curation.curate import Task, curate
from bench.counting.desk import Desk, Units
from bench.units.paths.engagement import USER_ID, apply
from bench.units.paths.publishing import Record
from processors.lake_rows import table_of
from rules.lake.entities import ENTITIES

DAYS = 30
OBJECTS = (1, 5)  # raw objects of an hour
SCANNED = ("UserStreaks", "DailyActivity")


def scan_paths(desk: Desk) -> Iterator[tuple[str, dict[str, Units]]]:
    """Yield the pass over profiles and days: read units, and how many items they were for."""
    from adapters.engagement.projections import Projections

    _fill_days(desk)
    desk.forget()
    desk.meter.take()
    projections = Projections(client("dynamodb"), *SCANNED)
    counts = {
        f"items.{table}": sum(len(page) for page in pages)
        for table, pages in (
            ("UserStreaks", projections.scan_profiles(0, 1)),
            ("DailyActivity", projections.scan_days(0, 1)),
        )
    }
    desk.note("ReconcileFunction", {**desk.meter.take(), **counts})
    yield "nightly.scan", desk.take()


def _fill_days(desk: Desk) -> None:
    """Put further dates of a user into the table, as large as a day that an event led to."""
    user = USER_ID.format(3 * 10**6)
    apply(desk, user, 1)
    stored = next(
        records[-1]["dynamodb"]["NewImage"]
        for (_, table), records in desk.streams.items()
        if table == "DailyActivity"
    )
    dates = (desk.now - timedelta(days=1 + number) for number in range(DAYS))
    days = [{**stored, "activity_date": {"S": date.date().isoformat()}} for date in dates]
    desk.past.put("DailyActivity", days)


class _Counting:
    """A folder of objects that counts what S3 would bill: reads as GET, writes and listings as PUT."""

    def __init__(self, folder: Path) -> None:
        self._inner, self.counts = FolderObjects(folder), Counter[str]()

    def list(self, prefix: str) -> Iterator[StoredObject]:
        self.counts["s3.put"] += 1
        return self._inner.list(prefix)

    def below(self, folder: str) -> Iterator[str]:
        self.counts["s3.put"] += 1
        return self._inner.below(folder)

    def get(self, key: str) -> bytes:
        self.counts["s3.get"] += 1
        return self._inner.get(key)

    def save(self, key: str, path: Path) -> None:
        self.counts["s3.get"] += 1
        self._inner.save(key, path)

    def link(self, key: str, path: Path) -> None:
        self.counts["s3.get"] += 1
        self._inner.link(key, path)

    def tail(self, key: str, size: int) -> bytes:
        self.counts["s3.get"] += 1
        return self._inner.tail(key, size)

    def put(self, key: str, data: bytes) -> None:
        self.counts["s3.put"] += 1
        self._inner.put(key, data)

    def delete(self, keys: Iterable[str]) -> None:
        self._inner.delete(keys)

    def etag(self, key: str) -> str | None:
        self.counts["s3.get"] += 1
        return self._inner.etag(key)

    def put_if(self, key: str, data: bytes | Path, etag: str | None) -> None:
        self.counts["s3.put"] += 1
        self._inner.put_if(key, data, etag)

    def delete_if(self, key: str, etag: str) -> None:
        self._inner.delete_if(key, etag)


def curation_paths(rows: Mapping[str, list[Record]]) -> Iterator[tuple[str, dict[str, Units]]]:
    """Yield an hour of so many raw objects, curated for the first time and again after one more has come."""
    line = _line(rows["BPEvents"][0])
    for count in OBJECTS:
        with TemporaryDirectory() as folder:
            objects = _Counting(Path(folder))
            task = Task("events", line["dt"], line["hour"])
            prefix = f"raw/events/arrived={task.dt}/dt={task.dt}/hour={task.hour}/"
            for number in range(count):
                objects.put(f"{prefix}{number}", json.dumps(line).encode() + b"\n")
            yield f"curate.hour.{count}", _curated(objects, task)
            objects.put(f"{prefix}late", json.dumps(line).encode() + b"\n")
            yield f"curate.again.{count}", _curated(objects, task)


def _curated(objects: _Counting, task: Task) -> dict[str, Units]:
    objects.counts.clear()
    curate(objects, task, arrived=[task.dt])
    return {"CurateFunction": dict(objects.counts)}


def _line(record: Record) -> dict[str, Any]:
    from datetime import UTC, datetime

    from adapters.platform.items import decode_item
    from rules.lake.entities import row_of

    assert table_of(record) == "BPEvents"
    change = record["dynamodb"]
    arrived = datetime.fromtimestamp(change["ApproximateCreationDateTime"], UTC)
    return dict(row_of(ENTITIES["events"], decode_item(change["NewImage"]), arrived))
