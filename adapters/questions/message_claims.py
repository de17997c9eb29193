"""Nobody gets a message twice: each message is claimed before it is sent, and settled after. Reminders that
are due wait in the index until their instant has come.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import query_all
from adapters.questions.subscription_store import (
    INDEX,
    KEY,
    Action,
    SubscriptionStore,
    claim_key,
    delete_action,
    put_action,
    reminder_item,
    reminder_key,
    unchanged_condition,
    update_action,
)
from rules.days import stamp, unstamp
from rules.lake.table_items import CHANGED
from rules.questions.notifications import LISTENER_SHARDS, Subscription, reminder_partitions, shard_of

SENDING, UNCONFIRMED = "sending", "unconfirmed"
# Every message enters this partition of the index and leaves it again, so it is cut into shards as well.
SENDING_PARTITIONS = [SENDING, *(f"{SENDING}~{shard}" for shard in range(1, LISTENER_SHARDS))]
# Longer than any function runs, so the sender of an older claim is gone.
UNCONFIRMED_AFTER = timedelta(minutes=20)


def sending_partition(subscription_id: str) -> str:
    """Return the partition of the index that a subscription's open claims are in."""
    return SENDING_PARTITIONS[shard_of(subscription_id)]


class ClaimResult(StrEnum):
    """What became of an attempt to claim. MOVED: what was read of the person has changed; decide again."""

    CLAIMED = "claimed"
    DUPLICATE = "duplicate"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class MessageClaim:
    """One message to one subscription."""

    subscription: Subscription
    key: str
    claimed_at: str
    expires_at: int  # epoch seconds, time to live; long after any sending

    @property
    def place(self) -> str:
        """Its key in the table."""
        return claim_key(self.subscription.subscription_id, self.key)


