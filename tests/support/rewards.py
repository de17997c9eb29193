"""Rewards in tests: a book with some, a process that redeems them, and what the table says was taken."""

import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any

from adapters.book_store import BookStore, shipped_document
from adapters.engagement.account_store import AccountStore
from adapters.engagement.claims import ClaimStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.expiry import Settler
from adapters.engagement.ledger_store import LedgerStore
from adapters.engagement.rewards import RedemptionStore, RewardStock
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import query_all
from ingest.engagement.points.commands import Commands, SpendingCommands
from ingest.engagement.points.redemptions import Redemptions
from rules.book.rewards import GROUPS
from tests.support.site import PRODUCERS, Site

KEYS, NAMES = count(), count()
Document = dict[str, Any]


def a_name() -> str:
    """A reward that no other test has sold."""
    return f"mug{next(NAMES)}"


def with_rewards(**rewards: Any) -> Document:
    """The shipped book, with rewards of 10 points and the brand acme unless they say otherwise."""
    made = copy.deepcopy(shipped_document())
    offered = {"price_points": 10, "brand": "acme"}
    return made | {"rewards": {name: offered | said for name, said in rewards.items()}}


def publish(api: Site, document: Document) -> int:
    status, told = api.admin("POST", "/v1/rules", {"book": document, "effective": "now"})
    assert status == 201, told
    return int(told["version"])


def earn(api: Site, users: list[str], lessons: int = 1) -> None:
    """10 points a lesson."""
    at = datetime.now(UTC).isoformat()
    sent = [
        {
            "idempotency_key": f"k{next(KEYS)}",
            "event_type": "LESSON_COMPLETED",
            "occurred_at": at,
            "user_id": each,
        }
        for each in users
        for _ in range(lessons)
    ]
    api.send("server", *sent, groups=(PRODUCERS,))


def process(dynamodb: Any) -> Redemptions:
    """Another process, which remembers nothing, with a client of its own."""
    ledger = LedgerStore(dynamodb, "RewardsLedger")
    accounts = AccountStore(dynamodb, "UserStreaks", "DailyActivity", ledger, 1)
    books = BookStore(dynamodb, "RuleBooks")
    claims = ClaimStore(dynamodb, "IdempotencyKeys")
    settler = Settler(accounts, books)
    commands = Commands(accounts, claims, "IdempotencyKeys", EngagementCache(""), settler)
    rewards = SpendingCommands(commands, books)
    return Redemptions(rewards, RewardStock(dynamodb, "Rewards"), RedemptionStore(dynamodb, "Rewards"))


@dataclass(frozen=True)
class Taken:
    """What the table says of a reward: pieces that left its slices, and came back to the spares."""

    slices: dict[str, int]
    spares: int

    @property
    def out(self) -> int:
        """How many users have now."""
        return sum(self.slices.values()) - self.spares


def taken(dynamodb: Any, reward_id: str) -> Taken:
    found = {
        f"{group}/{each['place']}": each["taken"]
        for group in range(GROUPS)
        for each in map(decode_item, _of(dynamodb, f"{reward_id}/{group}"))
    }
    spares = [decode_item(each)["spares"] for each in _of(dynamodb, f"{reward_id}/spares")]
    return Taken(found, sum(spares))


def _of(dynamodb: Any, holder: str) -> list[Any]:
    return list(
        query_all(
            dynamodb,
            TableName="Rewards",
            KeyConditionExpression="holder = :holder",
            ExpressionAttributeValues=encode_item({":holder": holder}),
        )
    )
