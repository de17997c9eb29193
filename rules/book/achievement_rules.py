"""Achievements that a book declares (docs/rules.md, rule 15): thresholds, all of them or any."""

from dataclasses import dataclass
from enum import StrEnum


class ConditionKind(StrEnum):
    """What a condition measures."""

    POINTS = "points_earned"
    COUNT = "count"
    SUM = "sum"
    STREAK = "streak"


@dataclass(frozen=True, slots=True)
class Condition:
    """A threshold. at_least: of a sum in thousandths. event_type, property, streak: what it is of."""

    kind: ConditionKind
    at_least: int
    event_type: str | None = None
    property: str | None = None
    streak: str | None = None


@dataclass(frozen=True, slots=True)
class AchievementRule:
    """needs_all: of its conditions, or any of them. stays: whether one that was shown is never withdrawn.

    of_history: whether it is dated in the time before it was declared, too.
    """

    conditions: tuple[Condition, ...]
    needs_all: bool = True
    stays: bool = True
    of_history: bool = False
    title: str = ""
