"""The boards that a book declares: who has the most points of a week, a month or a season."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any

BOARDS_MAX = 5
SEASON_DATES_MAX = 366


class BoardPeriod(StrEnum):
    """The periods of a board that begins anew."""

    WEEK = "week"  # from Monday (ISO 8601)
    MONTH = "month"  # of the calendar


@dataclass(frozen=True, slots=True)
class BoardRule:
    """A board of the book. It has `per`, or the two dates of its only period."""

    name: str
    per: BoardPeriod | None = None
    first: date | None = None  # of the only period: the book's `from`
    last: date | None = None  # the book's `until`, included
    group: str = ""  # the attribute of users by which the board is divided; "": it is undivided


def board_rules(section: Mapping[str, Any] | None) -> tuple[BoardRule, ...]:
    """Return the boards of a document's section `boards`, by name; None: it has none."""
    return tuple(_board(name, board) for name, board in sorted((section or {}).items()))


def _board(name: str, section: Mapping[str, Any]) -> BoardRule:
    first, last = (date.fromisoformat(section[end]) if end in section else None for end in ("from", "until"))
    per = BoardPeriod(section["per"]) if "per" in section else None
    return BoardRule(name, per, first, last, section.get("group", ""))
