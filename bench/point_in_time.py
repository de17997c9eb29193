"""Features of labels as of their instants, from curated events of leads: ours, and a join in DuckDB by hand.

Both read the same files and answer for the same labels, a tenth as many as events. In a second lake a hundred
leads have a tenth of the events and of the labels: there the join meets every pair; it leaves campaigns
out. Rows are compared value
by value. ROWS (events) and REPEATS set size and rounds.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.figure import Figure
from bench.turns import OURS, THREADS, compare, measure

EVENTS = int(os.environ.get("ROWS", "1000000"))
LEADS = LABELS = EVENTS // 10
REPEATS = int(os.environ.get("REPEATS", "5"))
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
LAKES: dict[str, tuple[int, float | None]] = {"even": (0, 0.9), "skewed": (100, None)}
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
    from analytics.features.training_sets import point_in_time

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


WAYS: dict[str, Callable[[Path], Any]] = {OURS: ours, "join": join}


def run() -> Iterator[Figure]:
    """Yield CPU, wall time and memory against the join, for each lake."""
    for name, (heavy, budget) in LAKES.items():
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), heavy)
            title = f"point in time, {name}"
            yield from compare("bench.point_in_time", [*WAYS], folder, REPEATS, title, budget)


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
    imports = ("pandas", "analytics.features.training_sets")
    measure(WAYS[sys.argv[1]], Path(sys.argv[2]), COMPARED, imports)
