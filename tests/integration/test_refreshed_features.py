"""Features as time passes: a refresh, once and again, late, and among events."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from rules.days import DAY, stamp
from rules.leads.feature_items import FeatureItem
from rules.leads.features import Contact
from tests.support.engine import Engine
from tests.support.lead_event_strategies import START
from tests.support.lead_processors import Leads, Requests, refresh


@pytest.fixture
def leads(engine: Engine, request: pytest.FixtureRequest) -> Leads:
    return Leads(engine.own_client("dynamodb"), request.node.name)


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