def read_index(
    dynamodb: Any, table: str, partition: str, until: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the items of an index partition, oldest last_notified_at first.

    until: the newest last_notified_at that is yielded; None: all.
    """
    condition, values = "active = :active", {":active": partition}
    if until is not None:
        condition, values = f"{condition} AND last_notified_at <= :until", {**values, ":until": until}
    found = query_all(
        dynamodb,
        TableName=table,
        IndexName=INDEX,
        KeyConditionExpression=condition,
        ExpressionAttributeValues=encode_item(values),
    )
    return map(decode_item, found)


class MessageClaims:
    """Opens, settles and gives up claims."""

    def __init__(self, dynamodb: Any, store: SubscriptionStore) -> None:
        self._dynamodb, self.store = dynamodb, store

    def open(self, claim: MessageClaim, due: Sequence[Action]) -> ClaimResult:
        """Claim a message.

        due: actions for the same transaction, which note that the person is no longer due.
        """
        opened = {
            KEY: claim.place,
            "active": sending_partition(claim.subscription.subscription_id),
            "last_notified_at": claim.claimed_at,
            "claimed_at": claim.claimed_at,
            "expires_at": claim.expires_at,
        }
        first = put_action(self.store.table, encode_item(opened), f"attribute_not_exists({KEY})")
        refused = self.store.refusals([first, *due])
        if not refused:
            return ClaimResult.CLAIMED
        return ClaimResult.DUPLICATE if 0 in refused else ClaimResult.MOVED

    def settle(self, claim: MessageClaim, outcome: str, now: datetime, endpoint_arn: str = "") -> None:
        """Note what became of a claimed message.

        endpoint_arn: the endpoint that it went to, if the subscription did not have it.
        """
        values = encode_item({":outcome": outcome, ":now": stamp(now)})
        changes = "SET outcome = :outcome, settled_at = :now REMOVE active"
        settled = update_action(self.store.table, claim.place, changes, values, f"attribute_exists({KEY})")
        kept = [self._keep(claim.subscription, endpoint_arn)] if endpoint_arn else []
        # If the person has registered again meanwhile, the endpoint is not kept; the next message makes it.
        if not self.store.transact([settled, *kept]) and kept:
            self.store.transact([settled])

    def _keep(self, subscription: Subscription, endpoint_arn: str) -> Action:
        condition, values = unchanged_condition(subscription)
        values |= encode_item({":arn": endpoint_arn, ":yes": True})
        own = subscription.subscription_id
        changes = f"SET endpoint_arn = :arn, {CHANGED} = :yes"
        return update_action(self.store.table, own, changes, values, condition)

    def sending(self, now: datetime) -> list[str]:
        """Return the keys of claims whose sender must have died."""
        until = stamp(now - UNCONFIRMED_AFTER)
        found = (
            each
            for partition in SENDING_PARTITIONS
            for each in read_index(self._dynamodb, self.store.table, partition, until)
        )
        return [each[KEY] for each in found]

    def give_up(self, place: str) -> bool:
        """Mark a claim as unconfirmed; False: its message has been settled after all."""
        values = encode_item(
            {":unconfirmed": UNCONFIRMED, ":sending": sending_partition(place.partition("#")[0])}
        )
        changes = "SET active = :unconfirmed, outcome = :unconfirmed"
        return self.store.transact(
            [update_action(self.store.table, place, changes, values, "active = :sending")]
        )


@dataclass(frozen=True, slots=True)
class DueReminder:
    """A subscription's reminder that is due."""

    subscription: Subscription
    due: datetime
    then: datetime | None  # when the next one is due; None: never


class ReminderStore:
    """Reminders of streaks that end tonight: their markers wait in the index until they are due.

    In a reminder's marker last_notified_at is the instant at which the next one is due. So those that are due
    come first in a partition, whatever their zones, and nothing else is read.
    """

    def __init__(self, dynamodb: Any, store: SubscriptionStore) -> None:
        self._dynamodb, self.store = dynamodb, store
        self.claims = MessageClaims(dynamodb, store)

    def due(self, now: datetime) -> Iterator[tuple[str, datetime]]:
        """Yield (subscription_id, when it was due) of all reminders that are due."""
        for partition in reminder_partitions():
            for each in read_index(self._dynamodb, self.store.table, partition, stamp(now)):
                yield each["of"], unstamp(each["last_notified_at"])

    def claim(
        self, each: DueReminder, key: str, expires_at: int, now: datetime
    ) -> tuple[ClaimResult, MessageClaim]:
        """Claim a reminder; in the same transaction its marker moves to the next one."""
        made = MessageClaim(each.subscription, key, stamp(now), expires_at)
        return self.claims.open(made, [self._wait(each)]), made

    def skip(self, each: DueReminder) -> bool:
        """Move the marker to the next reminder without a message; False: another sender was first."""
        return self.store.transact([self._wait(each)])

    def drop(self, subscription_id: str, due: datetime) -> bool:
        """Delete the marker of a subscription that is gone."""
        return self.store.transact([self._delete(subscription_id, due)])

    def release(self, each: DueReminder, claim: MessageClaim) -> None:
        """Undo a claim whose message certainly did not go out, so that it can be claimed again."""
        gone = delete_action(self.store.table, claim.place)
        condition, values = f"attribute_not_exists({KEY})", None
        if each.then:
            condition, values = "last_notified_at = :then", encode_item({":then": stamp(each.then)})
        marker = reminder_item(each.subscription.subscription_id, each.due)
        # If the person has registered again meanwhile, that marker stands, and only the claim goes.
        if not self.store.transact([gone, put_action(self.store.table, marker, condition, values)]):
            self.store.transact([gone])

    def _wait(self, each: DueReminder) -> Action:
        own = each.subscription.subscription_id
        if each.then is None:
            return self._delete(own, each.due)
        values = encode_item({":due": stamp(each.due)})
        return put_action(self.store.table, reminder_item(own, each.then), "last_notified_at = :due", values)

    def _delete(self, own: str, due: datetime) -> Action:
        values = encode_item({":due": stamp(due)})
        return delete_action(self.store.table, reminder_key(own), "last_notified_at = :due", values)
