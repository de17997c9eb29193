"""The path of a webhook: door, identity, memory, features; the morning's refresh; what is read of a lead."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from adapters.postgresql.postgres import Postgres
from bench.counting.desk import Desk, Units
from bench.counting.requests import LEADS, http, queue
from bench.deployed import template
from bench.units.publishing import PUBLISHER, rows_of

ORGANIZATION = "acme"
HISTORY = 6  # events of a lead that is known
REFRESHED = 4
SUBSCRIPTIONS = {"MemorySubscription": "MemoryFunction", "FeaturesSubscription": "FeaturesFunction"}
Measured = Iterator[tuple[str, dict[str, Units]]]


def webhook(number: int, lead: int, desk: Desk) -> dict[str, Any]:
    """Return an order of a shop's customer."""
    return {
        "id": 820982911946154508 + number,
        "created_at": (desk.now - timedelta(minutes=1)).isoformat(timespec="seconds"),
        "total_price": "11.77",
        "currency": "USD",
        "customer": {"id": 1000 + lead, "email": f"ada{lead:05}@example.com", "phone": None},
        "line_items": [{"product_id": 7, "title": "a", "quantity": 2}, {"product_id": 8, "quantity": 1}],
    }


class _Registry:
    """Stands for PostgreSQL: it knows every lead, and counts the statements."""

    closed = False

    def __init__(self, desk: Desk) -> None:
        self._desk, self._identities = desk, list[tuple[str, str]]()

    def execute(self, statement: str, values: list[Any]) -> "_Registry":
        assert "identity.facts" in statement, f"the desk has no answer to {statement}"
        self._desk.meter.counts["calls.postgres"] += 1
        self._identities = list(zip(*values[1:3], strict=True))
        return self

    def fetchone(self) -> tuple[Any]:
        text = "".join(external_id for _, external_id in self._identities)
        number = int("".join(each for each in text if each.isdigit())[:6] or 0)
        leaf = f"00000000-0000-4000-8000-{number:012}"
        known = [[*each, number, number, False, True, []] for each in self._identities]
        strong = [[number, *each, True] for each in self._identities]
        resolution = {"lead_id": number, "leaf": leaf, "root": leaf, "changes": []}
        facts = {"known": known, "strong": strong, "apart": []}
        return ({"facts": facts, "resolutions": {str(number): resolution}},)


@contextmanager
def registry(desk: Desk) -> Iterator[None]:
    """Let the lead consumer ask a PostgreSQL that knows every lead."""
    known = _Registry(desk)
    with patch.object(Postgres, "connection", lambda _: known):
        yield


def lead_paths(desk: Desk) -> Measured:
    """Yield a lead's first event, a later one, the refresh of some leads, and reads."""
    with registry(desk):
        yield "lead.first", sent(desk, 0, 0)
        for number in range(1, HISTORY):
            sent(desk, number, 0)
        yield "lead.next", sent(desk, HISTORY, 0)
        yield from _reads(desk)
        for lead in range(1, REFRESHED):
            sent(desk, HISTORY + lead, lead)
    yield from _refreshed(desk)


def sent(desk: Desk, number: int, lead: int, *, after: timedelta = timedelta(hours=7)) -> dict[str, Units]:
    """Send a webhook through all functions; returns what each has cost."""
    desk.tick(after)
    desk.forget()
    body = {"organization_id": ORGANIZATION, "source": "ecommerce", "payload": webhook(number, lead, desk)}
    answered = desk.call("LeadsApiFunction", http("POST", "/v1/leads/events", body, groups=LEADS))
    assert answered["statusCode"] == 202, answered
    ((_, message),) = desk.services.messages
    serve(desk, "LeadsFunction", message)
    desk.consume("LeadEventsFunction", "Event")
    ((announced, attributes),) = desk.services.announced
    for subscription, function in SUBSCRIPTIONS.items():
        if attributes["event_type"] in _wanted(subscription):
            desk.note(function, {"sqs.delivered": 1})
            serve(desk, function, announced)
    return desk.take()


def lead_rows(desk: Desk) -> dict[str, list[Any]]:
    """Return the rows that a webhook leads to, the last of each table."""
    with registry(desk):
        sent(desk, 10**6, 0)
    return rows_of(desk)


def serve(desk: Desk, function: str, message: str) -> None:
    """Hand a message of its queue to a function."""
    desk.note(function, {"sqs.messages": 1})
    desk.call(function, queue([message]))


def _wanted(subscription: str) -> list[str]:
    wanted: list[str] = template()["Resources"][subscription]["Properties"]["FilterPolicy"]["event_type"]
    return wanted


def _reads(desk: Desk) -> Measured:
    lead = desk.records(PUBLISHER, "Event")[-1]["dynamodb"]["NewImage"]["lead_organization_id"]["S"]
    for what in ("features", "memory", "events"):
        desk.forget()
        answered = desk.call("LeadsApiFunction", http("GET", f"/v1/leads/{lead}/{what}", groups=LEADS))
        assert answered["statusCode"] == 200, answered
        yield f"lead.read.{what}", desk.take()


def _refreshed(desk: Desk) -> Measured:
    """Yield the morning's refresh of REFRESHED leads."""
    desk.tick(timedelta(days=1))
    desk.forget()
    told: Mapping[str, Any] = desk.call("RefreshFunction", {"as_of": desk.now.isoformat()})
    assert told["leads"] == REFRESHED, told
    for _, message in list(desk.services.messages):
        assert "refresh" in json.loads(message)
        serve(desk, "FeaturesFunction", message)
    yield f"lead.refresh.{REFRESHED}", desk.take()
