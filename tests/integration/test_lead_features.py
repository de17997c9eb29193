"""Features of leads on the engine: duplicates, any order, crashes, poison, as time passes, and declared otherwise."""

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from adapters.platform.items import encode_item
from adapters.platform.queues import PoisonMessage
from adapters.platform.tables import put_all
from rules.days import DAY, stamp
from rules.leads.feature_items import FeatureItem
from rules.leads.features import FEATURES, Contact
from rules.leads.lead_events import to_item
from tests.support.declarations import MONETARY_730D, declare
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.lead_event_strategies import START
from tests.support.lead_processors import Crash, Leads, Requests, message, refresh


def test_a_purchase_costs_one_read_and_one_write_and_leaves_sentiment_alone(leads: Leads) -> None:
    first = [leads.event(n, "message_received", START, sentiment_milli=100) for n in range(2)]
    orders = [leads.event(n, "purchase_completed", START + timedelta(seconds=n)) for n in range(2, 5)]
    leads.store([*first, *orders])
    requests = Requests(leads.client)
    leads.feature(first[0])
    assert requests.take() == (2, 1), "the first event of a lead builds the state from what is stored"
    before = leads.root()
    late = leads.event(5, "purchase_completed", START + timedelta(seconds=9))
    leads.store([late])
    requests.take()
    leads.feature(late)
    (update,) = requests.updates
    named = {*update["ExpressionAttributeNames"].values()}
    assert "monetary_total" in named
    assert not {each for each in named if "sentiment" in each or "campaign" in each}
    assert requests.take() == (1, 1)
    leads.feature(late)
    assert requests.take() == (1, 0), "it is in already"
    after = leads.root()
    assert after.features["sentiment_avg_30d"] == before.features["sentiment_avg_30d"]
    assert after.as_of["sentiment"] == before.as_of["sentiment"]
    product = leads.event(6, "purchase_completed", START, amount_minor=5, products=[{"product_id": "cd"}])
    leads.store([product])
    requests.take()
    leads.memory(product)
    assert requests.take() == (2, 1)
    leads.memory(product)
    assert requests.take() == (2, 0)


@pytest.mark.parametrize("order", ["as they came", "reversed", "shuffled"])
def test_any_order_and_every_event_twice(leads: Leads, order: str) -> None:
    events = sorted(leads.some(16, 7), key=lambda each: each.occurred_at)
    delivered = [*events, *events]
    if order == "reversed":
        delivered.reverse()
    if order == "shuffled":
        random.Random(3).shuffle(delivered)
    done = set()
    for event in delivered:
        if event.id not in done:
            done.add(event.id)
            leads.store([event])
        leads.both(event)
        leads.now += timedelta(hours=3)
    leads.check("a")


def test_eight_consumers_on_one_lead(leads: Leads) -> None:
    first = leads.event(100, "purchase_completed", START)
    leads.store([first])
    leads.both(first)  # from here on there is a state, to which each event has to be added
    events = [*leads.some(6, 5), *(leads.event(n, "purchase_completed", START) for n in range(101, 111))]
    leads.store(events)
    work = [(each, process) for each in [*events, *events[:6]] for process in (leads.memory, leads.feature)]
    random.Random(1).shuffle(work)

    def until_done(pair: Any) -> None:
        event, process = pair
        for _ in range(20):
            with suppress(Exception):
                process(event)
                return
        raise AssertionError(event)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(until_done, work))
    leads.check("a")


