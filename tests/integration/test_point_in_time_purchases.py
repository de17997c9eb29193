"""A shop's real purchases as of three instants: many of its customers, in `make soak` all, against a plain reading."""

import csv
import random
from bisect import bisect_right
from collections import defaultdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from adapters.platform.objects import FolderObjects
from analytics.lake.arrow import arrow_schema
from analytics.leads.training_sets import point_in_time
from rules.leads.lake_entities import LEAD_EVENTS
from tests.lake.test_point_in_time import table
from tests.support.effort import effort
from tests.support.lead_histories import write
from tests.support.real_input import CUSTOMERS, PURCHASES

AS_OF = [
    datetime(1997, 3, 31, 12, tzinfo=UTC),
    datetime(1997, 12, 1, 18, tzinfo=UTC),
    datetime(1998, 6, 30, 23, 59, tzinfo=UTC),
]


SAMPLE = effort(100, soak=CUSTOMERS)


def bought_lines() -> list[dict[str, str]]:
    with PURCHASES.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    customers = sorted({each["customer_id"] for each in rows})
    assert len(customers) == CUSTOMERS
    chosen = set(random.Random(4).sample(customers, SAMPLE))
    return [each for each in rows if each["customer_id"] in chosen]


def real_rows() -> list[dict[str, Any]]:
    """Purchases as rows of lead_events at noon of their date, shuffled."""
    rows = []
    for number, each in enumerate(bought_lines()):
        at = datetime.strptime(each["date"], "%Y%m%d").replace(hour=12, tzinfo=UTC)
        rows.append(
            dict.fromkeys(arrow_schema(LEAD_EVENTS).names)
            | {
                "lead_organization_id": each["customer_id"],
                "event_id": f"id-{number}",
                "organization_id": "cdnow",
                "root_id": each["customer_id"],
                "source": "cdnow/shop",
                "source_type": "order",
                "external_event_id": str(number),
                "event_type": "purchase_completed",
                "occurred_at": at,
                "received_at": at,
                "payload": "{}",
                "amount_minor": round(float(each["amount"]) * 100),
            }
        )
    random.Random(5).shuffle(rows)
    return rows


def direct() -> dict[str, list[tuple[date, int]]]:
    """Dates and cents by customer, from the file's own text."""
    found: dict[str, list[tuple[date, int]]] = defaultdict(list)
    for each in bought_lines():
        cents = int(each["amount"].replace(".", ""))
        found[each["customer_id"]].append((date.fromisoformat(each["date"]), cents))
    return {customer: sorted(each) for customer, each in found.items()}


def test_real_purchases(tmp_path: Path) -> None:
    objects = FolderObjects(tmp_path / "lake")
    write(objects, real_rows(), tmp_path)
    bought = direct()
    assert len(bought) == SAMPLE
    labels = [(customer, moment) for customer in bought for moment in AS_OF]
    random.Random(6).shuffle(labels)
    found = point_in_time(objects, table(labels)).to_pydict()
    for place, (customer, moment) in enumerate(labels):
        known = bought[customer][: bisect_right(bought[customer], (moment.date(), 10**9))]
        recent = [cents for day, cents in known if (moment.date() - day).days < 90]
        expected = (
            (
                sum(cents for _, cents in known),
                sum(recent),
                len(recent),
                (moment.date() - known[-1][0]).days,
                (moment.date() - known[0][0]).days,
                True,
                (moment.date() - known[-1][0]).days,
            )
            if known
            else (None,) * 7
        )
        names = (
            *("monetary_total_minor", "monetary_90d_minor", "frequency_purchases_90d"),
            *("days_since_last_purchase", "tenure_days", "has_purchased", "recency_days"),
        )
        assert tuple(found[name][place] for name in names) == expected, (customer, moment)
