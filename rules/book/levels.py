"""Levels that a book declares, and which of them a user has reached (docs/rules.md, rule 24).

A level is not stored: it follows from the points that a user has ever earned, and from the book in force when
somebody asks.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the book."""

    name: str
    points: int  # the least that a user must have earned ever; the book's `from`
    title: str = ""  # plain text that people read; "": none
    image_url: str = ""  # a picture of it (https, or data:image/); "": none


class Standing(NamedTuple):
    """Where points stand among a book's levels."""

    level: Level | None  # None: below the first, or the book has none
    following: Level | None  # None: the level is the highest


def standing_of(levels: Sequence[Level], points: int) -> Standing:
    """Return where points stand. levels: a book's, in ascending order. points: ever earned."""
    reached = bisect_right([level.points for level in levels], points)
    return Standing(
        levels[reached - 1] if reached else None, levels[reached] if reached < len(levels) else None
    )
