"""Features as of an instant, written by hand in DuckDB and in pandas."""

from pathlib import Path
from typing import Any

# What all three compute, and what the join computes as we do.
CHECKED = (
    *("monetary_total_minor", "monetary_90d_minor", "frequency_purchases_365d"),
    "days_since_last_purchase",
)
COMPARED = (
    *CHECKED,
    *("monetary_30d_minor", "monetary_365d_minor", "frequency_purchases_30d", "frequency_purchases_90d"),
    *("tenure_days", "recency_days", "campaign_ignored"),
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


def duckdb(folder: Path) -> Any:
    return _by_hand(folder, "", "labels")


def merged(folder: Path) -> Any:
    return _by_hand(folder, GROUPS, "asked")


def _by_hand(folder: Path, groups: str, asked: str) -> Any:
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
        (("purchase_completed", "order_refunded"), "purchases", "amount", (30, 90, 365)),
        (("message_received",), "sentiment", "mood", (30,)),
        (
            ("purchase_completed", "message_received", "page_viewed", "campaign_opened"),
            "activity",
            "mood",
            (),
        ),
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
