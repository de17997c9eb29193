"""Changes of items on their way from the writer to the standby, and their text (rule 23)."""

import binascii
import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LEDGER = "RewardsLedger"
# Of each table that a standby has: its keys. Boards and Limits are made anew within minutes, and stay out.
KEYS: Mapping[str, tuple[str, ...]] = {
    LEDGER: ("account_id", "created_at"),
    "UserStreaks": ("user_id",),
    "DailyActivity": ("user_id", "activity_date"),
    "BPEvents": ("user_id", "event_id"),
    "IdempotencyKeys": ("user_id", "idempotency_key"),
    "Rewards": ("holder", "place"),
    "RuleBooks": ("book", "version"),
    "Erasures": ("part", "place"),
    "Event": ("lead_organization_id", "occurred_at#id"),
    "Memory": ("lead_organization_id", "memory_type#key"),
    "Feature": ("lead_organization_id",),
    "GroupEvents": ("root_id", "event_type#occurred_at#id"),
    "Questions": ("question_id",),
    "Responses": ("question_id", "response_id"),
    "Subscriptions": ("subscription_id",),
    "UserStats": ("fingerprint_hash",),
    "WebhookEndpoints": ("registry", "endpoint_id"),
    "Notifications": ("holder", "place"),
}
# An attribute of items that came from the writer: the number of the change.
FOLLOWED = "followed"
# Marks of deletions, among the claims: so nothing that comes late brings an item back.
GONE = "gone/"
GONE_KEY = "gone"
Image = Mapping[str, Mapping[str, Any]]
# What SQS takes everywhere, less some room.
MESSAGE_BYTES_MAX = 240_000
LONG_BYTES = 60_000


@dataclass(frozen=True, slots=True)
class ItemChange:
    """One change of an item."""

    table: str  # its name in the template
    epoch: int
    at: int  # microseconds of the epoch, as the table says
    key: Image  # the item's key as DynamoDB writes it
    image: Image | None  # the item after the change; None: it is gone
    is_new: bool  # whether it was not there before

    @property
    def number(self) -> str:
        """The change's number, as text that sorts: later epochs are later, whatever their clocks say."""
        return number_of(self.epoch, self.at)

    @property
    def owner(self) -> str:
        """The value of the partition key: whose item it is."""
        return str(next(iter(self.key[KEYS[self.table][0]].values())))


def number_of(epoch: int, at: int) -> str:
    """Return a change's number. at: microseconds; 0 stands before every change of the epoch."""
    return f"{epoch:08d}/{at:017d}"


# Changes as text, on their way from one region to the other (rule 23).
#
#     {"epoch": 3, "changes": [{"table": "BPEvents", "at": 1767225600000001, "key": {...}, "image": {...},
#     "new": 1}]}
#
# Values are as DynamoDB writes them, bytes in base64. Long ones are compressed: a text in place of the list.


class TooLarge(ValueError):
    """A change that no message can hold."""


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
    """Yield messages with the texts of changes of one epoch, in their order."""
    held: list[str] = []
    size = 0
    for text in changes:
        if held and size + len(text) > LONG_BYTES:
            yield _message(epoch, held)
            held, size = [], 0
        held.append(text)
        size += len(text)
    if held:
        yield _message(epoch, held)


def _message(epoch: int, changes: list[str]) -> str:
    listed = f"[{','.join(changes)}]"
    if len(listed) > LONG_BYTES + len(changes) + 1:
        listed = json.dumps(b64encode(zlib.compress(listed.encode())).decode())
    return f'{{"epoch":{epoch},"changes":{listed}}}'


def changes_of(message: Mapping[str, Any]) -> list[ItemChange]:
    """Return the changes of a message, read from its text as JSON. Raises ValueError with what is wrong."""
    try:
        listed = message["changes"]
        if isinstance(listed, str):
            listed = json.loads(zlib.decompress(b64decode(listed)))
        return [_change(int(message["epoch"]), each) for each in listed]
    except (KeyError, TypeError, AttributeError, zlib.error, binascii.Error) as error:
        raise ValueError(f"no message of changes: {type(error).__name__}") from None


def _change(epoch: int, fields: Mapping[str, Any]) -> ItemChange:
    table, image = fields["table"], fields["image"]
    if table not in KEYS:
        raise ValueError(f"table {table!r} is followed by nobody")
    key = with_bytes(fields["key"])
    return ItemChange(
        table,
        epoch,
        int(fields["at"]),
        key,
        None if image is None else with_bytes(image),
        bool(fields["new"]),
    )


def with_bytes(image: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return an item of JSON with bytes where it has some: as DynamoDB's client takes it."""
    return {name: _value(each) for name, each in image.items()}


def _value(typed: Mapping[str, Any]) -> dict[str, Any]:
    ((kind, some),) = typed.items()
    if kind == "B":
        return {"B": b64decode(some)}
    if kind == "M":
        return {"M": with_bytes(some)}
    return {kind: [_value(each) for each in some] if kind == "L" else some}


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
