"""Redemptions of rewards, and how many of each a user has, in the table Rewards.

| holder | place | holds |
|---|---|---|
| ann | 2027-03-01T12:00:00.000000Z | a redemption: reward, brand, price, what has become of it |
| ann | of/mug | taken: how many a user has of a reward that is limited |

A new redemption comes on the table's stream, and processors.fulfilment sends it to whoever ships it.
"""

from collections.abc import Iterable
from typing import Any

from adapters.platform.items import Item, item, plain
from adapters.platform.tables import query_all
from rules.book.rewards import Fulfilment, Redemption

OWN = "of/"  # after all places of redemptions, which begin with a year


class RedemptionStore:
    """Redemptions of all users."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def get(self, user_id: str, created_at: str) -> Redemption | None:
        """Return a redemption of a reward, or None; strongly consistent."""
        found = self._item(user_id, created_at)
        return redemption_from(found) if found else None

    def newest(self, user_id: str, before: str, limit: int) -> list[Redemption]:
        """Return up to `limit` redemptions that are older than a place, newest first; some moments old."""
        answer = self._dynamodb.query(
            TableName=self._table,
            KeyConditionExpression="holder = :user AND place < :before",
            ExpressionAttributeValues=item({":user": user_id, ":before": min(before, OWN)}),
            ScanIndexForward=False,
            Limit=limit,
        )
        return [redemption_from(each) for each in answer["Items"]]

    def put(self, redemption: Redemption) -> dict[str, Any]:
        """Return a transaction's action that puts a new redemption."""
        made = redemption_item(redemption)
        return {
            "Put": {
                "TableName": self._table,
                "Item": made,
                "ConditionExpression": "attribute_not_exists(holder)",
            }
        }

    def change(
        self, redemption: Redemption, to: Fulfilment, among: Iterable[Fulfilment], now: str
    ) -> dict[str, Any]:
        """Return an update that says what became of a redemption; it fails unless it is one of `among`."""
        were = {f":was{number}": each.value for number, each in enumerate(among)}
        return {
            "TableName": self._table,
            "Key": item({"holder": redemption.user_id, "place": redemption.created_at}),
            "UpdateExpression": "SET fulfilment = :to, changed_at = :now",
            "ConditionExpression": f"fulfilment IN ({', '.join(were)})",
            "ExpressionAttributeValues": item({":to": to.value, ":now": now, **were}),
        }

    def changed(self, redemption: Redemption, to: Fulfilment, among: Iterable[Fulfilment], now: str) -> bool:
        """Write what has become of a redemption; returns whether it was one of `among`."""
        try:
            self._dynamodb.update_item(**self.change(redemption, to, among, now))
        except self._dynamodb.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def owned(self, user_id: str, reward_id: str) -> int:
        """Return how many a user has of a limited reward; strongly consistent."""
        found = self._item(user_id, OWN + reward_id)
        return int(plain(found)["taken"]) if found else 0

    def all_owned(self, user_id: str) -> dict[str, int]:
        """Return how many a user has of each limited reward, some moments old."""
        found = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="holder = :user AND begins_with(place, :own)",
            ExpressionAttributeValues=item({":user": user_id, ":own": OWN}),
        )
        return {each["place"].removeprefix(OWN): each["taken"] for each in map(plain, found)}

    def count(self, user_id: str, reward_id: str, limit: int) -> dict[str, Any]:
        """Return a transaction's action that counts one more; it fails if that is above the limit."""
        condition = "attribute_not_exists(taken) OR taken < :limit"
        return self._add(user_id, reward_id, {":change": 1, ":limit": limit}, condition)

    def uncount(self, user_id: str, reward_id: str) -> dict[str, Any]:
        """Return a transaction's action that counts one fewer."""
        return self._add(user_id, reward_id, {":change": -1})

    def _add(
        self, user_id: str, reward_id: str, values: dict[str, int], condition: str = ""
    ) -> dict[str, Any]:
        update = {
            "TableName": self._table,
            "Key": item({"holder": user_id, "place": OWN + reward_id}),
            "UpdateExpression": "ADD taken :change",
            "ExpressionAttributeValues": item(values),
        }
        return {"Update": update | ({"ConditionExpression": condition} if condition else {})}

    def _item(self, user_id: str, place: str) -> Item | None:
        answer = self._dynamodb.get_item(
            TableName=self._table, Key=item({"holder": user_id, "place": place}), ConsistentRead=True
        )
        found: Item | None = answer.get("Item")
        return found


def redemption_item(redemption: Redemption) -> Item:
    """Return a redemption as table attributes."""
    return item(
        {
            "holder": redemption.user_id,
            "place": redemption.created_at,
            "reward_id": redemption.reward_id,
            "brand": redemption.brand,
            "price_points": redemption.price_points,
            "rules_version": redemption.rules_version,
            "from_stock": redemption.from_stock or None,
            "is_limited": redemption.is_limited or None,
            "fulfilment": redemption.fulfilment.value,
            "changed_at": redemption.changed_at,
            "title": redemption.title or None,
        }
    )


def redemption_from(stored: Item) -> Redemption:
    """Read a redemption; raises KeyError, ValueError for an item that is none."""
    found = plain(stored)
    return Redemption(
        found["holder"],
        found["place"],
        found["reward_id"],
        found["brand"],
        found["price_points"],
        found["rules_version"],
        bool(found.get("from_stock")),
        bool(found.get("is_limited")),
        Fulfilment(found["fulfilment"]),
        found.get("changed_at"),
        found.get("title", ""),
    )
