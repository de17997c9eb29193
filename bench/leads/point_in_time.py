"""Features of labels as of their instants: our training sets against a join written by hand in DuckDB.

Both read the same curated events of leads, and answer for the same labels, a tenth as many as events. Each
runs in a fresh process, in turn, with two threads, and their answers are compared value by value. The lake
*skewed* has a hundred leads with a tenth of all events and labels: there the join meets every pair of them.
The join has no campaigns. ROWS (events) and REPEATS set size and rounds.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median
from typing import Any

from bench.figure import Figure, median_text, ratio

EVENTS = int(os.environ.get("ROWS", "1000000"))
LEADS = LABELS = EVENTS // 10
REPEATS = int(os.environ.get("REPEATS", "5"))
THREADS = 2
MEMORY_MB_MAX = 700
DAYS = 730
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
KINDS = (
    "purchase_completed",
    "order_refunded",
    "message_received",
    "page_viewed",
    "campaign_sent",
    "campaign_opened",
)
# Each lake: so many leads have a tenth of the events and of the labels; what CPU of the join is at least.
# Less than 1, because the join leaves out what ours must read: campaigns, merged leads, missing columns.
LAKES: dict[str, tuple[int, float | None]] = {"even": (0, 0.6), "skewed": (100, None)}
COMPARED = dict.fromkeys(
    (
        *("monetary_total_minor", "monetary_30d_minor", "monetary_90d_minor", "monetary_365d_minor"),
        *("frequency_purchases_30d", "frequency_purchases_90d", "frequency_purchases_365d"),
        *("days_since_last_purchase", "tenure_days", "recency_days"),
    ),
    "BIGINT",
)

BY_HAND = """
WITH e AS (
  SELECT lead_organization_id AS lead, event_type, occurred_at, occurred_at::DATE AS day,
    amount_minor * CASE event_type WHEN 'purchase_completed' THEN 1 ELSE -1 END AS amount,
    sentiment_milli AS mood
  FROM read_parquet('{files}')
), series AS (
  SELECT l.n, any_value(l.as_of::DATE) AS today,
    coalesce(sum(amount), 0) AS monetary_total_minor, {windows},
    count(*) FILTER (event_type = 'purchase_completed') AS orders,
    max(day) FILTER (event_type = 'purchase_completed') AS last,
    min(day) FILTER (event_type = 'purchase_completed') AS first,
    max(day) FILTER (event_type NOT IN ('order_refunded', 'campaign_sent')) AS active,
    avg(mood) FILTER (day > l.as_of::DATE - 30) AS sentiment
  FROM labels l JOIN e ON e.lead = l.lead_organization_id AND e.occurred_at <= l.as_of GROUP BY l.n
)
SELECT series.* EXCLUDE (n), today - last AS days_since_last_purchase, today - first AS tenure_days,
  today - active AS recency_days, monetary_total_minor / orders AS average
