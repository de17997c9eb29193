"""How the cost of a night grows with the history of the lake, if the change of the day stays the same.

The steps are the plan of curation and the recompute. Each runs in a fresh process, on lakes of several ages.
The figures are exponents of CPU seconds, bytes and requests: 0 if a step does not depend on the history, 1 if
it grows with it. HISTORIES (days) and USERS set the size. A night reads the newest 17 days anew, so a shorter
history has less to read.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import FolderObjects, StoredObject
from analytics.curation.plan import commit, plan, write_plan
from analytics.recompute.recompute import recompute
from bench.figure import Figure
from rules.lake.entities import ENTITIES

HISTORIES = tuple(int(each) for each in os.environ.get("HISTORIES", "20,60,240").split(","))
USERS = int(os.environ.get("USERS", "20000"))
STEPS: dict[str, Callable[[FolderObjects, date], object]] = {"plan": plan, "recompute": recompute}
RAW_OBJECTS_A_DAY = 6  # of an entity
LISTED_KEYS_MAX = 1000  # in one answer of S3
EXPONENT_MAX = 0.05
# The seconds of a step below this have no budget: the listing of a folder goes through all of its dates, that
# of a bucket does not, and it is most of such a step. Its requests and bytes are what S3 bills.
SECONDS_MIN = 0.1
FIRST = date(2025, 1, 1)
ACTIVE_SHARE = 0.5  # of its dates, a user is active on so many
POINTS = 5  # of an entry


class CountedFolder(FolderObjects):
    """A folder that counts the bytes that were read, and the requests that S3 would have got."""

    counts: dict[str, int] = {"requests": 0, "bytes": 0}  # noqa: RUF012 (a step opens other folders, too)

    def _count(self, requests: int, size: int = 0) -> None:
        self.counts["requests"] += requests
        self.counts["bytes"] += size

    def list(self, prefix: str) -> Iterator[StoredObject]:
        objects = list(super().list(prefix))
        self._count(1 + len(objects) // LISTED_KEYS_MAX)
        return iter(objects)

    def below(self, folder: str) -> Iterator[str]:
        names = list(super().below(folder))
        self._count(1 + len(names) // LISTED_KEYS_MAX)
        return iter(names)

    def get(self, key: str) -> bytes:
        data = super().get(key)
        self._count(1, len(data))
        return data

    def save(self, key: str, path: Path) -> None:
        super().save(key, path)
        self._count(1, path.stat().st_size)


def run() -> Iterator[Figure]:
    """Yield the exponents of each step."""
    costs: dict[str, dict[int, dict[str, float]]] = {step: {} for step in STEPS}
    for days in HISTORIES:
        with tempfile.TemporaryDirectory() as folder:
            write_lake(Path(folder), days)
            for step in STEPS:
                command = [sys.executable, "-m", "bench.night_growth", step, folder, str(days)]
                child = subprocess.run(command, check=True, capture_output=True, text=True)
                costs[step][days] = json.loads(child.stdout.splitlines()[-1])
    shortest, longest = HISTORIES[0], HISTORIES[-1]
    for step, by_days in costs.items():
        for unit in ("seconds", "bytes", "requests"):
            growth = max(by_days[longest][unit], 1e-9) / max(by_days[shortest][unit], 1e-9)
            exponent = math.log(growth) / math.log(longest / shortest)
            detail = ", ".join(f"{days} days {cost[unit]:,.4g}" for days, cost in by_days.items())
            is_short = unit == "seconds" and by_days[longest][unit] < SECONDS_MIN
            budget = None if is_short else EXPONENT_MAX
            yield Figure(f"night, {step}: growth of {unit}", exponent, "<=", budget, detail)


def measure(step: str, folder: Path, days: int) -> None:
    """Run one step of the last night in this process, and print its cost."""
    start = time.process_time()
    STEPS[step](CountedFolder(folder), _date(days - 1))
    print(json.dumps({"seconds": time.process_time() - start, **CountedFolder.counts}))


def write_lake(folder: Path, days: int) -> None:
    """Write a lake of so many days that was curated and recomputed every night but the last."""
    _write_curated(folder, days)
    objects = FolderObjects(folder)
    for day in map(_date, range(days)):
        _touch_raw_objects(folder, day)
        if day == _date(days - 2):
            write_plan(objects, "before", plan(objects, day))
            commit(objects, "before")
    recompute(objects, _date(days - 1))


def _date(number: int) -> date:
    return FIRST + timedelta(days=number)


def _touch_raw_objects(folder: Path, day: date) -> None:
    """Create a day's raw objects, empty: the plan only lists them. They arrived at noon."""
    noon = datetime.combine(day, time_of_day(12), UTC).timestamp()
    for entity in ENTITIES:
        hour = folder / f"raw/{entity}/arrived={day}/dt={day}/hour=12"
        hour.mkdir(parents=True)
        for number in range(RAW_OBJECTS_A_DAY):
            path = hour / f"{number}.gz"
            path.touch()
            os.utime(path, (noon, noon))


def _write_curated(folder: Path, days: int) -> None:
    """Write a ledger entry for each active date of a user, and a profile of each user.

    Files are as curation leaves them: one a day, sorted by key, zstd. Ids are texts of 36 characters.
    """
    random = np.random.default_rng(1)
    ids = pa.array(sorted(str(uuid.UUID(bytes=random.bytes(16))) for _ in range(USERS)))
    seq = np.full(USERS, -1)
    for day in map(_date, range(days)):
        active = np.flatnonzero(random.random(USERS) < ACTIVE_SHARE)
        seq[active] += 1
        noon = datetime.combine(day, time_of_day(12), UTC)
        entries = {
            "account_id": ids.take(pa.array(active)),
            "created_at": pa.repeat(pa.scalar(noon, pa.timestamp("us", "UTC")), len(active)),
            "activity_date": pa.repeat(pa.scalar(day, pa.date32()), len(active)),
            "seq": pa.array(seq[active]),
            "kind": pa.repeat("EARN", len(active)),
            "points": pa.repeat(POINTS, len(active)),
            "balance": pa.array(POINTS * (seq[active] + 1)),
        }
        _write_file(folder, "ledger", day, entries)
    profiles = {"user_id": ids, "version": pa.repeat(1, USERS), "timezone": pa.repeat("UTC", USERS)}
    _write_file(folder, "streaks", _date(days - 1), profiles)


def _write_file(folder: Path, entity: str, day: date, columns: dict[str, Any]) -> None:
    path = folder / f"curated/{entity}/dt={day}/day.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, compression="zstd", compression_level=1, row_group_size=100_000)


if __name__ == "__main__":
    measure(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
