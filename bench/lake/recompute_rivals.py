"""Every user's runs of active dates, as a good user of each engine would write it.

All read the same curated Parquet files and return the same columns: user, last date, current and longest run,
active days.
"""

import importlib
from datetime import date
from pathlib import Path
from typing import Any

THREADS = 2
FILES = "curated/daily_activity/*/*.parquet"


def span(folder: Path) -> tuple[date, date]:
    days = sorted(each.name.removeprefix("dt=") for each in (folder / "curated/daily_activity").iterdir())
    return date.fromisoformat(days[0]), date.fromisoformat(days[-1])


def duckdb_islands(folder: Path) -> Any:
    """The usual window query ("gaps and islands")."""
    return _duckdb(f"""
        WITH numbered AS (
          SELECT user_id, activity_date, activity_date - CAST(
            row_number() OVER (PARTITION BY user_id ORDER BY activity_date) AS INTEGER) AS island
          FROM read_parquet('{folder / FILES}')
        ), runs AS (
          SELECT user_id, max(activity_date) AS last, count(*) AS days FROM numbered GROUP BY user_id, island
        )
        SELECT user_id, max(last) AS last_activity_date, arg_max(days, last) AS current_streak,
          max(days) AS longest_streak, sum(days) AS active_days
        FROM runs GROUP BY user_id
    """)


def duckdb_bits(folder: Path) -> Any:
    """A bit a date, and texts of runs; DuckDB reads the files itself."""
    first, last = span(folder)
    return _duckdb(f"""
        WITH bits AS (
          SELECT user_id, bitstring_agg((activity_date - DATE '{first}')::INTEGER, 0, {(last - first).days})
            ::VARCHAR AS bits
          FROM read_parquet('{folder / FILES}') GROUP BY user_id
        ), ended AS (SELECT user_id, bits, rtrim(bits, '0') AS until_last FROM bits)
        SELECT user_id, DATE '{first}' + (length(until_last) - 1)::INTEGER AS last_activity_date,
          length(until_last) - length(rtrim(until_last, '1')) AS current_streak,
          list_max(list_transform(regexp_extract_all(bits, '1+'), lambda run: length(run))) AS longest_streak,
          length(replace(bits, '0', '')) AS active_days
        FROM ended
    """)


def duckdb_whole(folder: Path) -> Any:
    """Runs, totals and settings by one query over all files."""
    import duckdb

    curated = folder / "curated"
    db = duckdb.connect(config={"threads": THREADS})
    db.register("runs", duckdb_bits(folder))
    return db.sql(f"""
        WITH totals AS (
          SELECT account_id AS user_id, count(*) + 1 AS entries,
            sum(points) FILTER (kind = 'EARN') AS total_bestie_points,
            arg_max(balance, created_at) AS balance,
            min(seq) = 0 AND max(seq) = count(*) AND sum(points) = arg_max(balance, created_at) AS sound
          FROM read_parquet('{curated}/ledger/*/*.parquet') GROUP BY account_id
        ), settings AS (
          SELECT user_id, max(version) AS version, arg_max(timezone, version) AS timezone
          FROM read_parquet('{curated}/streaks/*/*.parquet') GROUP BY user_id
        )
        SELECT * FROM runs FULL JOIN totals USING (user_id) FULL JOIN settings USING (user_id)
    """).to_arrow_table()


def _duckdb(query: str) -> Any:
    import duckdb

    return duckdb.connect(config={"threads": THREADS}).sql(query).to_arrow_table()


def _polars_days(folder: Path) -> Any:
    import polars as pl

    day = pl.col("activity_date").cast(pl.Int32)
    return pl.scan_parquet(folder / FILES, hive_partitioning=False).select("user_id", day=day)


def polars_lists(folder: Path) -> Any:
    """Each user's dates as a sorted list, and runs by run-length encoding; the streaming engine."""
    import polars as pl

    islands = pl.element() - pl.int_range(pl.len(), dtype=pl.Int32)
    runs = pl.col("days").list.eval(islands.rle().struct.field("len"))
    answer = (
        _polars_days(folder)
        .group_by("user_id")
        .agg(days=pl.col("day").sort())
        .select(
            "user_id",
            last_activity_date=pl.col("days").list.last().cast(pl.Date),
            current_streak=runs.list.last(),
            longest_streak=runs.list.max(),
            active_days=pl.col("days").list.len(),
        )
    )
    return answer.collect(engine="streaming").to_arrow()


def polars_sorted(folder: Path) -> Any:
    """All rows sorted by user and date, and runs by differences; the streaming engine."""
    import polars as pl

    island = pl.col("day") - pl.int_range(pl.len(), dtype=pl.Int32).over("user_id", order_by="day")
    runs = (
        _polars_days(folder)
        .with_columns(island=island)
        .group_by("user_id", "island")
        .agg(last=pl.col("day").max(), days=pl.len())
    )
    answer = runs.group_by("user_id").agg(
        last_activity_date=pl.col("last").max().cast(pl.Date),
        current_streak=pl.col("days").sort_by("last").last(),
        longest_streak=pl.col("days").max(),
        active_days=pl.col("days").sum(),
    )
    return answer.collect(engine="streaming").to_arrow()


def clickhouse_arrays(folder: Path) -> Any:
    """Each user's dates as a sorted array, and runs by splitting it."""
    chdb: Any = importlib.import_module("chdb")  # no dependency of ours: it is there or not

    return chdb.query(
        f"""
        SELECT user_id, toDate32(days[-1]) AS last_activity_date, length(runs[-1]) AS current_streak,
          arrayMax(arrayMap(run -> length(run), runs)) AS longest_streak, length(days) AS active_days
        FROM (
          SELECT user_id, arraySort(groupArray(activity_date)) AS days,
            arraySplit((day, step) -> step != 1, days, arrayDifference(arrayMap(day -> toInt32(day), days)))
              AS runs
          FROM file('{folder / FILES}', Parquet) GROUP BY user_id
        ) SETTINGS max_threads = {THREADS}, output_format_arrow_string_as_string = 1
        """,
        "ArrowTable",
    )


RIVALS = {
    "DuckDB, islands": duckdb_islands,
    "DuckDB, bits": duckdb_bits,
    "Polars, lists": polars_lists,
    "Polars, islands": polars_sorted,
    "ClickHouse, arrays": clickhouse_arrays,
}
