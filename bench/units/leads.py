"""Measures the path of a webhook (door, identity, memory, features), the morning's refresh, and reads."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from adapters.postgresql.postgres import Postgres
from bench.counting.desk import Desk, PathCosts, Units
from bench.counting.requests import LEADS, Record, http, queue
from bench.deployed import template
from bench.units.engagement import PUBLISHER, newest_rows
from bench.units.part_units import PartUnits

HISTORY_EVENTS = 6  # of a known lead
REFRESHED_LEADS = 4
SUBSCRIPTIONS = {"MemorySubscription": "MemoryFunction", "FeaturesSubscription": "FeaturesFunction"}


class _CountedRegistry:
    """Stands for PostgreSQL. It knows every lead, and counts the statements."""

    closed = False

    def __init__(self, desk: Desk) -> None:
        self._desk, self._identities = desk, list[tuple[str, str]]()

    def execute(self, statement: str, values: list[Any]) -> "_CountedRegistry":
        assert "identity.facts" in statement, f"the desk has no answer to {statement}"
        self._desk.meter.counts["calls.postgres"] += 1
        self._identities = list(zip(*values[1:3], strict=True))
        return self

    def fetchall(self) -> list[tuple[str]]:
        """Return the facts about the identities, JSON: a lead's number is in its email address."""
        text = "".join(external_id for _, external_id in self._identities)
        number = int("".join(character for character in text if character.isdigit())[:6] or 0)
        leaf = f"00000000-0000-4000-8000-{number:012}"
        known = [[*identity, number, number, False, True, []] for identity in self._identities]
        strong = [[number, *identity, True] for identity in self._identities]
        resolution = {"lead_id": number, "leaf": leaf, "root": leaf, "changes": []}
        facts = {"known": known, "strong": strong, "apart": []}
        return [(json.dumps({"facts": facts, "resolutions": {str(number): resolution}}),)]


@contextmanager
def _counted_registry(desk: Desk) -> Iterator[None]:
    registry = _CountedRegistry(desk)
    with patch.object(Postgres, "connection", lambda _: registry):
        yield


def lead_paths(desk: Desk) -> PathCosts:
    """Yield a lead's first event, a later one, the refresh of some leads, and reads."""
    with _counted_registry(desk):
        yield "lead.first", _cost_of_webhook(desk, 0, 0)
        for number in range(1, HISTORY_EVENTS):
            _cost_of_webhook(desk, number, 0)
        yield "lead.next", _cost_of_webhook(desk, HISTORY_EVENTS, 0)
        yield from _reading_paths(desk)
        for lead in range(1, REFRESHED_LEADS):
            _cost_of_webhook(desk, HISTORY_EVENTS + lead, lead)
    yield from _refresh_path(desk)


def lead_rows(desk: Desk) -> dict[str, list[Record]]:
    """Return the rows that a webhook leads to, the newest of each table."""
    with _counted_registry(desk):
        _cost_of_webhook(desk, 10**6, 0)
    return newest_rows(desk)


def _cost_of_webhook(desk: Desk, number: int, lead: int) -> dict[str, Units]:
    desk.tick(timedelta(hours=7))
    desk.start_path()
    body = {"organization_id": "acme", "source": "ecommerce", "payload": _order(number, lead, desk)}
    response = desk.call("LeadsApiFunction", http("POST", "/v1/leads/events", body, groups=LEADS))
    assert response["statusCode"] == 202, response
    ((_, message),) = desk.services.messages
    _deliver(desk, "LeadsFunction", message)
    desk.consume("LeadEventsFunction", "Event")
    ((notification, attributes),) = desk.services.notifications
    for subscription, function in SUBSCRIPTIONS.items():
        policy = template()["Resources"][subscription]["Properties"]["FilterPolicy"]
        if attributes["event_type"] in policy["event_type"]:
            desk.add_cost(function, {"sqs.delivered": 1})
            _deliver(desk, function, notification)
    return desk.take_costs()


def _order(number: int, lead: int, desk: Desk) -> dict[str, Any]:
    return {
        "id": 820982911946154508 + number,
        "created_at": (desk.now - timedelta(minutes=1)).isoformat(timespec="seconds"),
        "total_price": "11.77",
        "currency": "USD",
        "customer": {"id": 1000 + lead, "email": f"ada{lead:05}@example.com", "phone": None},
        "line_items": [{"product_id": 7, "title": "a", "quantity": 2}, {"product_id": 8, "quantity": 1}],
    }


def _deliver(desk: Desk, function: str, message: str) -> None:
    desk.add_cost(function, {"sqs.messages": 1})
    desk.call(function, queue([message]))


def _reading_paths(desk: Desk) -> PathCosts:
    event = desk.take_records(PUBLISHER, "Event")[-1]["dynamodb"]["NewImage"]
    for resource in ("features", "memory", "events"):
        path = f"/v1/leads/{event['lead_organization_id']['S']}/{resource}"
        desk.start_path()
        response = desk.call("LeadsApiFunction", http("GET", path, groups=LEADS))
        assert response["statusCode"] == 200, response
        yield f"lead.read.{resource}", desk.take_costs()


def _refresh_path(desk: Desk) -> PathCosts:
    desk.tick(timedelta(days=1))
    desk.start_path()
    answer = desk.call("RefreshFunction", {"as_of": desk.now.isoformat()})
    assert answer["leads"] == REFRESHED_LEADS, answer
    for _, message in list(desk.services.messages):
        assert "refresh" in json.loads(message)
        _deliver(desk, "FeaturesFunction", message)
    yield f"lead.refresh.{REFRESHED_LEADS}", desk.take_costs()


UNITS = PartUnits(lead_paths, lead_rows)
