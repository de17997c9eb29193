"""The table Rewards: redemptions, how many of each reward a user has, and what was taken of its stock."""

import random
from collections.abc import Iterable
from typing import Any

from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import query_all
from rules.book.rewards import (
    GROUPS,
    SPARES,
    Fulfilment,
    Redemption,
    group_of,
    open_slices,
    pieces_left,
    slice_size,
)

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
            ExpressionAttributeValues=encode_item({":user": user_id, ":before": min(before, OWN)}),
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
            "Key": encode_item({"holder": redemption.user_id, "place": redemption.created_at}),
            "UpdateExpression": "SET fulfilment = :to, changed_at = :now",
            "ConditionExpression": f"fulfilment IN ({', '.join(were)})",
            "ExpressionAttributeValues": encode_item({":to": to.value, ":now": now, **were}),
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
        return int(decode_item(found)["taken"]) if found else 0

    def all_owned(self, user_id: str) -> dict[str, int]:
        """Return how many a user has of each limited reward, some moments old."""
        found = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="holder = :user AND begins_with(place, :own)",
            ExpressionAttributeValues=encode_item({":user": user_id, ":own": OWN}),
        )
        return {each["place"].removeprefix(OWN): each["taken"] for each in map(decode_item, found)}

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
            "Key": encode_item({"holder": user_id, "place": OWN + reward_id}),
            "UpdateExpression": "ADD taken :change",
            "ExpressionAttributeValues": encode_item(values),
        }
        return {"Update": update | ({"ConditionExpression": condition} if condition else {})}

    def _item(self, user_id: str, place: str) -> Item | None:
        answer = self._dynamodb.get_item(
            TableName=self._table, Key=encode_item({"holder": user_id, "place": place}), ConsistentRead=True
        )
        found: Item | None = answer.get("Item")
        return found


def redemption_item(redemption: Redemption) -> Item:
    """Return a redemption as table attributes."""
    return encode_item(
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
    found = decode_item(stored)
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


class RewardStock:
    """What was taken of each reward's stock (why in slices: rules.book.rewards).

    | holder | place | holds |
    |---|---|---|
    | mug/2 | 006 | taken: what was taken of a slice; it only grows |
    | mug/spares | - | spares: what has come back and was not taken again |

    Holders have a slash, which no user id has: a user's redemptions are in the same table. A process
    remembers which slices are full: they stay so while the stock is the same.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table
        self._open: dict[tuple[str, int], tuple[int, ...]] = {}

    def pick(self, reward_id: str, stock: int, is_again: bool) -> int | None:
        """Return where to take one from, or None if none is left: then none was, at one instant.

        is_again: whether the last pick was in vain. A first one trusts what is remembered; if that is wrong,
        the condition of `take` fails, and nothing is taken. Strongly consistent otherwise.
        """
        key = reward_id, stock
        left = self._open.get(key, open_slices(stock, {}))
        if left and is_again:
            left = self._open[key] = open_slices(stock, self._taken_by_slice(reward_id, is_strong=True))
        if left:
            return random.choice(left)  # noqa: S311 (no secret)
        return SPARES if self._spares(reward_id, is_strong=True) > 0 else None

    def left(self, reward_id: str, stock: int) -> int:
        """Return how many are left, as it was some moments ago."""
        taken = self._taken_by_slice(reward_id, is_strong=False)
        return pieces_left(stock, taken, self._spares(reward_id, is_strong=False))

    def take(self, reward_id: str, stock: int, number: int) -> dict[str, Any]:
        """Return a transaction's action that takes one from where `pick` said; it fails if none is there."""
        if number == SPARES:
            return self._update(reward_id, SPARES, "ADD spares :change", "spares > :none", -1, none=0)
        condition = "attribute_not_exists(taken) OR taken < :share"
        return self._update(
            reward_id, number, "ADD taken :change", condition, 1, share=slice_size(stock, number)
        )

    def give_back(self, reward_id: str) -> dict[str, Any]:
        """Return a transaction's action that puts one to the spares."""
        return self._update(reward_id, SPARES, "ADD spares :change", "", 1)

    def _update(
        self, reward_id: str, number: int, expression: str, condition: str, change: int, **values: int
    ) -> dict[str, Any]:
        update = {
            "TableName": self._table,
            "Key": encode_item(_key(reward_id, number)),
            "UpdateExpression": expression,
            "ExpressionAttributeValues": encode_item(
                {":change": change} | {f":{k}": v for k, v in values.items()}
            ),
        }
        return {"Update": update | ({"ConditionExpression": condition} if condition else {})}

    def _taken_by_slice(self, reward_id: str, is_strong: bool) -> dict[int, int]:
        found = (
            decode_item(each)
            for group in range(GROUPS)
            for each in query_all(
                self._dynamodb,
                TableName=self._table,
                KeyConditionExpression="holder = :holder",
                ExpressionAttributeValues=encode_item({":holder": f"{reward_id}/{group}"}),
                ConsistentRead=is_strong,
            )
        )
        return {int(each["place"]): each["taken"] for each in found}

    def _spares(self, reward_id: str, is_strong: bool) -> int:
        key = encode_item(_key(reward_id, SPARES))
        answer = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=is_strong)
        return int(decode_item(answer["Item"])["spares"]) if "Item" in answer else 0


def _key(reward_id: str, number: int) -> dict[str, str]:
    if number == SPARES:
        return {"holder": f"{reward_id}/spares", "place": "-"}
    return {"holder": f"{reward_id}/{group_of(number)}", "place": f"{number:03}"}
