"""What a night costs on the same day's change, on a short, a longer and a long history of the lake.

Each step runs in a fresh process: the plan of curation, then the recompute on what is settled. Printed is the
exponent of seconds of CPU, bytes and requests: 0 if a step does not feel the history, 1 if it grows with it.
HISTORIES (days) and USERS set the size. A night reads the last 17 days anew, so a history
that is shorter has less to read.
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
OBJECTS_A_DAY = 6  # raw objects of an entity
PAGE = 1000  # keys in an answer of S3
EXPONENT_MAX = 0.05
FIRST = date(2025, 1, 1)
SHARE = 0.5  # of the dates: on so many each user is active
POINTS = 5  # of an entry


class CountedFolder(FolderObjects):
    """A folder that counts requests, as S3 would be asked, and the bytes that were read."""

    spent: dict[str, int] = {"requests": 0, "bytes": 0}  # noqa: RUF012 (one a process)

    def _note(self, requests: int, size: int = 0) -> None:
        self.spent["requests"] += requests
        self.spent["bytes"] += size

    def list(self, prefix: str) -> Iterator[StoredObject]:
        found = list(super().list(prefix))
        self._note(1 + len(found) // PAGE)
        return iter(found)

    def below(self, folder: str) -> Iterator[str]:
        found = list(super().below(folder))
        self._note(1 + len(found) // PAGE)
        return iter(found)

    def get(self, key: str) -> bytes:
        data = super().get(key)
        self._note(1, len(data))
        return data

    def save(self, key: str, path: Path) -> None:
        super().save(key, path)
        self._note(1, path.stat().st_size)


def write(folder: Path, days: int) -> None:
    """Write a lake that was curated and settled every night but the last."""
    write_curated(folder, days)
    objects = FolderObjects(folder)
    for day in (FIRST + timedelta(days=number) for number in range(days)):
        at = datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp()
        for entity in ENTITIES:
            for name in range(OBJECTS_A_DAY):
                path = folder / f"raw/{entity}/arrived={day}/dt={day}/hour=12/{name}.gz"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
                os.utime(path, (at, at))
        if day == FIRST + timedelta(days=days - 2):
            write_plan(objects, "before", plan(objects, day))
            commit(objects, "before")
    recompute(objects, FIRST + timedelta(days=days - 1))


def write_curated(folder: Path, days: int) -> None:
    """Write the ledger's entries, one for each active date of a user, and a profile of each user.

    Files are as curation leaves them: one a day, sorted by key, zstd. Ids are texts of 36 characters.
    """
    chance = np.random.default_rng(1)
    ids = pa.array(sorted(str(uuid.UUID(bytes=chance.bytes(16))) for _ in range(USERS)))
    seq = np.full(USERS, -1)
    for day in (FIRST + timedelta(days=number) for number in range(days)):
        active = np.flatnonzero(chance.random(USERS) < SHARE)
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
    versions, zones = pa.repeat(1, USERS), pa.repeat("UTC", USERS)
    last = FIRST + timedelta(days=days - 1)
    _write_file(folder, "streaks", last, {"user_id": ids, "version": versions, "timezone": zones})


def _write_file(folder: Path, entity: str, day: date, columns: dict[str, Any]) -> None:
    path = folder / f"curated/{entity}/dt={day}/day.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, compression="zstd", compression_level=1, row_group_size=100_000)


def steps(objects: FolderObjects, days: int) -> dict[str, Callable[[], Any]]:
    """Return a night's steps, each without its input."""
    today = FIRST + timedelta(days=days - 1)
    return {
        "plan": lambda: plan(objects, today),
        "recompute": lambda: recompute(objects, today),
    }


def measure(step: str, folder: Path, days: int) -> None:
    """Run one step in this process, and print what it took."""
    act = steps(CountedFolder(folder), days)[step]
    start = time.process_time()
    act()
    print(json.dumps({"seconds": time.process_time() - start, **CountedFolder.spent}))


def run() -> Iterator[Figure]:
    """Yield each step's exponents."""
    took: dict[str, dict[int, dict[str, float]]] = {}
    for days in HISTORIES:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), days)
            for step in steps(FolderObjects(Path(folder)), days):
                command = [sys.executable, "-m", "bench.night_growth", step, folder, str(days)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                took.setdefault(step, {})[days] = json.loads(done.stdout.splitlines()[-1])
    for step, by_days in took.items():
        few, many = by_days[HISTORIES[0]], by_days[HISTORIES[-1]]
        for what in ("seconds", "bytes", "requests"):
            growth = max(many[what], 1e-9) / max(few[what], 1e-9)
            exponent = math.log(growth) / math.log(HISTORIES[-1] / HISTORIES[0])
            detail = ", ".join(f"{days} days {each[what]:,.4g}" for days, each in by_days.items())
            yield Figure(f"night, {step}: growth of {what}", exponent, "<=", EXPONENT_MAX, detail)


if __name__ == "__main__":
    measure(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
