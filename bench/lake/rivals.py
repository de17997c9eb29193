"""Curation of an hour as a good user of DuckDB or Polars would write it, including the quarantine.

Both read the lines of an hour's files, refuse each line that is no row of the schema (with the reason), keep
the newest version of each event, and write these sorted, as zstd Parquet of the same level as ours.
"""

from pathlib import Path
from typing import Any

from bench.lake.raw_day import DT

TEXTS = ("event_id", "user_id", "idempotency_key", "event_type", "occurred_local", "zone", "source")
LEVEL, ROW_GROUP = 1, 100_000


def outputs(folder: Path, way: str, hour: str) -> tuple[Path, Path]:
    """Return the paths of an hour's curated file and its quarantine file."""
    place = folder / way
    (place / "curated").mkdir(parents=True, exist_ok=True)
    (place / "quarantine").mkdir(parents=True, exist_ok=True)
    return place / "curated" / f"{hour}.parquet", place / "quarantine" / f"{hour}.ndjson"


def inputs(folder: Path, hour: str) -> str:
    return str(folder / "raw/events" / f"dt={DT}" / f"hour={hour}" / "*.gz")


def with_duckdb(folder: Path, hour: str) -> None:
    # Long: a rival, as a good user would write it.
    import duckdb

    curated, quarantine = outputs(folder, "duckdb", hour)
    db = duckdb.connect(config={"threads": 1, "preserve_insertion_order": False})
    db.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    kinds = dict.fromkeys((*TEXTS, "timezone", "properties", "properties_ref", "dt", "hour"), "VARCHAR")
    kinds |= {"occurred_at": "TIMESTAMPTZ", "created_at": "TIMESTAMPTZ", "activity_date": "DATE"}
    # Read as JSON, because from_json accepts "5" and 1.5 for an integer. The value's text shows what it was.
    kinds |= {"points_awarded": "JSON", "version": "JSON"}
    shape = "{" + ", ".join(f'"{name}": "{kind}"' for name, kind in kinds.items()) + "}"
    required = [*TEXTS, "occurred_at", "created_at", "activity_date"]
    missing = "".join(f"WHEN s.{name} IS NULL THEN '{name}: missing or wrong' " for name in required)
    paths, texts = (
        ", ".join(f"'{each}'" for each in some)
        for some in ([f"$.{name}" for name in TEXTS], ["VARCHAR"] * len(TEXTS))
    )
    whole = "".join(
        f"WHEN NOT coalesce(regexp_full_match(s.{name}, '-?[0-9]+'), false) THEN '{name}: no integer' "
        for name in ("points_awarded", "version")
    )
    db.execute(f"""
        CREATE TABLE parsed AS
        SELECT s, filename, CASE WHEN s IS NULL THEN line END AS line, CASE
            WHEN s IS NULL THEN 'not JSON' {missing} {whole}
            WHEN json_type(line, [{paths}]) <> [{texts}] THEN 'no text'
            WHEN s.dt <> '{DT}' OR s.hour <> '{hour}' OR strftime(s.occurred_at, '%H') <> '{hour}'
            THEN 'other partition' END AS reason
        FROM (SELECT line, filename, CASE WHEN json_valid(line) THEN from_json(line, '{shape}') END AS s
              FROM read_csv('{inputs(folder, hour)}', columns = {{'line': 'VARCHAR'}}, header = false,
                            delim = '\x01', quote = '', escape = '', auto_detect = false, filename = true))
    """)
    db.execute(
        f"COPY (SELECT filename, reason, line, s FROM parsed WHERE reason IS NOT NULL) TO '{quarantine}'"
    )
    columns = [*TEXTS[:4], "occurred_at", *TEXTS[4:5], "activity_date", "zone", "timezone"]
    listed = ", ".join(f"s.{name}" for name in columns)
    db.execute(f"""
        COPY (SELECT {listed}, TRY_CAST(s.points_awarded AS BIGINT) AS points_awarded, s.source,
                     s.properties, s.properties_ref, s.created_at,
                     TRY_CAST(s.version AS BIGINT) AS version, NULL::VARCHAR AS extra
              FROM parsed WHERE rowid IN (
                  SELECT arg_max(rowid, TRY_CAST(s.version AS BIGINT)) FROM parsed WHERE reason IS NULL
                  GROUP BY s.event_id, s.user_id)
              ORDER BY s.event_id, s.user_id)
        TO '{curated}' (
            FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {LEVEL}, ROW_GROUP_SIZE {ROW_GROUP})
    """)


def with_polars(folder: Path, hour: str) -> None:
    # Long: a rival, as a good user would write it.
    import polars as pl

    curated, quarantine = outputs(folder, "polars", hour)
    names = (*TEXTS, "timezone", "properties", "properties_ref", "occurred_at", "created_at", "activity_date")
    shape = pl.Struct(dict.fromkeys((*names, "points_awarded", "version", "dt", "hour"), pl.String))
    files = sorted(Path(inputs(folder, hour)).parent.glob("*.gz"))
    lines = pl.concat(
        [pl.scan_lines(file, name="line").with_columns(file=pl.lit(file.name)) for file in files]
    )
    # json_decode raises on a malformed line, accepts "5" for an integer, and turns other values into text. So
    # regular expressions look for all three first.
    whole = [
        pl.col("line").str.contains(rf'"{name}":-?[0-9]+[,}}]') for name in ("points_awarded", "version")
    ]
    no_text = pl.col("line").str.contains(rf'"(?:{"|".join(TEXTS)})":[^"]')
    is_object = pl.col("line").str.starts_with("{") & pl.col("line").str.ends_with("}")
    how: Any = {"format": "%Y-%m-%dT%H:%M:%S%.fZ", "time_unit": "us", "time_zone": "UTC", "strict": False}
    stamped = [pl.col(name).str.to_datetime(**how) for name in ("occurred_at", "created_at")]
    parsed = (
        lines.with_columns(is_fine=is_object & whole[0] & whole[1] & ~no_text)
        .with_columns(
            row=pl.when("is_fine").then(pl.col("line")).str.json_decode(shape),
            line=pl.when(~pl.col("is_fine")).then(pl.col("line")),
        )
        .unnest("row")
        .with_columns(
            *stamped,
            pl.col("activity_date").str.to_date("%Y-%m-%d", strict=False),
            pl.col("points_awarded", "version").cast(pl.Int64, strict=False),
        )
        .with_columns(
            is_fine=pl.all_horizontal(
                pl.col("is_fine"),
                *[
                    pl.col(name).is_not_null()
                    for name in (*TEXTS, "occurred_at", "created_at", "activity_date")
                ],
                pl.col("points_awarded").is_not_null(),
                pl.col("version").is_not_null(),
                pl.col("dt") == DT,
                pl.col("hour") == hour,
                pl.col("occurred_at").dt.hour() == int(hour),
            )
        )
        .collect(engine="streaming")
    )
    good = pl.col("is_fine").fill_null(value=False)
    refused = parsed.filter(~good)
    refused.with_columns(
        reason=pl.when(pl.col("line").is_null()).then(pl.lit("field")).otherwise(pl.lit("line"))
    ).write_ndjson(quarantine)
    kept = parsed.filter(good).drop("line", "file", "is_fine", "dt", "hour")
    del parsed
    kept.sort("event_id", "user_id", "version", descending=[False, False, True], maintain_order=True).unique(
        ["user_id", "event_id"], keep="first", maintain_order=True
    ).write_parquet(curated, compression="zstd", compression_level=LEVEL, row_group_size=ROW_GROUP)
