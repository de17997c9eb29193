"""Features whose declarations change: a state that was kept by other ones is built again, once."""

from decimal import Decimal

import pytest

from rules.days import DAY
from rules.leads.features import FEATURES
from tests.support.declarations import MONETARY_730D, declare
from tests.support.engine import Engine
from tests.support.lead_event_strategies import START
from tests.support.lead_processors import Leads, Requests, refresh


@pytest.fixture
def leads(engine: Engine, request: pytest.FixtureRequest) -> Leads:
    return Leads(engine.own_client("dynamodb"), request.node.name)


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
