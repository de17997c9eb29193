"""Curation of a raw hour, against DuckDB and Polars that do the same.

Lakes of the publisher's own rows, with duplicates and bad lines; in one the fields of each line are in an
order of its own. All ways write the same rows and refuse the same lines. Each way has a process of its own
with one core, warm; they take turns. LINES and REPEATS set size and rounds.
"""

import json
import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import duckdb
from isal import igzip

from analytics.curation.curate import Task
from analytics.curation.curate_all import curate_one
from analytics.lake.arrow import arrow_schema
from bench.curation_rivals import DT, RIVALS
from bench.figure import Figure, ratio, shown
from rules.lake.entities import ENTITIES, Entity, Type, row_of
from rules.lake.packed_records import row_line
from tests.support.table_items import ITEMS

LINES = int(os.environ.get("LINES", "120000"))
REPEATS = int(os.environ.get("REPEATS", "5"))
HOUR, FILES = "00", 4
FIRST = datetime.fromisoformat(f"{DT}T00:00:00Z")
DUPLICATES, MALFORMED = 0.01, 0.001
OURS = "ours"
WAYS = (OURS, *RIVALS)


@dataclass(frozen=True, slots=True)
class RawLake:
    """One entity's raw rows. budget: of the best rival's time, how many times ours fits into it."""

    entity: str
    budget: float
    is_shuffled: bool = False

    def write(self, folder: Path) -> None:
        """Fill the lake's raw/."""
        for number in range(FILES):
            path = folder / "raw" / self.entity / f"arrived={DT}/dt={DT}/hour={HOUR}/part-{number:03}.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = self._lines(Random(f"{self} {number}"))
            path.write_bytes(igzip.compress(b"".join(line + b"\n" for line in lines), 2))

    def _lines(self, chance: Random) -> list[bytes]:
        entity, lines, whole = ENTITIES[self.entity], list[bytes](), list[bytes]()
        while len(lines) < LINES // FILES:
            draw = chance.random()
            if whole and draw < DUPLICATES:
                lines.append(chance.choice(whole))
                continue
            moment = FIRST + timedelta(microseconds=chance.randrange(3_600_000_000))
            row = row_of(entity, ITEMS[self.entity](chance, moment), moment)
            if self.is_shuffled:
                row = dict(chance.sample(list(row.items()), len(row)))
            line = row_line(row).text
            if draw > 1 - MALFORMED:
                line = _spoiled(chance, entity, row, line)
            else:
                whole.append(line)
            lines.append(line)
        return lines


LAKES = (RawLake("events", 1.3), RawLake("lead_events", 1.3), RawLake("events", 1.0, is_shuffled=True))


def _spoiled(chance: Random, entity: Entity, row: dict[str, Any], line: bytes) -> bytes:
    """Return a line with one of the usual faults: cut off, a wrong type, a missing field, no object."""
    texts, numbers = (
        [field.name for field in entity.fields if field.required and field.type is kind]
        for kind in (Type.TEXT, Type.INTEGER)
    )
    match chance.randrange(6):
        case 0:
            return line[: chance.randrange(20, 200)]
        case 1 if numbers:
            return _json(row | {chance.choice(numbers): "ten"})
        case 2 if numbers:
            return _json(row | {chance.choice(numbers): "5"})
        case 3:
            del row[chance.choice(texts)]
            return _json(row)
        case 4:
            return _json(row | {chance.choice(texts): 5})
        case _:
            return b"null"


def _json(row: dict[str, Any]) -> bytes:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode()


def one(way: str, folder: Path, entity: str) -> float:
    """Curate the hour one way; returns CPU seconds."""
    started = time.process_time()
    if way == OURS:
        curate_one(str(folder), Task(entity, DT, HOUR))
    else:
        RIVALS[way](folder, entity, HOUR)
    return time.process_time() - started


def _outputs(folder: Path, way: str, entity: str) -> tuple[Path, Path]:
    """Return where a way has its curated and its quarantined files."""
    if way == OURS:
        return folder / "curated" / entity / f"dt={DT}", folder / "quarantine" / entity
    return folder / way / "curated", folder / way / "quarantine"


def _answer(folder: Path, way: str, entity: str) -> tuple[Any, ...]:
    """Return what a way has written: the number of rows, the sum of their hashes, and the refused lines."""
    curated, quarantine = _outputs(folder, way, entity)
    kinds = {"string": "VARCHAR", "int64": "BIGINT", "bool": "BOOLEAN", "date32[day]": "DATE"}
    schema = arrow_schema(ENTITIES[entity])
    listed = ", ".join(f'"{each.name}"::{kinds.get(str(each.type), "TIMESTAMPTZ")}' for each in schema)
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        rows = db.execute(f"SELECT count(*), sum(hash(row({listed}))) FROM '{curated}/*.parquet'").fetchone()
    entries = [json.loads(line) for path in quarantine.rglob("*.ndjson") for line in path.open("rb")]
    return (*(rows or ()), sorted(entry.get("raw") or entry["line"] for entry in entries))


def run() -> Iterator[Figure]:
    """Yield the ratio of each lake to the fastest rival."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    with ExitStack() as stack:
        context = multiprocessing.get_context("spawn")
        pools = {way: stack.enter_context(ProcessPoolExecutor(1, mp_context=context)) for way in WAYS}
        for lake in LAKES:
            with tempfile.TemporaryDirectory() as folder:
                yield from _compared(lake, Path(folder), pools)


def _compared(lake: RawLake, folder: Path, pools: dict[str, ProcessPoolExecutor]) -> Iterator[Figure]:
    lake.write(folder)
    took: dict[str, list[float]] = {way: [] for way in WAYS}
    for number in range(REPEATS + 1):
        for way in WAYS:
            for path in _outputs(folder, way, lake.entity):
                shutil.rmtree(path, ignore_errors=True)
            cpu = pools[way].submit(one, way, folder, lake.entity).result()
            if number:  # the first round imports
                took[way].append(cpu)
    answers = {way: _answer(folder, way, lake.entity) for way in WAYS}
    if len(set(map(repr, answers.values()))) != 1:
        raise AssertionError(f"the results differ: { {way: each[:2] for way, each in answers.items()} }")
    rows, _, refused = answers[OURS]
    best = min(RIVALS, key=lambda way: median(took[way]))
    detail = ", ".join(f"{way} {shown(times)} s" for way, times in took.items())
    title = f"curation, {lake.entity}{', any order' * lake.is_shuffled}"
    yield ratio(
        f"{title}: times as fast as {best}",
        took[best],
        took[OURS],
        ">=",
        lake.budget,
        f"{rows:,} rows, {len(refused)} refused; CPU: {detail}",
    )
