"""Memory and features of leads on the engine: duplicates, any order, crashes, eight consumers at once, and poison."""

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from adapters.platform.items import encode_item
from adapters.platform.queues import PoisonMessage
from adapters.platform.tables import put_all
from rules.days import DAY, stamp
from rules.leads.lead_events import to_item
from tests.support.engine import Engine
from tests.support.lead_event_strategies import START
from tests.support.lead_processors import Crash, Leads, Requests, message


@pytest.fixture
def leads(engine: Engine, request: pytest.FixtureRequest) -> Leads:
    return Leads(engine.own_client("dynamodb"), request.node.name)


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


@pytest.mark.parametrize("after", [False, True])
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


@pytest.mark.parametrize(
    "asked",
    [7, {}, {"leads": ["a"]}, {"leads": ["a"], "as_of": "now"}, {"leads": [1], "as_of": stamp(START)},
     {"leads": ["a"] * 51, "as_of": stamp(START)}, {"leads": ["a"], "as_of": "2062-01-01T00:00:00.000000Z"}],
)  # fmt: skip
def test_a_malformed_refresh_says_why(leads: Leads, asked: Any) -> None:
    with pytest.raises(PoisonMessage, match="refresh"):
        leads.feature_processor.handle({"refresh": asked}, leads.now)


@pytest.mark.parametrize("asked", [7, {}, {"leads": "a"}, {"leads": [1]}, {"leads": ["a"] * 51}])
def test_a_malformed_rebuild_says_why(leads: Leads, asked: Any) -> None:
    with pytest.raises(PoisonMessage, match="rebuild"):
        leads.feature_processor.handle({"rebuild": asked}, leads.now)
