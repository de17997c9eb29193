"""A person with hundreds of devices: what the next one costs, in requests and in items read."""

from datetime import timedelta
from random import Random

import pytest

from adapters.leads.lead_event_store import LEAVES_AT_ONCE, LeadEventStore
from rules.days import DAY
from rules.leads.lead_events import SORT_KEY, LeadEvent, to_item
from tests.support.engine import Engine
from tests.support.items_read import ItemsRead
from tests.support.lead_event_strategies import START
from tests.support.lead_processors import Leads, Requests

DEVICES = (20, 60)


@pytest.fixture
def leads(engine: Engine, request: pytest.FixtureRequest) -> Leads:
    return Leads(engine.client("dynamodb"), request.node.name)


def of_device(leads: Leads, which: str, number: int) -> list[LeadEvent]:
    at = START - number % 60 * DAY
    return [
        leads.event(10 * number, "page_viewed", at, which, category=f"c{number % 7}"),
        leads.event(10 * number + 1, "order_placed", at, which, amount_minor=number),
        leads.event(10 * number + 2, "campaign_sent", START - 5 * DAY, which, campaign_id=f"{number % 3}"),
    ]


def test_the_next_device_costs_the_same_whatever_there_is(leads: Leads) -> None:
    """And the group is what its events say: features, memory, and an event that comes again."""
    requests, read, costs = Requests(leads.client), ItemsRead(leads.client), list[tuple[int, int]]()
    for place, size in enumerate(DEVICES):
        devices = [f"person{place}-{number}" for number in range(size + 1)]
        events = {which: of_device(leads, which, number) for number, which in enumerate(devices)}
        leads.store(each for some in events.values() for each in some)
        for each in (*events[devices[0]], *events[devices[-1]]):
            leads.both(each)
        before, change = leads.change(2 * place + 1, devices[:-1]), leads.change(2 * place + 2, devices)
        leads.both(before)
        requests.take()
        read.take()
        leads.feature(change)
        leads.memory(change)
        costs.append((sum(requests.take()), read.take()))
        leads.check(*devices)
        for each in (*events[devices[0]], *events[devices[size // 2]], *events[devices[-1]]):
            leads.both(each)
        leads.check(*devices)
    (few, many) = costs
    assert many[0] <= few[0] + 4, "a key more or less of memory"
    assert many[1] <= few[1] + 4
    assert max(few) <= 40, costs


def test_a_change_that_took_a_leaf_out_and_comes_after_the_one_that_took_it_back(leads: Leads) -> None:
    """The later change did not touch the leaf's own item, because the root named it already."""
    events = [leads.event(n, "order_placed", START, which) for n, which in enumerate("abc")]
    leads.store(events)
    for event in events:
        leads.both(event)
    first, parted, again = leads.change(1, "ab"), leads.change(2, "a", "b"), leads.change(3, "abc")
    for change in (first, again, parted):
        leads.memory(change)
        leads.feature(change)
    leads.check("a", "b", "c")
    late = leads.event(9, "order_placed", START, "b", amount_minor=3)
    leads.store([late])
    leads.both(late)
    leads.check("a", "b", "c")


@pytest.mark.parametrize("kind", [None, "page_viewed"])
def test_a_page_of_a_person_with_many_leaves_reads_little_more_than_a_page_of_few(
    leads: Leads, kind: str | None
) -> None:
    """And pages go over all events once, in order, whatever leaf they are of."""
    random, limit = Random(7), 10
    leaves = [f"leaf-{number}" for number in range(6 * LEAVES_AT_ONCE)]
    events = [
        leads.event(number, "page_viewed", START - timedelta(seconds=random.randrange(10**6)), which)
        for number, which in enumerate(leaves * 12)
    ]
    leads.store(events)
    ids = list({each.lead_organization_id: None for each in events})
    store, read = LeadEventStore(leads.client, "Event"), ItemsRead(leads.client)
    expected = sorted((to_item(each)[SORT_KEY] for each in events), reverse=True)
    until, seen, costs = "~", list[str](), list[int]()
    for _ in range(4):
        asked = (ids, "0", until, limit)
        rows = store.newest_of_type(ids, kind, *asked[1:]) if kind else store.newest(*asked)
        seen += [row[SORT_KEY] for row in rows]
        costs.append(read.take())
        until = seen[-1]
    assert seen == expected[: 4 * limit]
    # Each leaf of the first few; of the others what is newer; by type, the page itself comes after its keys.
    assert max(costs) <= LEAVES_AT_ONCE * (limit + 1) + 8 * limit, costs
