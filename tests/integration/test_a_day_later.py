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

    def send(at: datetime, groups: str = "[streakline/admin]", **change: Any) -> dict[str, Any]:
        monkeypatch.setattr("adapters.clock.now", lambda: at)
        body = {
            "idempotency_key": "k",
            "event_type": "CONTRIBUTION",
            "occurred_at": START.isoformat(),
            **change,
        }
        claims = {"sub": user, "cognito:groups": groups}
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
        answer = ingest.engagement.events_api.handler(event, CONTEXT)
        assert answer["statusCode"] == 202, "a wrong time is a fault of the event, not of the caller"
        result: dict[str, Any] = json.loads(answer["body"])["results"][0]
        return result

    return send


def test_the_same_body_is_the_first_result(post: Post) -> None:
    first = post(START)
    later = post(START + timedelta(days=1))
    assert (first["status"], later["status"]) == ("accepted", "duplicate")
    assert later["event_id"] == first["event_id"]


def test_a_phone_whose_answer_was_lost_hears_of_it_four_days_later(post: Post) -> None:
    """By then the event is too late to be sent for the first time. It was sent in time."""
    first = post(START, groups="")
    later = post(START + timedelta(days=4), groups="")
    assert (later["status"], later.get("event_id")) == ("duplicate", first["event_id"])


def test_what_was_never_taken_stays_too_late(post: Post) -> None:
    for change in ({}, {"event_type": "CHECK_IN"}):
        refused = post(START + timedelta(days=4), groups="", **change)
        assert (refused["status"], refused["error"]["code"]) == ("rejected", "backfill_forbidden")
    post(START + timedelta(days=4))
    other = post(START + timedelta(days=4), groups="", event_type="CHECK_IN")
    assert other["error"]["code"] == "backfill_forbidden"
    assert post(START + timedelta(days=95), groups="")["error"]["code"] == "backfill_forbidden"


def test_a_clock_that_was_put_back_hears_the_first_result(post: Post) -> None:
    first = post(START)
    assert post(START - timedelta(days=1), groups="").get("event_id") == first["event_id"]


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
