"""A person with hundreds of devices: what the next one costs, in requests and in items read."""

from datetime import timedelta
from random import Random

import pytest

from adapters.leads.lead_event_store import EventPage
from rules.days import DAY
from rules.leads.lead_events import SORT_KEY, LeadEvent
from tests.support.engine import Engine
from tests.support.items_read import ItemsRead
from tests.support.lead_event_strategies import START
from tests.support.lead_processors import Leads, Requests

DEVICES = (10, 30)


@pytest.fixture
def leads(engine: Engine, request: pytest.FixtureRequest) -> Leads:
    return Leads(engine.own_client("dynamodb"), request.node.name)


def of_device(leads: Leads, which: str, number: int) -> list[LeadEvent]:
    at = START - number % 60 * DAY
    made = [
        leads.event(10 * number, "page_viewed", at, which, category=f"c{number % 7}"),
        leads.event(10 * number + 1, "purchase_completed", at, which, amount_minor=number),
    ]
    # A campaign goes to addresses and numbers, of which a person has few.
    sent = leads.event(10 * number + 2, "campaign_sent", START - 5 * DAY, which, campaign_id=f"{number % 3}")
    return [*made, sent] if number < 5 else made


def test_the_next_device_costs_the_same_whatever_there_is(leads: Leads) -> None:
    """And the group is what its events say: features, memory, and an event that comes again."""
    requests, read, costs = Requests(leads.client), ItemsRead(leads.client), list[tuple[int, int, int]]()
    for place, size in enumerate(DEVICES):
        devices = [f"person{place}-{number}" for number in range(size + 1)]
        events = {which: of_device(leads, which, number) for number, which in enumerate(devices)}
        leads.store(each for some in events.values() for each in some)
        for each in (*events[devices[0]], *events[devices[-1]]):
            leads.both(each)
        before, change = (
            leads.change(2 * place + 1, devices[:-1]),
            leads.change(2 * place + 2, devices[::size]),
        )
        leads.both(before)
        requests.take()
        read.take()
        leads.feature(change)
        leads.memory(change)
        bytes_ = sum(len(str(each)) for each in requests.updates)
        costs.append((sum(requests.take()), read.take(), bytes_))
        leads.check(*devices)
        for each in (*events[devices[0]], *events[devices[size // 2]], *events[devices[-1]]):
            leads.both(each)
        leads.check(*devices)
    (few, many) = costs
    assert many[0] <= few[0] + 4, "a key more or less of memory"
    assert many[1] <= few[1] + 4
    assert max(few[:2]) <= 40, costs
    assert many[2] <= 1.5 * few[2], "what is written does not name the others"


def test_a_change_that_took_a_leaf_out_and_comes_after_the_one_that_took_it_back(leads: Leads) -> None:
    """The later change did not touch the leaf's own item, because the root named it already."""
    events = [leads.event(n, "purchase_completed", START, which) for n, which in enumerate("abc")]
    leads.store(events)
    for event in events:
        leads.both(event)
    first, parted, again = leads.change(1, "ab"), leads.change(2, "a", "b"), leads.change(3, "abc")
    for change in (first, again, parted):
        leads.memory(change)
        leads.feature(change)
    leads.check("a", "b", "c")
    late = leads.event(9, "purchase_completed", START, "b", amount_minor=3)
    leads.store([late])
    leads.both(late)
    leads.check("a", "b", "c")


@pytest.mark.parametrize("kind", ["", "page_viewed"])
def test_a_page_of_a_person_reads_the_same_whatever_leaves_there_are(leads: Leads, kind: str) -> None:
    """And pages go over all events once, in order, whatever leaf they are of; those of a parted leaf are not there."""
    limit, read, costs, rebuilt = 10, ItemsRead(leads.client), list[int](), list[int]()
    requests = Requests(leads.client)
    for size in DEVICES:
        random = Random(size)
        leaves = [f"{size}leaf{number}" for number in range(size)]
        events = [
            leads.event(
                10_000 * size + number,
                "page_viewed",
                START - timedelta(seconds=random.randrange(10**6)),
                leaves[number % size],
            )
            for number in range(6 * size)
        ]
        *late, gone = events[: size + 1]
        leads.store(events[size:])
        for each in (
            leads.change(100 * size, leaves),
            leads.change(100 * size + 1, leaves[:1], [leaves[size // 2]]),
        ):
            leads.feature(each)
        leads.store([*late, gone])
        theirs = leads.leaf(leaves[size // 2])
        expected = sorted(
            (
                each.sort_key
                for each in leads.stored
                if each.lead_organization_id.startswith(leads.leaf(f"{size}leaf"))
                and each.lead_organization_id != theirs
                and kind in ("", each.event_type)
            ),
            reverse=True,
        )
        root, until, seen = leads.root(leaves[0]), "~", list[str]()
        assert not root.pending
        requests.take()
        leads.feature_processor.handle({"rebuild": {"leads": [leads.leaf(leaves[0])]}}, leads.now)
        rebuilt.append(sum(requests.take()))
        leads.check_features(*(each for each in leaves if leads.leaf(each) != theirs))
        root = leads.root(leaves[0])
        read.take()
        requests.take()
        for _ in range(4):
            rows = leads.people.newest(root, leads.leaf(leaves[1]), EventPage(kind, "0", until, limit))
            seen += [row[SORT_KEY] for row in rows]
            costs += [read.take(), sum(requests.take())]
            until = seen[-1]
        assert seen == expected[: 4 * limit]
    assert max(costs[::2]) <= 8 * (limit + 1), costs
    assert max(costs[1::2]) <= 10, costs
    assert max(rebuilt) <= 20, "a read for each hundred events, and not a query for each leaf"
