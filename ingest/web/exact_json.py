"""Writes decimal numbers to JSON exactly: 11.77 stays 11.77, and does not become the nearest float."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any


def exact_json(value: Any) -> str:
    """Return JSON, as compact as that of `answer`. Decimals become numbers.

    Raises ValueError for a number that is not finite.
    """
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{value} is no JSON number")
        return format(value, "f")
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(name)}:{exact_json(each)}" for name, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(exact_json, value)) + "]"
    return json.dumps(value, allow_nan=False)
