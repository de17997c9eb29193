"""DynamoDB's tables: bulk calls that try again what is left undone, what a cancelled transaction says of
each of its actions, and how old what a process has read may get before it reads again.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from adapters.platform.aws import THROTTLES, Unavailable, pauses
from adapters.platform.items import Item, encode_item
from rules.privacy.tombstones import SafeToLog

BEFORE_ALL = "0"  # sorts before every stamp, and so before every created_at and place
READ_MAX = 100
WRITE_MAX = 25
ATTEMPTS_MAX = 8
T = TypeVar("T")
REFUSED = "ConditionalCheckFailed"
# Where the store is away, a process goes on with what it knows, and asks again after this many seconds.
AWAY_SECONDS = 5


class Unprocessed(SafeToLog, Exception):
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
        asked: dict[str, Any] = {"Keys": [encode_item(key) for key in chunk], "ConsistentRead": True}
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


def cancellation_reasons(error: Any, actions: int) -> list[dict[str, Any]]:
    """Return a reason for each action: its Code and, if its condition was refused, the old Item.

    Raises the error itself if neither a refused condition nor a throttle is the cause: no attempt would help.
    """
    reasons: list[dict[str, Any]] = error.response.get("CancellationReasons", [])
    codes = {each.get("Code") for each in reasons}
    if len(reasons) != actions or not codes & {REFUSED, *THROTTLES}:
        raise error
    return reasons


class Refresh:
    """Says how old what a process has read may get before it reads again, so that no event costs a read.

    Its clock is the process's monotonic one.
    """

    def __init__(self) -> None:
        self._until, self._has_read = 0.0, False

    @property
    def is_over(self) -> bool:
        """Whether it is time to read again."""
        return time.monotonic() >= self._until

    def renew(self, asked_at: float, seconds: float) -> None:
        """Say that it was read. asked_at: by time.monotonic(), before the question was asked."""
        self._until, self._has_read = asked_at + seconds, True

    def end(self) -> None:
        """Have it read again at the next use."""
        self._until = 0.0

    def keep(self, look: Callable[[], object]) -> None:
        """Look again if it is time to; look itself calls renew.

        Where the store is away, what is known stays good for a while; if nothing was ever read, look's error
        is raised.
        """
        if not self.is_over:
            return
        try:
            look()
        except Unavailable:
            if not self._has_read:
                raise
            self._until = time.monotonic() + AWAY_SECONDS
