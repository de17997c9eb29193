"""Curation of a raw hour, compared with DuckDB that does the same, as a good user of it would write it.

Each lake has the publisher's own rows, with repetitions and bad lines; in one of them the fields of each line
are shuffled. Both variants write the same rows, sorted, as zstd Parquet of one level, and refuse the same
lines. Each has a warm process of its own with one core, and they run in turn. LINES and REPEATS set size and
rounds.
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
from typing import Any

import duckdb
from isal import igzip

from analytics.curation.curate import Task
from analytics.curation.curate_all import curate_one
from analytics.lake.arrow import arrow_schema
from bench.figure import Figure, median_text, ratio
from rules.lake.entities import ENTITIES, Entity, Type, row_of
from rules.lake.packed_records import row_line
from tests.support.table_items import ITEMS

DATE = "2026-03-01"  # the only date of each lake
LINES = int(os.environ.get("LINES", "120000"))
REPEATS = int(os.environ.get("REPEATS", "5"))
HOUR, FILES = "00", 4
FIRST = datetime.fromisoformat(f"{DATE}T00:00:00Z")
DUPLICATE_SHARE, MALFORMED_SHARE = 0.01, 0.001
OURS, RIVAL = "ours", "DuckDB"
VARIANTS = (OURS, RIVAL)
ZSTD_LEVEL, ROW_GROUP = 1, 100_000
DUCKDB_TYPES = {
    Type.TEXT: "VARCHAR",
    Type.TIMESTAMP: "TIMESTAMPTZ",
    Type.DATE: "DATE",
    Type.BOOLEAN: "BOOLEAN",
    # Read as JSON, because from_json accepts "5" and 1.5 for an integer. The value's text shows what it was.
    Type.INTEGER: "JSON",
}
DUCKDB_PARSE = """
CREATE TABLE parsed AS
SELECT fields, filename, reason, CASE WHEN reason IS NOT NULL THEN line END AS line FROM (
  SELECT *, {reason} AS reason FROM (
    SELECT line, filename, CASE WHEN json_valid(line) THEN from_json(line, '{json_schema}') END AS fields
    FROM read_csv('{folder}/*.gz', columns = {{'line': 'VARCHAR'}}, header = false, delim = '\x01',
      quote = '', escape = '', auto_detect = false, filename = true)))
"""
DUCKDB_REFUSE = """
COPY (SELECT filename AS file, reason, line FROM parsed WHERE reason IS NOT NULL) TO '{quarantine}'
"""
DUCKDB_WRITE = """
COPY (SELECT {columns}, NULL::VARCHAR AS extra FROM parsed
      WHERE rowid IN (SELECT {newest} FROM parsed WHERE reason IS NULL GROUP BY {keys}) ORDER BY {keys})
TO '{curated}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {level}, ROW_GROUP_SIZE {row_group})
"""


@dataclass(frozen=True, slots=True)
class RawLake:
    """A lake with one hour of an entity's raw rows."""

    entity: str
    budget: float  # how many times as fast as DuckDB we must be
    is_shuffled: bool = False  # whether each line has its fields in an order of its own

    def write(self, folder: Path) -> None:
        """Write the hour's raw files."""
        raw = raw_folder(folder, self.entity, HOUR)
        raw.mkdir(parents=True)
        for number in range(FILES):
            lines = self._lines(Random(f"{self} {number}"))
            content = igzip.compress(b"".join(line + b"\n" for line in lines), 2)
            (raw / f"part-{number:03}.gz").write_bytes(content)

    def _lines(self, random: Random) -> list[bytes]:
        entity, lines, good_lines = ENTITIES[self.entity], list[bytes](), list[bytes]()
        while len(lines) < LINES // FILES:
            draw = random.random()
            if good_lines and draw < DUPLICATE_SHARE:
                lines.append(random.choice(good_lines))
                continue
            moment = FIRST + timedelta(microseconds=random.randrange(3_600_000_000))
            row = row_of(entity, ITEMS[self.entity](random, moment), moment)
            if self.is_shuffled:
                row = dict(random.sample(list(row.items()), len(row)))
            line = row_line(row).text
            if draw > 1 - MALFORMED_SHARE:
                line = _malformed_line(random, entity, row, line)
            else:
                good_lines.append(line)
            lines.append(line)
        return lines


