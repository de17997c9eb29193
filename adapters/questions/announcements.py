"""Finds through the index who is to be told of a question, and claims each message."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from adapters.platform.batches import READ_MAX, chunks
from adapters.platform.items import Item, item
from adapters.questions.message_claims import ClaimResult, MessageClaim, MessageClaims, read_index
from adapters.questions.subscription_items import KEY, marker_keys, subscription_from
from adapters.questions.subscription_store import (
    Action,
    SubscriptionStore,
    delete_action,
    unchanged_condition,
    update_action,
)
from rules.days import stamp
from rules.questions.notifications import Subscription, last_notified_at_max, partitions_to_ask

MOVE = "SET last_notified_at = :moved"


class Announcements:
    """Announcements of questions."""

    def __init__(self, dynamodb: Any, store: SubscriptionStore) -> None:
        self._dynamodb, self.store = dynamodb, store
        self.claims = MessageClaims(dynamodb, store)

    def listeners(self, tags: Iterable[str], now: datetime) -> Iterator[Subscription]:
        """Yield each subscription that hears of a question and whose interval has elapsed, once.

        Quiet hours are not looked at. It makes one query for each pair of partitions_to_ask, in pages, and
        reads no other subscriptions. The index holds the whole subscription, except where a tag's marker
        found it: that one is also read by key.
        """
        seen: set[str] = set()
        for minutes, partition in partitions_to_ask(tags):
            found = read_index(
                self._dynamodb, self.store.table, partition, last_notified_at_max(minutes, now)
            )
            for chunk in chunks(found, READ_MAX):
                for each in self._subscriptions(chunk, seen):
                    seen.add(each.subscription_id)
                    yield each

    def _subscriptions(self, chunk: list[dict[str, Any]], seen: set[str]) -> Iterator[Subscription]:
        marked = [each["of"] for each in chunk if "of" in each and each["of"] not in seen]
        yield from self.store.get_many(marked) if marked else ()
        yield from (subscription_from(each) for each in chunk if "of" not in each and each[KEY] not in seen)

    def claim(
        self, subscription: Subscription, key: str, expires_at: int, now: datetime
    ) -> tuple[ClaimResult, MessageClaim]:
        """Claim a message to a subscription, provided that nobody has changed it since it was read.

        The same transaction moves last_notified_at to now, never back.
        """
        made = MessageClaim(subscription, key, stamp(now), expires_at)
        condition, values = unchanged_condition(subscription)
        condition += " AND last_notified_at = :last"
        values |= item({":last": subscription.last_notified_at})
        return self.claims.open(made, self._move(subscription, _moved(made), condition, values)), made

    def _move(self, subscription: Subscription, to: str, condition: str, values: Item) -> list[Action]:
        """Move last_notified_at of a subscription and of its markers."""
        table, moved = self.store.table, item({":moved": to})
        there = f"attribute_exists({KEY})"
        markers = (update_action(table, key, MOVE, moved, there) for key in marker_keys(subscription))
        return [update_action(table, subscription.subscription_id, MOVE, values | moved, condition), *markers]

    def release(self, claim: MessageClaim) -> None:
        """Undo a claim whose message certainly did not go out, so that it can be claimed again."""
        gone = delete_action(self.store.table, claim.place)
        condition, values = unchanged_condition(claim.subscription)
        condition += " AND last_notified_at = :ours"
        values |= item({":ours": _moved(claim)})
        back = self._move(claim.subscription, claim.subscription.last_notified_at, condition, values)
        # If another announcement has moved it meanwhile, that one stands, and only the claim goes.
        if not self.store.transact([gone, *back]):
            self.store.transact([gone])


def _moved(claim: MessageClaim) -> str:
    return max(claim.subscription.last_notified_at, claim.claimed_at)
