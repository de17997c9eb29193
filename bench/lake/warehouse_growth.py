"""The same day's change in a warehouse with more and more history: what each step of the night costs.

The warehouse is a DuckDB file; its statements are those that Redshift gets. In each size the same users are
active, half of them a day. The last day brings new rows, and late ones for two days before it. A step opens
the file anew. It is told in seconds of CPU, the best of REPEATS, each on a fresh copy; and in MB that it read
(Linux tells). The exponent says how time, or what is read, grows with the history: 0 not at all, 1 in
proportion. Steps of less than FLOOR seconds are left out.

ROWS is the number of user-days a day, DAYS the smallest history, SIZES how many times that the others are.
"""

import json
import math
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adapters.platform.objects import FolderObjects
from analytics.lake.arrow import arrow_schema
from analytics.lake.layout import Place, curated_key
from analytics.warehouse.build import Builder
from analytics.warehouse.ddl import prepare
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.load import Loader
from analytics.warehouse.models import check_model, models
from bench.figure import Figure
from rules.lake.entities import ENTITIES

ROWS = int(os.environ.get("ROWS", "2000"))
DAYS = int(os.environ.get("DAYS", "3"))
SIZES = tuple(int(each) for each in os.environ.get("SIZES", "1,10,50").split(","))
REPEATS = int(os.environ.get("REPEATS", "3"))
FLOOR, FLOOR_MB = 0.05, 1.0
TODAY = date(2026, 6, 1)
LATE_DAYS, LATE_SHARE = 2, 0.02
IO = Path("/proc/self/io")
Cost = tuple[float, float]  # seconds of CPU, MB read
Costs = dict[str, Cost]


def write_day(objects: FolderObjects, day: date, users: Any, seq: dict[str, int]) -> list[Place]:
    """Write a day's events, days, ledger entries and profiles; returns the partitions."""
    count = len(users)
    at = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    moments = [at + timedelta(microseconds=number) for number in range(count)]
    ids = [f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z#{user}" for moment, user in zip(moments, users, strict=True)]
    for user in users:
        seq[user] = seq.get(user, -1) + 1
    numbers = [seq[user] for user in users]
    rows: dict[str, dict[str, Any]] = {
        "events": {
            "event_id": ids,
            "user_id": users,
            "idempotency_key": ids,
            "occurred_at": moments,
            "event_type": ["CHECK_IN"] * count,
            "zone": ["UTC"] * count,
            "source": ["web"] * count,
            "activity_date": [day] * count,
            "points_awarded": [5] * count,
            "version": ["0"] * count,
            "occurred_local": ids,
            "created_at": moments,
        },
        "daily_activity": {
            "user_id": users,
            "activity_date": [day] * count,
            "first_event_id": ids,
            "events_count": [1] * count,
            "points_earned": [5] * count,
            "ledger_head": moments,
            "created_at": moments,
        },
        "ledger": {
            "account_id": users,
            "created_at": moments,
            "seq": numbers,
            "kind": ["EARN"] * count,
            "points": [5] * count,
            "balance": [5 * each + 5 for each in numbers],
            "event_id": ids,
            "event_type": ["CHECK_IN"] * count,
            "activity_date": [day] * count,
        },
        "streaks": {
            "user_id": users,
            "version": [each + 1 for each in numbers],
            "timezone": ["UTC"] * count,
            "total_bestie_points": [5 * each + 5 for each in numbers],
            "updated_at": moments,
            "balance": [5 * each + 5 for each in numbers],
            "current_streak": [1] * count,
            "longest_streak": [1] * count,
            "active_days": [each + 1 for each in numbers],
        },
    }
    return [
        _write(objects, Place(entity, day.isoformat(), None), columns) for entity, columns in rows.items()
    ]


def _write(objects: FolderObjects, place: Place, columns: dict[str, Any]) -> Place:
    schema = arrow_schema(ENTITIES[place.entity])
    count = len(next(iter(columns.values())))
    arrays = [pa.array(columns.get(each.name, [None] * count), each.type) for each in schema]
    counts = {"in": count, "curated": count, "duplicates": 0, "quarantined": 0}
    footer = json.dumps({"schema": len(schema), "sources": {}, **counts})
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(arrays, schema=schema).replace_schema_metadata({"streakline": footer}), sink)
    objects.put(f"{curated_key(place)}", sink.getvalue().to_pybytes())
    return place


