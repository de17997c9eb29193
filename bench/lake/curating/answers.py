"""What each way of curation has written: all must have the same rows, and refuse the same lines."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from analytics.lake.arrow import arrow_schema
from bench.lake.curating.rivals import DT
from bench.lake.curating.ways import FLOORS, LOOSE, OURS, PACKED, place
from rules.lake.entities import ENTITIES


def _outputs(folder: Path, way: str, entity: str) -> tuple[Path, Path]:
    """Return where a way has its curated and its quarantined files."""
    if way in (OURS, PACKED):
        root = place(folder, way)
        return root / "curated" / entity / f"dt={DT}", root / "quarantine" / entity
    return folder / way / "curated", folder / way / "quarantine"


def clear(folder: Path, way: str, entity: str) -> None:
    """Remove what a way wrote before."""
    for path in _outputs(folder, way, entity) if way not in FLOORS else ():
        shutil.rmtree(path, ignore_errors=True)


def answer(folder: Path, way: str, entity: str) -> tuple[Any, ...]:
    """Return what a way has written: the number of rows, the sum of their hashes, and the refused lines."""
    curated, quarantine = _outputs(folder, way, entity)
    schema = arrow_schema(ENTITIES[entity])
    kinds = {"string": "VARCHAR", "int64": "BIGINT", "bool": "BOOLEAN", "date32[day]": "DATE"}
    listed = ", ".join(f'"{each.name}"::{kinds.get(str(each.type), "TIMESTAMPTZ")}' for each in schema)
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        rows = db.execute(f"SELECT count(*), sum(hash(row({listed}))) FROM '{curated}/*.parquet'").fetchone()
    entries = [json.loads(line) for path in quarantine.rglob("*.ndjson") for line in path.open("rb")]
    # A refused line that no brace ends keeps the comma that parts it from the next row of a packed record.
    lines = sorted((each.get("raw") or each["line"]).rstrip(",") for each in entries)
    return (*(rows or ()), lines)


def checked(folder: Path, ways: Sequence[str], entity: str) -> tuple[int, int]:
    """Return how many rows there are, and how many refused lines; raises if two ways differ."""
    answers = {way: answer(folder, way, entity) for way in ways if way not in (*FLOORS, LOOSE)}
    if len(set(map(repr, answers.values()))) != 1:
        told = {way: (rows, total, len(lines)) for way, (rows, total, lines) in answers.items()}
        raise AssertionError(f"the results differ: {told}")
    rows, _, lines = answers[OURS]
    return rows, len(lines)
