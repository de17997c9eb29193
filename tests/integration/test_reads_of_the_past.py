"""What reads of a long history cost, and what they show, on a real engine."""

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest

from adapters.engagement.account_items import day_attributes
from adapters.engagement.account_store import AccountStore
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.batches import put_all
from adapters.platform.items import item
from rules.engagement.account_state import Day
from tests.support.engine import Engine
from tests.support.site import PRODUCERS, Site, site
from tests.support.subscribers import Counting

LAST = date(2026, 6, 1)


@pytest.fixture(scope="module")
def api(engine: Engine) -> Iterator[Site]:
    with site(engine) as prepared:
        yield prepared


@pytest.mark.parametrize("active_days", [100, 3000])
def test_a_page_of_days_reads_a_page(engine: Engine, active_days: int) -> None:
    dynamodb, user = engine.client("dynamodb"), f"past{time.time_ns()}"
    days = [LAST - timedelta(days=number) for number in range(active_days)]
    rows = (Day(user, each, f"{each}T00:00:00.000000Z#e", 1, 5, {}, "", f"{each}") for each in days)
    put_all(dynamodb, "DailyActivity", [item(day_attributes(each)) for each in rows])
    counting = Counting(dynamodb)
    ledger = LedgerStore(counting, "RewardsLedger")
    accounts = AccountStore(counting, "UserStreaks", "DailyActivity", ledger, 2)
    found = accounts.newest_days(user, days[-1], LAST - timedelta(days=3), 10)
    assert [each.activity_date for each in found] == days[3:13]
    assert (counting.read, counting.calls) == (10, {"query": 1})


def test_entries_of_a_clock_that_is_ahead_are_in_the_ledger(
    api: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = f"ahead{time.time_ns()}"
    event = {"idempotency_key": "k", "event_type": "CHECK_IN", "timezone": "UTC"}
    with monkeypatch.context() as ahead:
        ahead.setattr("adapters.clock.now", lambda: datetime.now(UTC) + timedelta(days=2))
        api.send(user, event | {"occurred_at": datetime.now(UTC).isoformat()}, groups=(PRODUCERS,))
    kinds = [each["kind"] for each in api.call(user, "GET", f"/v1/users/{user}/ledger")[1]["entries"]]
    assert kinds == ["EARN", "OPEN"]
    path = f"/v1/users/{user}/streak/explain?date="
    later = date.today() + timedelta(days=30)  # noqa: DTZ011 (any late date)
    told = api.call(user, "GET", f"{path}{later}")[1]
    shown = api.call(user, "GET", f"/v1/users/{user}?as_of={later}")[1]
    assert told["streak_length"] == shown["current_streak"] == 0


def test_a_date_that_the_zone_skipped_is_no_miss_between_two_missed_ones(api: Site) -> None:
    """Apia had no 30 December 2011. Freezes cover the 29th and the 31st, and none is spent on the 30th."""
    user = f"apia{time.time_ns()}"
    for granted in ("2011-12-01", "2011-12-01"):
        assert api.admin("POST", f"/v1/users/{user}/freezes", {"granted_on": granted})[0] == 201
    days = [date(2011, 12, 28), date(2012, 1, 1)]
    events = [
        {
            "idempotency_key": f"k{day}",
            "event_type": "CHECK_IN",
            "occurred_at": f"{day}T12:00:00{offset}",
            "timezone": "Pacific/Apia",
        }
        for day, offset in zip(days, ("-10:00", "+14:00"), strict=True)
    ]
    api.send(user, *events, groups=(PRODUCERS,))
    shown = api.call(user, "GET", f"/v1/users/{user}?as_of=2012-01-01")[1]
    assert (shown["current_streak"], shown["freezes_available"]) == (2, 0)
