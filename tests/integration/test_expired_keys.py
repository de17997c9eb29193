"""Idempotency keys 91 days later, through the real handlers on a real engine: new keys, and no second reward."""

import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.platform.items import encode_item
from rules.engagement.events import RETENTION
from tests.support.engine import Engine
from tests.support.site import FULFILMENT, PRODUCERS, Site

NOW = datetime.now(UTC)
LATER = NOW + RETENTION + timedelta(days=1)


def archive(days: int = 3, of_each: int = 4) -> list[dict[str, Any]]:
    return [
        {
            "idempotency_key": f"k{day}-{number}",
            "event_type": "LESSON_COMPLETED",
            "occurred_at": (NOW - timedelta(days=day, minutes=number)).isoformat(),
            "timezone": "UTC",
        }
        for day in range(days)
        for number in range(of_each)
    ]


def at(patch: pytest.MonkeyPatch, moment: datetime) -> None:
    patch.setattr("adapters.clock.now", lambda: moment + timedelta(seconds=time.monotonic() % 3600))


def sweep(engine: Engine, user: str) -> None:
    """What DynamoDB does some time after items have expired."""
    for table, key in (("BPEvents", "event_id"), ("IdempotencyKeys", "idempotency_key")):
        dynamodb = engine.client("dynamodb")
        for each in dynamodb.query(
            TableName=table,
            KeyConditionExpression="user_id = :user",
            ExpressionAttributeValues=encode_item({":user": user}),
        )["Items"]:
            dynamodb.delete_item(TableName=table, Key={name: each[name] for name in ("user_id", key)})


@pytest.mark.parametrize("is_swept", [False, True])
@pytest.mark.parametrize("path", ["redemptions", "freezes"])
def test_a_command_s_key_is_new_when_it_has_expired(
    engine: Engine, api: Site, user: str, path: str, is_swept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.send(user, *archive(), groups=(PRODUCERS,))
    body = {"idempotency_key": "r"} | ({"points": 5, "reward_id": "mug"} if path == "redemptions" else {})
    first = api.call(user, "POST", f"/v1/users/{user}/{path}", body, FULFILMENT)
    assert first[0] == 201
    assert (
        api.call(user, "POST", f"/v1/users/{user}/{path}", body, FULFILMENT)[1]["entry_id"]
        == first[1]["entry_id"]
    )
    at(monkeypatch, LATER)
    if is_swept:
        sweep(engine, user)
    again = api.call(user, "POST", f"/v1/users/{user}/{path}", body, FULFILMENT)
    assert again[0] == 201, again
    assert again[1]["entry_id"] != first[1]["entry_id"]
    assert (
        api.call(user, "POST", f"/v1/users/{user}/{path}", body, FULFILMENT)[1]["entry_id"]
        == again[1]["entry_id"]
    )


def test_an_archive_imported_again_after_91_days_changes_nothing(
    engine: Engine, api: Site, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = archive()
    api.send(user, *events, groups=(PRODUCERS,))
    before = api.profile(user)
    assert before["total_bestie_points"] == 120
    at(monkeypatch, LATER)
    sweep(engine, user)
    api.send(user, *events, {**events[0], "idempotency_key": "new"}, groups=(PRODUCERS,))
    after = api.profile(user)
    # What is new of that time counts as ever.
    assert (after["total_bestie_points"], after["active_days"]) == (130, before["active_days"])
    sweep(engine, user)
    api.send(user, *events, groups=(PRODUCERS,))
    assert api.profile(user)["total_bestie_points"] == 130


@pytest.mark.parametrize("behind", [timedelta(), timedelta(days=2)], ids=["one clock", "a processor behind"])
def test_an_event_that_came_before_it_occurred_earns_nothing_when_its_key_has_just_expired(
    engine: Engine, api: Site, user: str, behind: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon = {**archive(1, 1)[0], "occurred_at": (NOW + timedelta(minutes=4)).isoformat()}
    monkeypatch.setattr("adapters.clock.now", lambda: NOW)
    api.send(user, archive(1, 2)[1], groups=(PRODUCERS,))
    api.send(user, soon, groups=(PRODUCERS,))
    assert api.profile(user)["total_bestie_points"] == 20
    later = NOW + RETENTION + timedelta(minutes=1)
    monkeypatch.setattr("adapters.clock.now", lambda: later)
    monkeypatch.setattr("processors.engagement.clock", SimpleNamespace(now=lambda: later - behind))
    sweep(engine, user)
    api.send(user, soon, groups=(PRODUCERS,))
    assert api.profile(user)["total_bestie_points"] == 20
