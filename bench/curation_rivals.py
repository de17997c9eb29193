"""Curation of an hour as a good user of DuckDB or Polars would write it, with the quarantine.

All read the lines of an hour's files, refuse each line that is no row of the schema (with the reason), keep
the newest version of each key, and write these sorted, as zstd Parquet of the same level as ours. Statements
are made from the entity's declaration.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rules.lake.entities import ENTITIES, Entity, Type

DT = "2026-03-01"  # of all lakes
LEVEL, ROW_GROUP = 1, 100_000
DUCKDB = {
    Type.TEXT: "VARCHAR",
    Type.TIMESTAMP: "TIMESTAMPTZ",
    Type.DATE: "DATE",
    Type.BOOLEAN: "BOOLEAN",
    # Read as JSON, because from_json accepts "5" and 1.5 for an integer. The value's text shows what it was.
    Type.INTEGER: "JSON",
}


def outputs(folder: Path, way: str, hour: str) -> tuple[Path, Path]:
    """Return the paths of an hour's curated file and its quarantine file."""
    place = folder / way
    (place / "curated").mkdir(parents=True, exist_ok=True)
    (place / "quarantine").mkdir(parents=True, exist_ok=True)
    return place / "curated" / f"{hour}.parquet", place / "quarantine" / f"{hour}.ndjson"


def inputs(folder: Path, entity: str, hour: str) -> str:
    return str(folder / "raw" / entity / f"arrived={DT}" / f"dt={DT}" / f"hour={hour}" / "*.gz")


def _named(entity: Entity, kind: Type, *, required: bool | None = None) -> list[str]:
    return [
        field.name
        for field in entity.fields
        if field.type is kind and (required is None or field.required is required)
    ]


def _duckdb_reason(entity: Entity, hour: str) -> str:
    """Return the expression that tells why a line is refused."""
    missing = [field.name for field in entity.fields if field.required]
    reasons = [f"WHEN s.{name} IS NULL THEN '{name}: missing or wrong'" for name in missing]
    reasons += [
        f"WHEN NOT coalesce(regexp_full_match(s.{name}, '-?[0-9]+'), {not is_required}) THEN '{name}: wrong'"
        for is_required in (True, False)
        for name in _named(entity, Type.INTEGER, required=is_required)
    ]
    texts = _named(entity, Type.TEXT, required=True)
    paths = ", ".join(f"'$.{text}'" for text in texts)
    is_here = f"strftime(s.{entity.occurred}, '%Y-%m-%d %H') = '{DT} {hour}'"
    return f"""CASE WHEN s IS NULL THEN 'not JSON' {" ".join(reasons)}
        WHEN json_type(line, [{paths}]) <> [{", ".join(["'VARCHAR'"] * len(texts))}] THEN 'no text'
        WHEN s.dt IS DISTINCT FROM '{DT}' OR s.hour IS DISTINCT FROM '{hour}' OR NOT {is_here}
        THEN 'other partition' END"""


def with_duckdb(folder: Path, name: str, hour: str) -> None:
    import duckdb

    entity = ENTITIES[name]
    curated, quarantine = outputs(folder, "duckdb", hour)
    db = duckdb.connect(config={"threads": 1, "preserve_insertion_order": False})
    db.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    kinds = {field.name: DUCKDB[field.type] for field in entity.fields} | {"dt": "VARCHAR", "hour": "VARCHAR"}
    shape = "{" + ", ".join(f'"{each}": "{kind}"' for each, kind in kinds.items()) + "}"
    db.execute(f"""
        CREATE TABLE parsed AS
        SELECT s, filename, reason, CASE WHEN reason IS NOT NULL THEN line END AS line FROM (
            SELECT *, {_duckdb_reason(entity, hour)} AS reason FROM (
                SELECT line, filename, CASE WHEN json_valid(line) THEN from_json(line, '{shape}') END AS s
                FROM read_csv('{inputs(folder, name, hour)}', columns = {{'line': 'VARCHAR'}}, header = false,
                    delim = '\x01', quote = '', escape = '', auto_detect = false, filename = true)))
    """)
    db.execute(
        f"COPY (SELECT filename AS file, reason, line FROM parsed WHERE reason IS NOT NULL) TO '{quarantine}'"
    )
    listed = ", ".join(
        f"TRY_CAST(s.{field.name} AS BIGINT) AS {field.name}"
        if field.type is Type.INTEGER
        else f"s.{field.name}"
        for field in entity.fields
    )
    newest = f"arg_max(rowid, TRY_CAST(s.{entity.version} AS BIGINT))" if entity.version else "min(rowid)"
    if entity.version and entity.field(entity.version).type is not Type.INTEGER:
        newest = f"arg_max(rowid, s.{entity.version})"
    keys = ", ".join(f"s.{each}" for each in entity.key)
    db.execute(f"""
        COPY (SELECT {listed}, NULL::VARCHAR AS extra FROM parsed
              WHERE rowid IN (SELECT {newest} FROM parsed WHERE reason IS NULL GROUP BY {keys})
              ORDER BY {", ".join(f"s.{each}" for each in entity.key)})
        TO '{curated}' (
            FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {LEVEL}, ROW_GROUP_SIZE {ROW_GROUP})
    """)
    db.close()


