"""Features of 100,000 labels from a million events of 100,000 leads: ours against DuckDB and pandas by hand.

All read the same curated Parquet files and answer for the same labels; what is measured is everything from
the files to a table, in a process of its own on the same two cores. By hand, in DuckDB: one join of labels
and events, filtered by time and grouped. In pandas: running sums, and merge_asof for each end of each
window. Both leave out merged leads; pandas leaves out campaigns too. A second lake has a tenth of the events
and of the labels on a hundred leads: there a join meets every pair.
"""

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

from bench.figure import Figure

EVENTS = int(os.environ.get("ROWS", "1000000"))
LEADS = EVENTS // 10
LABELS = int(os.environ.get("LABELS", LEADS))
DAYS = 730
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
REPEATS = int(os.environ.get("REPEATS", "2"))
KINDS = (
    "order_placed",
    "order_refunded",
    "message_received",
    "page_viewed",
    "campaign_sent",
    "campaign_opened",
)
CHECKED = (
    "monetary_total_minor",
    "monetary_90d_minor",
    "frequency_purchases_365d",
    "days_since_last_purchase",
)

BY_HAND = """
WITH e AS (
  SELECT lead_organization_id AS lead, event_type, occurred_at, occurred_at::DATE AS day,
    amount_minor * CASE event_type WHEN 'order_placed' THEN 1 ELSE -1 END AS amount,
    sentiment_milli AS mood, campaign_id AS campaign
  FROM read_parquet('{files}')
), series AS (
  SELECT l.n, any_value(l.as_of::DATE) AS today,
    coalesce(sum(amount), 0) AS monetary_total_minor, {windows},
    count(*) FILTER (event_type = 'order_placed') AS orders,
    max(day) FILTER (event_type = 'order_placed') AS last,
    min(day) FILTER (event_type = 'order_placed') AS first,
    max(day) FILTER (event_type NOT IN ('order_refunded', 'campaign_sent')) AS active,
    avg(mood) FILTER (day > l.as_of::DATE - 30) AS sentiment
  FROM labels l JOIN e ON e.lead = l.lead_organization_id AND e.occurred_at <= l.as_of GROUP BY l.n
), ignored AS (
  SELECT n, count(*) AS campaign_ignored FROM (
    SELECT l.n, campaign, any_value(l.as_of::DATE) AS today,
      max(day) FILTER (event_type = 'campaign_sent') AS sent,
      count(*) FILTER (event_type <> 'campaign_sent') AS reactions
    FROM labels l JOIN e ON e.lead = l.lead_organization_id AND e.occurred_at <= l.as_of
    WHERE campaign IS NOT NULL GROUP BY l.n, campaign
  ) WHERE reactions = 0 AND sent > today - 90 AND sent <= today - 3 GROUP BY n
)
SELECT series.* EXCLUDE (n), today - last AS days_since_last_purchase, today - first AS tenure,
  today - active AS recency, monetary_total_minor / orders AS average, campaign_ignored
FROM labels LEFT JOIN series USING (n) LEFT JOIN ignored USING (n) ORDER BY labels.n
"""


def ours(folder: Path) -> Any:
    import pyarrow.parquet as pq

    from adapters.platform.objects import FolderObjects
    from analytics.features.point_in_time import point_in_time

    return point_in_time(FolderObjects(folder), pq.read_table(folder / "labels.parquet"))


def duckdb(folder: Path) -> Any:
    import duckdb

    db = duckdb.connect(config={"threads": 2})
    db.execute("SET TimeZone = 'UTC'")
    db.execute(f"CREATE TABLE labels AS SELECT row_number() OVER () n, * FROM '{folder}/labels.parquet'")
    windows = ", ".join(
        f"coalesce(sum(amount) FILTER (day > l.as_of::DATE - {days}), 0) AS monetary_{days}d_minor, "
        f"count(*) FILTER (event_type = 'order_placed' AND day > l.as_of::DATE - {days})"
        f" AS frequency_purchases_{days}d"
        for days in (30, 90, 365)
    )
    files = folder / "curated/lead_events/*/*.parquet"
    return db.execute(BY_HAND.format(files=files, windows=windows)).to_arrow_table()


