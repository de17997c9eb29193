"""Plain values to DynamoDB's wire format and back: 7 is {"N": "7"}.

We convert by hand, because boto3's TypeSerializer takes eight times as long and turns every number into a
Decimal; almost all our numbers are whole.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

Item = dict[str, dict[str, Any]]


def encode_value(plain: Any) -> dict[str, Any]:
    """Return one value in wire format; raises TypeError for a type that our tables do not have."""
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
        return {"L": [{"NULL": True} if entry is None else encode_value(entry) for entry in plain]}
    raise TypeError(f"{type(plain).__name__} does not go into a table")


def encode_item(plain: Mapping[str, Any]) -> Item:
    """Return an item in wire format; attributes that are None are left out."""
    # Most values are texts: they are encoded here, because a call for each takes half of the time.
    return {
        name: {"S": value} if type(value) is str else encode_value(value)
        for name, value in plain.items()
        if value is not None
    }


def decode_item(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return an item's plain values. A number with decimals stays in wire format: {"N": "11.77"}.

    So do types that our code never writes. An attribute that is null is left out. Within a list or a map it
    is None. Our code writes no null attribute, but people and other tools may.
    """
    return {
        name: value["S"] if "S" in value else _decode_value(value)
        for name, value in stored.items()
        if "NULL" not in value
    }


def _decode_value(stored: Mapping[str, Any]) -> Any:
    ((type_name, inner),) = stored.items()
    if type_name in ("S", "BOOL"):
        return inner
    if type_name == "N":
        return int(inner) if inner.lstrip("-").isdigit() else dict(stored)
    if type_name == "L":
        return [_decode_value(entry) for entry in inner]
    if type_name == "M":
        return {name: _decode_value(value) for name, value in inner.items()}
    return None if type_name == "NULL" else dict(stored)


def item_bytes(stored: Item) -> int:
    """Return an item's size as DynamoDB counts it: names and values, numbers at two digits a byte."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in stored.items())


def _value_bytes(stored: dict[str, Any]) -> int:
    ((type_name, inner),) = stored.items()
    if type_name == "S":
        return len(inner.encode())
    if type_name == "N":
        return 1 + (len(inner.lstrip("-")) + 1) // 2
    if type_name == "B":
        return len(inner)
    if type_name == "L":
        return 3 + sum(1 + _value_bytes(entry) for entry in inner)
    if type_name == "M":
        return 3 + sum(1 + len(name.encode()) + _value_bytes(value) for name, value in inner.items())
    return 1