def with_history(folder: Path, days: int) -> tuple[DuckWarehouse, Loader, list[Place]]:
    """Return a warehouse with so many days loaded and built; and the partitions of the day to come."""
    objects = FolderObjects(folder / "lake")
    warehouse = DuckWarehouse(folder / "w.duckdb", str(folder / "lake"), objects)
    chance, seq = np.random.default_rng(1), dict[str, int]()
    everybody = [f"user-{number:08}" for number in range(2 * ROWS)]

    def some(share: float) -> list[str]:
        return [everybody[each] for each in np.flatnonzero(chance.random(len(everybody)) < share)]

    loader = Loader(warehouse, objects, str(folder / "lake"))
    with warehouse.kept_open():
        prepare(warehouse)
        first = TODAY - timedelta(days=days)
        for number in range(0, days, 100):
            places = [
                place
                for each in range(number, min(number + 100, days))
                for place in write_day(objects, first + timedelta(days=each), some(0.5), seq)
            ]
            loader.load("history", places)
        builder = Builder.read(warehouse)
        for name, model in models().items():
            builder.build(name)
            builder.built = {**builder.built, **Builder.read(warehouse).built}
            builder.note_tested(model)
    new = write_day(objects, TODAY, some(0.5), seq)
    for back in range(1, LATE_DAYS + 1):
        new += write_day(objects, TODAY - timedelta(days=back), some(LATE_SHARE), seq)
    return warehouse, loader, new


def _read_mb() -> float:
    if not IO.exists():
        return 0.0
    return int(IO.read_text().split("rchar:")[1].split()[0]) / 1e6


def night(warehouse: DuckWarehouse, loader: Loader, new: list[Place]) -> Costs:
    """Do a night's work; returns the cost of each step."""
    took: Costs = {}

    @contextmanager
    def told(*names: str) -> Iterator[None]:
        start, read = time.process_time(), _read_mb()
        yield
        for name in names:
            seconds, mb = took.get(name, (0.0, 0.0))
            took[name] = (seconds + time.process_time() - start, mb + _read_mb() - read)

    for entity in sorted({each.entity for each in new}):
        with told(f"load {entity}", "load"):
            loader.load("night", [each for each in new if each.entity == entity])
    builder = Builder.read(warehouse)
    for name, model in models().items():
        group = "whole" if model.whole else "incremental"
        with told(name, f"models, {group}"):
            builder.build(name)
    builder = Builder.read(warehouse)
    for name, model in models().items():
        scope = builder.scope(model)
        if scope is not None:
            group = "of what came" if scope.rows else "of all rows"
            with told(f"test {name}", f"tests, {group}"):
                check_model(warehouse, model, scope)
    return took


def measure(days: int) -> Costs:
    """Return each step's least cost on so many days of history."""
    best: Costs = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        warehouse, loader, new = with_history(folder, days)
        shutil.copy(warehouse.path, folder / "before.duckdb")
        for _ in range(REPEATS):
            shutil.copy(folder / "before.duckdb", warehouse.path)
            for step, cost in night(warehouse, loader, new).items():
                best[step] = min(cost, best.get(step, cost))
    return best


def exponent(small: float, large: float, least: float) -> float:
    """Return by which power of the history something grows. least: less than that is noise."""
    return math.log(max(large, least) / max(small, least)) / math.log(SIZES[-1] / SIZES[0])


def run() -> Iterator[Figure]:
    took = [measure(DAYS * size) for size in SIZES]
    steps = sorted(set.intersection(*map(set, took)), key=lambda step: ("," not in step, step))
    for step in steps:
        costs = [each[step] for each in took]
        if max(seconds for seconds, _ in costs) >= FLOOR:
            told = (
                f"{DAYS * size} days {seconds:.2f} s {mb:.1f} MB"
                for size, (seconds, mb) in zip(SIZES, costs, strict=True)
            )
            read = exponent(costs[0][1], costs[-1][1], FLOOR_MB)
            detail = f"read {read:.2f}: {', '.join(told)}"
            yield Figure(f"{step}: exponent", exponent(costs[0][0], costs[-1][0], FLOOR), detail=detail)
