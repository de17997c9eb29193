"""Reminders that are due: their markers wait in the index until their instant has come.

In a reminder's marker last_notified_at is the instant at which the next one is due. So those that are due
come first in a partition, whatever their zones, and nothing else is read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adapters.platform.items import item
from adapters.questions.message_claims import ClaimResult, MessageClaim, MessageClaims, read_index
from adapters.questions.phones.subscription_items import KEY, reminder_item, reminder_key
from adapters.questions.phones.subscription_store import Action, SubscriptionStore, delete_action, put_action
from rules.days import stamp, unstamp
from rules.questions.notifications import Subscription, reminder_partitions


@dataclass(frozen=True, slots=True)
class DueReminder:
    """A subscription's reminder that is due. then: when the next one is due; None: never."""

    subscription: Subscription
    due: datetime
    then: datetime | None


class ReminderStore:
    """Reminders of streaks that end tonight."""

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
            condition, values = "last_notified_at = :then", item({":then": stamp(each.then)})
        marker = reminder_item(each.subscription.subscription_id, each.due)
        # If the person has registered again meanwhile, that marker stands, and only the claim goes.
        if not self.store.transact([gone, put_action(self.store.table, marker, condition, values)]):
            self.store.transact([gone])

    def _wait(self, each: DueReminder) -> Action:
        own = each.subscription.subscription_id
        if each.then is None:
            return self._delete(own, each.due)
        values = item({":due": stamp(each.due)})
        return put_action(self.store.table, reminder_item(own, each.then), "last_notified_at = :due", values)

    def _delete(self, own: str, due: datetime) -> Action:
        values = item({":due": stamp(due)})
        return delete_action(self.store.table, reminder_key(own), "last_notified_at = :due", values)
