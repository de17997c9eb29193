"""What a command on points is, and what it comes to (rule 6)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from rules.engagement.account_state import Day
from rules.engagement.ledger import Draft, Entry


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The entry that a command wrote. duplicate: an earlier attempt with the same key wrote it."""

    entry: Entry
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """The entry that a command writes.

    place: of the month's free freezes, the one that it takes. ends: the id of the hold that it captures.
    before: entries that belong to it, and come first. undoes: the entry that it reverses. days: those that
    its entries change, as they were read. also: returns the further actions of its transaction, once the
    entry has its place.
    """

    draft: Draft
    place: str | None = None
    ends: str | None = None
    before: tuple[Draft, ...] = ()
    undoes: Entry | None = None
    days: Mapping[date, Day | None] = field(default_factory=dict)
    also: Callable[[Entry], Sequence[dict[str, Any]]] = lambda _: ()
