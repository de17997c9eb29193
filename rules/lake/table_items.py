"""The entity of table items, which a restore needs and which no other entity of the lake has (rule 21).

| table | items in the lake, and their attributes |
|---|---|
| UserStreaks | settings, and what the ledger lacks: alias, version, settled lots, a doubt's review |
| DailyActivity | the achievements that a user was shown, and the place in the leagues |
| IdempotencyKeys | a user's claims and stretches offline |
| Rewards | redemptions, and how much was taken of stocks |
| RuleBooks | every version of the book, and amnesties |
| Erasures | the log of tombstones, which names no person |

Tables of parts are in their manifests. Each change is a row with the item as DynamoDB writes it:
{"name": {"S": "text"}}. A removal that is kept is a row with an item without attributes.
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from rules.days import stamp
from rules.lake.engagement_entities import LEAGUE, VERSION_BYTES
from rules.lake.kept_tables import Image, KeptTable
from rules.lake.schema import Entity, Field, Required, Type
from rules.parts import said
from rules.user_ids import GONE, user_of_holder, user_of_partition

TEXT, _, _, _, TIMESTAMP = Type

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
        *("reviewed_since", "board_settings"),
        *("holds", "expiry_settled_on", "expiry_settled_points"),
    }
)
REMOVED = "{}"  # the text of an item that was removed
LONG_BYTES = 30_000  # a longer text is compressed, because a column has 64 KB
ZLIB_PREFIX = "zlib:"  # a compressed text begins with it
ACHIEVEMENTS_DATE = "totals"  # the item of DailyActivity with achievements has this in place of a date
ERASURE_LOG = "journal"  # the partition of the table Erasures with its log


def is_of_other_thing(store: str, partition: str) -> bool:
    """Whether a partition key has, in the place of a user, another thing.

    That is a stock, a lead's claim, a hook's count, a note of an import, or a mark of a deletion.
    """
    is_stock = store == "Rewards" and user_of_holder(partition) is None
    return is_stock or "#" in partition or partition.startswith(GONE)


def _user_of(store: str, partition: str) -> str | None:
    """Return the user whose partition it is; None: it is no user's."""
    user = user_of_partition(partition)
    if is_of_other_thing(store, user):
        return None
    return user_of_holder(user) if store == "Rewards" else user


def _of_user(store: str, key: str) -> Callable[[Image], str | None]:
    """Return what returns the user of an item. key: the attribute with the partition key."""
    return lambda image: _user_of(store, str(image[key]["S"]))


TABLES: Mapping[str, KeptTable] = {
    "UserStreaks": KeptTable(("user_id",), PROFILE_ATTRIBUTES, user_of=_of_user("UserStreaks", "user_id")),
    "DailyActivity": KeptTable(
        ("user_id", "activity_date"),
        is_kept=lambda image: image["activity_date"].get("S") in (ACHIEVEMENTS_DATE, LEAGUE),
        user_of=_of_user("DailyActivity", "user_id"),
    ),
    "IdempotencyKeys": KeptTable(
        ("user_id", "idempotency_key"),
        is_kept=lambda image: not is_of_other_thing("IdempotencyKeys", image["user_id"]["S"]),
        user_of=_of_user("IdempotencyKeys", "user_id"),
    ),
    "Rewards": KeptTable(("holder", "place"), user_of=_of_user("Rewards", "holder")),
    "RuleBooks": KeptTable(("book", "version")),
    "Erasures": KeptTable(("part", "place"), is_kept=lambda image: image["part"].get("S") == ERASURE_LOG),
    **{name: table for tables in said("kept_tables") for name, table in tables.items()},
}
KEYS: Mapping[str, tuple[str, ...]] = {name: table.key for name, table in TABLES.items()}
# Tables whose items do not come back with their users, but with their part.
APART = tuple(name for name, table in TABLES.items() if table.is_restored_apart)


def table_item(store: str, image: Image, arrived: datetime, version: str) -> dict[str, Any] | None:
    """Return a changed item as attributes of a row of TABLE_ITEMS; None if the lake does not have such items.

    store: the table's name in the template. Raises KeyError for an item without its key.
    """
    table = TABLES.get(store)
    if table is None or not table.is_kept(image):
        return None
    names = table.attributes
    item = {name: value for name, value in image.items() if names is None or name in names}
    return {
        **_change(store, image, arrived, version),
        "user_id": table.user_of(image),
        "item": item_text(item),
    }


def removed_item(store: str, key: Image, arrived: datetime, version: str) -> dict[str, Any] | None:
    """Return the removal of an item as attributes of a row of TABLE_ITEMS; None if it gives no row.

    key: the item's. Most items stay, or end by their time to live.
    """
    if not TABLES[store].is_removal_kept(key):
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
