"""The leagues that a book declares on one of its boards."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DIVISIONS_MAX = 20
SIZE_MIN, SIZE_MAX = 5, 50  # members of a cohort


@dataclass(frozen=True, slots=True)
class LeagueRules:
    """The section `leagues` of a book."""

    board: str  # a board of the book, per week and without group
    divisions: tuple[str, ...]  # from the lowest
    size: int  # the most members of a cohort
    up: int  # how many of a full cohort go up
    down: int  # how many of a full cohort go down

    def division_of(self, name: str, number: int) -> int:
        """Return the number of a division that an earlier version may have declared, from 0.

        name, number: as that version had it. A name that is there no more is taken by its number.
        """
        return self.divisions.index(name) if name in self.divisions else min(number, len(self.divisions) - 1)


def league_rules(section: Mapping[str, Any] | None) -> LeagueRules | None:
    """Return the rules of a document's section `leagues`; None: it has none."""
    return LeagueRules(**{**section, "divisions": tuple(section["divisions"])}) if section else None
