"""The entity of table items: a restore needs them, and no other entity of the lake has all of them (rule 21).

| table | which items, and how much of them |
|---|---|
| UserStreaks | what no ledger tells of a profile: zones, pauses, holds, alias, reviews |
| DailyActivity | the achievements that a user was shown |
| IdempotencyKeys | a user's claims and stretches offline |
| Rewards | redemptions, and what was taken of stocks |
| RuleBooks | every version of the book, and amnesties |
| Erasures | the journal of tombstones, which names nobody |
| Subscriptions | phones: what their owners have set, tokens and endpoints; and which phones are gone |

Each change is a row with the item as DynamoDB writes it: {"name": {"S": "text"}}. That a phone is gone is an
item without attributes; a week later its rows of before leave the lake (analytics/forgetting/gone_phones.py).
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rules.days import stamp
from rules.lake.engagement_entities import VERSION_BYTES
from rules.lake.schema import Entity, Field, Type

TEXT, _, _, _, TIMESTAMP = Type
Image = Mapping[str, Mapping[str, Any]]

TABLE_ITEMS = Entity(
    "table_items",
    "One row per change of an item of a table of which no other entity has all.",
    (
        Field("store", TEXT, "the table, by its name in the template", required=True, bytes_max=64),
        Field(
            "place",
            TEXT,
            "the item's key, a JSON list: partition key, sort key",
            required=True,
            bytes_max=4096,
        ),
        Field(
            "version",
            TEXT,
            "grows with each change of the item",
            required=True,
            bytes_max=VERSION_BYTES,
        ),
        Field("changed_at", TIMESTAMP, "the second in which the item was written", required=True),
        Field("user_id", TEXT, "whose item it is; null: nobody's", bytes_max=256),
        Field("item", TEXT, "the item, as DynamoDB writes it, JSON text", required=True),
    ),
    key=("store", "place", "version"),
    occurred="changed_at",
    version="version",
    in_warehouse=False,
    may_age=False,
)

KEYS: Mapping[str, tuple[str, ...]] = {
    "UserStreaks": ("user_id",),
    "DailyActivity": ("user_id", "activity_date"),
    "IdempotencyKeys": ("user_id", "idempotency_key"),
    "Rewards": ("holder", "place"),
    "RuleBooks": ("book", "version"),
    "Erasures": ("part", "place"),
    "Subscriptions": ("subscription_id",),
}
# What a profile has that neither ledger nor lake has otherwise (tests/unit/lake/test_table_items.py).
SETTINGS = frozenset(
    {
        *("user_id", "version", "streak_updated_at", "timezone_chosen", "observed_zone", "observed_at"),
        *("pauses", "archived", "skipped_dates", "opening", "recent_tz_changes", "zones_seen", "skews_seen"),
        *("amnesties", "backfilled", "tz_review", "review_since", "review_evidence", "released_at", "alias"),
        *("holds", "expiry_settled_on", "expiry_settled_points"),
    }
)
# What a subscription has that follows from nothing else. Its place in the index does; what was sent to it,
# and when, is in the entity notifications.
PHONES, TOKEN, CHANGED = "Subscriptions", "fcm_token", "is_changed"
PHONE = frozenset(
    {
        *("subscription_id", "owner", TOKEN, "endpoint_arn", "audience", "min_interval_minutes", "timezone"),
        *("quiet_hours", "streak_reminders", "created_at", "updated_at", "dead_at"),
    }
)
KEPT_OF: Mapping[str, frozenset[str]] = {"UserStreaks": SETTINGS, PHONES: PHONE}
GONE = "{}"  # the text of an item that is gone
PACKED, LONG_BYTES = "zlib:", 30_000  # a text of more bytes is compressed, and begins so
ACHIEVEMENTS_PLACE = "totals"  # in the place of a date: achievements
ERASURE_LOG = "journal"  # the part of the table Erasures with its log
# No user id has one of these: a lead's claims, hooks' counts and notes of imports have.
OTHERS = frozenset("/#")


def table_item(store: str, image: Image, arrived: datetime, version: str) -> dict[str, Any] | None:
    """Return a changed item as attributes of a row of TABLE_ITEMS; None for one that is not kept.

    store: the table's name in the template. image: the item. Raises KeyError for an item without its key.
    """
    if store not in KEYS or not _is_kept(store, image):
        return None
    names = KEPT_OF.get(store)
    item = {name: value for name, value in image.items() if names is None or name in names}
    return _attributes(store, image, arrived, version) | {
        "user_id": _user(store, image),
        "item": item_text(item),
    }


def removed_item(store: str, key: Image, arrived: datetime, version: str) -> dict[str, Any] | None:
    """Return that an item is gone, as attributes of a row of TABLE_ITEMS; None if that is not kept.

    key: the item's. A removal gives a row for phones alone: other items end by their time to live, or stay.
    """
    if store != PHONES or "#" in key[KEYS[PHONES][0]]["S"]:
        return None
    return _attributes(store, key, arrived, version) | {"user_id": None, "item": GONE}


def ends_phone(text: str) -> bool:
    """Whether a row's item says that a phone is gone: it was removed, or its token is dead."""
    return TOKEN not in item_of(text)


def _attributes(store: str, image: Image, arrived: datetime, version: str) -> dict[str, Any]:
    return {
        "store": store,
        "place": key_text(store, image),
        "version": version,
        "changed_at": stamp(arrived.replace(microsecond=0)),
    }


def item_text(image: Image) -> str:
    """Return an item as text. A long one is compressed, such as a book of rules: a column has 64 KB."""
    text = json.dumps(image, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_base64)
    is_long = len(text.encode()) > LONG_BYTES
    return PACKED + b64encode(zlib.compress(text.encode())).decode() if is_long else text


def item_of(text: str) -> dict[str, dict[str, Any]]:
    """Return the item of a text, with bytes where it has some. Raises ValueError, zlib.error."""
    if text.startswith(PACKED):
        text = zlib.decompress(b64decode(text.removeprefix(PACKED))).decode()
    item: dict[str, dict[str, Any]] = json.loads(text)
    return {name: _with_bytes(value) for name, value in item.items()}


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _with_bytes(value: dict[str, Any]) -> dict[str, Any]:
    return {"B": b64decode(value["B"])} if "B" in value else value


def key_text(store: str, image: Image) -> str:
    """Return an item's key as one text. Raises KeyError."""
    values = [next(iter(image[name].values())) for name in KEYS[store]]
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False)


def _is_kept(store: str, image: Image) -> bool:
    if store == "DailyActivity":
        return image["activity_date"].get("S") == ACHIEVEMENTS_PLACE
    if store == "Erasures":
        return image["part"].get("S") == ERASURE_LOG
    if store == PHONES:
        return "owner" in image and CHANGED in image
    return store != "IdempotencyKeys" or OTHERS.isdisjoint(image["user_id"]["S"])


def _user(store: str, image: Image) -> str | None:
    """Return whose item it is; None: nobody's."""
    if store == PHONES:
        return str(image["owner"]["S"])
    first = str(image[KEYS[store][0]]["S"])
    return None if store in ("RuleBooks", "Erasures") or not OTHERS.isdisjoint(first) else first
