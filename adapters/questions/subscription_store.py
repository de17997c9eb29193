"""The Subscriptions table: who wants to hear of what, on which phone.

Its items, and its one sparse index, ByLastNotified:

| subscription_id | is | active (partition) | last_notified_at |
|---|---|---|---|
| `{id}` | a subscription | `{minutes}#*` has no tags, `{minutes}#+` has some | newest announcement |
| `{id}#tag={tag}` | its marker for a tag | `{minutes}#={tag}` | the same |
| `{id}#reminder` | its marker for reminders | `reminder#{shard}` | when to look at it next |
| `{id}#sent#{key}` | one message's claim | `sending`; then none, or `unconfirmed` | when it was claimed |
| `token#{digest}` | which subscription has the phone | none | |
| `poll#{agent}#{number}` | one of the slots of an agent's waiting polls | none | |

Markers and tokens have `of`, the id of their subscription. The listeners of a tag whose interval is
about the same are one partition (INTERVALS), sorted by last_notified_at; a query reads those for whom the
partition's minutes are over. So a subscription and
its markers always change in one transaction, and each announcement to a subscription with k tags takes k
writes more. Partitions of listeners and `sending` are cut into shards, by subscription: `00060#*`,
`00060#*~1` and so on. Only claims and slots have `expires_at` (epoch seconds), the time to live.

If a write changes something that the lake keeps for restores, it sets `is_changed`. A note of a message
removes this mark. So the publisher's filter distinguishes them (infra/marks.py).
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from adapters.platform.aws import pauses
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.limits import QuotaSlot
from adapters.platform.tables import (
    REFUSED,
    Action,
    Unprocessed,
    delete_action,
    get_all,
    put_action,
    transact_until_decided,
    update_action,
)
from rules.book.reminders import clock
from rules.days import key_of_stamp, stamp, stamp_of_key
from rules.questions.notifications import (
    NEVER,
    Subscription,
    home_partition,
    later_stamp,
    listener_partition,
    quiet_hours,
    reminder_partition,
    shard_of,
    tag_listeners,
)
from rules.questions.phone_items import CHANGED

KEY = "subscription_id"
INDEX = "ByLastNotified"
ATTEMPTS_MAX = 8
SLOT_KEPT = timedelta(days=36_500)  # the slot of a subscription never ends by itself


def subscription_item(subscription: Subscription) -> Item:
    """Return a subscription as table attributes."""
    quiet = subscription.quiet_hours
    return encode_item(
        {
            KEY: subscription.subscription_id,
            "owner": subscription.owner,
            "fcm_token": subscription.fcm_token,
            "endpoint_arn": subscription.endpoint_arn or None,
            "audience": list(subscription.tags),  # the API's word for the tags
            "min_interval_minutes": subscription.min_interval_minutes,
            "timezone": subscription.timezone,
            "quiet_hours": quiet and {"from": f"{quiet.since:%H:%M}", "to": f"{quiet.until:%H:%M}"},
            "streak_reminders": subscription.streak_reminders,
            "reminders_at": f"{at:%H:%M}" if (at := subscription.reminders_at) is not None else None,
            "language": subscription.language or None,
            "active": home_partition(subscription),
            "last_notified_at": key_of_stamp(subscription.last_notified_at),
            "created_at": subscription.created_at,
            "updated_at": subscription.updated_at,
            CHANGED: True,
        }
    )


def subscription_from(attributes: Mapping[str, Any]) -> Subscription:
    """Read a subscription. If its token is dead, fcm_token is "" and is_active is False."""
    quiet = attributes.get("quiet_hours")
    return Subscription(
        subscription_id=attributes[KEY],
        owner=attributes["owner"],
        fcm_token=attributes.get("fcm_token", ""),
        tags=tuple(attributes["audience"]),
        min_interval_minutes=attributes["min_interval_minutes"],
        timezone=attributes["timezone"],
        quiet_hours=quiet_hours(quiet["from"], quiet["to"]) if quiet else None,
        streak_reminders=attributes["streak_reminders"],
        created_at=attributes["created_at"],
        updated_at=attributes["updated_at"],
        last_notified_at=stamp_of_key(attributes.get("last_notified_at", NEVER)),
        endpoint_arn=attributes.get("endpoint_arn", ""),
        is_active="active" in attributes,
        reminders_at=clock(attributes["reminders_at"]) if attributes.get("reminders_at") else None,
        language=attributes.get("language", ""),
    )


def marker_keys(subscription: Subscription) -> list[str]:
    """Return the keys of a subscription's tag markers."""
    return [f"{subscription.subscription_id}#tag={tag}" for tag in subscription.tags]


def reminder_key(subscription_id: str) -> str:
    """Return the key of a subscription's reminder marker."""
    return f"{subscription_id}#reminder"


