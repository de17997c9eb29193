"""Finds through the index who is to hear of a question, and claims each message. Each message of the
announcements queue asks for one page of them.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from typing import Any

from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.tables import get_all
from adapters.questions.message_claims import ClaimResult, MessageClaim, MessageClaims
from adapters.questions.subscription_store import (
    INDEX,
    KEY,
    Action,
    SubscriptionStore,
    claim_key,
    delete_action,
    marker_keys,
    subscription_from,
    unchanged_condition,
    update_action,
)
from rules.days import stamp
from rules.lake.table_items import CHANGED
from rules.questions.notifications import (
    LISTENER_SHARDS,
    Subscription,
    last_notified_at_max,
    partitions_to_ask,
)

# SQS hides a message for 15 minutes at most.
DELAY_SECONDS_MAX = 900
# For each partition that is not at its end, the subscription_id and last_notified_at that were read last.
# None: nothing has been read.
After = Mapping[str, tuple[str, str]]
MOVE = f"SET last_notified_at = :moved REMOVE {CHANGED}"  # a note is no change that the lake keeps


@dataclass(frozen=True, slots=True)
class AnnouncementPage:
    """One page."""

    question_id: str
    shard: int
    after: After | None = None
    attempt: int = 0  # how often it has been tried without reaching everybody

    @staticmethod
    def read(message: Mapping[str, Any]) -> "AnnouncementPage":
        """Read a message; raises KeyError, TypeError or ValueError for any other."""
        after = message["after"]
        places = after and {part: (own, at) for part, (own, at) in after.items()}
        return AnnouncementPage(
            str(message["question_id"]), int(message["shard"]), places, int(message["attempt"])
        )

    def written(self) -> dict[str, Any]:
        """Return the message that asks for this page."""
        after = {part: list(place) for part, place in self.after.items()} if self.after is not None else None
        return {
            "question_id": self.question_id,
            "shard": self.shard,
            "after": after,
            "attempt": self.attempt,
        }

    def next(self, after: After) -> "AnnouncementPage":
        """Return the page that follows."""
        return AnnouncementPage(self.question_id, self.shard, after)

    def again(self) -> "AnnouncementPage":
        """Return the same page, to be tried once more."""
        return replace(self, attempt=self.attempt + 1)


@dataclass(frozen=True, slots=True)
class AnnouncementQueue:
    """The queue of pages of announcements."""

    sqs: Callable[[], Any]  # returns the client
    url: str

    def begin(self, question_id: str) -> None:
        """Ask for the first page of each shard. Safe to repeat."""
        for shard in range(LISTENER_SHARDS):
            self.send(AnnouncementPage(question_id, shard))

    def send(self, page: AnnouncementPage, delay_seconds: int = 0) -> None:
        """Ask for a page, after a delay."""
        self.sqs().send_message(
            QueueUrl=self.url,
            MessageBody=json.dumps(page.written()),
            DelaySeconds=min(DELAY_SECONDS_MAX, delay_seconds),
        )


class Announcements:
    """Announcements of questions."""

    def __init__(self, dynamodb: Any, store: SubscriptionStore) -> None:
        self._dynamodb, self.store = dynamodb, store
        self.claims = MessageClaims(dynamodb, store)

    def page(
        self, tags: Collection[str], shard: int, after: After | None, size: int, now: datetime
    ) -> tuple[list[Subscription], After]:
        """Return about `size` of those who hear of a question and whose interval has elapsed.

        Each class of intervals gives as many, those who were told longest ago first; quiet hours are not
        looked at. after: where the last page ended; None: at the beginning. The second value is where this
        one ends, empty at the end. It makes one query for each of partitions_to_ask that is not at its end,
        and reads nobody else. The index holds the whole subscription, except where a tag's marker found it:
        that one is also read by key.
        """
        asked = [each for each in partitions_to_ask(tags, shard) if after is None or each[1] in after]
        rows: list[list[dict[str, Any]]] = []
        ends: dict[str, tuple[str, str]] = {}
        for minutes, partition in asked:
            start = after[partition] if after else None
            found, end = self._read(
                partition, start, max(1, size // len(asked)), last_notified_at_max(minutes, now)
            )
            rows.append(found)
            if end:
                ends[partition] = end
        by_turns = [each for turn in zip_longest(*rows) for each in turn if each]
        return self._subscriptions(by_turns), ends

    def _read(
        self, partition: str, start: tuple[str, str] | None, limit: int, until: str | None
    ) -> tuple[list[dict[str, Any]], tuple[str, str] | None]:
        """Return items of a partition after a place, and the place to go on from; None at the end."""
        condition, values = "active = :active", {":active": partition}
        if until is not None:
            condition, values = f"{condition} AND last_notified_at <= :until", {**values, ":until": until}
        first = start and {KEY: start[0], "last_notified_at": start[1], "active": partition}
        answer = self._dynamodb.query(
            TableName=self.store.table,
            IndexName=INDEX,
            KeyConditionExpression=condition,
            ExpressionAttributeValues=encode_item(values),
            Limit=limit,
            **({"ExclusiveStartKey": encode_item(first)} if first else {}),
        )
        last = decode_item(answer.get("LastEvaluatedKey") or {})
        return [decode_item(each) for each in answer["Items"]], (
            last[KEY],
            last["last_notified_at"],
        ) if last else None

    def _subscriptions(self, rows: Iterable[dict[str, Any]]) -> list[Subscription]:
        """Return the subscriptions of items and markers, each once, in their order."""
        found = {each.get("of", each[KEY]): each for each in reversed(list(rows))}
        marked = [own for own, each in found.items() if "of" in each]
        by_id = {each.subscription_id: each for each in self.store.get_many(marked)} if marked else {}
        by_id |= {own: subscription_from(each) for own, each in found.items() if "of" not in each}
        return [by_id[own] for own in reversed(found) if own in by_id]

    def unclaimed(self, people: Sequence[Subscription], key: str, since: str) -> list[Subscription]:
        """Return those to whom this message has not been claimed.

        since: before this stamp there was no such message. Whoever was told of nothing since has no claim,
        so only the others' claims are looked for, in bulk.
        """
        places = {
            claim_key(each.subscription_id, key): each.subscription_id
            for each in people
            if each.last_notified_at >= since
        }
        keys = [{KEY: place} for place in places]
        found = get_all(self._dynamodb, self.store.table, keys, only=KEY)
        claimed = {places[each[KEY]["S"]] for each in found}
        return [each for each in people if each.subscription_id not in claimed]

    def claim(
        self, subscription: Subscription, key: str, expires_at: int, now: datetime
    ) -> tuple[ClaimResult, MessageClaim]:
        """Claim a message to a subscription, provided that nobody has changed it since it was read.

        The same transaction moves last_notified_at to now, never back.
        """
        made = MessageClaim(subscription, key, stamp(now), expires_at)
        condition, values = unchanged_condition(subscription)
        condition += " AND last_notified_at = :last"
        values |= encode_item({":last": subscription.last_notified_at})
        return self.claims.open(made, self._move(subscription, _notified_at(made), condition, values)), made

    def _move(self, subscription: Subscription, to: str, condition: str, values: Item) -> list[Action]:
        """Move last_notified_at of a subscription and of its markers."""
        table, moved = self.store.table, encode_item({":moved": to})
        there = f"attribute_exists({KEY})"
        markers = (update_action(table, key, MOVE, moved, there) for key in marker_keys(subscription))
        return [update_action(table, subscription.subscription_id, MOVE, values | moved, condition), *markers]

    def release(self, claim: MessageClaim) -> None:
        """Undo a claim whose message certainly did not go out, so that it can be claimed again."""
        gone = delete_action(self.store.table, claim.place)
        condition, values = unchanged_condition(claim.subscription)
        condition += " AND last_notified_at = :ours"
        values |= encode_item({":ours": _notified_at(claim)})
        back = self._move(claim.subscription, claim.subscription.last_notified_at, condition, values)
        # If another announcement has moved it meanwhile, that one stands, and only the claim goes.
        if not self.store.transact([gone, *back]):
            self.store.transact([gone])


def _notified_at(claim: MessageClaim) -> str:
    return max(claim.subscription.last_notified_at, claim.claimed_at)
