"""What a profile keeps of the protection that it has put away (rules.engagement.streak.archive)."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class ArchiveMark:
    """until: the active date up to which freezes, covered dates and old pauses are in the archive.

    left: freezes granted up to that date, less the dates that freezes covered; below 0 for a debt. spent: how
    many dates freezes covered. digest: of the archive that belongs to this profile.
    """

    until: date
    left: int
    spent: int
    digest: str
