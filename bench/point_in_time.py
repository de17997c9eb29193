"""Features of labels as of their instants, from the curated events of leads: ours, and a join by hand in DuckDB.

Both read the same files and answer for the same labels, a tenth as many as events. CPU and wall time count
from the files to a table, in a process of its own on the same two cores; ways take turns. In a second lake a
hundred leads have a tenth of the events and of the labels: there the join meets every pair. In a third one
two fifths of the leads were merged in pairs; the join finds out who was one at a label's instant. Rows are
compared value by value. ROWS (events) and REPEATS set size and rounds.
"""

import hashlib
import importlib
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
from typing import Any

from bench.figure import Figure, ratio, shown

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
CHANGED = (
    *("lead_organization_id", "event_type", "amount_minor", "sentiment_milli", "campaign_id"),
    *("change_number", "change_groups"),
)
# Each lake: its shape, and what CPU of the join is at least, of ours.
LAKES: dict[str, tuple[dict[str, int], float | None]] = {
    "even": ({}, 0.9),
    "skewed": ({"heavy": 100}, None),
    "merged": ({"merged": LEADS // 5}, 1.2),
}
COMPARED = (
    *("monetary_total_minor", "monetary_90d_minor", "frequency_purchases_365d"),
    *("days_since_last_purchase", "monetary_30d_minor", "monetary_365d_minor"),
    *("frequency_purchases_30d", "frequency_purchases_90d", "tenure_days", "recency_days"),
    "campaign_ignored",
)

BY_HAND = """
WITH e AS (
  SELECT lead_organization_id AS lead, event_type, occurred_at, occurred_at::DATE AS day,
    amount_minor * CASE event_type WHEN 'purchase_completed' THEN 1 ELSE -1 END AS amount,
    sentiment_milli AS mood, campaign_id AS campaign
  FROM read_parquet('{files}'){events}
){groups}, series AS (
  SELECT l.n, any_value(l.as_of::DATE) AS today,
    coalesce(sum(amount), 0) AS monetary_total_minor, {windows},
    count(*) FILTER (event_type = 'purchase_completed') AS orders,
    max(day) FILTER (event_type = 'purchase_completed') AS last,
    min(day) FILTER (event_type = 'purchase_completed') AS first,
    max(day) FILTER (event_type NOT IN ('order_refunded', 'campaign_sent')) AS active,
    avg(mood) FILTER (day > l.as_of::DATE - 30) AS sentiment
  FROM {asked} l JOIN e ON e.lead = l.lead_organization_id AND e.occurred_at <= l.as_of GROUP BY l.n
), ignored AS (
  SELECT n, count(*) AS campaign_ignored FROM (
    SELECT l.n, campaign, any_value(l.as_of::DATE) AS today,
      max(day) FILTER (event_type = 'campaign_sent') AS sent,
      count(*) FILTER (event_type <> 'campaign_sent') AS reactions
    FROM {asked} l JOIN e ON e.lead = l.lead_organization_id AND e.occurred_at <= l.as_of
    WHERE campaign IS NOT NULL GROUP BY l.n, campaign
  ) WHERE reactions = 0 AND sent > today - 90 AND sent <= today - 3 GROUP BY n
)
SELECT series.* EXCLUDE (n), today - last AS days_since_last_purchase, today - first AS tenure_days,
  today - active AS recency_days, monetary_total_minor / orders AS average,
  CASE WHEN series.n IS NOT NULL THEN coalesce(campaign_ignored, 0) END AS campaign_ignored
FROM labels LEFT JOIN series USING (n) LEFT JOIN ignored USING (n) ORDER BY labels.n
"""
# Where leads were merged: from when until when a leaf belongs to a root, and whose events a label sees.
GROUPS = """, spans AS (
  SELECT leaf, root, since, lead(since) OVER (PARTITION BY leaf ORDER BY number) AS until FROM (
    SELECT number, since, leaves[1] AS root, unnest(leaves) AS leaf FROM (
      SELECT change_number AS number, occurred_at AS since,
        unnest(from_json(change_groups, '[["VARCHAR"]]')) AS leaves
      FROM read_parquet('{files}') WHERE change_number IS NOT NULL))
), rooted AS (
  SELECT n, as_of, coalesce(root, lead_organization_id) AS root
  FROM labels LEFT JOIN spans ON leaf = lead_organization_id AND since <= as_of
    AND (until IS NULL OR as_of < until)
), asked AS (
  SELECT n, as_of, coalesce(leaf, rooted.root) AS lead_organization_id
  FROM rooted LEFT JOIN spans ON spans.root = rooted.root AND since <= as_of
    AND (until IS NULL OR as_of < until)
)"""


def ours(folder: Path) -> Any:
    import pyarrow.parquet as pq

    from adapters.platform.objects import FolderObjects
    from analytics.features.training_sets import point_in_time

    return point_in_time(FolderObjects(folder), pq.read_table(folder / "labels.parquet"))


def join(folder: Path, groups: str = "", asked: str = "labels") -> Any:
    """Join labels and events, filtered by time and grouped."""
    import duckdb

    db = duckdb.connect(config={"threads": 2})
    db.execute("SET TimeZone = 'UTC'")
    db.execute(f"CREATE TABLE labels AS SELECT row_number() OVER () n, * FROM '{folder}/labels.parquet'")
    windows = ", ".join(
        f"coalesce(sum(amount) FILTER (day > l.as_of::DATE - {days}), 0) AS monetary_{days}d_minor, "
        f"count(*) FILTER (event_type = 'purchase_completed' AND day > l.as_of::DATE - {days})"
        f" AS frequency_purchases_{days}d"
        for days in (30, 90, 365)
    )
    files = folder / "curated/lead_events/*/*.parquet"
    return db.sql(
        BY_HAND.format(
            files=files,
            windows=windows,
            asked=asked,
            groups=groups.format(files=files),
            events=" WHERE change_number IS NULL" if groups else "",
        )
    ).to_arrow_table()


WAYS: dict[str, Callable[[Path], Any]] = {
    "ours": ours,
    "join": join,
    "merged": lambda folder: join(folder, GROUPS, "asked"),
}


def measure(way: str, folder: Path) -> None:
    """Run one way in this process, and print its time and memory."""
    for library in ("duckdb", "pandas", "analytics.features.training_sets"):
        importlib.import_module(library)
    start, cpu = time.perf_counter(), time.process_time()
    table = WAYS[way](folder)
    took = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}
    took["peak_mb"] = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    digest = {name: _digest(table[name]) for name in COMPARED}
    print(json.dumps({**took, "digest": digest}))


def _digest(column: Any) -> str:
    """Return a digest of a column's values in their order; null counts as 0."""
    values = column.to_pandas().fillna(0).astype("int64").to_numpy()
    return hashlib.sha256(values.tobytes()).hexdigest()


def run() -> Iterator[Figure]:
    """Yield CPU, wall time and memory against the join, for each lake."""
    for name, (shape, budget) in LAKES.items():
        ways = ("ours", "merged" if "merged" in shape else "join")
        took: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), **shape)
            for way in ways * REPEATS:
                command = [sys.executable, "-m", "bench.point_in_time", way, folder]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                took[way].append(json.loads(done.stdout.splitlines()[-1]))
        if len({json.dumps(each["digest"]) for rounds in took.values() for each in rounds}) > 1:
            raise AssertionError((name, {way: rounds[0]["digest"] for way, rounds in took.items()}))
        wall, cpu, peak = (
            {way: [each[figure] for each in rounds] for way, rounds in took.items()}
            for figure in ("seconds", "cpu_seconds", "peak_mb")
        )
        detail = ", ".join(
            f"{way} {shown(wall[way])} s, CPU {shown(cpu[way])}, {max(peak[way]):.0f} MB" for way in ways
        )
        title = f"point in time, {name}: times the join"
        yield ratio(f"{title}, CPU", cpu[ways[1]], cpu["ours"], ">=", budget, detail)
        yield ratio(f"{title}, wall", wall[ways[1]], wall["ours"])


