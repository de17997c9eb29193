"""Requests to DynamoDB are what botocore itself would send, byte by byte."""

from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.serialize import JSONSerializer

from adapters.platform.aws import client
from adapters.platform.items import encode_item

ITEM = {
    **encode_item({"user_id": "u", "seq": 7, "active": True, "lots": {"2026-01-01": 5}, "holds": ["a", "b"]}),
    "folded": {"B": b"\x00\xff packed"},
    "strings": {"SS": ["a"]},
    "chunks": {"L": [{"M": {"data": {"B": b"\xfe"}, "above": {"N": "3"}}}, {"BS": [b"a", b"b"]}]},
}
VALUES = {":read": {"S": "x"}, ":packed": {"B": b"\x01"}}
PUT = {
    "TableName": "T",
    "Item": ITEM,
    "ConditionExpression": "a = :read",
    "ExpressionAttributeValues": VALUES,
}
KEY = {"user_id": {"S": "u"}}
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("PutItem", PUT),
    ("GetItem", {"TableName": "T", "Key": KEY, "ConsistentRead": True}),
    (
        "Query",
        {"TableName": "T", "KeyConditionExpression": "a", "ExpressionAttributeValues": VALUES, "Limit": 2},
    ),
    ("Scan", {"TableName": "T", "ExclusiveStartKey": KEY, "Segment": 1, "TotalSegments": 2}),
    ("BatchGetItem", {"RequestItems": {"T": {"Keys": [KEY, KEY], "ConsistentRead": True}}}),
    (
        "BatchWriteItem",
        {"RequestItems": {"T": [{"PutRequest": {"Item": ITEM}}, {"DeleteRequest": {"Key": KEY}}]}},
    ),
    ("TransactWriteItems", {"TransactItems": [{"Put": PUT}, {"Delete": {"TableName": "T", "Key": KEY}}]}),
    ("BatchExecuteStatement", {"Statements": [{"Statement": "s", "Parameters": list(ITEM.values())}]}),
    ("CreateTable", {"TableName": "T", "KeySchema": [{"AttributeName": "a", "KeyType": "HASH"}]}),
]


@pytest.fixture
def serializer(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return client("dynamodb")._serializer


@pytest.mark.parametrize(("operation", "request_"), REQUESTS, ids=[name for name, _ in REQUESTS])
def test_a_request_is_botocores_own(serializer: Any, operation: str, request_: dict[str, Any]) -> None:
    model = client("dynamodb").meta.service_model.operation_model(operation)
    plain = JSONSerializer().serialize_to_request(request_, model)
    assert serializer.serialize_to_request(request_, model) == plain
    assert type(serializer) is not JSONSerializer


def test_a_misspelt_parameter_is_refused_before_the_request(serializer: Any) -> None:
    model = client("dynamodb").meta.service_model.operation_model("TransactWriteItems")
    misspelt = {"TransactItems": [{"Put": {**PUT, "ConditionExpresion": "a"}}]}
    with pytest.raises(KeyError):
        serializer.serialize_to_request(misspelt, model)


def test_only_dynamodb_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    assert type(client("sqs")._serializer).__name__ != type(client("dynamodb")._serializer).__name__
    assert issubclass(client("dynamodb").exceptions.ClientError, ClientError)
