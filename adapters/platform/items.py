"""Plain values to DynamoDB's wire format and back: 7 is {"N": "7"}.

We convert by hand, because boto3's TypeSerializer takes eight times as long and turns every number into a
Decimal; almost all our numbers are whole.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

Item = dict[str, dict[str, Any]]


def encode_value(plain: Any) -> dict[str, Any]:
    """Write one value; raises TypeError for a type that our tables do not hold."""
    if isinstance(plain, str):
        return {"S": plain}
    if isinstance(plain, bool):
        return {"BOOL": plain}
    if isinstance(plain, int):
        return {"N": str(plain)}
    if isinstance(plain, Decimal):
        return {"N": format(plain, "f")}
    if isinstance(plain, Mapping):
        return {"M": encode_item(plain)}
    if isinstance(plain, (list, tuple)):
        return {"L": [{"NULL": True} if each is None else encode_value(each) for each in plain]}
    raise TypeError(f"{type(plain).__name__} does not go into a table")


def encode_item(plain: Mapping[str, Any]) -> Item:
    """Write an item; attributes that are None are left out."""
    # Most values are texts: they are written here, because a call for each takes half of the time.
    return {
        name: {"S": each} if type(each) is str else encode_value(each)
        for name, each in plain.items()
        if each is not None
    }


def decode_item(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Read an item. Other types stay in their wire format, such as a number with decimals: {"N": "11.77"}.

    An attribute that is null is left out, as `item` leaves out one that is None. Within a list or a map it is
    None. Our code writes none; hands and other tools do.
    """
    return {
        name: each["S"] if "S" in each else _decode_value(each)
        for name, each in stored.items()
        if "NULL" not in each
    }


def _decode_value(stored: Mapping[str, Any]) -> Any:
    ((kind, inner),) = stored.items()
    if kind in ("S", "BOOL"):
        return inner
    if kind == "N":
        return int(inner) if inner.lstrip("-").isdigit() else dict(stored)
    if kind == "L":
        return [_decode_value(each) for each in inner]
    if kind == "M":
        return {name: _decode_value(each) for name, each in inner.items()}
    return None if kind == "NULL" else dict(stored)


def item_bytes(stored: Item) -> int:
    """Return what DynamoDB counts for an item: names and values, numbers at two digits a byte."""
    return sum(len(name.encode()) + _value_bytes(each) for name, each in stored.items())


def _value_bytes(stored: dict[str, Any]) -> int:
    ((kind, inner),) = stored.items()
    if kind == "S":
        return len(inner.encode())
    if kind == "N":
        return 1 + (len(inner.lstrip("-")) + 1) // 2
    if kind == "B":
        return len(inner)
    if kind == "L":
        return 3 + sum(1 + _value_bytes(each) for each in inner)
    if kind == "M":
        return 3 + sum(1 + len(name.encode()) + _value_bytes(each) for name, each in inner.items())
    return 1
