"""Measures: how much an event adds to what the book counts and sums (docs/rules.md, rules 5 and 14).

They are a text beside the event: `n` for an event that is counted, `n,minutes=30500` for one of 30.5 minutes,
because sums are in thousandths.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rules.book.goal_rules import thousandths

COUNTED = "n"  # the first part of every event's measures


def measures_of(properties: Mapping[str, Any] | None, measured: Sequence[str] | None) -> str | None:
    """Return an event's measures; None if the book counts nothing of it.

    measured: see Book.measured. A property that is missing, or is no number, adds nothing.
    """
    if measured is None:
        return None
    amount_of = {name: _amount((properties or {}).get(name)) for name in measured}
    return ",".join([COUNTED, *(f"{name}={amount}" for name, amount in amount_of.items() if amount)])


def _amount(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return max(0, thousandths(value))


def sums_of(measures: str) -> dict[str, int]:
    """Return the amounts that measures have, in thousandths, by property.

    Raises ValueError for a text that measures_of did not write.
    """
    counted, *sums = measures.split(",")
    if counted != COUNTED:
        raise ValueError(f"no measures: {measures!r}")
    return {name: int(amount) for name, _, amount in (text.partition("=") for text in sums)}
