"""What was taken of each reward's stock, in the table Rewards (why in slices: rules.book.rewards).

| holder | place | holds |
|---|---|---|
| mug/2 | 006 | taken: what was taken of a slice; it only grows |
| mug/spares | - | spares: what has come back and was not taken again |

Holders have a slash, which no user id has: a user's redemptions are in the same table (redemption_store).
"""

import random
from typing import Any

from adapters.platform.items import item, plain
from adapters.platform.tables import query_all
from rules.book.rewards import GROUPS, SPARES, group_of, open_slices, pieces_left, share


class RewardStock:
    """Stocks of all rewards. It remembers which slices are full: they stay so while the stock is the same."""

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
            left = self._open[key] = open_slices(stock, self._taken(reward_id, is_strong=True))
        if left:
            return random.choice(left)  # noqa: S311 (no secret)
        return SPARES if self._spares(reward_id, is_strong=True) > 0 else None

    def left(self, reward_id: str, stock: int) -> int:
        """Return how many are left, as it was some moments ago."""
        taken = self._taken(reward_id, is_strong=False)
        return pieces_left(stock, taken, self._spares(reward_id, is_strong=False))

    def take(self, reward_id: str, stock: int, number: int) -> dict[str, Any]:
        """Return a transaction's action that takes one from where `pick` said; it fails if none is there."""
        if number == SPARES:
            return self._update(reward_id, SPARES, "ADD spares :change", "spares > :none", -1, none=0)
        condition = "attribute_not_exists(taken) OR taken < :share"
        return self._update(reward_id, number, "ADD taken :change", condition, 1, share=share(stock, number))

    def give_back(self, reward_id: str) -> dict[str, Any]:
        """Return a transaction's action that puts one to the spares."""
        return self._update(reward_id, SPARES, "ADD spares :change", "", 1)

    def _update(
        self, reward_id: str, number: int, expression: str, condition: str, change: int, **values: int
    ) -> dict[str, Any]:
        update = {
            "TableName": self._table,
            "Key": item(_key(reward_id, number)),
            "UpdateExpression": expression,
            "ExpressionAttributeValues": item({":change": change} | {f":{k}": v for k, v in values.items()}),
        }
        return {"Update": update | ({"ConditionExpression": condition} if condition else {})}

    def _taken(self, reward_id: str, is_strong: bool) -> dict[int, int]:
        found = (
            plain(each)
            for group in range(GROUPS)
            for each in query_all(
                self._dynamodb,
                TableName=self._table,
                KeyConditionExpression="holder = :holder",
                ExpressionAttributeValues=item({":holder": f"{reward_id}/{group}"}),
                ConsistentRead=is_strong,
            )
        )
        return {int(each["place"]): each["taken"] for each in found}

    def _spares(self, reward_id: str, is_strong: bool) -> int:
        key = item(_key(reward_id, SPARES))
        answer = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=is_strong)
        return int(plain(answer["Item"])["spares"]) if "Item" in answer else 0


def _key(reward_id: str, number: int) -> dict[str, str]:
    if number == SPARES:
        return {"holder": f"{reward_id}/spares", "place": "-"}
    return {"holder": f"{reward_id}/{group_of(number)}", "place": f"{number:03}"}
