"""Every user's streak and totals from the whole lake: our recompute against DuckDB and Polars.

All read the same curated Parquet files, of users who are active on every other date of 400, an entry of the
ledger each. All end with the same table: user, last date, current and longest run, active days, points,
balance. ROWS (active days) and REPEATS set size and rounds.
"""

import os
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from pathlib import Path
from typing import Any

from bench.figure import Figure
from bench.turns import OURS, THREADS, compare, measure

ROWS = int(os.environ.get("ROWS", "5000000"))
REPEATS = int(os.environ.get("REPEATS", "3"))
FIRST, DAYS, SHARE = date(2025, 1, 1), 400, 0.5
COLUMNS = {
    "user_id": "VARCHAR",
    "last_activity_date": "DATE",
    **dict.fromkeys(("current_streak", "longest_streak", "active_days"), "BIGINT"),
    **dict.fromkeys(("total_bestie_points", "balance"), "BIGINT"),
}


def recompute_lake(objects: Any, today: date, *, anew: bool) -> Any:
    """Recompute all users of a lake, as a night does; returns the table. anew: from all its files."""
    from analytics.recompute.recompute import recompute

    return recompute(objects, today, anew=anew).table


def ours(folder: Path) -> Any:
    from adapters.platform.objects import FolderObjects

    return recompute_lake(FolderObjects(folder), datetime.now(UTC).date(), anew=True).select(list(COLUMNS))


def with_duckdb(folder: Path) -> Any:
    """A bit a date and texts of runs, the fastest of its idioms; totals by one query."""
    import duckdb

    curated = folder / "curated"
    days = sorted(each.name.removeprefix("dt=") for each in (curated / "daily_activity").iterdir())
    first, last = date.fromisoformat(days[0]), date.fromisoformat(days[-1])
    db = duckdb.connect(config={"threads": THREADS})
    return db.sql(f"""
        WITH bits AS (
          SELECT user_id, bitstring_agg((activity_date - DATE '{first}')::INTEGER, 0, {(last - first).days})
            ::VARCHAR AS bits
          FROM read_parquet('{curated}/daily_activity/*/*.parquet') GROUP BY user_id
        ), ended AS (SELECT user_id, bits, rtrim(bits, '0') AS until_last FROM bits), runs AS (
          SELECT user_id, DATE '{first}' + (length(until_last) - 1)::INTEGER AS last_activity_date,
            length(until_last) - length(rtrim(until_last, '1')) AS current_streak,
            list_max(list_transform(regexp_extract_all(bits, '1+'), lambda run: length(run)))
              AS longest_streak,
            length(replace(bits, '0', '')) AS active_days
          FROM ended
        ), totals AS (
          SELECT account_id AS user_id, sum(points) FILTER (kind = 'EARN') AS total_bestie_points,
            arg_max(balance, created_at) AS balance
          FROM read_parquet('{curated}/ledger/*/*.parquet') GROUP BY account_id
        )
        SELECT * FROM runs FULL JOIN totals USING (user_id)
    """).to_arrow_table()


def with_polars(folder: Path) -> Any:
    """Each user's dates as a sorted list, and runs by run-length encoding; the streaming engine."""
    import polars as pl

    def rows(entity: str) -> Any:
        return pl.scan_parquet(folder / f"curated/{entity}/*/*.parquet", hive_partitioning=False)

    islands = pl.element() - pl.int_range(pl.len(), dtype=pl.Int32)
    runs = pl.col("days").list.eval(islands.rle().struct.field("len"))
    streaks = (
        rows("daily_activity")
        .group_by("user_id")
        .agg(days=pl.col("activity_date").cast(pl.Int32).sort())
        .select(
            "user_id",
            last_activity_date=pl.col("days").list.last().cast(pl.Date),
            current_streak=runs.list.last(),
            longest_streak=runs.list.max(),
            active_days=pl.col("days").list.len(),
        )
    )
    earned = pl.col("points").filter(pl.col("kind") == "EARN").sum()
    totals = (
        rows("ledger")
        .group_by(user_id="account_id")
        .agg(total_bestie_points=earned, balance=pl.col("balance").sort_by("created_at").last())
    )
    both = streaks.join(totals, on="user_id", how="full", coalesce=True)
    return both.collect(engine="streaming").to_arrow()


WAYS: dict[str, Callable[[Path], Any]] = {OURS: ours, "DuckDB": with_duckdb, "Polars": with_polars}


def write_lake(folder: Path, days: int, rows: int, first: date = FIRST) -> int:
    """Write active days of about so many rows, an entry each, and a profile a user; returns how many.

    Files are as curation leaves them: one a day, sorted by key, zstd. Ids are texts of 36 characters.
    """
    import numpy as np
    import pyarrow as pa

    chance, total = np.random.default_rng(1), 0
    users = max(1, round(rows / (days * SHARE)))
    ids = pa.array(sorted(str(uuid.UUID(bytes=chance.bytes(16))) for _ in range(users)))
    seq = np.zeros(users, np.int64)
    for day in (first + timedelta(days=number) for number in range(days)):
        active = np.flatnonzero(chance.random(users) < SHARE)
        seq[active] += 1
        some, same = ids.take(pa.array(active)), pa.array(np.zeros(len(active), np.int32))
        when = pa.array([day], pa.date32()).take(same)
        _write(folder, "daily_activity", day, {"user_id": some, "activity_date": when})
        at = pa.array([datetime.combine(day, clock(12), UTC)], pa.timestamp("us", "UTC"))
        entries = {
            "account_id": some,
            "created_at": at.take(same),
            "seq": pa.array(seq[active]),
            "kind": pa.array(["EARN"]).take(same),
            "points": pa.array(np.full(len(active), 5)),
            "balance": pa.array(5 * seq[active]),
        }
        _write(folder, "ledger", day, entries)
        total += len(active)
    zones = pa.array(["UTC"]).take(pa.array(np.zeros(users, np.int32)))
    versions = pa.array(np.ones(users, np.int64))
    _write(folder, "streaks", day, {"user_id": ids, "version": versions, "timezone": zones})
    return total


def _write(folder: Path, entity: str, day: date, columns: dict[str, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / f"curated/{entity}/dt={day}/day.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, compression="zstd", compression_level=1, row_group_size=100_000)


def run() -> Iterator[Figure]:
    """Yield time and memory against the best rival.

    Ours also reads settings, proves each ledger and keeps what is settled, so there is no budget.
    """
    with tempfile.TemporaryDirectory() as folder:
        rows = write_lake(Path(folder), DAYS, ROWS)
        yield from compare("bench.recompute", [*WAYS], folder, REPEATS, f"recompute of {rows:,} days")


if __name__ == "__main__":
    measure(WAYS[sys.argv[1]], Path(sys.argv[2]), COLUMNS, ("polars", "analytics.recompute.recompute"))