def with_polars(folder: Path, name: str, hour: str) -> None:
    import polars as pl

    entity = ENTITIES[name]
    curated, quarantine = outputs(folder, "polars", hour)
    shape = pl.Struct(
        {field.name: pl.Boolean if field.type is Type.BOOLEAN else pl.String for field in entity.fields}
        | {"dt": pl.String, "hour": pl.String}
    )
    files = sorted(Path(inputs(folder, name, hour)).parent.glob("*.gz"))
    lines = pl.concat(
        [pl.scan_lines(file, name="line").with_columns(file=pl.lit(file.name)) for file in files]
    )
    # json_decode raises on a malformed line, accepts "5" for an integer, and turns other values into text. So
    # regular expressions look for all three first.
    checks = [pl.col("line").str.starts_with("{") & pl.col("line").str.ends_with("}")]
    for kind, wrong in ((Type.INTEGER, "[^-0-9]"), (Type.TEXT, '[^"]')):
        if names := _named(entity, kind, required=None if kind is Type.INTEGER else True):
            checks.append(~pl.col("line").str.contains(rf'"(?:{"|".join(names)})":{wrong}'))
    how: Any = {"format": "%Y-%m-%dT%H:%M:%S%.fZ", "time_unit": "us", "time_zone": "UTC", "strict": False}
    cast = [pl.col(each).str.to_datetime(**how) for each in _named(entity, Type.TIMESTAMP)]
    cast += [pl.col(each).str.to_date("%Y-%m-%d", strict=False) for each in _named(entity, Type.DATE)]
    cast += [pl.col(each).cast(pl.Int64, strict=False) for each in _named(entity, Type.INTEGER)]
    here = pl.col(entity.occurred).cast(pl.Datetime("us")).dt.strftime("%Y-%m-%d %H") == f"{DT} {hour}"
    is_there = [pl.col(field.name).is_not_null() for field in entity.fields if field.required]
    parsed = (
        lines.with_columns(is_fine=pl.all_horizontal(checks))
        .with_columns(row=pl.when("is_fine").then(pl.col("line")).str.json_decode(shape))
        .unnest("row")
        .with_columns(cast)
        .with_columns(
            is_fine=pl.all_horizontal(
                pl.col("is_fine"), *is_there, pl.col("dt") == DT, pl.col("hour") == hour, here
            ).fill_null(value=False)
        )
        .with_columns(line=pl.when(~pl.col("is_fine")).then(pl.col("line")))
        .collect(engine="streaming")
    )
    refused = parsed.filter(~pl.col("is_fine"))
    refused.select("file", "line", reason=pl.lit("no row")).write_ndjson(quarantine)
    kept = parsed.filter("is_fine").drop("line", "file", "is_fine", "dt", "hour")
    del parsed
    by = [*entity.key, *([entity.version] if entity.version and entity.version not in entity.key else [])]
    kept.sort(by, descending=[each not in entity.key for each in by], maintain_order=True).unique(
        list(entity.key), keep="first", maintain_order=True
    ).with_columns(extra=pl.lit(None, pl.String)).write_parquet(
        curated, compression="zstd", compression_level=LEVEL, row_group_size=ROW_GROUP
    )


RIVALS: dict[str, Callable[[Path, str, str], None]] = {
    "duckdb": with_duckdb,
    "polars": with_polars,
}
