"""Announcements of questions to the phones of subscribers.

An index gives the people who hear of a question, page by page. In it, a subscription has a row of its own,
and a *marker* for each of its tags: a row that names the subscription (`of`). A message of the queue stands
for one page. Each announcement to a person is claimed before it is sent, so that nobody hears twice.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import Action, get_all, update_action
from adapters.questions.message_claims import MessageClaim, MessageClaims
from adapters.questions.subscription_store import (
    INDEX,
    KEY,
    SubscriptionStore,
    claim_key,
    marker_keys,
    subscription_from,
    unchanged_condition,
)
from rules.days import key_of_stamp, stamp
from rules.questions.notifications import (
    LISTENER_SHARDS,
    Subscription,
    is_interval_over,
    last_notified_at_max,
    partitions_to_ask,
)
from rules.questions.phone_items import CHANGED

# SQS hides a message for 15 minutes at most.
DELAY_SECONDS_MAX = 900
# How far the index was read: by partition, the subscription_id and last_notified_at of the last row.
# Partitions that were read to their end are left out.
Position = Mapping[str, Sequence[str]]
# Moves last_notified_at. The lake does not have it, so the publisher need not publish the item (CHANGED).
MOVE = f"SET last_notified_at = :moved REMOVE {CHANGED}"


@dataclass(frozen=True, slots=True)
class AnnouncementPage:
    """One page of the people who hear of a question."""

    question_id: str
    shard: int  # of listeners
    after: Position | None = None  # the position after the previous page; None: this is the first page
    attempt: int = 0  # how many attempts have not reached everybody


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
            MessageBody=json.dumps(asdict(page)),
            DelaySeconds=min(DELAY_SECONDS_MAX, delay_seconds),
        )


class Announcements:
    """Announcements of questions."""

    def __init__(self, store: SubscriptionStore) -> None:
        self.store, self.claims = store, MessageClaims(store)

    def page(
        self, audience: Collection[str], shard: int, after: Position | None, size: int, now: datetime
    ) -> tuple[list[Subscription], Position]:
        """Return (people, position): about `size` people who hear of a question and whose interval is over.

        audience: the question's. after: the position after the previous page; None: this is the first page.
        The returned position is the one after this page, empty if it is the last. Every partition gives
        equally many rows, those notified longest ago. People who chose more minutes than the partition has,
        and have to wait, are left out. The position is behind them, so they keep nobody waiting. People in
        their quiet hours are among those returned.
        """
        partitions = partitions_to_ask(audience, shard)
        if after is not None:
            partitions = [(minutes, partition) for minutes, partition in partitions if partition in after]
        rows_of_page: list[dict[str, Any]] = []
        position: dict[str, Sequence[str]] = {}
        for interval_minutes, partition in partitions:
            last_row = after[partition] if after else None
            limit = max(1, size // len(partitions))
            until = last_notified_at_max(interval_minutes, now)
            rows, new_last_row = self._read_partition(partition, last_row, until, limit)
            rows_of_page += rows
            if new_last_row:
                position[partition] = new_last_row
        people = self._subscriptions(rows_of_page)
        return [person for person in people if is_interval_over(person, now)], position

    def _read_partition(
        self, partition: str, last_row: Sequence[str] | None, until: str | None, limit: int
    ) -> tuple[list[dict[str, Any]], tuple[str, str] | None]:
        """Return at most `limit` rows after `last_row`, and the new last one; None: the end.

        until: the latest last_notified_at; None: any.
        """
        query: dict[str, Any] = {"KeyConditionExpression": "active = :active"}
        values = {":active": partition}
        if until is not None:
            query["KeyConditionExpression"] += " AND last_notified_at <= :until"
            values[":until"] = key_of_stamp(until)
        if last_row:
            subscription_id, last_notified_at = last_row
            key = {KEY: subscription_id, "last_notified_at": last_notified_at, "active": partition}
            query["ExclusiveStartKey"] = encode_item(key)
        answer = self.store.dynamodb.query(
            TableName=self.store.table,
            IndexName=INDEX,
            ExpressionAttributeValues=encode_item(values),
            Limit=limit,
            **query,
        )
        rows = [decode_item(item) for item in answer["Items"]]
        if "LastEvaluatedKey" not in answer:
            return rows, None
        end = decode_item(answer["LastEvaluatedKey"])
        return rows, (end[KEY], end["last_notified_at"])

    def _subscriptions(self, rows: Iterable[dict[str, Any]]) -> list[Subscription]:
        """Return the subscriptions of the index's rows and markers, each once."""
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

        A person without an interval moves to the partition's end when notified, so a later page has this
        person again. To read such people's claims in bulk costs less than to have new claims refused.

        key: the message's. since: a stamp, when the message began to exist. Only people who were notified
        since may have a claim.
        """
        person_of_claim = {
            claim_key(person.subscription_id, key): person.subscription_id
            for person in people
            if person.last_notified_at >= since
        }
        claims = get_all(
            self.store.dynamodb, self.store.table, [{KEY: each} for each in person_of_claim], only=KEY
        )
        claimed = {person_of_claim[claim[KEY]["S"]] for claim in claims}
        return [person for person in people if person.subscription_id not in claimed]

    def claim_of(self, subscription: Subscription, key: str, expires_at: int, now: datetime) -> MessageClaim:
        """Return the claim of a message to a subscription as it was read.

        When it is opened, last_notified_at moves to now, unless it is later already.
        """
        before = subscription.last_notified_at
        after = max(before, stamp(now))
        moves = self._move_actions(subscription, before, after)
        moves_back = self._move_actions(subscription, after, before)
        return MessageClaim(subscription, key, stamp(now), expires_at, moves, moves_back)

    def _move_actions(self, subscription: Subscription, before: str, after: str) -> list[Action]:
        """Return the actions that move last_notified_at of a subscription and its markers.

        before: the stamp that the subscription must have; else the transaction is refused.
        """
        table, moved = self.store.table, encode_item({":moved": key_of_stamp(after)})
        condition, values = unchanged_condition(subscription)
        condition += " AND last_notified_at = :before"
        values |= moved | encode_item({":before": key_of_stamp(before)})
        is_there = f"attribute_exists({KEY})"
        own_key, *keys_of_markers = (
            {KEY: key} for key in (subscription.subscription_id, *marker_keys(subscription))
        )
        move_markers = [update_action(table, key, MOVE, moved, is_there) for key in keys_of_markers]
        return [update_action(table, own_key, MOVE, values, condition), *move_markers]
