"""What a night costs on the same day's change, on 20, 100 and 1,000 days of history.

Each step runs in a fresh process: the plan; the recompute of one share of the users on what is settled, and
its days to compare. Printed is the exponent: 0 if a step does not feel the history, 1 if it grows with it.
The warehouse's steps are measured in bench/lake/warehouse_growth.py.

USERS_OF_A_DAY=1000000 for more than the default of 20,000; half of them are active on a date.
HISTORIES=20,60,200 for other numbers of days: a night folds the last 17 into what is settled, so a shorter
history has less to read.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from adapters.platform.objects import FolderObjects, StoredObject
from analytics.curation.plan import commit, plan, write_plan
from analytics.recompute.lake_days import LakeDays
from analytics.recompute.recompute import recompute
from analytics.recompute.user_shares import UserShare
from bench.figure import Figure
from bench.lake.recompute_lakes import FIRST, Crowd, write_whole
from rules.engagement.reconciliation import SHARES
from rules.lake.entities import ENTITIES

HISTORIES = tuple(int(each) for each in os.environ.get("HISTORIES", "20,100,1000").split(","))
USERS = int(os.environ.get("USERS_OF_A_DAY", "20000"))
OBJECTS_A_DAY = 6  # raw objects of an entity
REPEATS = 3
SHARE = UserShare(0, SHARES)
PAGE = 1000  # keys in an answer of S3


class CountedFolder(FolderObjects):
    """A folder that counts requests, as S3 would be asked, and the bytes that were read."""

    spent: dict[str, int] = {"requests": 0, "bytes": 0}  # noqa: RUF012 (one a process)

    def list(self, prefix: str) -> Iterator[StoredObject]:
        found = list(super().list(prefix))
        self.spent["requests"] += 1 + len(found) // PAGE
        return iter(found)

    def below(self, folder: str) -> Iterator[str]:
        found = list(super().below(folder))
        self.spent["requests"] += 1 + len(found) // PAGE
        return iter(found)

    def get(self, key: str) -> bytes:
        data = super().get(key)
        self.spent["requests"] += 1
        self.spent["bytes"] += len(data)
        return data

    def save(self, key: str, path: Path) -> None:
        super().save(key, path)
        self.spent["requests"] += 1
        self.spent["bytes"] += path.stat().st_size


def write(folder: Path, days: int) -> None:
    """Write a lake that was curated and settled every night but the last."""
    share = 0.5
    write_whole(folder, Crowd("growth", days, share), round(USERS * share * days))
    for number in range(days):
        day = FIRST + timedelta(days=number)
        at = datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp()
        for entity in ENTITIES:
            for name in range(OBJECTS_A_DAY):
                path = folder / f"raw/{entity}/arrived={day}/dt={day}/hour=12/{name}.gz"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
                os.utime(path, (at, at))
        if number == days - 2:
            objects = FolderObjects(folder)
            write_plan(objects, "before", plan(objects, day))
            commit(objects, "before")
    recompute(FolderObjects(folder), FIRST + timedelta(days=days - 1), share=SHARE)


def steps(objects: FolderObjects, days: int) -> dict[str, Callable[[], Any]]:
    """Return a night's steps, each without its input."""
    today = FIRST + timedelta(days=days - 1)
    yesterday = datetime(today.year, today.month, today.day, tzinfo=UTC) - timedelta(hours=2)
    return {
        "plan": lambda: plan(objects, today),
        "recompute of a share": lambda: recompute(objects, today, share=SHARE),
        "days to compare": lambda: LakeDays.touched(objects, yesterday, SHARE),
    }


def measure(step: str, folder: Path, days: int) -> None:
    """Run one step in this process, and print what it took."""
    act = steps(CountedFolder(folder), days)[step]
    start = time.process_time()
    act()
    seconds = time.process_time() - start
    print(json.dumps({"seconds": seconds, "peak_mb": peak_mb(), **CountedFolder.spent}))


def peak_mb() -> float:
    """Return this process's highest memory; getrusage tells the parent's too."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def measured(step: str, folder: Path, days: int) -> dict[str, float]:
    """Run one step in fresh processes; returns the medians."""
    command = [sys.executable, "-m", "bench.lake.growth", step, str(folder), str(days)]
    runs = []
    for _ in range(REPEATS):
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    return {name: median(run[name] for run in runs) for name in runs[0]}


def run() -> Iterator[Figure]:
    took: dict[str, dict[int, dict[str, float]]] = {}
    for days in HISTORIES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(folder, days)
            for step in steps(FolderObjects(folder), days):
                took.setdefault(step, {})[days] = measured(step, folder, days)
    for step, by_days in took.items():
        few, many = by_days[HISTORIES[0]], by_days[HISTORIES[-1]]
        for what in ("seconds", "bytes", "requests", "peak_mb"):
            exponent = math.log(max(many[what], 1e-9) / max(few[what], 1e-9)) / math.log(
                HISTORIES[-1] / HISTORIES[0]
            )
            detail = ", ".join(f"{days} days {each[what]:,.4g}" for days, each in by_days.items())
            yield Figure(f"night, {step}: growth of {what}", exponent, "<=", 0.05, detail)


if __name__ == "__main__":
    measure(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
