"""Counts the round trips of `GET /v1/users/{id}`: the real handler, a real Redis, the emulator's tables."""

import json
import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from adapters import settings
from adapters.platform import aws
from adapters.platform.redis import Redis
from adapters.settings.event_intake import EventsStreamSettings
from bench.engagement import redis_server
from bench.engagement.workload import DAY, DAY_ONE, bodies
from bench.figure import Figure
from ingest.engagement.events import acceptor
from ingest.web.caller import Caller
from tests.support import dynamodb_engine

USER = "reader"
CONTEXT = SimpleNamespace(
    function_name="bench", memory_limit_in_mb=1024, invoked_function_arn="arn", aws_request_id="1"
)


def run() -> Iterator[Figure]:
    """Yield two counts: for a read that finds the profile in Redis, and for one that does not."""
    with redis_server.running() as url, dynamodb_engine.running() as started:
        os.environ.update(started.environment(url))
        _write_profile()
        calls = _watched()
        yield from _cached(url, calls)
        yield from _uncached(url, calls)


def _write_profile() -> None:
    """Give the user an event, and so a profile. Both are in the tables only, not in Redis."""
    config = settings.read_settings(EventsStreamSettings)
    sent, now = bodies([USER], 1, DAY_ONE), DAY_ONE + DAY / 4
    acceptor(config).accept(sent, Caller("", is_admin=True), now)
    dynamodb = aws.client("dynamodb")
    images = dynamodb.scan(TableName=config.bp_events_table)["Items"]

    from processors.engagement import _parts

    records = [{"dynamodb": {"NewImage": image}} for image in images]
    assert _parts().apply(records, now + DAY / 1000).counts["applied"] == 1


def _watched() -> list[str]:
    """Return a list to which the name of each later request to DynamoDB is added."""
    calls: list[str] = []
    events = aws.client("dynamodb").meta.events
    events.register("before-send.dynamodb", lambda event_name, **_: calls.append(event_name.split(".")[-1]))
    return calls


def _get() -> dict[str, Any]:
    """Call the function as API Gateway does; returns the profile."""
    from ingest.engagement.users_api import handler

    path = f"/v1/users/{USER}"
    http = {"method": "GET", "path": path, "protocol": "HTTP/1.1", "sourceIp": "", "userAgent": ""}
    claims = {"authorizer": {"jwt": {"claims": {"sub": USER}, "scopes": None}}}
    event = {
        "version": "2.0",
        "routeKey": "GET /v1/users/{user_id}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {},
        "requestContext": {"http": http, "stage": "$default", **claims},
        "isBase64Encoded": False,
    }
    answer = handler(event, CONTEXT)
    assert answer["statusCode"] == 200, answer
    profile: dict[str, Any] = json.loads(answer["body"])
    assert profile["total_bestie_points"] == 10, profile
    return profile


def _cached(url: str, calls: list[str]) -> Iterator[Figure]:
    first = _get()  # puts the profile into Redis, and opens the connection
    calls.clear()
    before = redis_server.commands_processed(url)
    with redis_server.round_trips() as trips:
        assert _get() == first
    # The server counted the first INFO too. Without it, its count must be this process's own count.
    assert redis_server.commands_processed(url) - before - 1 == sum(trips)
    yield Figure("profile read, cached: Redis round trips", len(trips), "==", 1, f"{trips} commands")
    yield Figure("profile read, cached: DynamoDB calls", len(calls), "==", 0)


def _uncached(url: str, calls: list[str]) -> Iterator[Figure]:
    Redis(url).call("DEL", f"streak:{USER}")
    calls.clear()
    _get()
    yield Figure("profile read, not cached: DynamoDB calls", len(calls), "==", 1, ", ".join(calls))
