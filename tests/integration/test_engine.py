"""The tests' DynamoDB, which answers within the process: it says what the server says, and lets threads race."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from adapters.platform.items import item
from local.cloud import dynamodb_engine
from tests.support import engine as engines
from tests.support.engine import Engine

KEY = {"user_id": "u", "event_id": "e"}


def told(engine: Engine) -> list[Any]:
    """What a table and its stream say to some calls, without what differs from run to run."""
    dynamodb, table = engine.client("dynamodb"), {"TableName": "BPEvents"}
    value = {":n": {"N": "1"}}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("put_item", {"Item": item({**KEY, "n": 0})}),
        ("put_item", {"Item": item(KEY), "ConditionExpression": "attribute_not_exists(user_id)"}),
        (
            "update_item",
            {"Key": item(KEY), "UpdateExpression": "ADD n :n", "ExpressionAttributeValues": value},
        ),
        ("get_item", {"Key": item(KEY), "ConsistentRead": True}),
        ("delete_item", {"Key": item(KEY), "ReturnValues": "ALL_OLD"}),
        ("get_item", {"Key": {"user_id": {"S": "u"}}}),
    ]
    found: list[Any] = []
    for name, more in calls:
        try:
            answer = getattr(dynamodb, name)(**table, **more)
        except ClientError as error:
            found.append(error.response["Error"])
        else:
            found.append({key: each for key, each in answer.items() if key != "ResponseMetadata"})
    streams = engine.client("dynamodbstreams")
    arn = dynamodb.describe_table(**table)["Table"]["LatestStreamArn"]
    (shard,) = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    iterator = streams.get_shard_iterator(
        StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    records = streams.get_records(ShardIterator=iterator)["Records"]
    images = ("Keys", "OldImage", "NewImage")
    return found + [
        (each["eventName"], *(each["dynamodb"].get(image) for image in images)) for each in records
    ]


def test_it_says_what_the_server_says_and_each_engine_has_its_own_tables() -> None:
    with dynamodb_engine.running() as server, engines.running() as one, engines.running() as other:
        answers = [told(each) for each in (server, one, other)]
        assert answers[0] == answers[1] == answers[2]
        assert [each[0] for each in answers[0][6:]] == ["INSERT", "MODIFY", "REMOVE"]
        one.client("dynamodb").put_item(TableName="BPEvents", Item=item(KEY))
        assert other.client("dynamodb").scan(TableName="BPEvents")["Items"] == []


def test_threads_that_race_lose_what_they_write_without_a_condition(engine: Engine) -> None:
    """A test of a race would prove nothing if each thread did all of its calls in one turn."""
    dynamodb = engine.client("dynamodb")
    key = {"Key": item({**KEY, "user_id": "race"}), "TableName": "BPEvents"}

    def count(_: int) -> None:
        for _ in range(10):
            now = int(dynamodb.get_item(**key).get("Item", {}).get("n", {"N": "0"})["N"])
            value = {":n": {"N": str(now + 1)}}
            dynamodb.update_item(**key, UpdateExpression="SET n = :n", ExpressionAttributeValues=value)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(8)))
    assert int(dynamodb.get_item(**key)["Item"]["n"]["N"]) < 80


def test_an_engine_that_is_gone_answers_nobody() -> None:
    with engines.running() as gone:
        dynamodb = gone.client("dynamodb")
    with pytest.raises(Exception, match="Could not connect"):
        dynamodb.list_tables()
