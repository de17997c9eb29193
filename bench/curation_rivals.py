"""Curation of an hour as a good user of DuckDB or Polars would write it, with the quarantine.

Both read the lines of an hour's files, refuse each line that is no row of the schema, keep the newest version
of each key, and write these sorted, as zstd Parquet of the same level as ours. DuckDB gives a reason for each
refused line, Polars one reason for all. Statements are made from the entity's declaration.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rules.lake.entities import ENTITIES, Entity, Type

DATE = "2026-03-01"  # the only date of each lake
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


def outputs(folder: Path, rival: str, hour: str) -> tuple[Path, Path]:
    """Return the paths of an hour's curated file and its quarantine file; makes their folders."""
    curated, quarantine = folder / rival / "curated", folder / rival / "quarantine"
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
    import duckdb

    entity = ENTITIES[name]
    curated, quarantine = outputs(folder, "duckdb", hour)
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


def with_polars(folder: Path, name: str, hour: str) -> None:
    """Curate an hour with Polars: parse, refuse, keep the newest version of each key, write."""
    import polars as pl

    entity = ENTITIES[name]
    curated, quarantine = outputs(folder, "polars", hour)
    parsed = _polars_parse(entity, raw_folder(folder, name, hour), hour)
    refused = parsed.filter(~pl.col("is_row"))
    refused.select("file", "line", reason=pl.lit("no row")).write_ndjson(quarantine)
    rows = parsed.filter("is_row").drop("line", "file", "is_row", "dt", "hour")
    del parsed  # the sort needs its memory
    has_version = entity.version and entity.version not in entity.key
    sort_columns = [*entity.key, *([entity.version] if has_version else [])]
    # Versions descend, so the first row of each key is its newest.
    descending = [column not in entity.key for column in sort_columns]
    newest = rows.sort(sort_columns, descending=descending, maintain_order=True).unique(
        list(entity.key), keep="first", maintain_order=True
    )
    newest.with_columns(extra=pl.lit(None, pl.String)).write_parquet(
        curated, compression="zstd", compression_level=ZSTD_LEVEL, row_group_size=ROW_GROUP
    )


def _polars_parse(entity: Entity, folder: Path, hour: str) -> Any:
    """Return a row for each line: its fields, `file`, `is_row`, and the `line` if it is no row."""
    import polars as pl

    row_schema = pl.Struct(
        {field.name: pl.Boolean if field.type is Type.BOOLEAN else pl.String for field in entity.fields}
        | {"dt": pl.String, "hour": pl.String}
    )
    files = sorted(folder.glob("*.gz"))
    lines = pl.concat(
        [pl.scan_lines(file, name="line").with_columns(file=pl.lit(file.name)) for file in files]
    )
    is_of_this_hour = (
        pl.col(entity.occurred).cast(pl.Datetime("us")).dt.strftime("%Y-%m-%d %H") == f"{DATE} {hour}"
    )
    has_required = [pl.col(field.name).is_not_null() for field in entity.fields if field.required]
    is_row = pl.all_horizontal(
        pl.col("is_row"), *has_required, pl.col("dt") == DATE, pl.col("hour") == hour, is_of_this_hour
    )
    return (
        lines.with_columns(is_row=pl.all_horizontal(_polars_checks(entity)))
        .with_columns(row=pl.when("is_row").then(pl.col("line")).str.json_decode(row_schema))
        .unnest("row")
        .with_columns(_polars_casts(entity))
        .with_columns(is_row=is_row.fill_null(value=False))
        .with_columns(line=pl.when(~pl.col("is_row")).then(pl.col("line")))
        .collect(engine="streaming")
    )


def _polars_checks(entity: Entity) -> list[Any]:
    """Return what must hold for a line before it is decoded.

    json_decode raises on a malformed line, accepts "5" for an integer, and turns other values into text. So
    regular expressions look for all three first.
    """
    import polars as pl

    line = pl.col("line").str
    checks = [line.starts_with("{") & line.ends_with("}")]
    integers, texts = _names(entity, Type.INTEGER), _names(entity, Type.TEXT, is_required=True)
    for names, wrong_start in ((integers, "[^-0-9]"), (texts, '[^"]')):
        if names:
            checks.append(~line.contains(rf'"(?:{"|".join(names)})":{wrong_start}'))
    return checks


def _polars_casts(entity: Entity) -> list[Any]:
    """Return the columns of an entity whose texts are read as another type; null where they cannot be."""
    import polars as pl

    timestamp: Any = {"format": "%Y-%m-%dT%H:%M:%S%.fZ", "time_unit": "us", "time_zone": "UTC"}
    casts = [
        pl.col(name).str.to_datetime(**timestamp, strict=False) for name in _names(entity, Type.TIMESTAMP)
    ]
    casts += [pl.col(name).str.to_date("%Y-%m-%d", strict=False) for name in _names(entity, Type.DATE)]
    casts += [pl.col(name).cast(pl.Int64, strict=False) for name in _names(entity, Type.INTEGER)]
    return casts


RIVALS: dict[str, Callable[[Path, str, str], None]] = {"duckdb": with_duckdb, "polars": with_polars}
