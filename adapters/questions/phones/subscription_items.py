"""What the Subscriptions table of template.yaml holds, and its one sparse index, ByLastNotified.

| subscription_id | is | active (partition) | last_notified_at |
|---|---|---|---|
| `{id}` | a subscription | `{minutes}#*` has no tags, `{minutes}#+` has some | newest announcement |
| `{id}#tag={tag}` | its marker for a tag | `{minutes}#={tag}` | the same |
| `{id}#reminder` | its marker for reminders | `reminder#{shard}` | when the next one is due |
| `{id}#sent#{key}` | one message's claim | `sending`; then none, or `unconfirmed` | when it was claimed |
| `token#{digest}` | which subscription has the phone | none | |
| `poll#{agent}#{number}` | one of the places of an agent's waiting polls | none | |

Partitions of listeners and `sending` are cut into shards, by subscription: `00060#*`, `00060#*~1` and so on.
A subscription and its markers always change in one transaction. So a query of one partition reads exactly
those who listen and whose interval has elapsed. The price: each announcement to a subscription with k tags
takes k writes more. Only claims and places have `expires_at` (epoch seconds), the time to live.

The last write of a subscription that has `is_changed` changed something that the lake keeps for restores. A
note of a message takes the mark away. So the publisher's filter tells them apart (infra/assembly/marks.py).
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from adapters.platform.items import Item, item
from rules.days import stamp
from rules.lake.table_items import CHANGED
from rules.questions.notifications import (
    NEVER,
    Subscription,
    home_partition,
    listener_partition,
    next_reminder,
    quiet_hours,
    reminder_partition,
    shard_of,
    tag_listeners,
)

KEY = "subscription_id"
INDEX = "ByLastNotified"


def subscription_item(subscription: Subscription) -> Item:
    """Return a subscription as table attributes."""
    quiet = subscription.quiet_hours
    return item(
        {
            KEY: subscription.subscription_id,
            "owner": subscription.owner,
            "fcm_token": subscription.fcm_token,
            "endpoint_arn": subscription.endpoint_arn or None,
            "audience": list(subscription.audience),
            "min_interval_minutes": subscription.min_interval_minutes,
            "timezone": subscription.timezone,
            "quiet_hours": quiet and {"from": f"{quiet.since:%H:%M}", "to": f"{quiet.until:%H:%M}"},
            "streak_reminders": subscription.streak_reminders,
            "active": home_partition(subscription),
            "last_notified_at": subscription.last_notified_at,
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
        audience=tuple(attributes["audience"]),
        min_interval_minutes=attributes["min_interval_minutes"],
        timezone=attributes["timezone"],
        quiet_hours=quiet_hours(quiet["from"], quiet["to"]) if quiet else None,
        streak_reminders=attributes["streak_reminders"],
        created_at=attributes["created_at"],
        updated_at=attributes["updated_at"],
        last_notified_at=attributes.get("last_notified_at", NEVER),
        endpoint_arn=attributes.get("endpoint_arn", ""),
        is_active="active" in attributes,
    )


def marker_keys(subscription: Subscription) -> list[str]:
    """Return the keys of a subscription's tag markers."""
    return [f"{subscription.subscription_id}#tag={tag}" for tag in subscription.audience]


def reminder_key(subscription_id: str) -> str:
    """Return the key of a subscription's reminder marker."""
    return f"{subscription_id}#reminder"


def claim_key(subscription_id: str, key: str) -> str:
    """Return the key of one message's claim."""
    return f"{subscription_id}#sent#{key}"


def token_key(fcm_token: str) -> str:
    """Return the key of the item that says which subscription has a phone."""
    return f"token#{hashlib.sha256(fcm_token.encode()).hexdigest()}"


def items_of(subscription: Subscription, now: datetime) -> dict[str, Item]:
    """Return all items of an active subscription by key, without its claims."""
    shard = shard_of(subscription.subscription_id)
    markers = [
        {
            KEY: key,
            "of": subscription.subscription_id,
            "active": listener_partition(subscription.min_interval_minutes, tag_listeners(tag), shard),
            "last_notified_at": subscription.last_notified_at,
        }
        for key, tag in zip(marker_keys(subscription), subscription.audience, strict=True)
    ]
    holder = {KEY: token_key(subscription.fcm_token), "of": subscription.subscription_id}
    items = [subscription_item(subscription), *map(item, [*markers, holder])]
    due = next_reminder(now, subscription.timezone, subscription.quiet_hours)
    if subscription.streak_reminders and due:
        items.append(reminder_item(subscription.subscription_id, due))
    return {each[KEY]["S"]: each for each in items}


def reminder_item(subscription_id: str, due: datetime) -> Item:
    """Return the marker that waits until a reminder is due."""
    return item(
        {
            KEY: reminder_key(subscription_id),
            "of": subscription_id,
            "active": reminder_partition(subscription_id),
            "last_notified_at": stamp(due),
        }
    )


def keys_of(subscription: Subscription) -> list[str]:
    """Return the keys of all items that a subscription may have, without its claims."""
    token = [token_key(subscription.fcm_token)] if subscription.fcm_token else []
    own = subscription.subscription_id
    return [own, *marker_keys(subscription), reminder_key(own), *token]
