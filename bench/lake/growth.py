"""What a night costs on the same day's change, on 20, 100 and 1,000 days of history.

Each step runs in a fresh process: the plan, the recompute on what is settled, the days to compare; then the
same in eight shares of the users: their plan, the split of the last days' files, the recompute of one of
them. Printed is the exponent: 0 if a step does not feel the history, 1 if it grows with it. The warehouse's
steps are measured in bench/lake/warehouse_growth.py.

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
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any, cast

from adapters.platform.objects import FolderObjects, StoredObject
from analytics.curation.plan import commit, plan, write_plan
from analytics.lake.curated_files import date_of
from analytics.recompute.lake_days import LakeDays
from analytics.recompute.recompute import recompute
from analytics.recompute.settled_users import FOLDED, SETTLED_AFTER, lake_files
from analytics.reconcile.shares.night_plan import SPLITS, NightPlan, note_compared
from analytics.reconcile.shares.share_steps import ShareSteps
from bench.figure import Figure
from bench.lake.recompute_lakes import FIRST, Crowd, write_whole
from rules.lake.entities import ENTITIES

HISTORIES = tuple(int(each) for each in os.environ.get("HISTORIES", "20,100,1000").split(","))
USERS = int(os.environ.get("USERS_OF_A_DAY", "20000"))
OBJECTS_A_DAY = 6  # raw objects of an entity
REPEATS = 3
SHARES = 6  # the next power of two is 8
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
    recompute(FolderObjects(folder), FIRST + timedelta(days=days - 1))
    settle_shares(FolderObjects(folder), FIRST + timedelta(days=days - 2))


def shares(objects: FolderObjects) -> ShareSteps:
    """Return the steps of eight shares. They touch no table here."""
    files = sorted((date_of(each), each.size) for some in lake_files(objects).values() for each in some)
    late = [
        size
        for day, size in files
        if date.fromisoformat(day) > date.fromisoformat(files[-1][0]) - SETTLED_AFTER
    ]
    nothing = cast("Any", None)
    return ShareSteps(objects, nothing, nothing, nothing, max(1, sum(late) // SHARES))


def settle_shares(objects: FolderObjects, day: date) -> None:
    """Do a night before in shares, so that what is older is settled for each of them."""
    of_shares, at = shares(objects), datetime(day.year, day.month, day.day, 3, tzinfo=UTC)
    of_shares.plan({"run_id": "settling"}, at)
    split(of_shares, "settling")
    plan_made = NightPlan.load(objects, "settling")
    for number in range(plan_made.shares):
        of_shares.recompute({"run_id": "settling", "share": number})
    note_compared(objects, plan_made.shares, at, ())


def split(of_shares: ShareSteps, run_id: str) -> None:
    """Split the files that a plan names."""
    for part in json.loads(of_shares.objects.get(f"runs/{run_id}/{SPLITS}")):
        if part["what"] in FOLDED:
            of_shares.split({"run_id": run_id, "part": part})


def steps(objects: FolderObjects, days: int) -> dict[str, Callable[[], Any]]:
    """Return a night's steps, each without its input."""
    today = FIRST + timedelta(days=days - 1)
    yesterday = datetime(today.year, today.month, today.day, tzinfo=UTC) - timedelta(hours=2)
    return {
        "plan": lambda: plan(objects, today),
        "recompute": lambda: recompute(objects, today),
        "days to compare": lambda: LakeDays.touched(objects, yesterday),
        "plan of shares": lambda: shares(objects).plan({"run_id": "night"}, yesterday + timedelta(days=1)),
        "split": lambda: split(shares(objects), "night"),
        "recompute of a share": lambda: shares(objects).recompute({"run_id": "night", "share": 0}),
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
