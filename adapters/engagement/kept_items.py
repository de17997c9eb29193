"""Items that a user has beside the profile, in the table DailyActivity. Their sort key is a word, not a date.

`archive` has the old protection of the streak (archive_store.py). `goals` and `totals` have the sums of the
dates of streaks and achievements that no longer change, which readers store (goals.py).
"""

import zlib
from collections.abc import Callable
from typing import Any, TypeVar

from adapters.platform.items import Item, encode_item

Value = TypeVar("Value")


class KeptItems:
    """The items of all users under one word."""

    def __init__(self, dynamodb: Any, days: str, sort_key: str) -> None:
        """days: the name of the table DailyActivity. sort_key: the word."""
        self._dynamodb, self._days, self._sort_key = dynamodb, days, sort_key

    def get(self, user_id: str, read: Callable[[str], Value], *, is_strong: bool = False) -> Value | None:
        """Return the content of a user's item; None if the item is missing or damaged.

        read: makes the content of the item's text; raises ValueError for a damaged text. is_strong: whether
        the read is strongly consistent.
        """
        answer = self._dynamodb.get_item(
            TableName=self._days,
            Key=encode_item({"user_id": user_id, "activity_date": self._sort_key}),
            ConsistentRead=is_strong,
        )
        try:
            return read(zlib.decompress(answer["Item"]["packed"]["B"]).decode())
        except (KeyError, TypeError, ValueError, zlib.error):
            return None

    def put(self, user_id: str, text: str) -> dict[str, Any]:
        """Return the arguments of a put of a user's item."""
        # is_passive keeps the item out of the lake.
        item = encode_item({"user_id": user_id, "activity_date": self._sort_key, "is_passive": True})
        packed: Item = {"packed": {"B": zlib.compress(text.encode())}}
        return {"TableName": self._days, "Item": item | packed}
