"""Outgoing webhooks: what a change costs that endpoints are told of, a delivery, and a minute's schedule."""

import math
from collections.abc import Iterator
from unittest.mock import patch

import processors.outgoing.notifications as telling
from adapters.outgoing import endpoint_store
from adapters.outgoing.endpoint_store import EndpointStore
from adapters.outgoing.notification_items import LANE_SHARDS, shard_of
from adapters.outgoing.transports import SendAnswer, WebhookTransport
from adapters.platform.aws import client
from bench.counting.desk import Desk, Units
from bench.units.engagement import DAY, USER_ID, apply
from rules.outgoing.notices import Endpoint

ENDPOINTS = (1, 3)
ENDPOINT = "{}{}" + "e" * 24
Measured = Iterator[tuple[str, dict[str, Units]]]


def outgoing_paths(desk: Desk) -> Measured:
    """Yield a change told to some endpoints, its delivery to one of them, and a minute without anything due.

    Each change is that of a user who was told of before, and extends the streak.
    """
    store = EndpointStore(client("dynamodb"), "WebhookEndpoints")
    for count in ENDPOINTS:
        telling._parts.cache_clear()
        for number in range(count):
            url = f"https://hooks{number}.example.com/streakline"
            store.put(Endpoint(ENDPOINT.format(count, number), "acme", url, created_at="2026-03-01"))
        with patch.object(endpoint_store, "FRESH_SECONDS", math.inf):  # by a clock that no test sets
            yield from _measured(desk, count)
        for each in store.all():
            store.remove(each.endpoint_id)


def _measured(desk: Desk, count: int) -> Measured:
    """Measure with so many endpoints, which are there."""
    desk.forget()
    desk.call("NotificationFunction", {})
    yield f"webhook.swept.{count}", desk.take()
    user = USER_ID.format(count)
    _changed(desk, user)
    desk.tick(DAY)
    yield f"webhook.told.{count}", _changed(desk, user)
    desk.forget()
    endpoint, share = ENDPOINT.format(count, 0), shard_of(user, LANE_SHARDS)
    # Its address leads nowhere: how long it takes to answer is a fact of the plan.
    with patch.object(WebhookTransport, "send", lambda *_: SendAnswer(200)):
        told = desk.call("WebhookDeliveryFunction", {"endpoint_id": endpoint, "share": share})
    assert told == {"lanes": 1}, told
    desk.note("WebhookDeliveryFunction", {"calls.webhook": 1})
    yield f"webhook.delivered.{count}", desk.take()


def _changed(desk: Desk, user: str) -> dict[str, Units]:
    """Let an event change a profile, and hand the record to the function that tells."""
    desk.forget()
    apply(desk, user, 1)
    records = desk.records("PublisherFunction", "UserStreaks")
    desk.forget()
    desk.call("NotificationFunction", {"Records": records})
    return desk.take()