def write(folder: Path, heavy: int = 0, merged: int = 0) -> None:
    """Write the lake and the labels. heavy: this many leads share a tenth of the events and of the labels.

    merged: so many events are changes of identity, each of which makes two leads one.
    """
    import numpy as np

    chance = np.random.default_rng(2)
    ids = np.array([f"{number:08x}-0000-5000-8000-{number:012x}" for number in range(LEADS)])

    def some_leads(count: int) -> Any:
        few, all_ = chance.integers(0, max(heavy, 1), count), chance.integers(0, LEADS, count)
        return ids[np.where((chance.random(count) < 0.1) & (heavy > 0), few, all_)]

    moments = np.sort(chance.integers(0, DAYS * 86_400_000_000, EVENTS)) + int(FIRST.timestamp()) * 1_000_000
    events = _events(chance, moments, some_leads)
    _write_days(folder, moments, _with_changes(chance, events, ids, merged) if merged else events)
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


def _with_changes(chance: Any, events: Any, ids: Any, merged: int) -> Any:
    """Make changes of identity of some events, numbered in order of time. Nobody is merged twice."""
    import numpy as np
    import pyarrow as pa

    places = np.sort(chance.choice(EVENTS, merged, replace=False))
    pairs = chance.permutation(ids)[: 2 * merged].reshape(merged, 2)
    changes: dict[str, list[Any]] = {name: events[name].to_pylist() for name in CHANGED}
    for number, (place, (root, leaf)) in enumerate(zip(places, pairs, strict=True)):
        told = (str(root), "leads_merged", None, None, None, number + 1, json.dumps([[root, leaf]]))
        for name, value in zip(CHANGED, told, strict=True):
            changes[name][place] = value
    for name, values in changes.items():
        at = events.column_names.index(name)
        events = events.set_column(at, name, pa.array(values, events.schema.field(name).type))
    return events


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
    measure(sys.argv[1], Path(sys.argv[2]))
