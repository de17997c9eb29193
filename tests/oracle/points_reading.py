"""Rules 5 and 24, read again: what events earn, and levels, by the tables of docs/rules/points.md.

Imports nothing of the product.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).parents[2] / "docs" / "rules" / "points.md"
ROW = re.compile(r"^\| `([A-Z_]+)` \| (\d+) \| (\d+) \|$", re.MULTILINE)
TABLE = {name: (int(points), int(most)) for name, points, most in ROW.findall(DOCUMENT.read_text())}
LEVEL_ROW = re.compile(r"^\| `([a-z]+)` \| (\w+) \| (\d+) \|$", re.MULTILINE)
LEVELS = [(name, title, int(least)) for name, title, least in LEVEL_ROW.findall(DOCUMENT.read_text())]
FOR_SERVERS = {"FRIEND_INVITED", "PURCHASE_COMPLETED", "QUESTION_ANSWERED"}


@dataclass(frozen=True)
class TimedBoost:
    """What events between two instants are worth more. types: all, if empty."""

    since: datetime
    until: datetime
    factor: int
    types: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ByAmount:
    """What events of a type earn by a number in their properties."""

    base: int
    of: str
    each: str  # a decimal number
    earns: int

    def price(self, properties: Mapping[str, Any]) -> int:
        """The points of an event: of each whole part that is there."""
        return self.base + int(Fraction(str(properties.get(self.of, 0))) / Fraction(self.each)) * self.earns


def worth(event_type: str, when: datetime, boosts: Sequence[TimedBoost], price: int | None = None) -> int:
    """The points of an event before any cap: the largest boost in force, never two.

    price: of the event by its amount; None: that of the table.
    """
    in_force = [
        each.factor
        for each in boosts
        if each.since <= when < each.until and (not each.types or event_type in each.types)
    ]
    return (TABLE[event_type][0] if price is None else price) * max(in_force, default=1)


def capped(event_type: str, points: int, earned: int) -> int:
    """What is left of an event's points when so much has been earned on its date by its type."""
    return min(points, TABLE[event_type][1] - earned)


def level_of(points: int) -> Any:
    """The level of points ever earned, as a profile shows it; None: there is none."""
    reached = [(name, title, least) for name, title, least in LEVELS if least <= points]
    above = sorted((least, name, title) for name, title, least in LEVELS if least > points)
    if not reached:
        return None
    name, title, least = max(reached, key=lambda level: level[2])
    following = None
    if above:
        start, next_name, next_title = above[0]
        following = {"name": next_name, "title": next_title, "from": start, "missing": start - points}
    return {"name": name, "title": title, "from": least, "next": following}
