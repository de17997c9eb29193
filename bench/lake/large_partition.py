"""One very large partition as Firehose leaves it: all user-days of a date, made once.

BENCH_PARTITION_ROWS says how many rows; 20000000 is what a function must do in ten minutes.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from isal import igzip

from analytics.curation.curate import Task
from bench.lake.raw_day import FOLDER

ROWS = int(os.environ.get("BENCH_PARTITION_ROWS", "1000000"))
FILES = 100
TASK = Task("daily_activity", "2026-03-01", "00")
SHUFFLE = 2_654_435_761  # a prime: a multiple of it, modulo the number of rows, is each place once


def folder_of(versions: int) -> Path:
    """Return the folder of a lake whose raw/ has the partition, made once."""
    folder = FOLDER / f"partition-{ROWS}-{versions}"
    if not (folder / "complete").exists():
        with ProcessPoolExecutor() as pool:
            list(pool.map(_write_file, [folder] * FILES, range(FILES), [versions] * FILES))
        (folder / "complete").touch()
    return folder.resolve()


def _write_file(folder: Path, number: int, versions: int) -> None:
    path = folder / f"raw/{TASK.entity}/dt={TASK.dt}/hour={TASK.hour}" / f"part-{number:03}.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    places = range(number * ROWS // FILES, (number + 1) * ROWS // FILES)
    path.write_bytes(igzip.compress("".join(_line(place, versions) for place in places).encode(), 2))


def _line(place: int, versions: int) -> str:
    key, version = divmod(place * SHUFFLE % ROWS, versions)
    user = f"{key * 0x9E3779B97F4A7C15 % 2**64:016x}"
    second, micros = divmod(key, 1_000_000)
    first = f"{TASK.dt}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{micros:06}Z"
    head = f"{TASK.dt}T12:00:{version:02}.{key % 1_000_000:06}Z"
    return (
        f'{{"user_id":"usr_{user}","activity_date":"{TASK.dt}","first_event_id":"{first}#{user}",'
        f'"events_count":{version + 1},"points_earned":{5 * (version + 1)},'
        f'"points_by_type":"{{\\"CHECK_IN\\":{5 * (version + 1)}}}","ledger_head":"{head}",'
        f'"created_at":"{first}","dt":"{TASK.dt}","hour":"{TASK.hour}"}}\n'
    )
