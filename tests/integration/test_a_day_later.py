"""Idempotency when the clock has moved on, through the real handler on a real engine."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

import ingest.engagement.events_api
from adapters.platform.aws import client
from tests.support.engine import Engine

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
CONTEXT = SimpleNamespace(
    function_name="f", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
)
Post = Callable[..., dict[str, Any]]


@pytest.fixture
def post(engine: Engine, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Post:
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)
    client.cache_clear()
    ingest.engagement.events_api._parts.cache_clear()
    user = request.node.name

    def send(at: datetime, **change: Any) -> dict[str, Any]:
        monkeypatch.setattr("adapters.clock.now", lambda: at)
        body = {
            "idempotency_key": "k",
            "event_type": "CONTRIBUTION",
            "occurred_at": START.isoformat(),
            **change,
        }
        claims = {"sub": user, "cognito:groups": "[streakline/admin]"}
        event = {
            "version": "2.0",
            "routeKey": "POST /v1/events",
            "rawPath": "/v1/events",
            "requestContext": {
                "http": {"method": "POST", "path": "/v1/events"},
                "stage": "$default",
                "authorizer": {"jwt": {"claims": claims}},
            },
            "body": json.dumps({"events": [body]}),
            "isBase64Encoded": False,
        }
        answer = json.loads(ingest.engagement.events_api.handler(event, CONTEXT)["body"])
        result: dict[str, Any] = answer["results"][0]
        return result

    return send


def test_the_same_body_is_the_first_result(post: Post) -> None:
    first = post(START)
    later = post(START + timedelta(days=1))
    assert (first["status"], later["status"]) == ("accepted", "duplicate")
    assert later["event_id"] == first["event_id"]


def test_another_body_is_a_conflict(post: Post, engine: Engine) -> None:
    first = post(START)
    for change in ({"occurred_at": "2026-03-01T13:00:00Z"}, {"event_type": "CHECK_IN"}, {"source": "x"}):
        assert post(START + timedelta(days=1), **change)["status"] == "conflict"
    stored = engine.client("dynamodb").query(
        TableName="BPEvents",
        KeyConditionExpression="user_id = :user",
        ExpressionAttributeValues={":user": {"S": "test_another_body_is_a_conflict"}},
    )["Items"]
    assert [each["event_id"]["S"] for each in stored] == [first["event_id"]]


def test_an_expired_claim_is_gone_though_its_item_is_still_there(post: Post) -> None:
    assert post(START)["status"] == "accepted"
    assert post(START + timedelta(days=91), event_type="CHECK_IN")["status"] == "accepted"
    assert post(START + timedelta(days=91), event_type="CHECK_IN")["status"] == "duplicate"


def test_one_key_of_two_users_is_two_events(post: Post) -> None:
    statuses = [post(START, user_id=user)["status"] for user in ("day-later-a", "day-later-b")]
    assert statuses == ["accepted", "accepted"]
