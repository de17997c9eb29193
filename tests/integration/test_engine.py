"""The tests' DynamoDB, which answers within the process: it says what the server says, and lets threads race."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import ClientError

from adapters.platform.items import encode_item
from tests.support import dynamodb_engine
from tests.support import engine as engines
from tests.support.engine import Engine, changes, lean_client
from tests.support.site import Site

KEY = {"user_id": "u", "event_id": "e"}
# The last ones are wrong, each in its own way.
FILTERS = (
    "#deep[1].BOOL = :no OR #none <> :text AND NOT (event_id < :text)",
    "event_id BETWEEN :text AND :later",
    "begins_with(event_id, :text) AND contains(#deep, :text) AND size(event_id) > :n",
    "attribute_type(#none, :text) AND event_id IN (:text, :later)",
    "((event_id = :text))",
    "name = :text",
    "event_id =",
    "event_id BETWEEN :later AND :text",
    "begins_with(event_id, :n)",
    "event_id = :text garbage",
)
VALUES = {":n": {"N": "1.50"}, ":text": {"S": "packed"}, ":later": {"S": "z"}, ":no": {"BOOL": False}}
NAMES = {"#deep": "deep", "#none": "none"}


def filtered(expression: str) -> dict[str, Any]:
    names = {name: each for name, each in NAMES.items() if name in expression}
    values = {name: each for name, each in VALUES.items() if name in expression}
    return {
        "FilterExpression": expression,
        "ExpressionAttributeValues": {":u": {"S": "u"}, **values},
        **({"ExpressionAttributeNames": names} if names else {}),
    }


def told(engine: Engine, client_of: Callable[[Engine, str], Any] = Engine.client) -> list[Any]:
    """What a table and its stream say to some calls, without what differs from run to run."""
    dynamodb, table = client_of(engine, "dynamodb"), {"TableName": "BPEvents"}
    value = {":n": {"N": "1"}}
    values: dict[str, Any] = {
        "B": {"B": b"\0\xff"},
        "BS": {"BS": [b"a", b"bc"]},
        "none": {"NULL": True},
        "deep": {"L": [{"M": {"B": {"B": b"b"}, "S": {"S": '"B"'}}}, {"BOOL": False}]},
    }
    packed = {**encode_item({**KEY, "event_id": "packed"}), **values}
    of_user = {"KeyConditionExpression": "user_id = :u", "ExpressionAttributeValues": {":u": {"S": "u"}}}
    missing = {"Key": encode_item(KEY), "ConditionExpression": "attribute_exists(user_id)"}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("put_item", {"Item": encode_item({**KEY, "n": 0})}),
        ("put_item", {"Item": encode_item(KEY), "ConditionExpression": "attribute_not_exists(user_id)"}),
        (
            "update_item",
            {"Key": encode_item(KEY), "UpdateExpression": "ADD n :n", "ExpressionAttributeValues": value},
        ),
        ("get_item", {"Key": encode_item(KEY), "ConsistentRead": True}),
        ("delete_item", {"Key": encode_item(KEY), "ReturnValues": "ALL_OLD"}),
        ("get_item", {"Key": {"user_id": {"S": "u"}}}),
        ("put_item", {"Item": packed}),
        ("query", {**of_user, "Limit": 1}),
        ("delete_item", {**missing, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}),
        ("transact_write_items", {"TransactItems": [{"Delete": {**table, **missing}}]}),
        ("batch_get_item", {"RequestItems": {"BPEvents": {"Keys": [encode_item(KEY)]}}}),
        ("execute_statement", {"Statement": """SELECT * FROM "BPEvents" WHERE user_id = 'u'"""}),
        (
            "batch_execute_statement",
            {"Statements": [{"Statement": """DELETE FROM "BPEvents" WHERE n = 1"""}]},
        ),
    ]
    calls += [("query", {**of_user, **filtered(each)}) for each in FILTERS]
    found: list[Any] = []
    for name, more in calls:
        try:
            named = table if name in ("put_item", "get_item", "update_item", "delete_item", "query") else {}
            answer = getattr(dynamodb, name)(**named, **more)
        except ClientError as error:
            kept = ("Error", "CancellationReasons", "Item")
            found.append([type(error).__name__, *(error.response.get(each) for each in kept)])
        else:
            found.append({key: each for key, each in answer.items() if key != "ResponseMetadata"})
    streams = client_of(engine, "dynamodbstreams")
    arn = dynamodb.describe_table(**table)["Table"]["LatestStreamArn"]
    (shard,) = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    iterator = streams.get_shard_iterator(
        StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    records = streams.get_records(ShardIterator=iterator)["Records"]
    images = ("Keys", "OldImage", "NewImage")
    assert all(each["dynamodb"]["ApproximateCreationDateTime"].tzinfo for each in records)
    return found + [
        (each["eventName"], *(each["dynamodb"].get(image) for image in images)) for each in records
    ]


def lean(engine: Engine, service: str) -> Any:
    return lean_client(engine, service)


def test_it_says_what_the_server_says_and_each_engine_has_its_own_tables() -> None:
    with dynamodb_engine.running() as server, engines.running() as one, engines.running() as other:
        answers = [told(server), told(one), told(other, lean)]
        assert answers[0] == answers[1] == answers[2]
        assert [each[0] for each in answers[0][-4:]] == ["INSERT", "MODIFY", "REMOVE", "INSERT"]
        assert answers[0][7]["Items"][0]["deep"] == {
            "L": [{"M": {"B": {"B": b"b"}, "S": {"S": '"B"'}}}, {"BOOL": False}]
        }
        one.client("dynamodb").put_item(TableName="BPEvents", Item=encode_item(KEY))
        assert len(other.client("dynamodb").scan(TableName="BPEvents")["Items"]) == 1


@pytest.mark.parametrize("client_of", [Engine.own_client, lean_client.__wrapped__])
def test_a_hook_stops_a_request_before_it_is_sent(
    engine: Engine, client_of: Callable[[Engine, str], Any]
) -> None:
    """The fence of a region does (adapters/platform/fence.py)."""
    dynamodb, key = client_of(engine, "dynamodb"), encode_item({**KEY, "user_id": "stopped"})

    def stop(**_: Any) -> None:
        raise TimeoutError

    dynamodb.meta.events.register("before-send.dynamodb.PutItem", stop)
    with pytest.raises(TimeoutError):
        dynamodb.put_item(TableName="BPEvents", Item=key)
    assert "Item" not in dynamodb.get_item(TableName="BPEvents", Key=key)


def test_a_change_is_counted(engine: Engine) -> None:
    dynamodb, key = lean_client(engine, "dynamodb"), encode_item({**KEY, "user_id": "counted"})
    before = [changes(engine, each) for each in ("BPEvents", "Rewards")]
    dynamodb.put_item(TableName="BPEvents", Item=key)
    dynamodb.get_item(TableName="BPEvents", Key=key)
    assert [changes(engine, each) for each in ("BPEvents", "Rewards")] == [before[0] + 1, before[1]]


def test_threads_that_race_lose_what_they_write_without_a_condition(engine: Engine) -> None:
    """A test of a race would prove nothing if each thread did all of its calls in one turn."""
    dynamodb = engine.client("dynamodb")
    key = {"Key": encode_item({**KEY, "user_id": "race"}), "TableName": "BPEvents"}

    def count(_: int) -> None:
        for _ in range(10):
            now = int(dynamodb.get_item(**key).get("Item", {}).get("n", {"N": "0"})["N"])
            value = {":n": {"N": str(now + 1)}}
            dynamodb.update_item(**key, UpdateExpression="SET n = :n", ExpressionAttributeValues=value)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(8)))
    assert int(dynamodb.get_item(**key)["Item"]["n"]["N"]) < 80


def test_requests_that_race_take_turns_at_each_call_and_each_has_its_own_answer(
    api: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They share a process, and what routers keep in it of a request."""
    called, who = engines._called, list[int]()

    def noted(*given: Any) -> Any:
        answer = called(*given)
        who.append(threading.get_ident())
        return answer

    monkeypatch.setattr(engines, "_called", noted)
    start = threading.Barrier(4)

    def ask(number: int) -> Any:
        user = f"racing{number}"
        start.wait()
        taken = api.call(user, "POST", f"/v1/users/{user}/freezes", {"idempotency_key": "one"})[0]
        return taken, api.call(user, "GET", f"/v1/users/{user}")[1]["user_id"]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == [(201, f"racing{number}") for number in range(4)]
    turns = sum(one != other for one, other in pairwise(who))
    assert turns > 8, "eight requests, each with several calls, would take eight turns"


def test_an_engine_that_is_gone_answers_nobody() -> None:
    with engines.running() as gone:
        dynamodb = gone.client("dynamodb")
    with pytest.raises(Exception, match="Could not connect"):
        dynamodb.list_tables()


def test_an_engine_knows_nothing_of_the_one_before_it() -> None:
    """Its server may be the same."""
    for _ in range(2):
        with engines.running() as engine:
            s3, sqs, sns = engine.client("s3"), engine.client("sqs"), engine.client("sns")
            assert "Contents" not in s3.list_objects_v2(Bucket="lake")
            assert not sqs.receive_message(QueueUrl=engine.queue_url).get("Messages")
            assert len(sns.list_topics()["Topics"]) == 1
            assert not engine.client("dynamodb").scan(TableName="BPEvents")["Items"]
            s3.put_object(Bucket="lake", Key="left", Body=b"")
            sqs.send_message(QueueUrl=engine.queue_url, MessageBody="left")
            sns.create_topic(Name="left")
            engine.client("dynamodb").put_item(TableName="BPEvents", Item=encode_item(KEY))
