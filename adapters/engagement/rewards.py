"""The table Rewards: redemptions, how many of each reward a user has, and how many its stock has given."""

import random
from collections.abc import Iterable, Mapping
from typing import Any

from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import Action, get_one, query_all, write_if
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
from rules.days import key_of_stamp, stamp_of_key
from rules.user_ids import user_holder, user_of_holder

# Begins the sort keys of a user's counts of limited rewards. Those of redemptions begin with a year, so they
# sort before.
OWN = "of/"


class RedemptionStore:
    """Redemptions of all users, and how many of each limited reward a user has.

    A method `..._action` returns an action of a transaction, and writes nothing itself.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def get(self, user_id: str, created_at: str) -> Redemption | None:
        """Return a redemption of a reward, or None; strongly consistent."""
        item = self._item(user_id, key_of_stamp(created_at))
        return redemption_from(item) if item else None

    def newest(self, user_id: str, before: str, limit: int) -> list[Redemption]:
        """Return up to `limit` redemptions before a stamp, newest first; eventually consistent."""
        answer = self._dynamodb.query(
            TableName=self._table,
            KeyConditionExpression="holder = :user AND place < :before",
            ExpressionAttributeValues=encode_item(
                {":user": user_holder(user_id), ":before": min(key_of_stamp(before), OWN)}
            ),
            ScanIndexForward=False,
            Limit=limit,
        )
        return [redemption_from(item) for item in answer["Items"]]

    def put_action(self, redemption: Redemption) -> dict[str, Any]:
        """Return an action that puts a new redemption."""
        return {
            "Put": {
                "TableName": self._table,
                "Item": redemption_item(redemption),
                "ConditionExpression": "attribute_not_exists(holder)",
            }
        }

    def change_action(
        self, redemption: Redemption, to: Fulfilment, allowed_from: Iterable[Fulfilment], now: str
    ) -> dict[str, Any]:
        """Return an action that sets a redemption's fulfilment.

        It fails unless the stored fulfilment is among `allowed_from`.
        """
        names = {f":was{number}": fulfilment.value for number, fulfilment in enumerate(allowed_from)}
        return {
            "Update": {
                "TableName": self._table,
                "Key": encode_item(
                    {"holder": user_holder(redemption.user_id), "place": key_of_stamp(redemption.created_at)}
                ),
                "UpdateExpression": "SET fulfilment = :to, changed_at = :now",
                "ConditionExpression": f"fulfilment IN ({', '.join(names)})",
                "ExpressionAttributeValues": encode_item({":to": to.value, ":now": now, **names}),
            }
        }

    def set_fulfilment(
        self, redemption: Redemption, to: Fulfilment, allowed_from: Iterable[Fulfilment], now: str
    ) -> bool:
        """Write a redemption's fulfilment. Returns whether the stored one was among `allowed_from`."""
        change = self.change_action(redemption, to, allowed_from, now)
        return write_if(self._dynamodb.update_item, **change["Update"])

    def owned(self, user_id: str, reward_id: str) -> int:
        """Return how many a user has of a limited reward; strongly consistent."""
        item = self._item(user_id, OWN + reward_id)
        return int(decode_item(item)["taken"]) if item else 0

    def all_owned(self, user_id: str) -> dict[str, int]:
        """Return how many a user has of each limited reward; eventually consistent."""
        items = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="holder = :user AND begins_with(place, :own)",
            ExpressionAttributeValues=encode_item({":user": user_holder(user_id), ":own": OWN}),
        )
        counts = map(decode_item, items)
        return {count["place"].removeprefix(OWN): count["taken"] for count in counts}

    def add_owned_action(self, user_id: str, reward_id: str, limit: int) -> dict[str, Any]:
        """Return an action that counts one more reward of a user; it fails if that is above the limit."""
        condition = "attribute_not_exists(taken) OR taken < :limit"
        key = {"holder": user_holder(user_id), "place": OWN + reward_id}
        return _add_action(self._table, key, "taken", {":change": 1, ":limit": limit}, condition)

    def remove_owned_action(self, user_id: str, reward_id: str) -> dict[str, Any]:
        """Return an action that counts one reward of a user fewer."""
        return _add_action(
            self._table, {"holder": user_holder(user_id), "place": OWN + reward_id}, "taken", {":change": -1}
        )

    def _item(self, user_id: str, sort_key: str) -> Item | None:
        return get_one(self._dynamodb, self._table, {"holder": user_holder(user_id), "place": sort_key})


