"""Memory and features of leads on the engine: duplicates, any order, crashes, and eight consumers at once."""

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from adapters.leads.feature_store import Unsettled
from adapters.platform.batches import put_all
from adapters.platform.items import item
from adapters.platform.queues import Poison
from rules.days import DAY, stamp
from rules.leads.feature_items import FeatureItem
from rules.leads.features import FEATURES, Contact
from rules.leads.lead_events import to_item
from rules.leads.memory import derive_entries
from tests.support.declarations import MONETARY_730D, declare
from tests.support.engine import Engine
from tests.support.lead_event_strategies import START
from tests.support.lead_processors import Crash, Leads, Requests, message


@pytest.fixture
def leads(engine: Engine, request: pytest.FixtureRequest) -> Leads:
    return Leads(engine.client("dynamodb"), request.node.name)


def test_a_purchase_costs_one_read_and_one_write_and_leaves_sentiment_alone(leads: Leads) -> None:
    first = [leads.event(n, "message_received", START, sentiment_milli=100) for n in range(2)]
    orders = [leads.event(n, "order_placed", START + timedelta(seconds=n)) for n in range(2, 5)]
    leads.store([*first, *orders])
    requests = Requests(leads.client)
    leads.feature(first[0])
    assert requests.take() == (2, 1), "the first event of a lead builds the state from what is stored"
    before = leads.root()
    late = leads.event(5, "order_placed", START + timedelta(seconds=9))
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
    product = leads.event(6, "order_placed", START, amount_minor=5, products=[{"product_id": "cd"}])
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
    first = leads.event(100, "order_placed", START)
    leads.store([first])
    leads.both(first)  # from here on there is a state, to which each event has to be added
    events = [*leads.some(6, 5), *(leads.event(n, "order_placed", START) for n in range(101, 111))]
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
        moved = crashed.event(51, "order_placed", START, "b", amount_minor=3, products=[{"product_id": "x"}])
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


@pytest.mark.parametrize("kinds", [("memory", "feature"), ("feature", "memory")])
def test_merge_and_unmerge_restore_exactly(leads: Leads, kinds: tuple[str, str]) -> None:
    events = leads.some(14, 2, ("a", "b"))
    only_b = leads.event(90, "preference_stated", START, "b", preferences={"only": "b"})
    leads.store([*events, only_b])
    for event in [*events, only_b]:
        leads.both(event)
    for alone in "ab":
        leads.check(alone)
    before = {which: (leads.root(which).features, leads.memories.all_of(leads.leaf(which))) for which in "ab"}

    def tell(change: Any) -> None:
        for kind in kinds:
            getattr(leads, kind)(change)

    merged = leads.change(1, "ab")
    tell(merged)
    leads.check("a", "b")
    absorbed = leads.root("b")
    assert (absorbed.merged_into, absorbed.features, absorbed.inputs) == (leads.leaf("a"), {}, None)
    late = leads.event(91, "order_placed", START, "b", amount_minor=100, products=[{"product_id": "late"}])
    leads.store([late])
    leads.both(late)
    leads.check("a", "b")
    tell(merged)
    leads.check("a", "b")
    tell(leads.change(2, "a", "b"))
    leads.check("a")
    leads.check("b")
    assert leads.root("a").features == before["a"][0]
    assert leads.memories.all_of(leads.leaf("a")) == before["a"][1]
    tell(merged)  # an older change that comes late
    leads.check("a")
    leads.check("b")
    gone = leads.client.get_item(
        TableName="Memory",
        Key={"lead_organization_id": {"S": leads.leaf("a")}, "memory_type#key": {"S": "preference#only"}},
    )["Item"]
    assert gone["value"] == {"S": "b"}, "expired and not deleted"
    assert int(gone["expires_at"]["N"]) <= leads.now.timestamp()


@pytest.mark.parametrize("seed", range(2))
def test_changes_among_events_in_flight(leads: Leads, seed: int) -> None:
    """Whatever meets: at the end, each group is what its leaves' events say."""
    chance = random.Random(seed)
    events = leads.some(16, seed, ("a", "b", "c"))
    leads.store(events)
    changes = [
        leads.change(1, "ab"), leads.change(2, "cab"), leads.change(3, "ca", "b"), leads.change(4, "ac"),
        leads.change(5, "a", "c"), leads.change(6, "bc"),
    ]  # fmt: skip
    first, rest = events[:4], events[4:]
    for event in first:
        leads.both(event)
    work = [
        (each, process) for each in [*rest, *changes, *rest[:5]] for process in (leads.memory, leads.feature)
    ]
    chance.shuffle(work)

    def attempt(pair: Any) -> Any:
        event, process = pair
        try:
            process(event)
        except Exception:
            return pair
        return None

    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            work = [pair for pair in pool.map(attempt, work) if pair]
            if not work:
                break
    assert not work
    leads.check("a")
    leads.check("b", "c")


