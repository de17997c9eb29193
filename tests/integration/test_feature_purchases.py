"""A shop's real purchases through the rules: all customers, in file order and shuffled, at three dates.

The expected values come from the file by plain dictionaries, and from none of the project's code.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from rules.leads.feature_items import evaluate_features
from rules.leads.features import FEATURES, Input
from rules.leads.series import EMPTY_SERIES, EMPTY_STATE, Contribution, Series, add_contribution, mark_of
from tests.support.effort import effort
from tests.support.real_input import CUSTOMERS, Purchase, purchases

SHARE = effort(40, soak=1)  # one customer in so many
DATES = (date(1997, 6, 30), date(1998, 1, 1), date(1998, 6, 30))
# Purchases say nothing of sentiment and campaigns.
OURS = [each for each in FEATURES if each.input in (Input.PURCHASES, Input.ACTIVITY)]


def direct(rows: list[tuple[date, int]], on: date) -> dict[str, Any]:
    """The features by definition; rows: (date, cents) of the purchases until then."""
    ages = [((on - day).days, cents) for day, cents in rows]
    total = sum(cents for _, cents in ages)
    return {
        "monetary_total": total,
        **{f"monetary_{n}d": sum(cents for age, cents in ages if age < n) for n in (30, 90, 365)},
        **{f"frequency_purchases_{n}d": sum(age < n for age, _ in ages) for n in (30, 90, 365)},
        "average_order_value": int(total / len(ages) + 0.5),
        "days_since_last_purchase": min(age for age, _ in ages),
        "tenure_days": max(age for age, _ in ages),
        "has_purchased": True,
        "recency_days": min(age for age, _ in ages),
    }


def spans(rows: list[Purchase]) -> Iterator[tuple[date, list[Purchase]]]:
    """Yield each date and the rows since the date before, in their order."""
    after = date(1900, 1, 1)
    for on in DATES:
        yield on, [each for each in rows if after < each.day <= on]
        after = on


@pytest.mark.parametrize("order", ["shuffled", "in file order"][: effort(1, soak=2)])
def test_every_customer_at_three_dates(order: str) -> None:
    rows = [row for row in purchases() if int(row.customer) % SHARE == 0]
    if order == "shuffled":
        random.Random(17).shuffle(rows)
    known: dict[str, list[Purchase]] = defaultdict(list)
    plain: dict[str, list[tuple[date, int]]] = defaultdict(list)
    state: dict[str, Series] = {}
    active: dict[str, Series] = {}
    for on, arriving in spans(rows):
        as_of = datetime(on.year, on.month, on.day, 23, tzinfo=UTC)
        for row in arriving:
            customer, given = row.customer, given_by(row)
            known[customer].append(row)
            plain[customer].append((row.day, row.cents))
            added = add_contribution(state.get(customer, EMPTY_SERIES), Input.PURCHASES, given, as_of)
            state[customer] = again(known[customer], as_of) if added is None else added
            active[customer] = (
                add_contribution(active.get(customer, EMPTY_SERIES), Input.ACTIVITY, given, as_of)
                or EMPTY_SERIES
            )
        for customer, mine in plain.items():
            both = {**EMPTY_STATE, Input.PURCHASES: state[customer], Input.ACTIVITY: active[customer]}
            assert evaluate_features(OURS, both, (), as_of) == direct(mine, on), customer
    assert len(plain) >= CUSTOMERS // SHARE


def given_by(row: Purchase) -> Contribution:
    return Contribution(mark_of(row.occurred_at, row.event_id), row.day.toordinal(), 1, row.cents)


def again(rows: list[Purchase], as_of: datetime) -> Series:
    """What the caller does with None: add all that are known, by time."""
    series: Series | None = EMPTY_SERIES
    for row in sorted(rows, key=lambda each: (each.occurred_at, each.event_id)):
        assert series is not None
        series = add_contribution(series, Input.PURCHASES, given_by(row), as_of)
    assert series is not None
    return series


def test_the_direct_calculation_is_none_of_ours() -> None:
    day = date(1997, 6, 30)
    found = direct([(day - timedelta(days=90), 100), (day, 25)], day)
    assert (found["monetary_90d"], found["monetary_total"], found["average_order_value"]) == (25, 125, 63)
