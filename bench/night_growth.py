"""What a night costs on the same day's change, on a short, a longer and a long history of the lake.

Each step runs in a fresh process: the plan of curation, then the recompute on what is settled. Printed is the
exponent of seconds of CPU, bytes and requests: 0 if a step does not feel the history, 1 if it grows with it.
HISTORIES (days) and USERS (of a day) set the size. A night folds the last 17 days into what is settled, so a
shorter history has less to read.
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
from typing import Any

from adapters.platform.objects import FolderObjects, StoredObject
from analytics.curation.plan import commit, plan, write_plan
from bench.figure import Figure
from bench.recompute import FIRST, SHARE, recompute_lake, write_lake
from rules.lake.entities import ENTITIES

HISTORIES = tuple(int(each) for each in os.environ.get("HISTORIES", "20,60,240").split(","))
USERS = int(os.environ.get("USERS", "20000"))
OBJECTS_A_DAY = 6  # raw objects of an entity
PAGE = 1000  # keys in an answer of S3
EXPONENT_MAX = 0.05


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
    write_lake(folder, days, round(USERS * SHARE * days))
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
    recompute_lake(objects, FIRST + timedelta(days=days - 1), anew=False)


def steps(objects: FolderObjects, days: int) -> dict[str, Callable[[], Any]]:
    """Return a night's steps, each without its input."""
    today = FIRST + timedelta(days=days - 1)
    return {
        "plan": lambda: plan(objects, today),
        "recompute": lambda: recompute_lake(objects, today, anew=False),
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
