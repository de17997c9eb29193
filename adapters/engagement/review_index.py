"""The accounts under review, from the index UnderReview of UserStreaks. Nobody else is in it."""

from typing import Any

from adapters.engagement.account_items import UNDER_REVIEW
from adapters.platform.items import item, plain


class ReviewIndex:
    """Reads accounts that wait for an admin, by user id."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def waiting(self, after: str, limit: int) -> list[dict[str, Any]]:
        """Return up to `limit` accounts after a user id ("": from the first), as attributes of the index.

        They may be some seconds old.
        """
        start = {"ExclusiveStartKey": item({"user_id": after, "review_state": UNDER_REVIEW})} if after else {}
        answer = self._dynamodb.query(
            TableName=self._table,
            IndexName="UnderReview",
            KeyConditionExpression="review_state = :open",
            ExpressionAttributeValues={":open": {"S": UNDER_REVIEW}},
            Limit=limit,
            **start,
        )
        return [plain(each) for each in answer["Items"]]