LAKES = (RawLake("events", 1.3), RawLake("lead_events", 1.3), RawLake("events", 1.0, is_shuffled=True))


def _malformed_line(random: Random, entity: Entity, row: dict[str, Any], line: bytes) -> bytes:
    """Return a line with one of the usual faults: cut off, a wrong type, a missing field, no object."""
    texts, numbers = (
        [field.name for field in entity.fields if field.required and field.type is kind]
        for kind in (Type.TEXT, Type.INTEGER)
    )
    match random.randrange(6):
        case 0:
            return line[: random.randrange(20, 200)]
        case 1 if numbers:
            return _json(row | {random.choice(numbers): "ten"})
        case 2 if numbers:
            return _json(row | {random.choice(numbers): "5"})
        case 3:
            missing = random.choice(texts)
            return _json({name: value for name, value in row.items() if name != missing})
        case 4:
            return _json(row | {random.choice(texts): 5})
        case _:
            return b"null"


def _json(row: dict[str, Any]) -> bytes:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode()


def outputs(folder: Path, hour: str) -> tuple[Path, Path]:
    """Return the paths of the rival's curated file and its quarantine file; makes their folders."""
    curated, quarantine = folder / "duckdb" / "curated", folder / "duckdb" / "quarantine"
    curated.mkdir(parents=True, exist_ok=True)
    quarantine.mkdir(parents=True, exist_ok=True)
    return curated / f"{hour}.parquet", quarantine / f"{hour}.ndjson"


def raw_folder(folder: Path, entity: str, hour: str) -> Path:
    """Return the folder of an hour's raw files."""
    return folder / "raw" / entity / f"arrived={DATE}" / f"dt={DATE}" / f"hour={hour}"


def _names(entity: Entity, kind: Type, *, is_required: bool | None = None) -> list[str]:
    """Return the names of an entity's fields of a type. is_required: None for all of them."""
    return [
        field.name
        for field in entity.fields
        if field.type is kind and (is_required is None or field.required is is_required)
    ]


def with_duckdb(folder: Path, name: str, hour: str) -> None:
    """Curate an hour with DuckDB: parse, refuse with reasons, keep the newest version of each key, write."""
    entity = ENTITIES[name]
    curated, quarantine = outputs(folder, hour)
    column_types = {field.name: DUCKDB_TYPES[field.type] for field in entity.fields}
    column_types |= {"dt": "VARCHAR", "hour": "VARCHAR"}
    json_schema = "{" + ", ".join(f'"{column}": "{kind}"' for column, kind in column_types.items()) + "}"
    columns = ", ".join(
        f"TRY_CAST(fields.{field.name} AS BIGINT) AS {field.name}"
        if field.type is Type.INTEGER
        else f"fields.{field.name}"
        for field in entity.fields
    )
    texts = {
        "reason": _duckdb_reason(entity, hour),
        "json_schema": json_schema,
        "folder": raw_folder(folder, name, hour),
        "quarantine": quarantine,
        "columns": columns,
        "newest": _duckdb_newest(entity),
        "keys": ", ".join(f"fields.{column}" for column in entity.key),
        "curated": curated,
        "level": ZSTD_LEVEL,
        "row_group": ROW_GROUP,
    }
    with duckdb.connect(config={"threads": 1, "preserve_insertion_order": False}) as db:
        db.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
        for statement in (DUCKDB_PARSE, DUCKDB_REFUSE, DUCKDB_WRITE):
            db.execute(statement.format(**texts))


def _duckdb_reason(entity: Entity, hour: str) -> str:
    """Return the expression for the reason why a line is refused, NULL if it is a row."""
    missing = [
        f"WHEN fields.{field.name} IS NULL THEN '{field.name}: missing or wrong'"
        for field in entity.fields
        if field.required
    ]
    wrong_integers = [
        # An optional field may be missing, a required one not.
        f"WHEN NOT coalesce(regexp_full_match(fields.{name}, '-?[0-9]+'), {not is_required})"
        f" THEN '{name}: wrong'"
        for is_required in (True, False)
        for name in _names(entity, Type.INTEGER, is_required=is_required)
    ]
    texts = _names(entity, Type.TEXT, is_required=True)
    paths = ", ".join(f"'$.{text}'" for text in texts)
    json_types = ", ".join(["'VARCHAR'"] * len(texts))
    is_of_this_hour = f"strftime(fields.{entity.occurred}, '%Y-%m-%d %H') = '{DATE} {hour}'"
    return f"""CASE WHEN fields IS NULL THEN 'not JSON' {" ".join(missing + wrong_integers)}
        WHEN json_type(line, [{paths}]) <> [{json_types}] THEN 'no text'
        WHEN fields.dt IS DISTINCT FROM '{DATE}' OR fields.hour IS DISTINCT FROM '{hour}'
          OR NOT {is_of_this_hour} THEN 'other partition' END"""


