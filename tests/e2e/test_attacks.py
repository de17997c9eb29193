"""What the deployed stack does with a packed record that has one bad event, and with a user's name as Auth0 writes it."""

import json
import time
from collections.abc import Callable
from typing import Any

import aws_kinesis_agg.aggregator
import pytest

from local.api import Api
from local.stack import Stack
from rules.user_ids import path_part
from tests.e2e.conftest import event

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")

Settled = Callable[..., None]


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


@pytest.mark.parametrize("sub_form", ["auth0|{}", "_{}/Q+x=", "-{}", "https://issuer.example/users/{}~$!"])
def test_a_sub_of_any_issuer_is_a_user_and_on_no_board(
    stack: Stack, user: str, settled: Settled, sub_form: str
) -> None:
    sub = sub_form.format(user)
    me = Api(stack, sub, admin=False)
    own = f"/v1/users/{path_part(sub)}"
    lessons = [event(sub, f"lesson{n}", event_type="LESSON_COMPLETED") for n in range(2)]
    assert me.call("POST", "/v1/events", {"events": lessons})[0] == 202
    settled(sub)
    assert me.get(own)["balance"] == 20
    assert me.call("POST", f"{own}/freezes", {})[0] == 201
    status, told = me.call("PUT", f"{own}/alias", {"alias": "Somebody"})
    assert (status, told["shown_as"]) == (200, "Somebody")
    rank = me.get(f"/v1/leaderboards/streaks/users/{path_part(sub)}?region=other")
    assert rank["alias"] == "Somebody"
    assert [each["account_id"] for each in me.get(f"{own}/ledger")["entries"]].count(sub) >= 3
    assert me.get(f"{own}/events")["events"][0]["user_id"] == sub
    assert sub not in json.dumps(me.get("/v1/leaderboards/streaks?limit=100"))
    assert Api(stack, "other", admin=False).call("GET", own)[0] == 403
