"""Changes as text, on their way from one region to the other (rule 23).

    {"epoch": 3, "changes": [{"table": "BPEvents", "at": 1767225600000001, "key": {...}, "image": {...},
    "new": 1}]}

Values are as DynamoDB writes them, bytes in base64. Long ones are compressed: a text in place of the list.
"""

import binascii
import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rules.regions.changes import KEYS, ItemChange

# What SQS takes everywhere, less some room.
MESSAGE_BYTES_MAX = 240_000
LONG_BYTES = 60_000


class TooLarge(ValueError):
    """A change that no message can hold."""


def messages(changes: Iterable[ItemChange]) -> Iterator[str]:
    """Yield texts, each with changes of one epoch, in their order. Raises TooLarge."""
    held: list[ItemChange] = []
    size = 0
    for change in changes:
        length = len(_listed([change]))
        if held and (size + length > LONG_BYTES or change.epoch != held[0].epoch):
            yield _message(held)
            held, size = [], 0
        held.append(change)
        size += length
    if held:
        yield _message(held)


def _message(changes: list[ItemChange]) -> str:
    listed = _listed(changes)
    if len(listed) > LONG_BYTES:
        listed = json.dumps(b64encode(zlib.compress(listed.encode())).decode())
    text = f'{{"epoch":{changes[0].epoch},"changes":{listed}}}'
    if len(text) > MESSAGE_BYTES_MAX:
        raise TooLarge(f"{changes[0].table}: {len(text)} bytes, and a message takes {MESSAGE_BYTES_MAX}")
    return text


def _listed(changes: list[ItemChange]) -> str:
    told = [
        {"table": each.table, "at": each.at, "key": each.key, "image": each.image, "new": int(each.is_new)}
        for each in changes
    ]
    return json.dumps(told, separators=(",", ":"), default=_base64)


def changes_of(message: Mapping[str, Any]) -> list[ItemChange]:
    """Return the changes of a message, read from its text as JSON. Raises ValueError with what is wrong."""
    try:
        listed = message["changes"]
        if isinstance(listed, str):
            listed = json.loads(zlib.decompress(b64decode(listed)))
        return [_change(int(message["epoch"]), each) for each in listed]
    except (KeyError, TypeError, AttributeError, zlib.error, binascii.Error) as error:
        raise ValueError(f"no message of changes: {type(error).__name__}") from None


def _change(epoch: int, told: Mapping[str, Any]) -> ItemChange:
    table, image = told["table"], told["image"]
    if table not in KEYS:
        raise ValueError(f"table {table!r} is followed by nobody")
    key = with_bytes(told["key"])
    return ItemChange(
        table, epoch, int(told["at"]), key, None if image is None else with_bytes(image), bool(told["new"])
    )


def with_bytes(image: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return an item of JSON with bytes where it has some: as DynamoDB's client takes it."""
    return {name: _value(each) for name, each in image.items()}


def _value(told: Mapping[str, Any]) -> dict[str, Any]:
    ((kind, some),) = told.items()
    if kind == "B":
        return {"B": b64decode(some)}
    if kind == "M":
        return {"M": with_bytes(some)}
    return {kind: [_value(each) for each in some] if kind == "L" else some}


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
