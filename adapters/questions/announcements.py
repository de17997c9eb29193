"""Announcements of questions to the phones of subscribers.

An index gives the people who hear of a question, page by page. A message of the queue stands for one page.
Each announcement to a person is claimed before it is sent.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import Action, get_all, update_action
from adapters.questions.message_claims import ClaimResult, MessageClaim, MessageClaims
from adapters.questions.subscription_store import (
    INDEX,
    KEY,
    SubscriptionStore,
    claim_key,
    marker_keys,
    subscription_from,
    unchanged_condition,
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
After = Mapping[str, Sequence[str]]
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
        self, audience: Collection[str], shard: int, after: After | None, size: int, now: datetime
    ) -> tuple[list[Subscription], After]:
        """Return (people, position): about `size` people who hear of a question and whose interval is over.

        audience: the question's. after: the position after the previous page; None: this is the first page.
        The returned position is the one after this page, empty if it is the last. Every partition gives
        equally many people, those notified longest ago. People in their quiet hours are among them.
        """
        partitions = partitions_to_ask(audience, shard)
        if after is not None:
            partitions = [(minutes, partition) for minutes, partition in partitions if partition in after]
        all_rows: list[dict[str, Any]] = []
        next_after: dict[str, Sequence[str]] = {}
        for minutes, partition in partitions:
            last_row = after[partition] if after else None
            limit = max(1, size // len(partitions))
            rows, new_last_row = self._read(partition, last_row, limit, last_notified_at_max(minutes, now))
            all_rows += rows
            if new_last_row:
                next_after[partition] = new_last_row
        return self._subscriptions(all_rows), next_after

    def _read(
        self, partition: str, last_row: Sequence[str] | None, limit: int, until: str | None
    ) -> tuple[list[dict[str, Any]], tuple[str, str] | None]:
        """Return a partition's rows after `last_row`, up to `until`, and the last one; None: the end."""
        condition, values = "active = :active", {":active": partition}
        if until is not None:
            condition, values = f"{condition} AND last_notified_at <= :until", {**values, ":until": until}
        start: dict[str, Any] = {}
        if last_row:
            subscription_id, last_notified_at = last_row
            key = {KEY: subscription_id, "last_notified_at": last_notified_at, "active": partition}
            start = {"ExclusiveStartKey": encode_item(key)}
        answer = self.store.dynamodb.query(
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
        """Return the subscriptions of the index's rows, each once. A tag's marker only names its own."""
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

        A person without an interval moves to the partition's end when told, and is read again on a later
        page. A claim's transaction, even a refused one, costs more than this read in bulk.

        key: the message's. since: a stamp; the message did not exist before, so only those who were notified
        since may have a claim.
        """
        id_of_claim = {
            claim_key(person.subscription_id, key): person.subscription_id
            for person in people
            if person.last_notified_at >= since
        }
        claims = get_all(self.store.dynamodb, self.store.table, [{KEY: key} for key in id_of_claim], only=KEY)
        claimed = {id_of_claim[claim[KEY]["S"]] for claim in claims}
        return [person for person in people if person.subscription_id not in claimed]

    def claim(
        self, subscription: Subscription, key: str, expires_at: int, now: datetime
    ) -> tuple[ClaimResult, MessageClaim]:
        """Claim a message to an unchanged subscription; last_notified_at moves to now, never back."""
        claim = MessageClaim(subscription, key, stamp(now), expires_at)
        notes = self._note_actions(subscription, subscription.last_notified_at, _notified_at(claim))
        return self.claims.open(claim, notes), claim

    def release(self, claim: MessageClaim) -> None:
        """Undo a claim whose message certainly did not go out, so that it can be claimed again."""
        subscription = claim.subscription
        before, after = _notified_at(claim), subscription.last_notified_at
        self.claims.undo(claim, self._note_actions(subscription, before, after))

    def _note_actions(self, subscription: Subscription, before: str, after: str) -> list[Action]:
        """Return the actions that move last_notified_at from `before` in a subscription and its markers."""
        table, noted = self.store.table, encode_item({":noted": after})
        condition, values = unchanged_condition(subscription)
        condition += " AND last_notified_at = :before"
        values |= noted | encode_item({":before": before})
        is_there = f"attribute_exists({KEY})"
        own, *markers = ({KEY: key} for key in (subscription.subscription_id, *marker_keys(subscription)))
        note_markers = [update_action(table, key, NOTE, noted, is_there) for key in markers]
        return [update_action(table, own, NOTE, values, condition), *note_markers]


def _notified_at(claim: MessageClaim) -> str:
    return max(claim.subscription.last_notified_at, claim.claimed_at)
