"""JSON that writes decimal numbers digit by digit: 11.77, where a float would be the nearest it can be."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any


def exact_json(value: Any) -> str:
    """Write JSON as compactly as `answer` does; Decimals, which must be finite, become numbers."""
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{value} is no JSON number")
        return format(value, "f")
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(name)}:{exact_json(each)}" for name, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(exact_json, value)) + "]"
    return json.dumps(value, allow_nan=False)
