"""Finds a user's events that have left their table, for the function that answers (rule 22): in curated
files, date by date, newest first.

A file's events are sorted by time, not by user. So of each date the column of users is read, by ranges of
the file, and all columns only where the user is. A caller who asks for more than the time allows gets what
is found until then, and how far back that is.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

from adapters import settings
from adapters.logs import Logger
from adapters.platform.objects import RangedObjects, StoredObject, objects_at
from adapters.settings.lake import PastEventsSettings
from analytics.lake import curated_files, layout
from analytics.lake.curated_files import RangedFile
from rules.days import DAY, stamp, unstamp
from rules.lake.entities import EVENTS
from rules.lake.item_copies import event_item

logger = Logger(service="past")
metrics = Metrics(namespace="Streakline", service="past")
NAMES = tuple(field.name for field in EVENTS.fields)
WINDOW = timedelta(days=31)  # this many dates are listed at once
# It reads no further file then: whoever asks has 30 s, and gets a cursor to go on.
SECONDS_MAX = 8.0


@dataclass(frozen=True, slots=True)
class PastQuery:
    """Whose events: since <= event_id < until, the newest `limit` of them. Both begin with a date."""

    user_id: str
    since: str
    until: str
    limit: int


def newest_events(
    objects: RangedObjects, asked: PastQuery, has_time: Callable[[], bool]
) -> tuple[list[dict[str, Any]], str]:
    """Return events as table attributes, newest first, and the stamp from which on they are all there are.

    Raises NoObject if somebody puts a file in the place of others meanwhile; asking again helps.
    """
    rows: list[dict[str, Any]] = []
    for number, stored in enumerate(_files(objects, asked)):
        if len(rows) >= asked.limit:
            break
        if number and not has_time():  # one file at least, so whoever asks again gets on
            return rows, _span_of(stored)[1]
        rows += _events_of_file(objects, stored, asked)
    return rows[: asked.limit], asked.since


def _files(objects: RangedObjects, asked: PastQuery) -> Iterator[StoredObject]:
    """Yield the files that may have such events, from the last to the first."""
    first, last = (date.fromisoformat(each[: len("2026-03-01")]) for each in (asked.since, asked.until))
    oldest = next(objects.list(layout.curated_prefix("events")), None)
    if oldest is None:
        return
    first = max(first, date.fromisoformat(curated_files.date_of(oldest)))
    while last >= first:
        start = max(first, last - WINDOW + DAY)
        found = layout.curated_files(objects, "events", start.isoformat(), last.isoformat())
        for stored in reversed(found):
            begin, end = _span_of(stored)
            if begin < asked.until and end > asked.since:
                yield stored
        last = start - DAY


def _events_of_file(objects: RangedObjects, stored: StoredObject, asked: PastQuery) -> list[dict[str, Any]]:
    """Return a file's events that are asked for, newest first."""
    file = pq.ParquetFile(pa.PythonFile(RangedFile(objects, stored), mode="r"))
    columns = set(file.schema_arrow.names)
    found: list[dict[str, Any]] = []
    for group in reversed(range(file.num_row_groups)):
        if not _may_have(file.metadata.row_group(group), asked):
            continue
        users = file.read_row_group(group, columns=["user_id"], use_threads=False)["user_id"]
        is_of = pc.equal(users, asked.user_id)
        if not pc.any(is_of).as_py():
            continue
        read = file.read_row_group(
            group, columns=[each for each in NAMES if each in columns], use_threads=False
        )
        rows = curated_files.as_declared(read.filter(is_of), "events", NAMES).to_pylist()
        rows = [row for row in rows if asked.since <= row["event_id"] < asked.until]
        found += map(event_item, reversed(rows))
    return found


def _may_have(group: pq.RowGroupMetaData, asked: PastQuery) -> bool:
    for index in range(group.num_columns):
        chunk = group.column(index)
        if (
            chunk.path_in_schema == "event_id"
            and chunk.statistics is not None
            and chunk.statistics.has_min_max
        ):
            return bool(chunk.statistics.max >= asked.since and chunk.statistics.min < asked.until)
    return True


def _span_of(stored: StoredObject) -> tuple[str, str]:
    """Return the stamps at which a file's hour, or day, begins and ends."""
    place = layout.curated_place(stored.key)
    assert place is not None  # noqa: S101 (none else are listed)
    begin = unstamp(f"{place.dt}T{place.hour or '00'}:00:00.000000Z")
    return stamp(begin), stamp(begin + (DAY if place.hour is None else timedelta(hours=1)))


@cache
def _parts() -> RangedObjects:
    return objects_at(f"s3://{settings.read_settings(PastEventsSettings).lake_bucket}")


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Lambda entry: {"user_id", "since", "until", "limit"} -> {"rows", "reached"}; see newest_events."""
    end = time.monotonic() + SECONDS_MAX
    rows, reached = newest_events(_parts(), PastQuery(**event), lambda: time.monotonic() < end)
    metrics.add_metric("PastEvents", MetricUnit.Count, len(rows))
    return {"rows": rows, "reached": reached}
