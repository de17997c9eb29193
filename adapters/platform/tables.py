"""Calls of DynamoDB, as all stores make them: reads, conditional writes, bulk calls and transactions.

A bulk call repeats its unprocessed part. Refresh says when a process must read again the content of a table
that it remembers.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from adapters.logs import Logger, error_summary
from adapters.platform.aws import THROTTLES, Unavailable, is_away, pauses
from adapters.platform.items import Item, encode_item
from rules.privacy.tombstones import SafeToLog

logger = Logger(service="tables")
BEFORE_ALL = "0"  # sorts before every stamp, and so before every sort key that begins with one
READ_MAX = 100  # DynamoDB's own limits of keys and items in a bulk call
WRITE_MAX = 25
ATTEMPTS_MAX = 8
# While the table is away, a process uses the content that it has read, and tries again after so many seconds.
AWAY_SECONDS = 5
T = TypeVar("T")
REFUSED = "ConditionalCheckFailed"
Action = dict[str, Any]  # of a transaction: {"Put": the arguments of a put}, and so on


class Unprocessed(SafeToLog, Exception):
    """A call was not finished after all attempts, or others were first in each; it is safe to repeat."""


def chunks(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the values in lists of at most `size`."""
    rest = iter(values)
    while chunk := list(islice(rest, size)):
        yield chunk


def get_one(dynamodb: Any, table: str, key: Mapping[str, Any], is_strong: bool = True) -> Item | None:
    """Return the item that has a key; None if there is none."""
    answer = dynamodb.get_item(TableName=table, Key=encode_item(key), ConsistentRead=is_strong)
    item: Item | None = answer.get("Item")
    return item


def write_if(write: Callable[..., Any], **request: Any) -> bool:
    """Make a conditional write, by a method of the client; returns whether its condition held."""
    try:
        write(**request)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        return False
    return True


def update_if(dynamodb: Any, **request: Any) -> Item | None:
    """Make a conditional update; returns the item after it, or None if its condition did not hold."""
    try:
        updated: Item = dynamodb.update_item(**request, ReturnValues="ALL_NEW")["Attributes"]
    except dynamodb.exceptions.ConditionalCheckFailedException:
        return None
    return updated


def if_unchanged(key: str, attribute: str, read: str | int | None) -> dict[str, Any]:
    """Return the condition of a put that replaces an item, as arguments of DynamoDB.

    key: an attribute that each item of the table has. attribute: one that each write changes. read: its value
    when the item was read; None: there was no item.
    """
    if read is None:
        return {"ConditionExpression": f"attribute_not_exists({key})"}
    values = encode_item({":read": read})
    return {"ConditionExpression": f"{attribute} = :read", "ExpressionAttributeValues": values}


def get_all(dynamodb: Any, table: str, keys: Iterable[Mapping[str, str]], only: str = "") -> list[Item]:
    """Return the items that have these keys, strongly consistent, in no order.

    keys: none twice. only: a projection expression. Raises Unprocessed.
    """
    items: list[Item] = []
    for chunk in chunks(keys, READ_MAX):
        table_request: dict[str, Any] = {"Keys": [encode_item(key) for key in chunk], "ConsistentRead": True}
        if only:
            table_request["ProjectionExpression"] = only
        request = {table: table_request}
        for _ in pauses(ATTEMPTS_MAX):
            answer = dynamodb.batch_get_item(RequestItems=request)
            items += answer["Responses"].get(table, [])
            request = answer.get("UnprocessedKeys") or {}
            if not request:
                break
        else:
            raise Unprocessed(f"{table}: keys left unread")
    return items


def put_all(dynamodb: Any, table: str, items: Sequence[Item]) -> None:
    """Put items without a condition; no two of them may have the same key. Raises Unprocessed."""
    _write_all(dynamodb, table, [{"PutRequest": {"Item": item}} for item in items], "unwritten")


def delete_all(dynamodb: Any, table: str, keys: Sequence[Item]) -> None:
    """Delete items by key. A key without an item is no error. Raises Unprocessed."""
    _write_all(dynamodb, table, [{"DeleteRequest": {"Key": key}} for key in keys], "undeleted")


def _write_all(dynamodb: Any, table: str, writes: Iterable[dict[str, Any]], unfinished: str) -> None:
    for chunk in chunks(writes, WRITE_MAX):
        request: dict[str, Any] = {table: chunk}
        for _ in pauses(ATTEMPTS_MAX):
            answer = dynamodb.batch_write_item(RequestItems=request)
            request = answer.get("UnprocessedItems") or {}
            if not request:
                break
        else:
            raise Unprocessed(f"{table}: items left {unfinished}")


