"""Changes of items that the writing region sends to the standby (rule 23): their messages, and their order.

The writer writes the items of an event one after the other. A standby takes them over in the same order:

    an event's claim -> the event -> its ledger entry -> its day -> the profile
                                     a command's entry -> the command's claim
"""

import binascii
import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rules.days import is_stamp, stamp, stamp_of_key
from rules.engagement.ledger import EARNING, Entry, EntryKind
from rules.parts import said
from rules.user_ids import GONE, user_of_holder

LEDGER = "RewardsLedger"
# The key attributes of each table whose changes are sent. Boards and Limits are left out, because a new
# writer makes them again within minutes.
KEYS: Mapping[str, tuple[str, ...]] = {
    LEDGER: ("account_id", "created_at"),
    "UserStreaks": ("user_id",),
    "DailyActivity": ("user_id", "activity_date"),
    "BPEvents": ("user_id", "event_id"),
    "IdempotencyKeys": ("user_id", "idempotency_key"),
    "Rewards": ("holder", "place"),
    "Friends": ("user_id", "friend_id"),
    "RuleBooks": ("book", "version"),
    "Erasures": ("part", "place"),
    **{name: table.key for tables in said("followed_tables") for name, table in tables.items()},
    "WebhookEndpoints": ("registry", "endpoint_id"),
    "Notifications": ("holder", "place"),
}
# An attribute of items that a standby has taken over: the number of the change.
FOLLOWED = "followed"
# Marks of deletions are stored among the claims. So a late change does not bring a deleted item back. The key
# of a mark is the user_id `gone/` with a digest of the item's key, and the idempotency_key `gone`.
DELETED_PREFIX = GONE
DELETED_KEY = "gone"
Image = Mapping[str, Mapping[str, Any]]  # an item as DynamoDB writes it
# SQS takes 256 KiB in every region. This leaves room for what base64 and attributes add.
MESSAGE_BYTES_MAX = 240_000
LONG_BYTES = 60_000  # a longer list of changes is compressed, or cut
# An older item is applied without waiting for its claim or event. These have arrived long since, because an
# event waits at most 30 days before it is applied. After 90 days claims and events expire.
WAITED_FOR_MAX = timedelta(days=45)


@dataclass(frozen=True, slots=True)
class ItemChange:
    """One change of an item."""

    table: str  # its name in the template
    epoch: int
    at: int  # microseconds since 1970, by the table's clock
    key: Image
    image: Image | None  # the item after the change; None: it was deleted
    is_new: bool  # whether the change created the item

    @property
    def number(self) -> str:
        """The change's number, as text that sorts: later epochs are later, whatever their clocks say."""
        return f"{self.epoch:08d}/{self.at:017d}"

    @property
    def owner(self) -> str:
        """The value of the item's partition key, without its type; of a user's redemption the user's id."""
        partition_key, *_ = KEYS[self.table]
        owner = str(next(iter(self.key[partition_key].values())))
        return (user_of_holder(owner) or owner) if partition_key == "holder" else owner


class TooLarge(ValueError):
    """A change is too large for a message."""


def change_text(change: ItemChange) -> str:
    """Return a change as text. Raises TooLarge."""
    fields = {"table": change.table, "at": change.at, "key": change.key, "image": change.image}
    text = json.dumps({**fields, "new": int(change.is_new)}, separators=(",", ":"), default=_base64)
    if len(text) > LONG_BYTES:
        length = len(_message(change.epoch, [text]))
        if length > MESSAGE_BYTES_MAX:
            raise TooLarge(f"{change.table}: {length} bytes, and a message takes {MESSAGE_BYTES_MAX}")
    return text


def change_messages(epoch: int, changes: Iterable[str]) -> Iterator[str]:
    """Yield messages with the texts of changes of one epoch, in their order.

        {"epoch": 3, "changes": [{"table": "BPEvents", "at": 1767225600000001, "key": {...}, "image": {...},
        "new": 1}]}

    Values are as DynamoDB writes them, bytes in base64. A long list is compressed, and `changes` is a text.
    """
    batch: list[str] = []
    size = 0
    for text in changes:
        if batch and size + len(text) > LONG_BYTES:
            yield _message(epoch, batch)
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield _message(epoch, batch)