def pandas(folder: Path) -> Any:
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa
    import pyarrow.dataset as ds

    lead, time_ = "lead_organization_id", "occurred_at"
    names = [lead, time_, "event_type", "amount_minor", "sentiment_milli"]
    events = ds.dataset(folder / "curated", format="parquet").to_table(columns=names).to_pandas()
    labels = pd.read_parquet(folder / "labels.parquet").reset_index(names="n").sort_values("as_of")
    events["amount"] = events.amount_minor.fillna(0).astype("int64")
    events.loc[events.event_type == "order_refunded", "amount"] *= -1
    events["mood"] = events.sentiment_milli.fillna(0).astype("int64")
    answer = labels[["n"]].copy()
    for kinds, name, column, windows in (
        (("order_placed", "order_refunded"), "purchases", "amount", (30, 90, 365)),
        (("message_received",), "sentiment", "mood", (30,)),
        (("order_placed", "message_received", "page_viewed", "campaign_opened"), "activity", "mood", ()),
    ):
        series = events[events.event_type.isin(kinds)].sort_values(time_, kind="stable")
        counted = (series.event_type != "order_refunded").astype("int64")
        running = pd.DataFrame({lead: series[lead], time_: series[time_]})
        running["count"] = counted.groupby(series[lead]).cumsum()
        running["sum"] = series[column].groupby(series[lead]).cumsum()
        day = series[time_].dt.floor("D").where(counted == 1)
        running["last"] = day.groupby(series[lead]).ffill()
        running["first"] = running[lead].map(day.groupby(series[lead]).min())
        now = pd.merge_asof(labels, running, left_on="as_of", right_on=time_, by=lead).set_index("n")
        answer = (
            answer.set_index("n").join(now[["count", "sum", "first", "last"]].add_prefix(name)).reset_index()
        )
        today = labels.set_index("n").as_of.dt.floor("D")
        answer[f"{name}_days"] = today.loc[answer.n].to_numpy() - answer[f"{name}last"].to_numpy()
        for days in windows:
            edge = labels.assign(edge=labels.as_of.dt.floor("D") - pd.Timedelta(days=days - 1)).sort_values(
                "edge"
            )
            before = pd.merge_asof(
                edge, running, left_on="edge", right_on=time_, by=lead, allow_exact_matches=False
            ).set_index("n")
            for part in ("count", "sum"):
                less = before[part].fillna(0).loc[answer.n].to_numpy()
                answer[f"{name}{part}_{days}"] = answer[f"{name}{part}"].fillna(0) - less
    answer = answer.sort_values("n")
    renamed = ("purchasessum", "purchasessum_90", "purchasescount_365", "purchases_days")
    found = {name: answer[column] for name, column in zip(CHECKED, renamed, strict=True)}
    found["days_since_last_purchase"] = found["days_since_last_purchase"].dt.days
    found["days_since_last_purchase"] = found["days_since_last_purchase"].where(answer.purchasescount > 0)
    return pa.table(
        {name: pa.array(column.astype("Int64"), from_pandas=True) for name, column in found.items()}
    )


WAYS: dict[str, Callable[[Path], Any]] = {"ours": ours, "duckdb": duckdb, "pandas": pandas}


def write(folder: Path, heavy: int) -> None:
    """Write the lake and the labels. heavy: so many leads have a tenth of the events and of the labels."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    chance = np.random.default_rng(2)

    def some_leads(count: int) -> Any:
        few, all_ = chance.integers(0, max(heavy, 1), count), chance.integers(0, LEADS, count)
        return np.where((chance.random(count) < 0.1) & (heavy > 0), few, all_)

    ids = np.array([f"{number:08x}-0000-5000-8000-{number:012x}" for number in range(LEADS)])
    moments = np.sort(chance.integers(0, DAYS * 86_400_000_000, EVENTS)) + int(FIRST.timestamp()) * 1_000_000
    kinds, numbers = chance.integers(0, len(KINDS), EVENTS), chance.integers(0, 1000, EVENTS)
    columns = {
        "lead_organization_id": pa.array(ids[some_leads(EVENTS)]),
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
    rows = pa.table(columns)
    edges = np.searchsorted(
        moments, [int((FIRST + timedelta(d)).timestamp()) * 10**6 for d in range(DAYS + 1)]
    )
    for day in range(DAYS):
        target = folder / f"curated/lead_events/dt={FIRST + timedelta(day):%Y-%m-%d}"
        target.mkdir(parents=True)
        pq.write_table(
            rows.slice(edges[day], edges[day + 1] - edges[day]), target / "day.parquet", compression="zstd"
        )
    asked = chance.choice(moments, LABELS)
    labels = {
        "lead_organization_id": ids[some_leads(LABELS)],
        "as_of": pa.array(asked, pa.timestamp("us", "UTC")),
    }
    pq.write_table(pa.table(labels), folder / "labels.parquet")


def measure(way: str, folder: Path) -> None:
    """Run one way in this process and print what it took."""
    for library in ("duckdb", "pandas", "pyarrow.dataset", "analytics.features.point_in_time"):
        importlib.import_module(library)
    start, cpu = time.perf_counter(), time.process_time()
    table = WAYS[way](folder)
    took = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}
    took["peak_mb"] = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    found = table.select(CHECKED).to_pandas().fillna(0)
    print(json.dumps({**took, "digest": [int(found[name].sum()) for name in CHECKED]}))


def in_fresh_process(way: str, folder: Path) -> dict[str, Any]:
    """Measure one way in a fresh process; the best of some repeats."""
    command = [sys.executable, "-m", "bench.leads.point_in_time", way, str(folder)]
    done = [subprocess.run(command, check=True, capture_output=True, text=True) for _ in range(REPEATS)]
    runs: list[dict[str, Any]] = [json.loads(each.stdout.splitlines()[-1]) for each in done]
    return min(runs, key=lambda each: float(each["seconds"]))


def run() -> Iterator[Figure]:
    """Yield times and memory against both, for leads that are alike, and with some that are heavy."""
    for name, heavy in (("even", 0), ("skewed", 100)):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), heavy)
            took = {way: in_fresh_process(way, Path(folder)) for way in WAYS}
        mine = took["ours"]
        if any(each["digest"] != mine["digest"] for each in took.values()):
            raise AssertionError({way: each["digest"] for way, each in took.items()})
        told = ", ".join(
            f"{way} {each['seconds']:.1f} s, {each['peak_mb']:.0f} MB" for way, each in took.items()
        )
        for way in ("duckdb", "pandas"):
            ratio = took[way]["seconds"] / mine["seconds"]
            yield Figure(f"point in time, {name}: times as fast as {way}", ratio, detail=told)


if __name__ == "__main__":
    measure(sys.argv[1], Path(sys.argv[2]))