def refused_statements(
    dynamodb: Any, table: str, statements: Sequence[dict[str, Any]], refusal: str
) -> list[int]:
    """Run statements of PartiQL, because a batch of writes takes conditions only as statements.

    Returns the indices of those that were refused with the code `refusal`. Raises Unprocessed; and
    RuntimeError for an unexpected code.
    """
    refused: list[int] = []
    for chunk in chunks(range(len(statements)), WRITE_MAX):
        left = chunk
        for _ in pauses(ATTEMPTS_MAX):
            answer = dynamodb.batch_execute_statement(Statements=[statements[index] for index in left])
            errors = [response.get("Error", {}) for response in answer["Responses"]]
            codes = list(zip(left, (error.get("Code") for error in errors), strict=True))
            refused += [index for index, code in codes if code == refusal]
            left = [index for index, code in codes if code in THROTTLES]
            for error in errors:
                if error.get("Code") not in {None, refusal, *THROTTLES}:
                    raise RuntimeError(f"{table}: {error['Code']}: {error.get('Message')}")
            if not left:
                break
        else:
            raise Unprocessed(f"{table}: statements left undone")
    return refused


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


def put_action(
    table: str,
    item: Item,
    condition: str = "",
    values: Item | None = None,
    names: Mapping[str, str] | None = None,
) -> Action:
    """Return a transaction's put. values, names: what stands for :value and #name in the condition."""
    named = {"ExpressionAttributeNames": names} if names else {}
    return {"Put": {"TableName": table, "Item": item, **_condition(condition, values), **named}}


def delete_action(
    table: str, key: Mapping[str, str], condition: str = "", values: Item | None = None
) -> Action:
    """Return a transaction's delete. values: what stands for :value in the condition."""
    return {"Delete": {"TableName": table, "Key": encode_item(key), **_condition(condition, values)}}


def update_action(table: str, key: Mapping[str, str], changes: str, values: Item, condition: str) -> Action:
    """Return a transaction's update. values: what stands for :value in the changes and the condition."""
    update = {"TableName": table, "Key": encode_item(key), "UpdateExpression": changes}
    return {"Update": {**update, **_condition(condition, values)}}


def _condition(condition: str, values: Item | None) -> dict[str, Any]:
    request: dict[str, Any] = {"ConditionExpression": condition} if condition else {}
    return request | ({"ExpressionAttributeValues": values} if values else {})


def transact(dynamodb: Any, actions: Sequence[Action]) -> list[dict[str, Any]]:
    """Write all actions in one transaction; returns [] if that was done.

    If nothing was written, it returns a reason for each action: a Code, and perhaps the old Item. The old
    item is there if the action's condition was refused and the action asked for it. Raises DynamoDB's error
    if the cause is neither a refused condition nor a throttle: repeating it would not help.
    """
    try:
        dynamodb.transact_write_items(TransactItems=actions)
    except dynamodb.exceptions.TransactionCanceledException as error:
        reasons: list[dict[str, Any]] = error.response.get("CancellationReasons", [])
        codes = {reason.get("Code") for reason in reasons}
        if len(reasons) != len(actions) or not codes & {REFUSED, *THROTTLES}:
            raise
        return reasons
    return []


def transact_until_decided(dynamodb: Any, actions: Sequence[Action], undecided: str) -> list[dict[str, Any]]:
    """Write all actions or none, as transact() does. While only throttles prevent it, it tries again.

    Raises Unprocessed with the text `undecided` after all attempts; it is safe to repeat.
    """
    for _ in pauses(ATTEMPTS_MAX):
        reasons = transact(dynamodb, actions)
        if not reasons or any(reason.get("Code") == REFUSED for reason in reasons):
            return reasons
    raise Unprocessed(undecided)


class Refresh:
    """Says when a process must read again the content of a table that it remembers for some seconds.

    Without it every event would cost a read. Times are by the process's monotonic clock.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._until, self._has_read = seconds, 0.0, False

    @property
    def is_over(self) -> bool:
        """Whether the remembered content is too old."""
        return time.monotonic() >= self._until

    def renew(self, began_at: float) -> None:
        """Note a read. began_at: when it began, by time.monotonic()."""
        self._until, self._has_read = began_at + self._seconds, True

    def end(self) -> None:
        """Make the next use read again."""
        self._until = 0.0

    def renew_if_over(self, read: Callable[[], object]) -> None:
        """Call `read`, which calls renew, if the remembered content is too old.

        If the table cannot be read, the remembered content is used for a few seconds more. The log says so
        unless the table is merely away. If the process has read nothing yet, the error is raised.
        """
        if self.is_over:
            try:
                read()
            except Unavailable as error:
                if not self._has_read:
                    raise
                if not is_away(error):
                    logger.warning("what is remembered stays in use", extra={"error": error_summary(error)})
                self._until = time.monotonic() + AWAY_SECONDS
