"""Where a fold can be taken up again (docs/rules.md, rule 3): checkpoints of months and years that are over.

A checkpoint is the streak's state at the last active date of a month. The newest two are kept, and of each
year the last one. So a late event, or a question about the past, needs the active dates after one checkpoint,
and not all of them: those of three months at most for what arrives within the late window, those of a year
for any date.

Checkpoints follow from the active dates and the cover alone, as the streak does. So the order in which events
arrive changes none of them.
"""

from dataclasses import dataclass
from datetime import date

NEWEST_KEPT = 2


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A streak after an active date (rules.engagement.streaks). spent: how many dates freezes covered."""

    last: date
    length: int
    longest: int
    active_days: int
    spent: int

    @property
    def text(self) -> str:
        """The checkpoint as it is stored: `2026-05-31 12 90 300 4`."""
        return f"{self.last.isoformat()} {self.length} {self.longest} {self.active_days} {self.spent}"

    @classmethod
    def of(cls, text: str) -> "Checkpoint":
        """Read a text; raises ValueError."""
        last, length, longest, active_days, spent = text.split(" ")
        return cls(date.fromisoformat(last), int(length), int(longest), int(active_days), int(spent))


def with_checkpoint(checkpoints: tuple[Checkpoint, ...], checkpoint: Checkpoint) -> tuple[Checkpoint, ...]:
    """Add a month's checkpoint. The third newest goes, unless it is the last of its year."""
    kept = [*checkpoints, checkpoint]
    third = -NEWEST_KEPT - 1
    if len(kept) > NEWEST_KEPT and kept[third].last.year == kept[third + 1].last.year:
        del kept[third]
    return tuple(kept)


def ends_month(last: date, later: date) -> bool:
    """Whether a date is the last active one of its month, if the next active one is `later`."""
    return (last.year, last.month) != (later.year, later.month)


def place_before(checkpoints: tuple[Checkpoint, ...], since: date) -> int | None:
    """Return which checkpoint is the newest before a date; None if there is none."""
    return max((place for place, each in enumerate(checkpoints) if each.last < since), default=None)