def _message(epoch: int, changes: list[str]) -> str:
    """Return a message. Only a single change can be longer than LONG_BYTES, and is then compressed."""
    json_list = f"[{','.join(changes)}]"
    # The texts of a batch have LONG_BYTES at most. The list adds a comma between two texts, and two brackets.
    if len(json_list) > LONG_BYTES + len(changes) + 1:
        json_list = json.dumps(b64encode(zlib.compress(json_list.encode())).decode())
    return f'{{"epoch":{epoch},"changes":{json_list}}}'


def changes_of(message: Mapping[str, Any]) -> list[ItemChange]:
    """Return the changes of a message, read from its text as JSON. Raises ValueError, with the reason."""
    try:
        changes = message["changes"]
        if isinstance(changes, str):
            changes = json.loads(zlib.decompress(b64decode(changes)))
        return [_change(int(message["epoch"]), fields) for fields in changes]
    except (KeyError, TypeError, AttributeError, zlib.error, binascii.Error) as error:
        raise ValueError(f"no message of changes: {type(error).__name__}") from None


def _change(epoch: int, fields: Mapping[str, Any]) -> ItemChange:
    table, image = fields["table"], fields["image"]
    if table not in KEYS:
        raise ValueError(f"table {table!r} is not copied to a standby")
    stored = None if image is None else with_bytes(image)
    return ItemChange(table, epoch, int(fields["at"]), with_bytes(fields["key"]), stored, bool(fields["new"]))


def with_bytes(image: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return an item of JSON as DynamoDB's client takes it: with its base64 texts as bytes."""
    return {name: _value(typed) for name, typed in image.items()}


def _value(typed: Mapping[str, Any]) -> dict[str, Any]:
    ((kind, value),) = typed.items()
    if kind == "B":
        return {"B": b64decode(value)}
    if kind == "M":
        return {"M": with_bytes(value)}
    return {kind: [_value(element) for element in value] if kind == "L" else value}


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def claim_needed(event: Image, now: datetime) -> str:
    """Return the idempotency key that must have a claim before a standby takes an event over; "" for none.

    Without the claim, a client that repeats its request at the new writer would get a second event.
    """
    return _text(event, "idempotency_key") if _text(event, "created_at") > stamp(now - WAITED_FOR_MAX) else ""


def events_needed(entries: Iterable[Entry], now: datetime) -> set[str]:
    """Return the ids of the events that a standby must have before it takes entries over.

    A processor takes an event as new if it arrived after the newest entry. So an event that arrived after its
    own entry would earn twice.
    """
    since = stamp(now - WAITED_FOR_MAX)
    return {
        entry.draft.event_id
        for entry in entries
        if entry.draft.kind is EntryKind.EARN and entry.draft.event_id and entry.created_at > since
    }


def days_needed(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the dates that entries count for, each with the ledger place that its day must have counted."""
    return {
        entry.draft.activity_date: entry.created_at
        for entry in entries
        if entry.draft.kind in EARNING and entry.draft.activity_date
    }


def place_needed(table: str, image: Image) -> str:
    """Return the place of the entry that a standby must have before it takes an item over; "" for none.

    Without the entry, the item would contradict the ledger: a profile has its balance, a claim answers with
    it, and a redemption was paid by it.
    """
    if table in ("UserStreaks", "DailyActivity"):
        return _text(image, "ledger_head")
    if table == "IdempotencyKeys":
        target = _text(image, "target")  # an entry's place; or an event's id, which has a # behind its time
        return target if "#" not in target and is_stamp(target) else ""
    if table == "Rewards" and "fulfilment" in image:
        return stamp_of_key(_text(image, "place"))
    return ""


def _text(image: Image, name: str) -> str:
    return str(image.get(name, {}).get("S", ""))