def _duckdb_newest(entity: Entity) -> str:
    """Return the aggregate that gives the row id of a key's newest version."""
    if not entity.version:
        return "min(rowid)"
    if entity.field(entity.version).type is Type.INTEGER:
        return f"arg_max(rowid, TRY_CAST(fields.{entity.version} AS BIGINT))"
    return f"arg_max(rowid, fields.{entity.version})"


def run() -> Iterator[Figure]:
    """Yield the ratio to DuckDB, for each lake."""
    with ExitStack() as stack:
        context = multiprocessing.get_context("spawn")
        pools = {
            variant: stack.enter_context(ProcessPoolExecutor(1, mp_context=context)) for variant in VARIANTS
        }
        for lake in LAKES:
            with tempfile.TemporaryDirectory() as folder:
                yield _compare(lake, Path(folder), pools)


def _compare(lake: RawLake, folder: Path, pools: dict[str, ProcessPoolExecutor]) -> Figure:
    """Curate a lake by all variants in turn; raises AssertionError if their results differ."""
    lake.write(folder)
    seconds: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    for number in range(REPEATS + 1):
        for variant in VARIANTS:
            for path in _output_folders(folder, variant, lake.entity):
                shutil.rmtree(path, ignore_errors=True)
            cpu = pools[variant].submit(curate, variant, folder, lake.entity).result()
            if number:  # the first round imports
                seconds[variant].append(cpu)
    results = {variant: _result(folder, variant, lake.entity) for variant in VARIANTS}
    if len(set(map(repr, results.values()))) != 1:
        rows = {variant: (count, digest) for variant, (count, digest, _) in results.items()}
        raise AssertionError(f"the results differ: {rows}")
    row_count, _, refused = results[OURS]
    cpu_text = ", ".join(f"{variant} {median_text(times)} s" for variant, times in seconds.items())
    order = ", any order" if lake.is_shuffled else ""
    return ratio(
        f"curation, {lake.entity}{order}: times as fast as {RIVAL}",
        seconds[RIVAL],
        seconds[OURS],
        ">=",
        lake.budget,
        f"{row_count:,} rows, {len(refused)} refused; CPU: {cpu_text}",
    )


def curate(variant: str, folder: Path, entity: str) -> float:
    """Curate the hour by one variant; returns CPU seconds."""
    start = time.process_time()
    if variant == OURS:
        curate_one(str(folder), Task(entity, DATE, HOUR))
    else:
        with_duckdb(folder, entity, HOUR)
    return time.process_time() - start


def _output_folders(folder: Path, variant: str, entity: str) -> tuple[Path, Path]:
    """Return the folders of a variant's curated and quarantined files."""
    if variant == OURS:
        return folder / "curated" / entity / f"dt={DATE}", folder / "quarantine" / entity
    curated, quarantine = outputs(folder, HOUR)
    return curated.parent, quarantine.parent


def _result(folder: Path, variant: str, entity: str) -> tuple[int, int, list[str]]:
    """Return a variant's result: the number of rows, the sum of their hashes, and the refused lines."""
    curated, quarantine = _output_folders(folder, variant, entity)
    # All variants' columns as the same types, because a hash depends on the type.
    types = {"string": "VARCHAR", "int64": "BIGINT", "bool": "BOOLEAN", "date32[day]": "DATE"}
    columns = ", ".join(
        f'"{field.name}"::{types.get(str(field.type), "TIMESTAMPTZ")}'
        for field in arrow_schema(ENTITIES[entity])
    )
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        sql = f"SELECT count(*), sum(hash(row({columns}))) FROM '{curated}/*.parquet'"
        ((count, digest),) = db.execute(sql).fetchall()
    entries = [json.loads(line) for path in quarantine.rglob("*.ndjson") for line in path.open("rb")]
    return count, digest, sorted(entry.get("raw") or entry["line"] for entry in entries)
