"""Tables of a deployed stack as boto3 has them, for tests that ask DynamoDB as the documents write it."""

from collections.abc import Callable
from typing import Any

import boto3

from local.stack import EMULATOR_KEY, EMULATOR_SECRET, Stack

Table = Callable[[str], Any]
Items = list[dict[str, Any]]


def tables_of(stack: Stack) -> Table:
    """Return what gives a table by its logical name."""
    resource = boto3.resource(
        "dynamodb",
        region_name=stack.region,
        endpoint_url=stack.endpoint_url,
        aws_access_key_id=EMULATOR_KEY,
        aws_secret_access_key=EMULATOR_SECRET,
    )
    return lambda name: resource.Table(stack.tables[name])


def query(of: Any, condition: Any, **more: Any) -> Items:
    found: Items = of.query(KeyConditionExpression=condition, **more)["Items"]
    return found


def has(stored: dict[str, Any], **types: type) -> None:
    """Demand these attributes, of these types: str for S, Decimal for N, list for L, dict for M, bool for BOOL."""
    assert {name: type(stored.get(name)) for name in types} == types
