"""What late events of a lead cost, in items read: a bounded number, however much is known of the lead."""

import random
from contextlib import suppress
from datetime import timedelta

import pytest

from rules.days import DAY
from rules.leads.features import Input
from rules.leads.lead_events import LeadEvent
from rules.leads.series import MARKS_MAX
from tests.support.engine import Engine
from tests.support.items_read import ItemsRead
from tests.support.lead_event_strategies import START
from tests.support.lead_processors import Crash, Leads, Requests


@pytest.fixture
def leads(engine: Engine, request: pytest.FixtureRequest) -> Leads:
    return Leads(engine.own_client("dynamodb"), request.node.name)


def orders(leads: Leads, count: int, first: int = 0) -> list[LeadEvent]:
    return [leads.event(n, "purchase_completed", START - n * DAY / 3) for n in range(first, first + count)]


@pytest.mark.parametrize(("all_stored", "count"), [(True, 200), (False, 60)])
def test_a_history_that_is_imported_newest_first(leads: Leads, all_stored: bool, count: int) -> None:
    history, read = orders(leads, count), ItemsRead(leads.client)
    if all_stored:
        leads.store(history)
    for each in history:
        if not all_stored:
            leads.store([each])
        leads.feature(each)
    assert read.take() <= 3 * len(history)
    leads.check_features("a")
    read.take()
    for each in random.Random(1).sample(history, 30):
        leads.feature(each)
    assert read.take() <= 2 * 30
    leads.check_features("a")


def test_a_late_order_beside_thousands_of_page_views(leads: Leads) -> None:
    views = [leads.event(1000 + n, "page_viewed", START - timedelta(seconds=n)) for n in range(3000)]
    known = orders(leads, 40)
    leads.store([*views, *known])
    leads.feature(known[0])
    read = ItemsRead(leads.client)
    for number in range(5):
        late = leads.event(500 + number, "purchase_completed", START - (100 + number) * DAY)
        leads.store([late])
        for _ in range(2):
            leads.feature(late)
    assert read.take() <= 2 * 10
    leads.check_features("a")


def test_a_crash_at_any_write_counts_every_event_once(leads: Leads) -> None:
    """At the write of the notes, or of the state behind it, whether it went through or not."""
    known, requests = orders(leads, MARKS_MAX + 1, first=5), Requests(leads.client)
    for place, (die_at, after) in enumerate((n, after) for n in (1, 2) for after in (False, True)):
        leaf = f"leaf{place}"
        events = [leads.event(n, "purchase_completed", each.occurred, leaf) for n, each in enumerate(known)]
        leads.store(events[1:])
        for each in events[1:]:
            leads.feature(each)
        leads.store(events[:1])
        requests.take()
        requests.die_at, requests.after = die_at, after
        with suppress(Crash):
            leads.feature(events[0])
        assert requests.writes == die_at, "it died there"
        requests.die_at = 0
        for each in (*events[:1], *events):
            leads.feature(each)
        found = leads.root(leaf)
        assert found.features["frequency_purchases_365d"] == len(events), (die_at, after)
        assert found.series(Input.PURCHASES).has_all_notes
        leads.check_features(leaf)


def test_a_crash_between_a_build_and_its_notes_costs_another_build(leads: Leads) -> None:
    known, requests = orders(leads, MARKS_MAX + 9), Requests(leads.client)
    leads.store(known)
    requests.take()
    requests.die_at = 2
    with pytest.raises(Crash):
        leads.feature(known[0])
    requests.die_at = 0
    assert not leads.root().series(Input.PURCHASES).has_all_notes
    leads.feature(known[-1])
    assert leads.root().series(Input.PURCHASES).has_all_notes
    for each in known:
        leads.feature(each)
    leads.check_features("a")