def redemption_item(redemption: Redemption) -> Item:
    """Return a redemption as table attributes."""
    return encode_item(
        {
            "holder": user_holder(redemption.user_id),
            "place": key_of_stamp(redemption.created_at),
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


def redemption_from(item: Item) -> Redemption:
    """Return the redemption of an item; raises KeyError or ValueError for an item that is none."""
    attributes = decode_item(item)
    return Redemption(
        user_id=user_of_holder(attributes["holder"]) or attributes["holder"],
        created_at=stamp_of_key(attributes["place"]),
        reward_id=attributes["reward_id"],
        brand=attributes["brand"],
        price_points=attributes["price_points"],
        rules_version=attributes["rules_version"],
        from_stock=bool(attributes.get("from_stock")),
        is_limited=bool(attributes.get("is_limited")),
        fulfilment=Fulfilment(attributes["fulfilment"]),
        changed_at=attributes.get("changed_at"),
        title=attributes.get("title", ""),
    )


class RewardStock:
    """How many were taken of each reward's stock (why in slices: rules.book.rewards).

    | holder | place | attribute |
    |---|---|---|
    | mug/2 | 006 | taken: how many were taken of a slice; it only grows |
    | mug/spares | - | spares: how many were given back and not taken again |

    rules.user_ids.user_holder keeps users' redemptions apart from these.
    """

    def __init__(self, dynamodb: Any, table: str) -> None:
        self._dynamodb, self._table = dynamodb, table

    def pick(self, reward_id: str, stock: int, has_failed: bool) -> int | None:
        """Return the slice to take one from, or SPARES, or None.

        has_failed: whether nothing could be taken from the last pick. A first pick is a guess: if it is
        wrong, the condition of take_action fails. None is certain: all is taken, spares too.
        """
        slices = open_slices(stock, self._taken_by_slice(reward_id, is_strong=True) if has_failed else {})
        if slices:
            return random.choice(slices)  # noqa: S311 (no secret)
        return SPARES if self._spares(reward_id, is_strong=True) > 0 else None

    def left(self, reward_id: str, stock: int) -> int:
        """Return how many are left; eventually consistent."""
        taken = self._taken_by_slice(reward_id, is_strong=False)
        return pieces_left(stock, taken, self._spares(reward_id, is_strong=False))

    def take_action(self, reward_id: str, stock: int, number: int) -> dict[str, Any]:
        """Return an action that takes one from a slice, or from SPARES; it fails if none is there."""
        key = _key(reward_id, number)
        if number == SPARES:
            return _add_action(self._table, key, "spares", {":change": -1, ":none": 0}, "spares > :none")
        condition = "attribute_not_exists(taken) OR taken < :share"
        values = {":change": 1, ":share": slice_size(stock, number)}
        return _add_action(self._table, key, "taken", values, condition)

    def give_back_action(self, reward_id: str) -> dict[str, Any]:
        """Return an action that adds one to the spares."""
        return _add_action(self._table, _key(reward_id, SPARES), "spares", {":change": 1})

    def _taken_by_slice(self, reward_id: str, is_strong: bool) -> dict[int, int]:
        taken: dict[int, int] = {}
        for group in range(GROUPS):
            items = query_all(
                self._dynamodb,
                TableName=self._table,
                KeyConditionExpression="holder = :holder",
                ExpressionAttributeValues=encode_item({":holder": f"{reward_id}/{group}"}),
                ConsistentRead=is_strong,
            )
            for slice_item in map(decode_item, items):
                taken[int(slice_item["place"])] = slice_item["taken"]
        return taken

    def _spares(self, reward_id: str, is_strong: bool) -> int:
        item = get_one(self._dynamodb, self._table, _key(reward_id, SPARES), is_strong)
        return int(decode_item(item)["spares"]) if item else 0


def _add_action(
    table: str, key: Mapping[str, str], counter: str, values: Mapping[str, int], condition: str = ""
) -> Action:
    """Return an action that adds to a counter of an item. values: `:change`, and those of the condition."""
    update = {
        "TableName": table,
        "Key": encode_item(key),
        "UpdateExpression": f"ADD {counter} :change",
        "ExpressionAttributeValues": encode_item(values),
    }
    return {"Update": update | ({"ConditionExpression": condition} if condition else {})}


def _key(reward_id: str, number: int) -> dict[str, str]:
    if number == SPARES:
        return {"holder": f"{reward_id}/spares", "place": "-"}
    return {"holder": f"{reward_id}/{group_of(number)}", "place": f"{number:03}"}
