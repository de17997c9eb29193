"""Places in a table's stream: which of two records is newer.

A place is the stream's label, which is the time when it was made, and a record's sequence number, such as
`2026-03-01T00:00:00.000/300000000000000499659`. "" stands for an unknown place, and is older than all.
"""

from collections.abc import Sequence
from functools import reduce


def newer(one: str, other: str) -> str:
    """Return the newer of two places."""
    return max(one, other, key=_key)


def newest(places: Sequence[str]) -> str:
    """Return the newest of some places; "" if one of them is unknown."""
    return reduce(newer, places) if all(places) else ""


def is_beyond(place: str, other: str) -> bool:
    """Whether a place is newer than another one of the same stream."""
    label, number = _key(place)
    of, reached = _key(other)
    return bool(place) and label == of and number > reached


def _key(place: str) -> tuple[str, int]:
    label, _, number = place.partition("/")
    return label, int(number or 0)
