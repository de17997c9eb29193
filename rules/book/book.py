"""What a book of rules says. A document (book_schema.py) is read into these by reading.py.

A book is data, published while the system runs. Each event is judged by one version of it (versions.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from rules.book.achievement_rules import AchievementRule, ConditionKind
from rules.book.answers import NO_ANSWERS, AnswerRules
from rules.book.caps import Cap, Period
from rules.book.rewards import Reward
from rules.book.streak_rules import NeedKind, StreakRule

TYPE_NAME = "^[A-Za-z][A-Za-z0-9_.-]{0,63}$"


class Declarer(StrEnum):
    """Who may say that an event has happened."""

    ANYBODY = "anybody"
    # It stands for something of value that only a server has seen: from a user it would prove nothing.
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class EventType:
    """What one type of event is worth, and who may send it.

    points: of one event. cap_points, cap_events: the most that a user's events of a period `per` earn, in
    points or in events; None: no such limit. keeps_streak: whether an event makes its date an active one.
    properties: JSON Schema of the properties that senders promise, None for any.
    """

    points: int
    cap_points: int | None = None
    cap_events: int | None = None
    per: Period = Period.DAY
    declared_by: Declarer = Declarer.ANYBODY
    keeps_streak: bool = True
    properties: Mapping[str, Any] | None = None

    def cap(self, factor: int = 1) -> Cap | None:
        """Return the cap of an event whose points a boost multiplies.

        A cap in events is so many times what the event is worth. So a boost lifts it, and a cap in points
        stays.
        """
        if self.cap_events is not None:
            return Cap(self.cap_events * self.points * factor, self.per)
        return None if self.cap_points is None else Cap(self.cap_points, self.per)


@dataclass(frozen=True, slots=True)
class Boost:
    """Multiplies the points of events that occurred in [since, until). No event_types: of all types."""

    since: datetime
    until: datetime
    factor: int
    event_types: frozenset[str] = frozenset()

    def applies(self, event_type: str, occurred: datetime) -> bool:
        """Whether an event's points are multiplied."""
        in_time = self.since <= occurred < self.until
        return in_time and (not self.event_types or event_type in self.event_types)


@dataclass(frozen=True, slots=True)
class Freezes:
    """What a user's streak freezes cost. free_a_month: for nothing in a month (UTC).

    price_points: of each further one. held_max: how many may wait to be used.
    """

    held_max: int
    free_a_month: int
    price_points: int

    def price(self, taken_free: int) -> int:
        """Return what the next freeze costs, if so many were taken for nothing this month."""
        return 0 if taken_free < self.free_a_month else self.price_points


@dataclass(frozen=True, slots=True)
class Pauses:
    """dates_max: of one pause. dates_a_year: how many of any 365 dates in a row may be paused."""

    dates_max: int
    dates_a_year: int


@dataclass(frozen=True, slots=True)
class Offline:
    """How much a time receipt proves (rule 16).

    days_max: how old an event may be. days_a_year: how many days of a year a user may have been offline.
    """

    days_max: int
    days_a_year: int


NO_FREEZES, NO_PAUSES = Freezes(0, 0, 0), Pauses(0, 0)
# A week at sea counts, and a fortnight. A book need not say so.
USUAL_OFFLINE = Offline(14, 60)


@dataclass(frozen=True, slots=True)
class Book:
    """All rules that are data.

    expiry: by which rule points expire (rules.book.expiry), None for never. rewards, achievements: by id.
    streaks: those beside the daily one. offline: what time receipts prove. answers: what they earn in stats.
    """

    event_types: Mapping[str, EventType]
    boosts: tuple[Boost, ...] = ()
    freezes: Freezes = NO_FREEZES
    pauses: Pauses = NO_PAUSES
    expiry: str | None = None
    rewards: Mapping[str, Reward] = field(default_factory=dict)
    streaks: Mapping[str, StreakRule] = field(default_factory=dict)
    achievements: Mapping[str, AchievementRule] = field(default_factory=dict)
    offline: Offline = USUAL_OFFLINE
    answers: AnswerRules = NO_ANSWERS

    def __post_init__(self) -> None:
        for name in ("event_types", "rewards", "streaks", "achievements"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def factor(self, event_type: str, occurred: datetime) -> int:
        """Return what an event's points are multiplied by."""
        return max((each.factor for each in self.boosts if each.applies(event_type, occurred)), default=1)

    def points(self, event_type: str, occurred: datetime) -> int:
        """Return an event's points before its cap. Raises KeyError for a type that the book lacks."""
        return self.event_types[event_type].points * self.factor(event_type, occurred)

    def cap(self, event_type: str, occurred: datetime) -> Cap | None:
        """Return an event's cap, None for none. Raises KeyError for a type that the book lacks."""
        return self.event_types[event_type].cap(self.factor(event_type, occurred))

    def measured(self, event_type: str) -> tuple[str, ...] | None:
        """Return which properties of a type's events are summed; None if its events are not even counted.

        While a book declares no streaks and achievements, nothing is counted, and nothing is stored for it.
        """
        if not self.streaks and not self.achievements:
            return None
        of_streaks = {
            rule.need.property or ""
            for rule in self.streaks.values()
            if rule.need.kind is NeedKind.SUM and event_type in rule.event_types
        }
        of_achievements = {
            each.property or ""
            for rule in self.achievements.values()
            for each in rule.conditions
            if each.kind is ConditionKind.SUM and each.event_type == event_type
        }
        return tuple(sorted(of_streaks | of_achievements))
