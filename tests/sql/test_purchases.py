"""A shop's real purchases through lake and warehouse: revenue by month equals a direct calculation."""

import csv
import json
from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from adapters.platform.objects import FolderObjects
from analytics.curation.curate import curate
from analytics.curation.plan import plan
from analytics.lake.bookkeeping import Counts
from analytics.warehouse.build import build
from analytics.warehouse.ddl import prepare
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.load import Loader
from local.event_sources import from_purchases
from rules.days import parse_moment, stamp
from rules.engagement.events import Event, event_id, to_item
from rules.lake.entities import EVENTS, row_of
from tests.sql.conftest import family
from tests.support.effort import effort
from tests.support.raw_lake import ARRIVED
from tests.support.real_input import CUSTOMERS, PURCHASES

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def row(body: dict[str, Any]) -> dict[str, Any]:
    """A purchase as the publisher sends it on."""
    moment = parse_moment(body["occurred_at"])
    event = Event(
        user_id=body["user_id"],
        event_id=event_id(body["user_id"], body["idempotency_key"], moment),
        idempotency_key=body["idempotency_key"],
        event_type=body["event_type"],
        occurred_at=body["occurred_at"],
        activity_date=moment.utc.date(),
        zone="UTC",
        points_awarded=20,
        source=body["source"],
        created_at=stamp(NOW),
        properties=json.dumps(body["properties"], sort_keys=True, separators=(",", ":")),
    )
    return row_of(EVENTS, to_item(event), NOW)


def listed(to: Path) -> list[dict[str, str]]:
    """Write a file of every thousandth customer's rows, in `make soak` of every fifth one's; returns these."""
    with PURCHASES.open(newline="") as lines, to.open("w", newline="") as chosen:
        read = csv.DictReader(lines)
        rows = [each for each in read if int(each["customer_id"]) % effort(1_000, soak=5) == 0]
        out = csv.DictWriter(chosen, read.fieldnames or ())
        out.writeheader()
        out.writerows(rows)
    return rows


def direct(rows: list[dict[str, str]]) -> dict[str, tuple[int, Decimal]]:
    """Purchases and revenue by month, from the file itself."""
    months: dict[str, tuple[int, Decimal]] = defaultdict(lambda: (0, Decimal(0)))
    for each in rows:
        month = f"{each['date'][:4]}-{each['date'][4:6]}-01"
        count, sum_ = months[month]
        months[month] = (count + 1, sum_ + Decimal(each["amount"]))
    return dict(months)


def test_revenue_by_month(tmp_path: Path) -> None:
    lake = FolderObjects(tmp_path / "lake")
    raw: dict[str, list[bytes]] = defaultdict(list)
    rows = listed(tmp_path / "purchases.csv")
    customers = {f"customer-{each['customer_id']}" for each in rows}
    for body in from_purchases(tmp_path / "purchases.csv"):
        body["properties"] = {**body["properties"], "note": "x" * 450}  # long properties have amounts too
        made = row(body)
        raw[f"raw/events/arrived={ARRIVED}/dt={made['dt']}/hour={made['hour']}/a"].append(
            json.dumps(made).encode()
        )
    for key, lines in raw.items():
        lake.put(key, b"\n".join([*lines, lines[0]]))  # one of them twice
    tasks = plan(lake, NOW.date()).tasks
    counts = sum((curate(lake, task) for task in tasks), Counts())
    assert counts.curated == len(rows) > effort(40, soak=13_832)
    assert counts.duplicates == len(raw)
    warehouse = DuckWarehouse(tmp_path / "w.duckdb", str(tmp_path / "lake"), lake)
    prepare(warehouse)
    Loader(warehouse, lake, str(tmp_path / "lake")).load("run", tasks)
    build(warehouse, family("marts.revenue_by_month"))
    found = warehouse.rows("SELECT * FROM marts.revenue_by_month ORDER BY month_start")
    assert {
        each["month_start"].isoformat(): (each["purchases"], each["revenue"]) for each in found
    } == direct(rows)
    assert sum(each["unreadable_amounts"] for each in found) == 0
    (people,) = warehouse.rows("SELECT COUNT(DISTINCT user_id) AS n FROM facts.events")
    assert people["n"] == len(customers) > effort(20, soak=CUSTOMERS - 1)
