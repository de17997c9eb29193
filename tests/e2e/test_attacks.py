"""What a stranger who lies gains, on the deployed stack with IAM enforced: nothing.

The same attacks run against the handlers in tests/integration/test_no_free_money.py, with more detail.
"""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import aws_kinesis_agg.aggregator
import pytest

from local.api import Api
from local.stack import Stack
from tests.e2e.conftest import event

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")

Settled = Callable[..., None]


@pytest.fixture
def desk(stack: Stack) -> Api:
    return Api(stack, "desk", group="streakline/fulfilment")


def earn(me: Api, user: str, lessons: int) -> None:
    events = [event(user, f"lesson{n}", event_type="LESSON_COMPLETED") for n in range(lessons)]
    assert me.call("POST", "/v1/events", {"events": events})[0] == 202


def redeem(desk: Api, user: str, points: int, key: str) -> tuple[int, Any]:
    body = {"points": points, "reward_id": "mug", "idempotency_key": key}
    return desk.call("POST", f"/v1/users/{user}/redemptions", body)


def test_a_user_redeems_100_points_once_and_reverses_nothing(
    me: Api, desk: Api, user: str, settled: Settled
) -> None:
    earn(me, user, 10)
    settled(user)
    status, entry = redeem(desk, user, 100, "one")
    assert status == 201
    reversal = f"/v1/users/{user}/redemptions/{entry['entry_id']}/reversal"
    assert me.call("POST", reversal, {})[0] == 403
    assert redeem(desk, user, 100, "two")[1]["error"]["code"] == "insufficient_balance"
    assert desk.call("POST", reversal, {})[0] == 201
    assert desk.call("GET", f"/v1/users/{user}")[0] == 403
    assert redeem(desk, user, 100, "three")[0] == 201
    settled(user)


def test_freezes_and_pauses_end(me: Api, admin: Api, user: str, settled: Settled) -> None:
    with ThreadPoolExecutor(6) as pool:
        taken = list(pool.map(lambda _: me.call("POST", f"/v1/users/{user}/freezes", {})[0], range(6)))
    assert sorted(taken) == [201, 201, 409, 409, 409, 409]
    year = datetime.now(UTC).year + 1
    spans = [(f"{year}-{month:02}-01", f"{year}-{month:02}-28") for month in (1, 3, 5, 7)]
    paths = f"/v1/users/{user}/pauses"
    pauses = [me.call("POST", paths, {"first": first, "last": last})[0] for first, last in spans]
    assert pauses.count(201) <= 3
    assert pauses[-1] in (409, 422)
    for _ in range(5):
        _, entry = admin.call("POST", f"/v1/users/{user}/freezes", {})
        path = f"/v1/users/{user}/redemptions/{entry['entry_id']}/reversal"
        assert admin.call("POST", path, {})[0] == 201
    assert admin.get(f"/v1/users/{user}")["freezes_available"] == 2
    settled(user)


def test_purchases_are_declared_by_servers(me: Api, stack: Stack, user: str, settled: Settled) -> None:
    status, told = me.call(
        "POST", "/v1/events", {"events": [event(user, "p", event_type="PURCHASE_COMPLETED")]}
    )
    assert (status, told["error"]["code"]) == (403, "forbidden")
    assert "PURCHASE_COMPLETED" in json.dumps(told)
    shop = Api(stack, "shop", group="streakline/producers")
    events = [event(user, "p", event_type="PURCHASE_COMPLETED")]
    assert shop.call("POST", "/v1/events", {"events": events})[1]["accepted"] == 1
    settled(user)
    assert me.get(f"/v1/users/{user}")["balance"] == 20


