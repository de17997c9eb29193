"""Measures outgoing webhooks: a change that endpoints hear of, a delivery, a minute with nothing due."""

import math
from unittest.mock import patch

from adapters.outgoing import endpoint_store
from adapters.outgoing.endpoint_store import EndpointStore
from adapters.outgoing.outbox_store import LANE_SHARDS, shard_of
from adapters.outgoing.transports import SendAnswer, Transport
from adapters.platform.aws import client
from bench.counting.desk import Desk, PathCosts, Units
from bench.units.engagement import DAY, USER_ID, apply_events
from processors.outgoing import notifications
from rules.outgoing.notices import Endpoint

ENDPOINT_COUNTS = (1, 3)


def outgoing_paths(desk: Desk) -> PathCosts:
    """Yield the paths of webhooks, with each number of endpoints."""
    store = EndpointStore(client("dynamodb"), "WebhookEndpoints")
    for count in ENDPOINT_COUNTS:
        notifications._parts.cache_clear()  # else the function still has the endpoints of the previous count
        for number in range(count):
            url = f"https://hooks{number}.example.com/streakline"
            store.put(Endpoint(_endpoint_id(count, number), "acme", url, created_at="2026-03-01"))
        # Endpoints are re-read by the monotonic clock, which the desk cannot set: never here.
        with patch.object(endpoint_store, "FRESH_SECONDS", math.inf):
            yield from _paths_with_endpoints(desk, count)
        for endpoint in store.all():
            store.remove(endpoint.endpoint_id)


def _endpoint_id(count: int, number: int) -> str:
    return f"{count}{number}" + "e" * 24  # as long as a real id


def _paths_with_endpoints(desk: Desk, count: int) -> PathCosts:
    """Yield a minute with nothing due, a change, and its delivery, with `count` stored endpoints."""
    desk.start_path()
    desk.call("NotificationFunction", {})  # as its schedule does each minute
    yield f"webhook.swept.{count}", desk.take_costs()
    user = USER_ID.format(count)
    _cost_of_change(desk, user)  # the account's first change, which is no usual one
    desk.tick(DAY)
    yield f"webhook.told.{count}", _cost_of_change(desk, user)
    desk.start_path()
    event = {"endpoint_id": _endpoint_id(count, 0), "share": shard_of(user, LANE_SHARDS)}
    # No request leaves the machine. How long an endpoint takes to answer is an assumption of the plan.
    with patch.object(Transport, "send", lambda *_: SendAnswer(200)):
        answer = desk.call("WebhookDeliveryFunction", event)
    assert answer == {"lanes": 1}, answer
    desk.add_cost("WebhookDeliveryFunction", {"calls.webhook": 1})  # the meter cannot see it
    yield f"webhook.delivered.{count}", desk.take_costs()


def _cost_of_change(desk: Desk, user: str) -> dict[str, Units]:
    """Let an event change a profile; returns what it costs to notify the endpoints of that."""
    desk.start_path()
    apply_events(desk, user, 1)
    # The function's own mapping is off by default, so no record waits for it. The publisher gets the same.
    records = desk.take_records("PublisherFunction", "UserStreaks")
    desk.start_path()
    desk.call("NotificationFunction", {"Records": records})
    return desk.take_costs()
