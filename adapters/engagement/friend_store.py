"""Friends: the table Friends (docs/rules.md, rule 26).

An item is a user's tie to another one. A pair is two items, so the list of a user is one query. Each user has
one more item, the *head*, with a version that each change of the user's ties replaces. A change is decided by
all ties of both, and written on condition that nobody has changed them since. So no bound is ever passed,
and the two sides of a pair always agree.

Who is blocked has no tie that says so. An item in another partition, bob#kept, names who has blocked Bob. No
answer and no export has it: an erasure finds Bob's name in the others' items by it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import uuid4

from adapters.engagement.account_store import ATTEMPTS_MAX, AccountContended
from adapters.platform.aws import pauses
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import Action, delete_action, put_action, query_all, transact, update_if
from rules.days import stamp
from rules.engagement.friends import BLOCKED, Circle, Ending, Tie, Ties, TieState
from rules.user_ids import kept_partition, user_of_partition

OF_PAIRS = ("pair_id", "ended_at", "role", "ending")  # what ties have that are, or were, of a pair
KEY = ("user_id", "friend_id")
HEAD = "#"  # in place of a friend's id: no user id has it
Decide = Callable[[Circle, Circle], Ties]


class FriendStore:
    """Users' ties to others."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        """table: the name of the table Friends."""
        self._dynamodb, self._table = dynamodb, table

    def circle(self, user_id: str, is_strong: bool = False) -> Circle:
        """Return all ties of a user, also those that have ended or lapsed."""
        version, ties = "", dict[str, Tie]()
        items = query_all(
            self._dynamodb,
            TableName=self._table,
            KeyConditionExpression="user_id = :user",
            ExpressionAttributeValues=encode_item({":user": user_id}),
            ConsistentRead=is_strong,
        )
        for item in map(decode_item, items):
            if item["friend_id"] == HEAD:
                version = item["version"]
            else:
                ties[item["friend_id"]] = tie_from(item)
        return Circle(user_id, ties, version)

    def change(self, user_id: str, friend_id: str, decide: Decide, now: datetime) -> Tie | None:
        """Write what `decide` returns of both users' circles; returns the first one's tie.

        decide: is called again if somebody has changed one of them meanwhile, and may raise. Raises
        AccountContended.
        """
        for _ in pauses(ATTEMPTS_MAX):
            circles = self.circle(user_id, is_strong=True), self.circle(friend_id, is_strong=True)
            tie, back = decide(*circles)
            mine = self._changes(circles[0], friend_id, tie, now)
            actions = [*mine, *self._changes(circles[1], user_id, back, now)]
            if not actions or not transact(self._dynamodb, actions):
                return tie
        raise AccountContended(user_id)

    def _changes(self, circle: Circle, other: str, tie: Tie | None, now: datetime) -> Iterator[Action]:
        """Yield the actions that give a user a tie in place of the one that stands; None: none."""
        before = circle.tie(other, now)
        if tie == before:
            return
        key = {"user_id": circle.user_id, "friend_id": other}
        head_key = key | {"friend_id": HEAD}
        if tie:
            yield put_action(self._table, encode_item(tie_attributes(tie)))
        else:
            yield delete_action(self._table, key)
        was_blocked, is_blocked = (each is not None and each.state is BLOCKED for each in (before, tie))
        if was_blocked != is_blocked:
            mark = {"user_id": kept_partition(other), "friend_id": circle.user_id}
            yield (
                put_action(self._table, encode_item(mark)) if is_blocked else delete_action(self._table, mark)
            )
        condition, values = "attribute_not_exists(user_id)", None
        if circle.version:
            condition, values = "version = :version", encode_item({":version": circle.version})
        ties = [each for name, each in circle.ties.items() if name != other] + ([tie] if tie else [])
        if ties:
            ends = [each.expires_at for each in ties]
            # With requests alone it goes with the last one: of users who do not exist nothing stays.
            last = None if None in ends else max(end for end in ends if end)
            expiry = {"expires_at": int(last.timestamp())} if last else {}
            head = encode_item({**head_key, "version": uuid4().hex, **expiry})
            yield put_action(self._table, head, condition, values)
        else:
            yield delete_action(self._table, head_key, condition, values)


def tie_attributes(tie: Tie) -> dict[str, Any]:
    """Return a tie as the attributes of its item."""
    expires = tie.expires_at
    return {
        "user_id": tie.user_id,
        "friend_id": tie.friend_id,
        "state": tie.state.value,
        "since": tie.since,
        **{name: value for name in OF_PAIRS if (value := getattr(tie, name))},
        **({"expires_at": int(expires.timestamp())} if expires else {}),
    }


def tie_from(item: Mapping[str, Any]) -> Tie:
    """Read what tie_attributes returned. Raises KeyError, ValueError for the attributes of another item."""
    state = TieState(item["state"])
    ids = item["user_id"], item["friend_id"]
    return Tie(*ids, state, item["since"], *(item.get(name, "") for name in OF_PAIRS))


def keys_back(own: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """Yield the keys of items of others that may name a user.

    own: the attributes of the user's items, also of those that name who has blocked the user.
    """
    for item in own:
        user, other = user_of_partition(item["user_id"]), item["friend_id"]
        if other != HEAD:
            yield {"user_id": other, "friend_id": user}
            yield {"user_id": kept_partition(other), "friend_id": user}


def end_erased_pairs(dynamodb: Any, table: str, items: Iterable[Item], now: datetime) -> None:
    """Let pairs end by an erasure, before their items go: from this the lake learns of it.

    items: of the table, also those that are no pair's.
    """
    values = {
        ":friend": TieState.FRIEND,
        ":ended": TieState.ENDED,
        ":why": Ending.ERASURE,
        ":now": stamp(now),
    }
    for item in items:
        if item.get("state", {}).get("S") == TieState.FRIEND:
            update_if(
                dynamodb,
                TableName=table,
                Key={name: item[name] for name in KEY},
                UpdateExpression="SET #state = :ended, ended_at = :now, ending = :why",
                ConditionExpression="#state = :friend",
                ExpressionAttributeNames={"#state": "state"},
                ExpressionAttributeValues=encode_item({name: str(value) for name, value in values.items()}),
            )
