"""Announcements of questions to the phones of subscribers.

An index gives the people who hear of a question, page by page. A message of the queue stands for one page.
Each announcement to a person is claimed before it is sent.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from typing import Any

from adapters.platform.items import decode_item, encode_item
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
# A position in several partitions: by partition, the subscription_id and last_notified_at of the last row
# that was read. Partitions that were read to their end are left out.
After = Mapping[str, tuple[str, str]]
# Notes an announcement. It removes the mark for the publisher, because the lake does not have
# last_notified_at.
NOTE = f"SET last_notified_at = :noted REMOVE {CHANGED}"


@dataclass(frozen=True, slots=True)
class AnnouncementPage:
    """One page of the people who hear of a question."""

    question_id: str
    shard: int  # of listeners
    after: After | None = None  # the position after the previous page; None: this is the first page
    attempt: int = 0  # how many attempts have not reached everybody

    @staticmethod
    def read(message: Mapping[str, Any]) -> "AnnouncementPage":
        """Read what `message()` returned; raises KeyError, TypeError or ValueError for another message."""
        after = message["after"]
        if after is not None:
            after = {partition: (identifier, at) for partition, (identifier, at) in after.items()}
        return AnnouncementPage(
            str(message["question_id"]), int(message["shard"]), after, int(message["attempt"])
        )

    def message(self) -> dict[str, Any]:
        """Return the page as a message of the queue."""
        after = None
        if self.after is not None:
            after = {partition: list(last_row) for partition, last_row in self.after.items()}
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
        """Send the first page of each shard. Safe to repeat."""
        for shard in range(LISTENER_SHARDS):
            self.send(AnnouncementPage(question_id, shard))

    def send(self, page: AnnouncementPage, delay_seconds: int = 0) -> None:
        """Send a page, which is delivered after a delay."""
        self.sqs().send_message(
            QueueUrl=self.url,
            MessageBody=json.dumps(page.message()),
            DelaySeconds=min(DELAY_SECONDS_MAX, delay_seconds),
        )


class Announcements:
    """Announcements of questions."""

    def __init__(self, dynamodb: Any, store: SubscriptionStore) -> None:
        self._dynamodb, self.store = dynamodb, store
        self.claims = MessageClaims(dynamodb, store)

    def page(
        self, audience: Collection[str], shard: int, after: After | None, size: int, now: datetime
    ) -> tuple[list[Subscription], After]:
        """Return (people, position): about `size` people who hear of a question and whose interval is over.

        audience: the question's. after: the position after the previous page; None: this is the first page.
        The returned position is the one after this page, empty if it is the last. Every partition gives
        equally many people, those notified longest ago first. People in their quiet hours are among them.
        The method makes one query for each of partitions_to_ask that is not at its end.
        """
        partitions = partitions_to_ask(audience, shard)
        if after is not None:
            partitions = [(minutes, partition) for minutes, partition in partitions if partition in after]
        rows_by_partition: list[list[dict[str, Any]]] = []
        next_after: dict[str, tuple[str, str]] = {}
        for minutes, partition in partitions:
            last_row = after[partition] if after else None
            limit = max(1, size // len(partitions))
            rows, new_last_row = self._read(partition, last_row, limit, last_notified_at_max(minutes, now))
            rows_by_partition.append(rows)
            if new_last_row:
                next_after[partition] = new_last_row
        turns = zip_longest(*rows_by_partition)  # a turn has a row of each partition, None at its end
        rows_in_turns = [row for turn in turns for row in turn if row]
        return self._subscriptions(rows_in_turns), next_after

    def _read(
        self, partition: str, last_row: tuple[str, str] | None, limit: int, until: str | None
    ) -> tuple[list[dict[str, Any]], tuple[str, str] | None]:
        """Return (rows, last row): a partition's rows after `last_row`, and the last one, None at the end.

        until: the newest last_notified_at to return; None: any.
        """
        condition, values = "active = :active", {":active": partition}
        if until is not None:
            condition, values = f"{condition} AND last_notified_at <= :until", {**values, ":until": until}
        start: dict[str, Any] = {}
        if last_row:
            subscription_id, last_notified_at = last_row
            key = {KEY: subscription_id, "last_notified_at": last_notified_at, "active": partition}
            start = {"ExclusiveStartKey": encode_item(key)}
        answer = self._dynamodb.query(
            TableName=self.store.table,
            IndexName=INDEX,
            KeyConditionExpression=condition,
            ExpressionAttributeValues=encode_item(values),
            Limit=limit,
            **start,
        )
        rows = [decode_item(item) for item in answer["Items"]]
        if "LastEvaluatedKey" not in answer:
            return rows, None
        end = decode_item(answer["LastEvaluatedKey"])
        return rows, (end[KEY], end["last_notified_at"])

    def _subscriptions(self, rows: Iterable[dict[str, Any]]) -> list[Subscription]:
        """Return the subscriptions of rows of the index, each once, in the rows' order.

        The row of a subscription's own item has all of its attributes. The row of a tag's marker only names
        its subscription (`of`), which is then read by its key.
        """
        by_id: dict[str, Subscription | None] = {}  # None: named by a marker, and not read yet
        for row in rows:
            if "of" in row:
                by_id.setdefault(row["of"], None)
            else:
                by_id.setdefault(row[KEY], subscription_from(row))
        if unread := [identifier for identifier, subscription in by_id.items() if subscription is None]:
            by_id |= {stored.subscription_id: stored for stored in self.store.get_many(unread)}
        return [subscription for subscription in by_id.values() if subscription]

    def unclaimed(self, people: Sequence[Subscription], key: str, since: str) -> list[Subscription]:
        """Return the people for whom no claim on this message exists.

        key: the message's. since: a stamp; the message did not exist before. People who were not notified
        since have no claim. So only the claims of the others are read, in bulk.
        """
        id_of_claim = {
            claim_key(person.subscription_id, key): person.subscription_id
            for person in people
            if person.last_notified_at >= since
        }
        keys = [{KEY: key} for key in id_of_claim]
        claims = get_all(self._dynamodb, self.store.table, keys, only=KEY)
        claimed = {id_of_claim[claim[KEY]["S"]] for claim in claims}
        return [person for person in people if person.subscription_id not in claimed]

    def claim(
        self, subscription: Subscription, key: str, expires_at: int, now: datetime
    ) -> tuple[ClaimResult, MessageClaim]:
        """Claim a message to a subscription, provided that nobody has changed it since it was read.

        The same transaction moves last_notified_at to now, never back.
        """
        claim = MessageClaim(subscription, key, stamp(now), expires_at)
        notes = self._note_actions(subscription, subscription.last_notified_at, _notified_at(claim))
        return self.claims.open(claim, notes), claim

    def release(self, claim: MessageClaim) -> None:
        """Undo a claim whose message certainly did not go out, so that it can be claimed again."""
        subscription = claim.subscription
        delete_claim = delete_action(self.store.table, claim.item_key)
        notes = self._note_actions(subscription, _notified_at(claim), subscription.last_notified_at)
        # If another announcement has moved last_notified_at since, it is not moved back. Only the claim is
        # deleted.
        if not self.store.transact([delete_claim, *notes]):
            self.store.transact([delete_claim])

    def _note_actions(self, subscription: Subscription, before: str, after: str) -> list[Action]:
        """Return the actions that move last_notified_at of a subscription and of its markers.

        Their condition: it is `before`, and the person has not changed the subscription.
        """
        table, noted = self.store.table, encode_item({":noted": after})
        condition, values = unchanged_condition(subscription)
        condition += " AND last_notified_at = :before"
        values |= noted | encode_item({":before": before})
        is_there = f"attribute_exists({KEY})"
        markers = [update_action(table, key, NOTE, noted, is_there) for key in marker_keys(subscription)]
        return [update_action(table, subscription.subscription_id, NOTE, values, condition), *markers]


def _notified_at(claim: MessageClaim) -> str:
    """Return the last_notified_at that a claim writes."""
    return max(claim.subscription.last_notified_at, claim.claimed_at)
