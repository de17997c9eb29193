"""DynamoDB's bulk calls; they try again what DynamoDB has left undone."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from adapters.platform.aws import pauses
from adapters.platform.items import Item, item
from rules.privacy.tombstones import TellsNobody

READ_MAX = 100
WRITE_MAX = 25
ATTEMPTS_MAX = 8
T = TypeVar("T")


class Unprocessed(TellsNobody, Exception):
    """DynamoDB had not finished a call after all attempts; it is safe to repeat."""


def chunks(all_of: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cut into lists of at most `size`."""
    rest = iter(all_of)
    while chunk := list(islice(rest, size)):
        yield chunk


def get_all(dynamodb: Any, table: str, keys: Iterable[Mapping[str, str]], only: str = "") -> list[Item]:
    """Read items by key, strongly consistent; missing ones are left out.

    keys: none twice. only: a projection expression. Raises Unprocessed.
    """
    found: list[Item] = []
    for chunk in chunks(keys, READ_MAX):
        asked: dict[str, Any] = {"Keys": [item(key) for key in chunk], "ConsistentRead": True}
        if only:
            asked["ProjectionExpression"] = only
        request = {table: asked}
        for _ in pauses(ATTEMPTS_MAX):
            answer = dynamodb.batch_get_item(RequestItems=request)
            found += answer["Responses"].get(table, [])
            request = answer.get("UnprocessedKeys") or {}
            if not request:
                break
        else:
            raise Unprocessed(f"{table}: keys left unread")
    return found


def put_all(dynamodb: Any, table: str, items: Sequence[Item]) -> None:
    """Put items without a condition; no two of them may have the same key. Raises Unprocessed."""
    for chunk in chunks(items, WRITE_MAX):
        request: dict[str, Any] = {table: [{"PutRequest": {"Item": each}} for each in chunk]}
        for _ in pauses(ATTEMPTS_MAX):
            answer = dynamodb.batch_write_item(RequestItems=request)
            request = answer.get("UnprocessedItems") or {}
            if not request:
                break
        else:
            raise Unprocessed(f"{table}: items left unwritten")


def query_all(dynamodb: Any, **query: Any) -> Iterator[Item]:
    """Yield a query's items over all its pages."""
    return _all_pages(dynamodb.query, query)


def scan_all(dynamodb: Any, **scan: Any) -> Iterator[Item]:
    """Yield a scan's items over all its pages."""
    return _all_pages(dynamodb.scan, scan)


def _all_pages(operation: Any, request: dict[str, Any]) -> Iterator[Item]:
    while True:
        page = operation(**request)
        yield from page.get("Items", [])
        if "LastEvaluatedKey" not in page:
            return
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
