"""Parts of the table UserStreaks that are read without a whole profile: two indexes, and zones."""

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import get_all, query_all

# The partition of the index UnderReview. Only accounts that an admin has yet to look at are in it.
UNDER_REVIEW = "open"
EXPIRY_SHARDS = 8  # partitions of the index ByExpiry


class ReviewIndex:
    """The accounts under review, from the index UnderReview of UserStreaks. Nobody else is in it."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def waiting(self, after: str, limit: int) -> list[dict[str, Any]]:
        """Return up to `limit` accounts after a user id ("": from the first), as attributes of the index.

        They may be some seconds old.
        """
        page: dict[str, Any] = {}
        if after:
            page["ExclusiveStartKey"] = encode_item({"user_id": after, "review_state": UNDER_REVIEW})
        answer = self._dynamodb.query(
            TableName=self._table,
            IndexName="UnderReview",
            KeyConditionExpression="review_state = :open",
            ExpressionAttributeValues={":open": {"S": UNDER_REVIEW}},
            Limit=limit,
            **page,
        )
        return [decode_item(each) for each in answer["Items"]]


class ExpiryIndex:
    """The accounts with points to expire, from the index ByExpiry of UserStreaks. Nobody else is in it."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def due(self, until: date, first_shard: int = 0) -> Iterator[str]:
        """Yield the users whose next points expire by a date: shard by shard, in each the oldest first.

        They may be some seconds old. first_shard: where to begin, so that runs take turns.
        """
        for number in range(EXPIRY_SHARDS):
            items = query_all(
                self._dynamodb,
                TableName=self._table,
                IndexName="ByExpiry",
                KeyConditionExpression="expiry_shard = :shard AND expires_next <= :until",
                ExpressionAttributeValues=encode_item(
                    {":shard": str((first_shard + number) % EXPIRY_SHARDS), ":until": until.isoformat()}
                ),
            )
            yield from (item["user_id"]["S"] for item in items)


class ZoneStore:
    """The zones in the table of profiles (UserStreaks)."""

    def __init__(self, dynamodb: Any, profiles: str) -> None:
        self._dynamodb, self._profiles = dynamodb, profiles

    def chosen(self, user_ids: Iterable[str]) -> dict[str, str | None]:
        """Return each user's zone; None: the user has set none, or is not known. Raises Unprocessed."""
        users = sorted(set(user_ids))
        keys = [{"user_id": user} for user in users]
        stored = map(decode_item, get_all(self._dynamodb, self._profiles, keys, "user_id, timezone_chosen"))
        found = {each["user_id"]: each.get("timezone_chosen") for each in stored}
        return {user: found.get(user) for user in users}
