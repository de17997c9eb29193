"""The entity of table items, which a restore needs and which no other entity of the lake has (rule 21).

| table | items in the lake, and their attributes |
|---|---|
| UserStreaks | settings, and what the ledger lacks: alias, version, settled lots, a doubt's review |
| DailyActivity | the achievements that a user was shown |
| IdempotencyKeys | a user's claims and stretches offline |
| Rewards | redemptions, and how much was taken of stocks |
| RuleBooks | every version of the book, and amnesties |
| Erasures | the log of tombstones, which names no person |
| Subscriptions | phones: their owners' choices, tokens and endpoints |

Each change is a row with the item as DynamoDB writes it: {"name": {"S": "text"}}. If a phone is gone, a row
with an item without attributes says so. A week later the phone's older rows leave the lake
(analytics/forgetting/gone_phones.py).
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rules.days import stamp
from rules.lake.engagement_entities import VERSION_BYTES
from rules.lake.schema import Entity, Field, Required, Type
from rules.user_ids import GONE, user_of_holder, user_of_partition

TEXT, _, _, _, TIMESTAMP = Type
Image = Mapping[str, Mapping[str, Any]]  # an item in DynamoDB's wire format

TABLE_ITEMS = Entity(
    "table_items",
    "One row per change of an item of a table of which no other entity has all.",
    (
        Required("store", TEXT, "the table, by its name in the template", 64),
        Required("place", TEXT, "the item's key, a JSON list: partition key, sort key", 4096),
        Required("version", TEXT, "grows with each change of the item", VERSION_BYTES),
        Required("changed_at", TIMESTAMP, "the second in which the item was written"),
        Field("user_id", TEXT, "whose item it is; null: nobody's", 256),
        Required("item", TEXT, "the item, as DynamoDB writes it, JSON text"),
    ),
    key=("store", "place", "version"),
    occurred="changed_at",
    version="version",
    in_warehouse=False,
    may_age=False,
)

PHONES, TOKEN, CHANGED = "Subscriptions", "fcm_token", "is_changed"
KEYS: Mapping[str, tuple[str, ...]] = {
    "UserStreaks": ("user_id",),
    "DailyActivity": ("user_id", "activity_date"),
    "IdempotencyKeys": ("user_id", "idempotency_key"),
    "Rewards": ("holder", "place"),
    "RuleBooks": ("book", "version"),
    "Erasures": ("part", "place"),
    PHONES: ("subscription_id",),
}
# A profile's attributes that follow neither from the ledger nor from another entity of the lake, and its
# settings, which the ledger has as entries (tests/unit/lake/test_table_items.py).
PROFILE_ATTRIBUTES = frozenset(
    {
        *("user_id", "version", "streak_updated_at", "chosen_zone", "observed_zone", "observed_at"),
        *(
            "pauses",
            "rest_days",
            "brought_forward",
            "skipped_dates",
            "opening",
            "recent_tz_changes",
            "zones_seen",
            "skews_seen",
        ),
        *("amnesties", "backfilled", "tz_review", "review_since", "review_evidence", "released_at", "alias"),
        *("holds", "expiry_settled_on", "expiry_settled_points"),
    }
)
# A subscription's attributes that follow from nothing else. Its position in the index follows from them. The
# messages that were sent to it are in the entity notifications.
PHONE_ATTRIBUTES = frozenset(
    {
        *("subscription_id", "owner", TOKEN, "endpoint_arn", "audience", "min_interval_minutes", "timezone"),
        *("quiet_hours", "streak_reminders", "reminders_at", "language"),
        *("created_at", "updated_at", "dead_at"),
    }
)
# By table. Of the other tables' items, all attributes are in the lake.
ATTRIBUTES: Mapping[str, frozenset[str]] = {"UserStreaks": PROFILE_ATTRIBUTES, PHONES: PHONE_ATTRIBUTES}
REMOVED = "{}"  # the text of an item that was removed
LONG_BYTES = 30_000  # a longer text is compressed, because a column has 64 KB
ZLIB_PREFIX = "zlib:"  # a compressed text begins with it
ACHIEVEMENTS_DATE = "totals"  # the item of DailyActivity with achievements has this in place of a date
ERASURE_LOG = "journal"  # the partition of the table Erasures with its log


def table_item(store: str, image: Image, arrived: datetime, version: str) -> dict[str, Any] | None:
    """Return a changed item as attributes of a row of TABLE_ITEMS; None if the lake does not have such items.

    store: the table's name in the template. Raises KeyError for an item without its key.
    """
    if store not in KEYS or not _is_in_lake(store, image):
        return None
    names = ATTRIBUTES.get(store)
    item = {name: value for name, value in image.items() if names is None or name in names}
    return {
        **_change(store, image, arrived, version),
        "user_id": _user_of(store, image),
        "item": item_text(item),
    }


def removed_item(store: str, key: Image, arrived: datetime, version: str) -> dict[str, Any] | None:
    """Return the removal of an item as attributes of a row of TABLE_ITEMS; None if it gives no row.

    key: the item's. Only the removal of a phone gives a row: other items stay, or end by their time to live.
    """
    if store != PHONES or "#" in key[KEYS[PHONES][0]]["S"]:
        return None
    return {**_change(store, key, arrived, version), "user_id": None, "item": REMOVED}


def _change(store: str, image: Image, arrived: datetime, version: str) -> dict[str, Any]:
    """Return which item has changed, and when."""
    return {
        "store": store,
        "place": key_text(store, image),
        "version": version,
        "changed_at": stamp(arrived.replace(microsecond=0)),
    }


def _is_in_lake(store: str, image: Image) -> bool:
    if store == "DailyActivity":
        return image["activity_date"].get("S") == ACHIEVEMENTS_DATE
    if store == "Erasures":
        return image["part"].get("S") == ERASURE_LOG
    if store == PHONES:
        return "owner" in image and CHANGED in image
    return store != "IdempotencyKeys" or not is_of_other_thing(store, image["user_id"]["S"])


def is_of_other_thing(store: str, partition: str) -> bool:
    """Whether a partition key has, in the place of a user, another thing.

    That is a stock, a lead's claim, a hook's count, a note of an import, or a mark of a deletion.
    """
    is_stock = store == "Rewards" and user_of_holder(partition) is None
    return is_stock or "#" in partition or partition.startswith(GONE)


def _user_of(store: str, image: Image) -> str | None:
    """Return the user whose item it is; None: it is no user's."""
    if store == PHONES:
        return str(image["owner"]["S"])
    partition = user_of_partition(str(image[KEYS[store][0]]["S"]))
    if store in ("RuleBooks", "Erasures") or is_of_other_thing(store, partition):
        return None
    return user_of_holder(partition) if store == "Rewards" else partition


def ends_phone(text: str) -> bool:
    """Whether a row's item says that a phone is gone: it was removed, or its token is dead."""
    return TOKEN not in item_of(text)


def key_text(store: str, image: Image) -> str:
    """Return an item's key as one text. Raises KeyError."""
    values = [next(iter(image[name].values())) for name in KEYS[store]]
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False)


def item_text(image: Image) -> str:
    """Return an item as text. A long one, such as a book of rules, is compressed."""
    text = json.dumps(image, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_base64)
    is_long = len(text.encode()) > LONG_BYTES
    return ZLIB_PREFIX + b64encode(zlib.compress(text.encode())).decode() if is_long else text


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def item_of(text: str) -> dict[str, dict[str, Any]]:
    """Return the item of a text. A value of DynamoDB's type B is bytes. Raises ValueError, zlib.error."""
    if text.startswith(ZLIB_PREFIX):
        text = zlib.decompress(b64decode(text.removeprefix(ZLIB_PREFIX))).decode()
    item: dict[str, dict[str, Any]] = json.loads(text)
    return {name: _with_bytes(value) for name, value in item.items()}


def _with_bytes(value: dict[str, Any]) -> dict[str, Any]:
    return {"B": b64decode(value["B"])} if "B" in value else value