def claim_key(subscription_id: str, key: str) -> str:
    """Return the key of one message's claim."""
    return f"{subscription_id}#sent#{key}"


def token_key(fcm_token: str) -> str:
    """Return the key of the item that says which subscription has a phone."""
    return f"token#{hashlib.sha256(fcm_token.encode()).hexdigest()}"


def subscription_counter(owner: str) -> str:
    """Return the counter of the table Limits that lists a user's subscriptions."""
    return f"subscriptions#{owner}"


def subscription_slot(owner: str, subscription_id: str, now: datetime) -> QuotaSlot:
    """Return the slot that one subscription takes of its owner's quota."""
    return QuotaSlot(subscription_counter(owner), subscription_id, now + SLOT_KEPT)


def items_of(subscription: Subscription, now: datetime) -> dict[str, Item]:
    """Return all items of an active subscription by key, without its claims."""
    shard = shard_of(subscription.subscription_id)
    markers = [
        {
            KEY: key,
            "of": subscription.subscription_id,
            "active": listener_partition(subscription.min_interval_minutes, tag_listeners(tag), shard),
            "last_notified_at": key_of_stamp(subscription.last_notified_at),
        }
        for key, tag in zip(marker_keys(subscription), subscription.tags, strict=True)
    ]
    token = {KEY: token_key(subscription.fcm_token), "of": subscription.subscription_id}
    items = [subscription_item(subscription), *map(encode_item, [*markers, token])]
    if subscription.streak_reminders:
        # The hour is in the book, and the zone is in the profile: the next run of the reminders reads both.
        items.append(reminder_item(subscription.subscription_id, now))
    return {item[KEY]["S"]: item for item in items}


def reminder_item(subscription_id: str, due: datetime) -> Item:
    """Return the marker that waits until its subscription is looked at."""
    return encode_item(
        {
            KEY: reminder_key(subscription_id),
            "of": subscription_id,
            "active": reminder_partition(subscription_id),
            "last_notified_at": key_of_stamp(stamp(due)),
        }
    )


def keys_of(subscription: Subscription) -> list[str]:
    """Return the keys of all items that a subscription may have, without its claims."""
    token = [token_key(subscription.fcm_token)] if subscription.fcm_token else []
    identifier = subscription.subscription_id
    return [identifier, *marker_keys(subscription), reminder_key(identifier), *token]


@dataclass(frozen=True, slots=True)
class _FormerSubscriptions:
    """The stored subscriptions that a registration replaces."""

    own: Subscription | None  # the same person's, for the same token
    other: Subscription | None  # another person's, for the same token
    token_holder: str  # the id of the subscription that has the token; "": none

    @property
    def all(self) -> list[Subscription]:
        """Both, as far as they exist."""
        return [subscription for subscription in (self.own, self.other) if subscription]


