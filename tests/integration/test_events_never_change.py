"""A stored event never changes: no retry and no cap rewrites it, through the real handlers on a real engine."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.engagement.event_store import EventStore
from adapters.platform.items import decode_item, encode_item
from rules.engagement.events import Event
from tests.support.engine import Engine
from tests.support.site import Site

NIGHT = (datetime.now(UTC) - timedelta(days=1)).replace(hour=23, minute=30, second=0, microsecond=0)


class Died(BaseException):
    """The process is gone, or stands still."""


def workouts(number: int) -> list[dict[str, Any]]:
    return [
        {
            "idempotency_key": f"w{each}",
            "event_type": "WORKOUT_COMPLETED",
            "occurred_at": (NIGHT + timedelta(seconds=each)).isoformat().replace("+00:00", "Z"),
        }
        for each in range(number)
    ]


def stored(engine: Engine, user: str) -> list[dict[str, Any]]:
    answer = engine.client("dynamodb").query(
        TableName="BPEvents",
        KeyConditionExpression="user_id = :user",
        ExpressionAttributeValues=encode_item({":user": user}),
        ConsistentRead=True,
    )
    return [decode_item(each) for each in answer["Items"]]


def earned(api: Site, user: str) -> list[tuple[str, str, int]]:
    """Each event's id, date and points, as the ledger has them."""
    entries = api.call(user, "GET", f"/v1/users/{user}/ledger?limit=100")[1]["entries"]
    return [
        (each["event_id"], each["activity_date"], each["points"])
        for each in entries
        if each["kind"] == "EARN"
    ]


def test_a_capped_event_is_not_written_again(engine: Engine, api: Site, user: str) -> None:
    told = api.send(user, *workouts(7))
    assert [each["status"] for each in told["results"]] == ["accepted"] * 7
    assert [each["points_awarded"] for each in stored(engine, user)] == [15] * 7
    points = [points for _, _, points in earned(api, user)]
    assert sorted(points) == [0, 0, 0, 15, 15, 15, 15]
    (day,) = engine.client("dynamodb").query(
        TableName="DailyActivity",
        KeyConditionExpression="user_id = :user",
        ExpressionAttributeValues=encode_item({":user": user}),
    )["Items"]
    assert (decode_item(day)["points_earned"], decode_item(day)["events_count"]) == (60, 7)
    assert api.profile(user)["total_bestie_points"] == 60


def test_a_stalled_winner_does_not_rewrite_what_a_retry_has_stored(
    engine: Engine, api: Site, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It won the key before the user moved to Tokyo, where it already was the next date."""
    stalled: list[Event] = []
    put = EventStore.put

    def stands_still(self: EventStore, events: list[Event]) -> None:
        stalled.extend(events)
        raise Died

    (sent,) = workouts(1)
    with monkeypatch.context() as patch:
        patch.setattr(EventStore, "put", stands_still)
        with pytest.raises(Died):
            api.send(user, sent)
    assert api.call(user, "PUT", f"/v1/users/{user}/timezone", {"timezone": "Asia/Tokyo"})[0] == 200
    told = api.send(user, sent)
    assert told["results"][0]["status"] == "duplicate"
    before = stored(engine, user)
    assert earned(api, user) == [(before[0]["event_id"], before[0]["activity_date"], 15)]
    put(EventStore(engine.client("dynamodb"), "BPEvents"), stalled)
    assert stored(engine, user) == before
    api.settle()
    assert earned(api, user) == [(before[0]["event_id"], before[0]["activity_date"], 15)]
