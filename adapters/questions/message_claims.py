"""Claims of messages to phones; and reminders, which wait in the index until they are due.

A message is claimed before it is sent, and its claim gets the outcome afterwards. So nobody gets a message
twice. processors/questions/messages.py sends claimed messages.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import Action, delete_action, put_action, query_all, update_action
from adapters.questions.subscription_store import (
    INDEX,
    KEY,
    SubscriptionStore,
    claim_key,
    reminder_item,
    reminder_key,
    unchanged_condition,
)
from rules.days import key_of_stamp, stamp, stamp_of_key, unstamp
from rules.questions.notifications import LISTENER_SHARDS, Subscription, reminder_partitions, shard_of
from rules.questions.phone_items import CHANGED

# Values of a claim's `active`. SENDING: its message is being sent. UNCONFIRMED: nobody knows whether it was
# sent.
SENDING, UNCONFIRMED = "sending", "unconfirmed"
# Every message enters this partition of the index and leaves it again, so it is cut into shards as well.
SENDING_PARTITIONS = [SENDING, *(f"{SENDING}~{shard}" for shard in range(1, LISTENER_SHARDS))]
# No function runs for this long. So a claim that has been open for longer has lost its sender.
UNCONFIRMED_AFTER = timedelta(minutes=20)


def sending_partition(subscription_id: str) -> str:
    """Return the partition of the index that a subscription's open claims are in."""
    return SENDING_PARTITIONS[shard_of(subscription_id)]


class ClaimResult(StrEnum):
    """The result of an attempt to claim."""

    CLAIMED = "claimed"
    DUPLICATE = "duplicate"  # the message is claimed already
    MOVED = "moved"  # the subscription has changed since it was read: decide again


@dataclass(frozen=True, slots=True)
class MessageClaim:
    """One message to one subscription."""

    subscription: Subscription
    key: str  # which message it is
    claimed_at: str
    expires_at: int  # epoch seconds: time to live, long after the message may be sent
    # Actions by which the person is no longer due for a message, and those that undo them
    moves: Sequence[Action]
    moves_back: Sequence[Action]

    @property
    def item_key(self) -> str:
        """The key of its item in the table."""
        return claim_key(self.subscription.subscription_id, self.key)


def read_index(store: SubscriptionStore, partition: str, until: str) -> Iterator[dict[str, Any]]:
    """Yield an index partition's items, oldest last_notified_at first. until: the newest that is read."""
    items = query_all(
        store.dynamodb,
        TableName=store.table,
        IndexName=INDEX,
        KeyConditionExpression="active = :active AND last_notified_at <= :until",
        ExpressionAttributeValues=encode_item({":active": partition, ":until": key_of_stamp(until)}),
    )
    return map(decode_item, items)


