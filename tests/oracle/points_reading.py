"""Rule 5, read again: what events earn, by the table in docs/rules/points.md. Imports nothing of the product."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "rules" / "points.md"
ROW = re.compile(r"^\| `([A-Z_]+)` \| (\d+) \| (\d+) \|$", re.MULTILINE)
TABLE = {name: (int(points), int(most)) for name, points, most in ROW.findall(DOCUMENT.read_text())}
FOR_SERVERS = {"FRIEND_INVITED", "PURCHASE_COMPLETED", "QUESTION_ANSWERED"}


@dataclass(frozen=True)
class TimedBoost:
    """What events between two instants are worth more. types: all, if empty."""

    since: datetime
    until: datetime
    factor: int
    types: frozenset[str] = frozenset()


def worth(event_type: str, when: datetime, boosts: Sequence[TimedBoost]) -> int:
    """The points of an event before any cap: the largest boost in force, never two."""
    in_force = [
        each.factor
        for each in boosts
        if each.since <= when < each.until and (not each.types or event_type in each.types)
    ]
    return TABLE[event_type][0] * max(in_force, default=1)


def capped(event_type: str, points: int, earned: int) -> int:
    """What is left of an event's points when so much has been earned on its date by its type."""
    return min(points, TABLE[event_type][1] - earned)