class SubscriptionStore:
    """Registers, finds and removes subscriptions."""

    def __init__(self, dynamodb: Any, table: str) -> None:
        self.dynamodb, self.table = dynamodb, table

    def get(self, subscription_id: str) -> Subscription | None:
        """Read one subscription, strongly consistent."""
        return next(iter(self.get_many([subscription_id])), None)

    def get_many(self, subscription_ids: Iterable[str]) -> list[Subscription]:
        """Read subscriptions in bulk, strongly consistent; those that are gone are left out."""
        keys = [{KEY: identifier} for identifier in dict.fromkeys(subscription_ids)]
        return [subscription_from(decode_item(item)) for item in get_all(self.dynamodb, self.table, keys)]

    def register(self, wanted: Subscription, now: datetime) -> tuple[Subscription, bool]:
        """Store a subscription; returns it, and whether it is new.

        It replaces the person's own of this token, and keeps its history. Another person's of this token is
        removed in the same transaction: whoever sends the token holds the phone. The endpoint is the phone's,
        so it is kept. Raises Unprocessed; it is safe to repeat.
        """
        for _ in pauses(ATTEMPTS_MAX):
            former = self._former_subscriptions(wanted)
            merged = _merge_subscription(wanted, former, now)
            if self.transact(_registration(self.table, merged, former, now)):
                return merged, former.own is None or not former.own.is_active
        raise Unprocessed(f"{self.table}: a subscription kept changing")

    def _former_subscriptions(self, wanted: Subscription) -> _FormerSubscriptions:
        token = token_key(wanted.fcm_token)
        keys = [{KEY: wanted.subscription_id}, {KEY: token}]
        items = {item[KEY]["S"]: decode_item(item) for item in get_all(self.dynamodb, self.table, keys)}
        own = subscription_from(items[wanted.subscription_id]) if wanted.subscription_id in items else None
        token_holder = items.get(token, {}).get("of", "")
        other = self.get(token_holder) if token_holder not in ("", wanted.subscription_id) else None
        return _FormerSubscriptions(own, other, token_holder)

    def remove(self, subscription: Subscription) -> bool:
        """Delete a subscription with all its items; False: it has changed since it was read."""
        main_key, *other_keys = keys_of(subscription)
        condition, values = unchanged_condition(subscription)
        delete_main = delete_action(self.table, {KEY: main_key}, condition, values)
        return self.transact([delete_main, *self._delete_actions(other_keys)])

    def deactivate(self, subscription: Subscription, now: datetime) -> bool:
        """Take a subscription with a dead token out of the index; False: it was registered again since."""
        main_key, *other_keys = keys_of(subscription)
        condition, values = unchanged_condition(subscription)
        changes = (
            f"SET dead_at = :now, updated_at = :after, {CHANGED} = :yes"
            " REMOVE active, fcm_token, endpoint_arn, last_notified_at"
        )
        after = later_stamp(subscription.updated_at, now)
        values |= encode_item({":now": stamp(now), ":after": after, ":yes": True})
        update_main = update_action(self.table, {KEY: main_key}, changes, values, condition)
        return self.transact([update_main, *self._delete_actions(other_keys)])

    def _delete_actions(self, keys: Iterable[str]) -> list[Action]:
        return [delete_action(self.table, {KEY: key}) for key in keys]

    def transact(self, actions: list[Action]) -> bool:
        """Write all or nothing; False if a condition fails."""
        return self.write_all_or_none(actions) == []

    def write_all_or_none(self, actions: list[Action]) -> list[int]:
        """Write all actions, or none; returns the indexes of the refused ones. Raises Unprocessed."""
        undecided = f"{self.table}: a transaction left undecided"
        reasons = transact_until_decided(self.dynamodb, actions, undecided)
        return [index for index, reason in enumerate(reasons) if reason.get("Code") == REFUSED]


def unchanged_condition(subscription: Subscription) -> tuple[str, Item]:
    """Return the condition that the person has not changed a subscription since it was read."""
    return "updated_at = :seen", encode_item({":seen": subscription.updated_at})


def _merge_subscription(wanted: Subscription, former: _FormerSubscriptions, now: datetime) -> Subscription:
    """Return the subscription to store: the person's new one, with the phone's endpoint and the history."""
    endpoints = (subscription.endpoint_arn for subscription in former.all if subscription.endpoint_arn)
    merged = replace(wanted, endpoint_arn=next(endpoints, ""))
    if former.own is None:
        return replace(merged, created_at=stamp(now), updated_at=stamp(now))
    return replace(
        merged,
        created_at=former.own.created_at,
        updated_at=later_stamp(former.own.updated_at, now),
        last_notified_at=former.own.last_notified_at,
    )


def _registration(
    table: str, merged: Subscription, former: _FormerSubscriptions, now: datetime
) -> list[Action]:
    """Return a registration's actions, one for each item, on condition that no item has changed since."""
    items, token = items_of(merged, now), token_key(merged.fcm_token)
    keys_before = [key for subscription in former.all for key in keys_of(subscription)]
    conditions: dict[str, tuple[str, Item | None]] = dict.fromkeys([*keys_before, *items], ("", None))
    # If the person had the subscription before, its condition replaces this one.
    conditions[merged.subscription_id] = f"attribute_not_exists({KEY})", None
    conditions |= {before.subscription_id: _unclaimed_condition(before) for before in former.all}
    actions = {key: delete_action(table, {KEY: key}, *conditions[key]) for key in keys_before}
    # An item that stays is put, not deleted.
    actions |= {key: put_action(table, item, *conditions[key]) for key, item in items.items()}
    actions[token] = _put_token(table, items[token], former.token_holder)
    return list(actions.values())


def _unclaimed_condition(subscription: Subscription) -> tuple[str, Item]:
    """Return the condition that a subscription is as it was read, and got no announcement since.

    If an announcement is claimed right now, the registration fails and reads again: none is forgotten.
    """
    never_or_same = "(last_notified_at = :last OR attribute_not_exists(last_notified_at))"
    condition, values = unchanged_condition(subscription)
    last = encode_item({":last": key_of_stamp(subscription.last_notified_at)})
    return f"{condition} AND {never_or_same}", values | last


def _put_token(table: str, item: Item, holder: str) -> Action:
    """Return the put of a token's item. holder: who must have the token still; "": nobody may have it."""
    names = {"#of": "of"}  # DynamoDB reserves the word
    if not holder:
        return put_action(table, item, "attribute_not_exists(#of)", names=names)
    return put_action(table, item, "#of = :holder", encode_item({":holder": holder}), names)
