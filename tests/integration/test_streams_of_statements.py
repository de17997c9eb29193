"""The stream of a table has what PartiQL statements change, in the server that a laptop cloud runs and within tests."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import dynamodb_engine, engine
from tests.support.effort import effort

TABLE = "Things"
Change = tuple[str, str, str | None, str | None]  # event, key, old colour, new colour


@pytest.fixture(
    params=["within", "server"][: effort(1, soak=2)]  # tests/integration/test_engine.py: both say the same
)
def dynamodb(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any]]:
    """Clients of DynamoDB and of its streams, and a table whose stream has both images."""
    ways = {"server": dynamodb_engine.running, "within": engine.running}
    with ways[request.param]() as running:
        client = running.client("dynamodb")
        client.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        )
        yield client, running.client("dynamodbstreams")


def changes(streams: Any) -> list[Change]:
    """What the table's stream has."""
    (stream,) = streams.list_streams(TableName=TABLE)["Streams"]
    description = streams.describe_stream(StreamArn=stream["StreamArn"])["StreamDescription"]
    (shard,) = description["Shards"]
    iterator = streams.get_shard_iterator(
        StreamArn=stream["StreamArn"], ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    records = streams.get_records(ShardIterator=iterator)["Records"]

    def colour(record: Any, image: str) -> str | None:
        texts: dict[str, str] = record["dynamodb"].get(image, {}).get("colour", {})
        return texts.get("S")

    return [
        (
            record["eventName"],
            record["dynamodb"]["Keys"]["id"]["S"],
            colour(record, "OldImage"),
            colour(record, "NewImage"),
        )
        for record in records
    ]


def run(client: Any, *statements: tuple[str, str]) -> list[str]:
    """Run statements with one parameter each; returns their error codes."""
    batch = [{"Statement": text, "Parameters": [{"S": value}]} for text, value in statements]
    responses = client.batch_execute_statement(Statements=batch)["Responses"]
    return [response.get("Error", {}).get("Code", "") for response in responses]


def test_each_change_of_a_statement_is_in_the_stream(dynamodb: tuple[Any, Any]) -> None:
    client, streams = dynamodb
    insert = f"INSERT INTO \"{TABLE}\" VALUE {{'id': ?, 'colour': 'red'}}"
    paint = f"UPDATE \"{TABLE}\" SET colour = 'blue' WHERE id = ?"
    bleach = f'UPDATE "{TABLE}" REMOVE colour WHERE id = ?'
    delete = f'DELETE FROM "{TABLE}" WHERE id = ?'
    assert run(client, (insert, "a"), (insert, "b")) == ["", ""]
    assert [run(client, (text, "a")) for text in (paint, bleach, delete)] == [[""]] * 3
    assert changes(streams) == [
        ("INSERT", "a", None, "red"),
        ("INSERT", "b", None, "red"),
        ("MODIFY", "a", "red", "blue"),
        ("MODIFY", "a", "blue", None),
        ("REMOVE", "a", None, None),
    ]


def test_a_statement_that_changes_nothing_is_not_in_the_stream(dynamodb: tuple[Any, Any]) -> None:
    client, streams = dynamodb
    insert = f"INSERT INTO \"{TABLE}\" VALUE {{'id': ?, 'colour': 'red'}}"
    assert run(client, (insert, "a")) == [""]
    assert run(client, (insert, "a")) == ["DuplicateItem"]
    assert run(client, (f"UPDATE \"{TABLE}\" SET colour = 'red' WHERE id = ?", "a")) == [""]
    refused = f"UPDATE \"{TABLE}\" SET colour = 'blue' WHERE id = ? AND colour = 'green'"
    assert run(client, (refused, "a")) == ["ConditionalCheckFailed"]
    assert run(client, (f"DELETE FROM \"{TABLE}\" WHERE id = ? AND colour = 'green'", "a")) == [
        "ConditionalCheckFailed"
    ]
    assert run(client, (f'DELETE FROM "{TABLE}" WHERE id = ?', "nobody")) == [""]
    assert run(client, (f'SELECT * FROM "{TABLE}" WHERE id = ?', "a")) == [""]
    assert changes(streams) == [("INSERT", "a", None, "red")]