@pytest.mark.parametrize(
    "after",
    [True, False][: effort(1, soak=2)],  # a crash after a write is one before the next
)
def test_a_crash_at_any_write_then_redelivery(leads: Leads, after: bool) -> None:
    crashed, place = leads, 0
    requests = Requests(leads.client)
    while True:
        place += 1
        crashed = Leads(leads.client, f"{leads.name}-{place}")
        events = crashed.some(1, 11)
        extra = crashed.event(50, "campaign_sent", START - 9 * DAY, campaign_id="c")
        moved = crashed.event(
            51, "purchase_completed", START, "b", amount_minor=3, products=[{"product_id": "x"}]
        )
        crashed.store([*events, extra, moved])
        script = [*events, extra, moved, crashed.change(1, "ab")]
        requests.take()
        requests.die_at, requests.after = place, after
        died = 0
        for event in script:
            for process in (crashed.memory, crashed.feature):
                try:
                    process(event)
                except Crash:
                    died += 1
                    process(event)
        crashed.check("a", "b")
        if not died:
            break
    assert place > 8


def test_a_stored_item_that_is_no_event_spoils_no_lead(leads: Leads) -> None:
    order = leads.event(1, "purchase_completed", START)
    leads.store([order])
    broken = {**to_item(leads.event(2, "purchase_completed", START)), "payload": "no json"}
    put_all(leads.client, "Event", [encode_item(broken)])
    leads.both(order)
    assert leads.root().features["frequency_purchases_30d"] == 1
    leads.check("a")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"occurred_at": "yesterday"}, "cannot be read"),
        ({"payload": '{"amount_minor":"7"}'}, "amount_minor"),
        ({"event_type": "leads_merged", "payload": "{}"}, "groups"),
        ({"event_type": "campaign_sent", "payload": "{}"}, "campaign_id"),
    ],
)
def test_poison_says_why(leads: Leads, changed: dict[str, Any], reason: str) -> None:
    told = {**message(leads.event(1, "purchase_completed", START)), **changed}
    with pytest.raises(PoisonMessage, match=reason):
        leads.feature_processor.handle(told, leads.now)


def test_time_passes(leads: Leads) -> None:
    events = [
        leads.event(1, "purchase_completed", START - 80 * DAY),
        leads.event(2, "campaign_sent", START - 6 * DAY),
        leads.event(3, "message_received", START - 29 * DAY, sentiment_milli=500),
        leads.event(4, "page_viewed", START, "b"),
    ]
    leads.store(events)
    for event in events:
        leads.both(event)
    before = leads.root()
    assert (before.features["campaign_ignored"], before.active_on) == (0, "2026-01-04")
    requests = Requests(leads.client)
    refresh(leads, START + DAY, "a", "b", "nobody")
    assert requests.take() == (1, 2), "one bulk read: what campaigns come to is in the state"
    after = leads.root()
    moved = {name for name in before.features if after.features.get(name) != before.features[name]}
    assert moved == {
        *("days_since_last_purchase", "tenure_days", "recency_days", "campaign_ignored", "sentiment_avg_30d")
    }
    assert after.features["recency_days"] == before.features["recency_days"] + 1  # type: ignore[operator]
    leads.check("a")
    refresh(leads, START + DAY, "a", "b")
    refresh(leads, START - 5 * DAY, "a", "b")
    assert requests.take()[1] == 0, "again, and an older one: nothing"
    assert leads.root() == after
    refresh(leads, START + 10 * DAY, "a")
    leads.check("a")
    leads.now = START + 9 * DAY  # a slow clock does not bring an older value
    late = leads.event(7, "purchase_completed", START + 9 * DAY)
    leads.store([late])
    leads.both(late)
    assert leads.root().computed_at == stamp(START + 10 * DAY)
    leads.check("a")
    refresh(leads, START + 120 * DAY, "a", "b")
    assert (leads.root().active_on, leads.root("b").active_on) == ("2026-01-19", None), "a year's window"
    refresh(leads, START + 400 * DAY, "a", "b")
    for which in "ab":
        assert leads.root(which).active_on is None
        leads.check(which)
    back = leads.event(8, "page_viewed", START + 401 * DAY)
    leads.store([back])
    leads.now = START + 401 * DAY
    leads.both(back)
    assert leads.root().active_on == "2027-02-15"


