"""What callers were told of holds."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass
class Promises:
    """What was answered about holds, by hold: its points, and the entries, points or ends that were told.

    open_until: the deadlines of holds that nobody has tried to end.
    """

    held: dict[tuple[str, str], int] = field(default_factory=dict)
    open_until: dict[tuple[str, str], datetime] = field(default_factory=dict)
    captured: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    released: set[tuple[str, str]] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)
