"""Reads a user's events that have left their table (rule 22), from curated files, newest first.

A file's events are sorted by time, not by user. So of each row group the column of users is read first. All
columns are read only of row groups that have the user. If a caller asks for more than the time allows, the
answer has the events that were found so far, and the stamp down to which files were searched.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger
from adapters.platform.objects import Objects, S3Objects, StoredObject
from analytics.lake import curated_files, layout
from analytics.lake.curated_files import RangedFile
from rules.days import DAY, key_of_stamp, stamp, unstamp
from rules.lake.entities import EVENTS, event_item

logger = Logger(service="past")
metrics = Metrics(namespace="Streakline", service="past")
EVENT_COLUMNS = tuple(field.name for field in EVENTS.fields)
# After so long a call reads no further file. Its caller has 30 s, and gets a cursor to go on.
SECONDS_MAX = 8.0


@dataclass(frozen=True, slots=True)
class PastEventsSettings:
    """Settings of this function."""

    lake_bucket: str


@dataclass(frozen=True, slots=True)
class PastQuery:
    """The newest `limit` events of a user with since <= event_id < until."""

    user_id: str
    since: str  # since, until: begin with a date
    until: str
    limit: int


def newest_events(
    objects: Objects, query: PastQuery, has_time: Callable[[], bool]
) -> tuple[list[dict[str, Any]], str]:
    """Return events as table attributes, newest first, and the instant down to which files were searched.

    Raises NoObject if a nightly run replaces files meanwhile; then the caller may ask again.
    """
    events: list[dict[str, Any]] = []
    for number, stored in enumerate(_files(objects, query)):
        if len(events) >= query.limit:
            break
        if number and not has_time():  # at least one file is read, so a caller who asks again gets further
            _, end = _span_of(stored)
            return events, end
        events += _events_of_file(objects, stored, query)
    return events[: query.limit], query.since


def _files(objects: Objects, query: PastQuery) -> Iterator[StoredObject]:
    """Yield the files that may have events of the span, from the last to the first. Each month is listed."""
    first, last = (date.fromisoformat(text[: len("2026-03-01")]) for text in (query.since, query.until))
    places = (
        layout.curated_partition(stored.key) for stored in objects.list(layout.curated_prefix("events"))
    )
    oldest = next(filter(None, places), None)
    if oldest is None:
        return
    first = max(first, date.fromisoformat(oldest.first_dt))
    while last >= first:
        month = last.replace(day=1)
        files = layout.curated_files(objects, "events", month.isoformat(), last.isoformat())
        for stored in reversed(files):
            begin, end = _span_of(stored)
            if begin < query.until and end > query.since:
                yield stored
        last = month - DAY


def _events_of_file(objects: Objects, stored: StoredObject, query: PastQuery) -> list[dict[str, Any]]:
    """Return the events of a file that the query asks for, newest first."""
    file = pq.ParquetFile(pa.PythonFile(RangedFile(objects, stored), mode="r"))
    columns = set(file.schema_arrow.names)
    events: list[dict[str, Any]] = []
    for group in reversed(range(file.num_row_groups)):
        if not _may_have_events(file.metadata.row_group(group), query):
            continue
        users = file.read_row_group(group, columns=["user_id"], use_threads=False)["user_id"]
        is_users = pc.equal(users, query.user_id)
        if not pc.any(is_users).as_py():
            continue
        names = [name for name in EVENT_COLUMNS if name in columns]
        table = file.read_row_group(group, columns=names, use_threads=False).filter(is_users)
        rows = curated_files.as_declared(table, "events", EVENT_COLUMNS).to_pylist()
        rows = [row for row in rows if query.since <= row["event_id"] < query.until]
        events += map(event_item, reversed(rows))
    return events


def _may_have_events(group: pq.RowGroupMetaData, query: PastQuery) -> bool:
    """Whether a row group may have events of the query's span."""
    bounds = curated_files.column_bounds(group, "event_id")
    return bounds is None or (bounds.greatest >= query.since and bounds.least < query.until)


def _span_of(stored: StoredObject) -> tuple[str, str]:
    """Return the first instant of a file's hour, day or month, and the one after it, as event ids begin."""
    place = layout.curated_partition(stored.key)
    assert place is not None  # noqa: S101 (none else are listed)
    begin = unstamp(f"{place.first_dt}T{place.hour or '00'}:00:00Z")
    last = unstamp(f"{place.last_dt}T{place.hour or '00'}:00:00Z")
    end = last + (DAY if place.hour is None else timedelta(hours=1))
    return key_of_stamp(stamp(begin)), key_of_stamp(stamp(end))


@bootstrap(PastEventsSettings)
def _parts(config: PastEventsSettings, client: ClientOf) -> Objects:
    return S3Objects(client("s3"), config.lake_bucket)


@logger.inject_lambda_context
@metrics.log_metrics
def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Lambda entry: {"user_id", "since", "until", "limit"} -> {"rows", "reached"}; see newest_events."""
    end = time.monotonic() + SECONDS_MAX
    rows, reached = newest_events(_parts(), PastQuery(**event), lambda: time.monotonic() < end)
    metrics.add_metric("PastEvents", MetricUnit.Count, len(rows))
    return {"rows": rows, "reached": reached}
