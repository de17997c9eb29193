"""Points (docs/rules.md, rule 5): from this table alone, never from the client.

The points of a user, date and type add up to min(daily cap, sum of the events' points), in any order of
arrival. The event that crosses the cap gets what is left. Example: cap 60, 45 earned, event of 30: it gets
15.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType


class Declarer(StrEnum):
    """Who may say that an event has happened."""

    ANYBODY = "anybody"
    # It stands for something of value that only a server has seen: from a user it would prove nothing.
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class PointsRule:
    """Points of one event, and the most that one user can earn with its type on one date.

    declared_by: who may send it. SERVER means admins, producers and the Kinesis stream.
    """

    points: int
    daily_points_max: int
    declared_by: Declarer = Declarer.ANYBODY


@dataclass(frozen=True, slots=True)
class Boost:
    """Multiplies the points of events that occurred in [since, until). Empty event_types means all types."""

    since: datetime
    until: datetime
    factor: int
    event_types: frozenset[str] = frozenset()


RULES = MappingProxyType(
    {
        "APP_OPENED": PointsRule(points=1, daily_points_max=1),
        "CHECK_IN": PointsRule(points=5, daily_points_max=5),
        "CHALLENGE_COMPLETED": PointsRule(points=25, daily_points_max=100),
        "CONTRIBUTION": PointsRule(points=10, daily_points_max=100),
        "FRIEND_INVITED": PointsRule(50, 250, Declarer.SERVER),
        "LESSON_COMPLETED": PointsRule(points=10, daily_points_max=200),
        "PURCHASE_COMPLETED": PointsRule(20, 200, Declarer.SERVER),
        "QUESTION_ANSWERED": PointsRule(10, 150, Declarer.SERVER),
        "WORKOUT_COMPLETED": PointsRule(points=15, daily_points_max=60),
    }
)
FREEZES_HELD_MAX = 5


def is_servers(event_type: str) -> bool:
    """Whether only a server may declare events of this type (rule 5)."""
    return RULES[event_type].declared_by is Declarer.SERVER


def points_of(event_type: str, occurred: datetime, boosts: Sequence[Boost] = ()) -> int:
    """Return an event's points before the daily cap; the largest boost in force applies.

    Raises KeyError for a type that is not in the table.
    """
    factors = [
        boost.factor
        for boost in boosts
        if boost.since <= occurred < boost.until
        and (not boost.event_types or event_type in boost.event_types)
    ]
    return RULES[event_type].points * max(factors, default=1)


def capped_points(event_type: str, points: int, earned_today: int) -> int:
    """Return the points that an event gets under its type's daily cap.

    earned_today: points that this type has earned on the event's date so far. If the type has left the table
    since the event was stored, the event keeps all its points.
    """
    rule = RULES.get(event_type)
    return points if rule is None else max(0, min(points, rule.daily_points_max - earned_today))