class MessageClaims:
    """Opens claims, stores their outcomes, undoes them, and gives up those whose senders have died."""

    def __init__(self, store: SubscriptionStore) -> None:
        self.store = store

    def open(self, claim: MessageClaim) -> ClaimResult:
        """Claim a message; in the same transaction the person is moved. MOVED: a move's condition failed."""
        item = {
            KEY: claim.item_key,
            "active": sending_partition(claim.subscription.subscription_id),
            "last_notified_at": key_of_stamp(claim.claimed_at),
            "claimed_at": claim.claimed_at,
            "expires_at": claim.expires_at,
        }
        put = put_action(self.store.table, encode_item(item), f"attribute_not_exists({KEY})")
        refusals = self.store.write_all_or_none([put, *claim.moves])
        if not refusals:
            return ClaimResult.CLAIMED
        return ClaimResult.DUPLICATE if 0 in refusals else ClaimResult.MOVED

    def settle(self, claim: MessageClaim, outcome: str, now: datetime, endpoint_arn: str = "") -> None:
        """Store a message's outcome, and the endpoint that it went to if the subscription did not have it."""
        key, values = {KEY: claim.item_key}, encode_item({":outcome": outcome, ":now": stamp(now)})
        changes = "SET outcome = :outcome, settled_at = :now REMOVE active"
        settle = update_action(self.store.table, key, changes, values, f"attribute_exists({KEY})")
        if endpoint_arn and self.store.transact([settle, self._endpoint_action(claim, endpoint_arn)]):
            return
        # There is no new endpoint; or the person has registered again since. Then the next message makes one.
        self.store.transact([settle])

    def undo(self, claim: MessageClaim) -> None:
        """Undo a claim whose message certainly did not go out, so that it can be claimed again."""
        delete_claim = delete_action(self.store.table, {KEY: claim.item_key})
        if not self.store.transact([delete_claim, *claim.moves_back]):
            # The person has changed the subscription since.
            self.store.transact([delete_claim])

    def _endpoint_action(self, claim: MessageClaim, endpoint_arn: str) -> Action:
        key = {KEY: claim.subscription.subscription_id}
        condition, values = unchanged_condition(claim.subscription)
        values |= encode_item({":arn": endpoint_arn, ":yes": True})
        changes = f"SET endpoint_arn = :arn, {CHANGED} = :yes"
        return update_action(self.store.table, key, changes, values, condition)

    def stale_keys(self, now: datetime) -> list[str]:
        """Return the keys of open claims whose sender must have died."""
        until = stamp(now - UNCONFIRMED_AFTER)
        return [
            item[KEY] for partition in SENDING_PARTITIONS for item in read_index(self.store, partition, until)
        ]

    def give_up(self, item_key: str) -> bool:
        """Mark a claim as unconfirmed. False: it has an outcome by now, so it is not marked."""
        subscription_id = item_key.partition("#")[0]
        values = encode_item({":unconfirmed": UNCONFIRMED, ":sending": sending_partition(subscription_id)})
        changes = "SET active = :unconfirmed, outcome = :unconfirmed"
        mark = update_action(self.store.table, {KEY: item_key}, changes, values, "active = :sending")
        return self.store.transact([mark])


@dataclass(frozen=True, slots=True)
class DueReminder:
    """A subscription whose marker is due."""

    subscription: Subscription
    due: datetime
    next_look: datetime  # when its marker is due again


class ReminderMarker(NamedTuple):
    """A marker in the index that is due: its subscription is to be looked at."""

    subscription_id: str
    due: datetime


class ReminderStore:
    """Reminders of streaks that end tonight: their markers wait in the index until they are due.

    In a reminder's marker, last_notified_at is the instant at which its subscription is looked at: a
    registration's own, and then that of the next reminder. So due markers come first in a partition, whatever
    their zones, and no others are read.
    """

    def __init__(self, store: SubscriptionStore) -> None:
        self.store, self.claims = store, MessageClaims(store)

    def due(self, now: datetime) -> Iterator[ReminderMarker]:
        """Yield all markers that are due."""
        for partition in reminder_partitions():
            for marker in read_index(self.store, partition, stamp(now)):
                yield ReminderMarker(marker["of"], unstamp(stamp_of_key(marker["last_notified_at"])))

    def claim_of(self, reminder: DueReminder, key: str, expires_at: int, now: datetime) -> MessageClaim:
        """Return the claim of a reminder. When it is opened, the marker moves to the next reminder."""
        marker = reminder_item(reminder.subscription.subscription_id, reminder.due)
        values = encode_item({":next": key_of_stamp(stamp(reminder.next_look))})
        moves = [self._next_action(reminder)]
        moves_back = [put_action(self.store.table, marker, "last_notified_at = :next", values)]
        return MessageClaim(reminder.subscription, key, stamp(now), expires_at, moves, moves_back)

    def skip(self, reminder: DueReminder) -> bool:
        """Move the marker to the next reminder without a message; False: another sender was first."""
        return self.store.transact([self._next_action(reminder)])

    def drop(self, marker: ReminderMarker) -> bool:
        """Delete the marker of a subscription that is gone."""
        key, values = (
            reminder_key(marker.subscription_id),
            encode_item({":due": key_of_stamp(stamp(marker.due))}),
        )
        return self.store.transact(
            [delete_action(self.store.table, {KEY: key}, "last_notified_at = :due", values)]
        )

    def _next_action(self, reminder: DueReminder) -> Action:
        marker = reminder_item(reminder.subscription.subscription_id, reminder.next_look)
        values = encode_item({":due": key_of_stamp(stamp(reminder.due))})
        return put_action(self.store.table, marker, "last_notified_at = :due", values)