def test_events_for_a_merged_lead_that_was_alone_when_they_were_stored(leads: Leads) -> None:
    """Memory is joined where the hint says before it is asked where it belongs: neither is left wrong."""
    events = [leads.event(n, "preference_stated", START, which) for n, which in enumerate("ab")]
    leads.store(events)
    leads.both(leads.change(1, "ab"))
    for event in events:  # root_id says that each is alone
        leads.both(event)
    leads.check("a", "b")


@pytest.mark.parametrize("kind", ["memory", "feature"])
def test_while_a_change_is_half_set_events_of_its_leads_wait(
    leads: Leads, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Else an event could be added to a root that has been built without its leaf, and stay there."""
    monkeypatch.setattr("adapters.leads.feature_store.pauses", range)
    own, theirs = (leads.event(n, "order_placed", START, which) for n, which in enumerate("ab"))
    leads.store([own, theirs])
    leads.both(leads.change(1, "ab"))
    leads.both(own)
    requests = Requests(leads.client)
    parted = leads.change(2, "a", "b")
    requests.take()
    requests.die_at, requests.after = 1, True
    with pytest.raises(Crash):
        leads.feature(parted)
    requests.take()
    with pytest.raises(Unsettled):
        getattr(leads, kind)(theirs)
    leads.both(parted)
    leads.both(theirs)
    leads.check("a")
    leads.check("b")


def test_evidence_of_a_departed_leaf_that_comes_late_is_undone(leads: Leads) -> None:
    own = leads.event(1, "campaign_sent", START - 9 * DAY, "a", campaign_id="c")
    theirs = leads.event(2, "campaign_opened", START - 8 * DAY, "b", campaign_id="c")
    leads.store([own, theirs])
    leads.both(leads.change(1, "ab"))
    leads.both(leads.change(2, "a", "b"))
    hinted = {**message(theirs), "root_id": leads.leaf("a")}
    leads.memories.join(leads.leaf("a"), derive_entries(theirs))  # the process died here
    leads.feature(own)
    assert leads.root("a").features["campaign_ignored"] == 1
    leads.memory_processor.handle(hinted, leads.now)
    leads.both(own)
    leads.feature(theirs)
    leads.check("a")
    leads.check("b")


def refresh(leads: Leads, as_of: Any, *which: str) -> None:
    asked = {"as_of": stamp(as_of), "leads": [leads.leaf(each) for each in which]}
    leads.feature_processor.handle({"refresh": asked}, leads.now)


def test_time_passes(leads: Leads) -> None:
    events = [
        leads.event(1, "order_placed", START - 80 * DAY),
        leads.event(2, "campaign_sent", START - 2 * DAY),
        leads.event(3, "message_received", START - 29 * DAY, sentiment_milli=500),
        leads.event(4, "page_viewed", START, "b"),
    ]
    leads.store(events)
    for event in events:
        leads.both(event)
    before = leads.root()
    assert (before.features["campaign_ignored"], before.active_on) == (0, "2026-01-08")
    requests = Requests(leads.client)
    refresh(leads, START + DAY, "a", "b", "nobody")
    assert requests.take() == (2, 2), "one bulk read, and the campaigns of the one lead that has some"
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
    late = leads.event(7, "order_placed", START + 9 * DAY)
    leads.store([late])
    leads.both(late)
    assert leads.root().computed_at == stamp(START + 10 * DAY)
    leads.check("a")
    refresh(leads, START + 120 * DAY, "a", "b")
    for which in "ab":
        assert leads.root(which).active_on is None
        leads.check(which)
    back = leads.event(8, "page_viewed", START + 121 * DAY)
    leads.store([back])
    leads.now = START + 121 * DAY
    leads.both(back)
    assert leads.root().active_on == "2026-05-11"


def longer_windows(leads: Leads, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lead whose state has dropped an amount, and then a feature whose window reaches back to it."""
    orders = [
        leads.event(1, "order_placed", START - 500 * DAY, amount_minor=7000),
        leads.event(2, "order_placed", START - 3 * DAY, amount_minor=1005),
    ]
    leads.store(orders)
    for each in orders:
        leads.both(each)
    declare(monkeypatch, *FEATURES, MONETARY_730D)


def test_a_longer_window_is_built_from_the_stored_events_once(
    leads: Leads, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer_windows(leads, monkeypatch)
    order = leads.event(3, "order_placed", START, amount_minor=100)
    leads.store([order])
    requests = Requests(leads.client)
    leads.feature(order)
    assert leads.root().features["monetary_730d"] == Decimal("81.05")
    leads.check("a")
    requests.take()
    leads.feature(leads.event(4, "order_placed", START, amount_minor=1))
    assert requests.take() == (1, 1), "from here on each event costs what it did"


def test_the_refresh_notices_a_longer_window_too(leads: Leads, monkeypatch: pytest.MonkeyPatch) -> None:
    longer_windows(leads, monkeypatch)
    refresh(leads, START + DAY, "a")
    assert leads.root().features["monetary_730d"] == Decimal("80.05")
    leads.check("a")
    before = leads.root()
    refresh(leads, START + DAY, "a")
    assert leads.root() == before


def test_a_state_of_before_there_was_a_digest_is_built_once(leads: Leads) -> None:
    events = leads.some(12, 6)
    leads.store(events)
    for each in events:
        leads.both(each)
    key = {"lead_organization_id": {"S": leads.leaf("a")}}
    leads.client.update_item(TableName="Feature", Key=key, UpdateExpression="REMOVE inputs.declared")
    requests = Requests(leads.client)
    refresh(leads, leads.now, "a")
    assert requests.take() == (2, 1), "the item, its events"
    refresh(leads, leads.now, "a")
    assert requests.take() == (1, 0)
    leads.check("a")


def test_a_feature_that_is_declared_no_more_is_taken_away(
    leads: Leads, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as later:
        longer_windows(leads, later)
        refresh(leads, START + DAY, "a")
        assert "monetary_730d" in leads.root().features
    refresh(leads, START + DAY, "a")
    assert "monetary_730d" not in leads.root().features
    leads.check("a")


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


def test_an_older_refresh_that_comes_late_brings_no_older_value(leads: Leads) -> None:
    events = [
        leads.event(1, "message_received", START - 29 * DAY, sentiment_milli=500),
        leads.event(2, "message_received", START - 28 * DAY, sentiment_milli=-500),
        leads.event(3, "message_received", START - 20 * DAY, sentiment_milli=0),
    ]
    leads.store(events)
    for event in events:
        leads.both(event)
    refresh(leads, START + 2 * DAY, "a")
    after = leads.root()
    assert after.features["sentiment_avg_30d"] == 0, "as before: so it is not written"
    refresh(leads, START + DAY, "a")
    assert leads.root() == after
    leads.check("a")


def test_a_stored_item_that_is_no_event_spoils_no_lead(leads: Leads) -> None:
    order = leads.event(1, "order_placed", START)
    leads.store([order])
    broken = {**to_item(leads.event(2, "order_placed", START)), "payload": "no json"}
    put_all(leads.client, "Event", [item(broken)])
    leads.both(order)
    assert leads.root().features["frequency_purchases_30d"] == 1
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
    told = {**message(leads.event(1, "order_placed", START)), **changed}
    with pytest.raises(Poison, match=reason):
        leads.feature_processor.handle(told, leads.now)


@pytest.mark.parametrize(
    "asked",
    [7, {}, {"leads": ["a"]}, {"leads": ["a"], "as_of": "now"}, {"leads": [1], "as_of": stamp(START)},
     {"leads": ["a"] * 51, "as_of": stamp(START)}],
)  # fmt: skip
def test_a_malformed_refresh_says_why(leads: Leads, asked: Any) -> None:
    with pytest.raises(Poison, match="refresh"):
        leads.feature_processor.handle({"refresh": asked}, leads.now)


@pytest.mark.parametrize("asked", [7, {}, {"leads": "a"}, {"leads": [1]}, {"leads": ["a"] * 51}])
def test_a_malformed_rebuild_says_why(leads: Leads, asked: Any) -> None:
    with pytest.raises(Poison, match="rebuild"):
        leads.feature_processor.handle({"rebuild": asked}, leads.now)