FROM labels LEFT JOIN series USING (n) ORDER BY labels.n
"""


def ours(folder: Path) -> Any:
    import pyarrow.parquet as pq

    from adapters.platform.objects import FolderObjects
    from analytics.leads.training_sets import point_in_time

    return point_in_time(FolderObjects(folder), pq.read_table(folder / "labels.parquet"))


def join(folder: Path) -> Any:
    """Join labels and events, filtered by time and grouped."""
    import duckdb

    db = duckdb.connect(config={"threads": THREADS})
    db.execute("SET TimeZone = 'UTC'")
    db.execute(f"CREATE TABLE labels AS SELECT row_number() OVER () n, * FROM '{folder}/labels.parquet'")
    windows = ", ".join(
        f"coalesce(sum(amount) FILTER (day > l.as_of::DATE - {days}), 0) AS monetary_{days}d_minor, "
        f"count(*) FILTER (event_type = 'purchase_completed' AND day > l.as_of::DATE - {days})"
        f" AS frequency_purchases_{days}d"
        for days in (30, 90, 365)
    )
    files = folder / "curated/lead_events/*/*.parquet"
    return db.sql(BY_HAND.format(files=files, windows=windows)).to_arrow_table()


VARIANTS: dict[str, Callable[[Path], Any]] = {"ours": ours, "join": join}


def run() -> Iterator[Figure]:
    """Yield CPU, wall time and memory against the join, for each lake."""
    for name, (heavy, budget) in LAKES.items():
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), heavy)
            rounds = [{variant: _run_apart(variant, folder) for variant in VARIANTS} for _ in range(REPEATS)]
        digests = {tuple(one["digest"]) for each in rounds for one in each.values()}
        assert len(digests) == 1, f"the answers differ: {digests}"
        measured = {
            (variant, what): [each[variant][what] for each in rounds]
            for variant in VARIANTS
            for what in ("cpu", "seconds", "peak_mb")
        }
        detail = ", ".join(f"{variant} {median_text(measured[variant, 'cpu'])} s" for variant in VARIANTS)
        cpu = measured["join", "cpu"], measured["ours", "cpu"]
        yield ratio(f"point in time, {name}: CPU, times the join", *cpu, ">=", budget, detail)
        yield ratio("  by the clock", measured["join", "seconds"], measured["ours", "seconds"])
        yield Figure("  MB of memory", median(measured["ours", "peak_mb"]), "<=", MEMORY_MB_MAX)


def _run_apart(variant: str, folder: str) -> dict[str, Any]:
    """Run a variant in a process of its own; returns what `measure` prints."""
    command = [sys.executable, "-m", "bench.leads.point_in_time", variant, folder]
    environment = {**os.environ, "OMP_NUM_THREADS": str(THREADS)}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(variant: Callable[[Path], Any], folder: Path) -> None:
    """Run a variant in this process; print its CPU, wall time, memory, and a digest of what is compared."""
    import duckdb
    import pandas as pd  # type: ignore[import-untyped]  # noqa: F401 (DuckDB imports it, outside of the clock)
    import pyarrow as pa

    import analytics.leads.training_sets  # noqa: F401 (imported outside of the clock)

    db = duckdb.connect()
    db.register("warm", pa.table({"one": [1]}))  # imports what DuckDB looks for in Python
    db.sql("SELECT * FROM warm").to_arrow_table()
    start, cpu = time.perf_counter(), time.process_time()
    answer = variant(folder)
    spent = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}
    peak_mb = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    db.register("answer", answer)
    columns = ", ".join(f"{name}::{kind}" for name, kind in COMPARED.items())
    digest = db.execute(f"SELECT count(*), sum(hash(row({columns}))) FROM answer").fetchone()
    print(json.dumps({**spent, "peak_mb": peak_mb, "digest": [str(each) for each in digest or ()]}))


def write(folder: Path, heavy: int) -> None:
    """Write the lake and the labels. heavy: this many leads share a tenth of the events and of the labels."""
    import numpy as np

    chance = np.random.default_rng(2)
    ids = np.array([f"{number:08x}-0000-5000-8000-{number:012x}" for number in range(LEADS)])

    def some_leads(count: int) -> Any:
        few, all_ = chance.integers(0, max(heavy, 1), count), chance.integers(0, LEADS, count)
        return ids[np.where((chance.random(count) < 0.1) & (heavy > 0), few, all_)]

    moments = np.sort(chance.integers(0, DAYS * 86_400_000_000, EVENTS)) + int(FIRST.timestamp()) * 1_000_000
    events = _events(chance, moments, some_leads)
    _write_days(folder, moments, events)
    _write_labels(folder, chance.choice(moments, LABELS), some_leads(LABELS))


def _events(chance: Any, moments: Any, some_leads: Callable[[int], Any]) -> Any:
    import numpy as np
    import pyarrow as pa

    kinds, numbers = chance.integers(0, len(KINDS), EVENTS), chance.integers(0, 1000, EVENTS)
    columns = {
        "lead_organization_id": pa.array(some_leads(EVENTS)),
        "event_type": pa.array(np.array(KINDS)[kinds]),
        "occurred_at": pa.array(moments, pa.timestamp("us", "UTC")),
        "received_at": pa.array(moments, pa.timestamp("us", "UTC")),
        "unreadable": pa.nulls(EVENTS, pa.string()),
        "amount_minor": pa.array(numbers, mask=kinds > 1),
        "sentiment_milli": pa.array(numbers, mask=kinds != 2),
        "campaign_id": pa.array(np.char.add("c", numbers.astype(str)), mask=kinds < 4),
        "change_number": pa.nulls(EVENTS, pa.int64()),
        "change_groups": pa.nulls(EVENTS, pa.string()),
    }
    return pa.table(columns)


def _write_days(folder: Path, moments: Any, rows: Any) -> None:
    import numpy as np
    import pyarrow.parquet as pq

    edges = np.searchsorted(
        moments, [int((FIRST + timedelta(d)).timestamp()) * 10**6 for d in range(DAYS + 1)]
    )
    for day in range(DAYS):
        target = folder / f"curated/lead_events/dt={FIRST + timedelta(day):%Y-%m-%d}"
        target.mkdir(parents=True)
        pq.write_table(
            rows.slice(edges[day], edges[day + 1] - edges[day]), target / "day.parquet", compression="zstd"
        )


def _write_labels(folder: Path, asked: Any, leads: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    labels = {"lead_organization_id": leads, "as_of": pa.array(asked, pa.timestamp("us", "UTC"))}
    pq.write_table(pa.table(labels), folder / "labels.parquet")


if __name__ == "__main__":
    measure(VARIANTS[sys.argv[1]], Path(sys.argv[2]))
