"""How the cost of a first night grows with the distinct hours of a history, if its rows and months stay.

A history of HISTORY_ROWS events of fifteen years has arrived. In one lake a month's events are of one hour,
in the other each is of an hour of its own. The steps are the plan and the curation of its tasks. The figures
are exponents of CPU seconds, curated files and writes: 0 if a night does not depend on the hours, 1 if it
grows with them. Both lakes have the same number of raw objects, a record for each row.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from math import log
from pathlib import Path

from adapters.platform.objects import FolderObjects
from analytics.curation.curate import curate
from analytics.curation.plan import plan
from analytics.lake.layout import Partition, raw_prefix
from bench.figure import Figure
from rules.days import key_of_stamp, stamp
from rules.lake.packed_records import pack_rows, row_line

ROWS = int(os.environ.get("HISTORY_ROWS", "3600"))
MONTHS = 180
FIRST, ARRIVED = datetime(2005, 1, 1, tzinfo=UTC), "2020-06-01"
TODAY = date(2020, 6, 2)
# Of CPU and writes. A row of an hour of its own is read by itself, in a raw object of its own.
EXPONENTS_MAX = {"seconds": 0.5, "files": 0.0, "writes": 0.0}


class CountedFolder(FolderObjects):
    """A folder that counts what is written."""

    writes = 0

    def put_if(self, key: str, data: bytes | Path, etag: str | None) -> None:
        super().put_if(key, data, etag)
        CountedFolder.writes += 1


def run() -> Iterator[Figure]:
    """Yield the exponent of each cost."""
    hours_of_month = ROWS // MONTHS
    few, many = (_night(hours) for hours in (1, hours_of_month))
    for unit, budget in EXPONENTS_MAX.items():
        exponent = log(many[unit] / few[unit]) / log(hours_of_month)
        detail = f"{MONTHS} hours {few[unit]:,.4g}, {ROWS:,} hours {many[unit]:,.4g}; {ROWS:,} rows"
        yield Figure(f"first night of a history: growth of {unit}", exponent, "<=", budget, detail)


def _night(hours: int) -> dict[str, float]:
    """Curate a lake whose months have so many distinct hours; returns the costs."""
    with tempfile.TemporaryDirectory() as folder:
        objects = CountedFolder(Path(folder))
        _write_raw(objects, hours)
        CountedFolder.writes, start = 0, time.process_time()
        made = plan(objects, TODAY)
        for task in made.tasks:
            curate(objects, task, arrived=made.arrived)
        seconds = time.process_time() - start
        return {
            "seconds": seconds,
            "files": len(list(objects.list("curated/"))),
            "writes": CountedFolder.writes,
        }


def _write_raw(objects: FolderObjects, hours: int) -> None:
    """Write a history's raw objects: a record for each row."""
    for number in range(ROWS):
        month, row = divmod(number, ROWS // MONTHS)
        begin = datetime(FIRST.year + month // 12, 1 + month % 12, 1, tzinfo=UTC)
        at = begin + timedelta(hours=30 * (row % hours), seconds=row)
        place = Partition("events", f"{at:%Y-%m-%d}", f"{at:%H}")
        (record,) = pack_rows([row_line(_row(number, at))], 10_000)
        objects.put(raw_prefix("events", ARRIVED, place.dt, place.hour) + str(number), record.data)


def _row(number: int, at: datetime) -> dict[str, str | int]:
    return {
        "event_id": f"{key_of_stamp(stamp(at))}#{number}",
        "user_id": f"u{number % 7}",
        "idempotency_key": f"k{number}",
        "event_type": "CONTRIBUTION",
        "occurred_at": stamp(at),
        "occurred_local": stamp(at),
        "activity_date": f"{at:%Y-%m-%d}",
        "zone": "UTC",
        "points_awarded": 5,
        "source": "import",
        "created_at": f"{ARRIVED}T00:00:00.000000Z",
        "version": "0",
        "dt": f"{at:%Y-%m-%d}",
        "hour": f"{at:%H}",
    }