@pytest.mark.parametrize("days", [3, 14])
def test_a_campaign_is_ignored_after_the_days_of_the_setting(
    engine: Engine, request: pytest.FixtureRequest, days: int
) -> None:
    """By each way: an event, time, and all events once more, of a lead and of one that joins it."""
    leads = Leads(engine.own_client("dynamodb"), request.node.name, grace_days=days)
    sent = [leads.event(n, "campaign_sent", START - n * DAY, campaign_id=f"c{n}") for n in range(1, 21)]
    leads.store(sent)
    for event in sent:
        leads.both(event)
    assert leads.root().features["campaign_ignored"] == 21 - days
    leads.check("a")
    refresh(leads, START + 2 * DAY, "a")
    assert leads.root().features["campaign_ignored"] == min(23 - days, 20)
    leads.check("a")
    joins = leads.event(30, "campaign_sent", START - days * DAY, "b", campaign_id="other")
    leads.store([joins])
    leads.both(joins)
    assert leads.root("b").features["campaign_ignored"] == 1
    merged = leads.change(31, "ab")
    leads.store([merged])
    leads.both(merged)
    assert leads.root().features["campaign_ignored"] == min(24 - days, 21)


def test_a_reaction_that_changes_no_value_still_stops_a_computation_without_it(
    leads: Leads, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = leads.event(1, "campaign_sent", START, campaign_id="known")
    sent = leads.event(2, "campaign_sent", START - 10 * DAY, campaign_id="spring")
    bounced = leads.event(3, "campaign_bounced", START - 9 * DAY, campaign_id="spring")
    leads.store([known, sent, bounced])
    leads.both(known)
    read = leads.group.contacts

    def overtaken(item: FeatureItem) -> list[Contact]:
        found = read(item)
        monkeypatch.setattr(leads.group, "contacts", read)
        leads.both(bounced)
        return found

    monkeypatch.setattr(leads.group, "contacts", overtaken)
    leads.both(sent)
    assert leads.root().features["campaign_ignored"] == 0
    leads.check("a")


def test_a_refresh_that_meets_an_event_keeps_both(leads: Leads) -> None:
    events = leads.some(12, 4)
    leads.store(events)
    leads.both(events[0])
    with ThreadPoolExecutor(4) as pool:
        work = [pool.submit(leads.both, each) for each in events]
        work += [pool.submit(refresh, leads, START + n * DAY, "a") for n in range(1, 6)]
        for each in work:
            with suppress(Exception):
                each.result()
    for each_event in events:
        leads.both(each_event)
    refresh(leads, START + 6 * DAY, "a")
    leads.check("a")
    assert leads.root().computed_at == stamp(START + 6 * DAY)


def longer_windows(leads: Leads, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lead whose state has dropped an amount, and then a feature whose window reaches back to it."""
    orders = [
        leads.event(1, "purchase_completed", START - 500 * DAY, amount_minor=7000),
        leads.event(2, "purchase_completed", START - 3 * DAY, amount_minor=1005),
    ]
    leads.store(orders)
    for each in orders:
        leads.both(each)
    declare(monkeypatch, *FEATURES, MONETARY_730D)


def test_a_longer_window_is_built_from_the_stored_events_once(
    leads: Leads, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer_windows(leads, monkeypatch)
    order = leads.event(3, "purchase_completed", START, amount_minor=100)
    leads.store([order])
    requests = Requests(leads.client)
    leads.feature(order)
    assert leads.root().features["monetary_730d"] == Decimal("81.05")
    leads.check("a")
    requests.take()
    leads.feature(leads.event(4, "purchase_completed", START, amount_minor=1))
    assert requests.take() == (1, 1), "from here on each event costs what it did"


def test_the_refresh_notices_a_longer_window_too(leads: Leads, monkeypatch: pytest.MonkeyPatch) -> None:
    longer_windows(leads, monkeypatch)
    refresh(leads, START + DAY, "a")
    assert leads.root().features["monetary_730d"] == Decimal("80.05")
    leads.check("a")
    before = leads.root()
    refresh(leads, START + DAY, "a")
    assert leads.root() == before