def test_one_instant_in_three_zones_is_one_date_and_a_review(
    me: Api, admin: Api, user: str, settled: Settled
) -> None:
    # At 11:00 these zones have three dates, and two days ago none of them is today.
    at = (datetime.now(UTC) - timedelta(days=2)).replace(hour=11, minute=0).isoformat()
    zones = ("-12:00", "+00:00", "+14:00")
    events = [event(user, zone, at, event_type="LESSON_COMPLETED", timezone=zone) for zone in zones]
    assert me.call("POST", "/v1/events", {"events": events})[1]["accepted"] == 3
    settled(user)
    assert me.get(f"/v1/users/{user}")["active_days"] == 1
    assert redeem(admin, user, 10, "r")[1]["error"]["code"] == "under_review"
    assert me.call("GET", "/v1/review")[0] == 403
    listed, cursor = [], ""
    while True:
        page = admin.get(f"/v1/review?limit=500{cursor}")
        listed += page["accounts"]
        if not page["cursor"]:
            break
        cursor = f"&cursor={quote(page['cursor'])}"
    assert [each["evidence"] for each in listed if each["user_id"] == user]
    assert admin.call("POST", f"/v1/review/{user}/release")[0] == 200
    status, entry = redeem(admin, user, 10, "r")
    assert (status, entry["balance"]) == (201, 20)
    assert me.call("PUT", f"/v1/users/{user}/timezone", {"timezone": "+18:00"})[0] == 422


def test_of_240_events_in_a_record_one_is_bad_and_239_are_stored(
    admin: Api, stack: Stack, user: str, settled: Settled
) -> None:
    packer = aws_kinesis_agg.aggregator.RecordAggregator()
    for number in range(240):
        kind = "NOPE" if number == 120 else "CONTRIBUTION"
        each = event(user, f"k{number}", event_type=kind, properties={"text": "x" * 300})
        packer.add_user_record("p", json.dumps(each).encode())
    data = packer.clear_and_get().get_contents()[2]
    stack.client("kinesis").put_record(
        StreamName=stack.outputs["EventsStreamName"], Data=data, PartitionKey=user
    )
    until = time.monotonic() + 60
    while time.monotonic() < until and len(_stored(stack, user)) < 239:
        time.sleep(0.5)
    settled(user)
    assert len(_stored(stack, user)) == 239
    sqs, url = stack.client("sqs"), stack.outputs["EventsStreamFailuresUrl"]
    kept = []
    for message in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=1)["Messages"]:
        assert len(message["Body"]) < 256 * 1024
        if user in message["Body"]:
            kept.append(json.loads(message["Body"]))
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert [each["record"]["event"]["idempotency_key"] for each in kept] == ["k120"]


def _stored(stack: Stack, user: str) -> list[Any]:
    found = stack.client("dynamodb").query(
        TableName=stack.tables["BPEvents"],
        KeyConditionExpression="user_id = :user",
        ExpressionAttributeValues={":user": {"S": user}},
        ProjectionExpression="event_id",
    )
    items: list[Any] = found["Items"]
    return items


def test_a_sub_of_auth0_is_a_user_and_on_no_board(stack: Stack, user: str, settled: Settled) -> None:
    sub = f"auth0|{user}"
    me = Api(stack, sub, admin=False)
    own = f"/v1/users/{quote(sub, safe='')}"
    earn(me, sub, 2)
    settled(sub)
    assert me.get(own)["balance"] == 20
    assert me.call("POST", f"{own}/freezes", {})[0] == 201
    status, told = me.call("PUT", f"{own}/alias", {"alias": "Somebody"})
    assert (status, told["shown_as"]) == (200, "Somebody")
    rank = me.get(f"/v1/leaderboards/streaks/users/{quote(sub, safe='')}?region=other")
    assert rank["alias"] == "Somebody"
    assert "auth0" not in json.dumps(me.get("/v1/leaderboards/streaks?limit=100"))
    assert Api(stack, "other", admin=False).call("GET", own)[0] == 403


def test_commands_are_limited_without_end(stack: Stack, user: str) -> None:
    if (left := 60 - time.time() % 60) < 20:  # a window of one minute must not end while the test runs
        time.sleep(left)
    me = Api(stack, user, admin=False)

    def command(_: int) -> int:
        return int(me._request("PUT", f"/v1/users/{user}/timezone", {"timezone": "Asia/Tokyo"}).status)

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(command, range(100)))
    assert set(statuses) == {200, 429}
    assert statuses.count(200) <= 1.2 * 60
