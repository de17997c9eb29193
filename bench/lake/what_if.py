"""What-if over a large lake: its time and memory, beside those of the recompute on the same files.

The lake is the recompute's (users with random active dates), with all that a judgement reads: events of four
types with their versions and caps, redemptions, and profiles. The candidate changes points, caps of a day and
of a week, a boost and expiry, and lacks a type. Each way runs in a process of its own.

ROWS sets the size, WAYS what is measured. `recompute` is what a night does, from all partitions;
`rules recompute` judges all points.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

from bench.figure import Figure
from bench.lake.recompute_lakes import DENSE
from bench.lake.what_if_lake import CANDIDATE, write_lake

ROWS = int(os.environ.get("ROWS", "50000000"))
MEMORY_MB = 700
OURS, NIGHT, POINTS = "what-if", "recompute", "rules recompute"


def what_if_users(folder: Path) -> int:
    from adapters.platform.objects import FolderObjects
    from analytics.what_if.what_if import WhatIfQuestion, what_if
    from local.what_if.figures import summary
    from rules.book.document import read_book

    found = what_if(FolderObjects(folder), WhatIfQuestion(read_book(CANDIDATE), datetime.now(UTC)))
    told = summary(found, "candidate")
    print(json.dumps({"points": told["points"], "users": told["users"]}))
    return int(found.users.num_rows)


def recompute_users(folder: Path) -> int:
    from adapters.platform.objects import FolderObjects
    from analytics.recompute.recompute import recompute

    return int(recompute(FolderObjects(folder), datetime.now(UTC).date(), anew=True).table.num_rows)


def recompute_points(folder: Path) -> int:
    from adapters.platform.objects import FolderObjects
    from analytics.recompute.book_points import recomputed_points

    return int(recomputed_points(FolderObjects(folder)).num_rows)


WAYS: dict[str, Callable[[Path], int]] = {
    OURS: what_if_users,
    NIGHT: recompute_users,
    POINTS: recompute_points,
}


def measure(way: str, folder: Path) -> None:
    """Run one way in this process, and print its time and memory."""
    start = time.perf_counter()
    rows = WAYS[way](folder)
    seconds, children = time.perf_counter() - start, getrusage(RUSAGE_CHILDREN)
    cpu = time.process_time() + children.ru_utime + children.ru_stime
    # At most: a way's own processes run one a core, and none needs more than the largest.
    peak_mb = (getrusage(RUSAGE_SELF).ru_maxrss + (os.cpu_count() or 1) * children.ru_maxrss) / 1024
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak_mb": peak_mb, "rows": rows}))


def measured(way: str, folder: Path) -> dict[str, float]:
    """Measure a way in a fresh process."""
    command = [sys.executable, "-m", "bench.lake.what_if", way, str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def run() -> Iterator[Figure]:
    ways = [each for each in WAYS if each in os.environ.get("WAYS", f"{OURS},{NIGHT}").split(",")]
    with tempfile.TemporaryDirectory() as name:
        rows = write_lake(Path(name), DENSE, ROWS)
        took = {way: measured(way, Path(name)) for way in ways}
    detail = ", ".join(
        f"{way} {each['seconds']:.1f} s ({each['cpu']:.1f} s of CPU), {each['peak_mb']:.0f} MB"
        for way, each in took.items()
    )
    if {OURS, NIGHT} <= took.keys():
        ratio = took[OURS]["seconds"] / took[NIGHT]["seconds"]
        yield Figure("what-if: times the recompute's time", ratio, "<=", None, f"{rows:,} entries: {detail}")
    for way, each in took.items():
        most = MEMORY_MB if way == OURS else None
        yield Figure(f"{way}: MB of memory", each["peak_mb"], "<=", most, f"{rows:,} entries: {detail}")


if __name__ == "__main__":
    measure(sys.argv[1], Path(sys.argv[2]))
