"""What an event contributes to streaks (docs/rules.md, rule 14). It is fixed when the event is accepted.

As a text: `n` for an event that is counted, `n,minutes=30500` for one of 30.5 minutes: sums are in
thousandths. A day adds them up by event type: `{"READ": 2, "READ minutes": 45000}`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rules.book.point_rules import COUNTED, thousandths


def measures_of(properties: Mapping[str, Any] | None, measured: Sequence[str] | None) -> str | None:
    """Return an event's measures; None where nothing is counted. measured: see Book.measured.

    A property that is missing, or is no number, adds nothing.
    """
    if measured is None:
        return None
    said = {name: _amount((properties or {}).get(name)) for name in measured}
    return ",".join([COUNTED, *(f"{name}={amount}" for name, amount in said.items() if amount)])


def _amount(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return max(0, thousandths(value))


def day_key(event_type: str, summed: str | None = None) -> str:
    """Return how a day names a type's number of events, or the sum of a property."""
    return f"{event_type} {summed}" if summed else event_type


def amounts(event_type: str, measures: str) -> dict[str, int]:
    """Return what an event adds to its day; raises ValueError for a text that is no measures."""
    counted, *sums = measures.split(",")
    if counted != COUNTED:
        raise ValueError(f"no measures: {measures!r}")
    found = {day_key(event_type): 1}
    for each in sums:
        name, _, amount = each.partition("=")
        found[day_key(event_type, name)] = int(amount)
    return found


def with_measures(
    day: Mapping[str, int], event_type: str, measures: str | None, times: int = 1
) -> Mapping[str, int]:
    """Return a day's measures with those of one more event. times: -1 for one that is reversed."""
    if measures is None:
        return day
    added = amounts(event_type, measures)
    return {**day, **{key: day.get(key, 0) + times * amount for key, amount in added.items()}}
