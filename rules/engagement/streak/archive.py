"""What a profile puts away, so that it does not grow with the user's history (docs/rules.md, rule 3).

A fold that goes on from a checkpoint needs no freeze, covered date or pause of before, but only how many
freezes were left. So these go into an archive, an item beside the profile. Who asks about the time before,
or changes it, puts the two together again: `with_archive` gives exactly the profile that never put anything
away, and the rules know no other.
"""

import hashlib
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import reduce

from rules.engagement.allowances import YEAR
from rules.engagement.streak.archive_mark import ArchiveMark
from rules.engagement.streak.checkpoints import Checkpoint, place_before, with_checkpoint
from rules.engagement.streak.packed_dates import (
    Changes,
    Spans,
    pack_changes,
    pack_dates,
    pack_spans,
    unpack_changes,
    unpack_dates,
    unpack_spans,
)
from rules.engagement.streaks import Cover, Streak, net_freezes

# Longer than an event may be late (72 hours), with a day for each of its zone and the newest date's: what
# anybody may send needs no archive. Of a device that was offline longer, or a backfill, it is read.
UNSETTLED = timedelta(days=5)
# Fewer things are not worth a write.
THINGS_MIN = 8
DIGEST_LENGTH = 8
Protected = tuple[Streak, Cover]


@dataclass(frozen=True, slots=True)
class Archive:
    """What was put away up to an active date: see Cover and Streak. checkpoints: those before that date."""

    until: date
    freezes: Changes = ()
    spent: tuple[date, ...] = ()
    pauses: Spans = ()
    checkpoints: tuple[Checkpoint, ...] = ()

    @property
    def text(self) -> str:
        """The archive as a text of five lines."""
        marks = ";".join(each.text for each in self.checkpoints)
        packed = (pack_changes(self.freezes), pack_dates(self.spent), pack_spans(self.pauses), marks)
        return "\n".join((self.until.isoformat(), *packed))

    @property
    def digest(self) -> str:
        """What a profile names it by."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:DIGEST_LENGTH]

    @classmethod
    def of(cls, text: str) -> "Archive":
        """Read a text; raises ValueError for one that is no archive's."""
        until, freezes, spent, pauses, marks = text.split("\n")
        return cls(
            date.fromisoformat(until),
            unpack_changes(freezes),
            unpack_dates(spent),
            unpack_spans(pauses),
            tuple(map(Checkpoint.of, filter(None, marks.split(";")))),
        )


def archivable(streak: Streak | None, cover: Cover) -> list[date]:
    """Return the checkpoints up to which things may be put away, the oldest first.

    There are none if what lies before the newest of them is not worth it.
    """
    known = (streak.checkpoints if streak else None) or ()
    place = place_before(known, streak.last - UNSETTLED) if streak else None
    if streak is None or place is None:
        return []
    until = known[place].last
    things = (
        sum(day <= until for day, _ in cover.freezes)
        + sum(day <= until for day in streak.spent)
        + sum(is_old(last, until) for _, last in cover.pauses)
        + sum(each.last < until for each in known)
    )
    return [each.last for each in known[: place + 1]] if things >= THINGS_MIN else []


def is_old(last: date, until: date) -> bool:
    """Whether a pause up to a date cannot count towards what may be paused in a year any more (rule 2)."""
    return last <= until - YEAR


def put_away(streak: Streak, cover: Cover, until: date) -> tuple[Protected, Archive]:
    """Return a streak and its cover without what is settled up to an active date; and that as an archive.

    They are whole (with_archive), and until is before the streak's last date.
    """
    spent = tuple(day for day in streak.spent if day <= until)
    freezes = tuple(each for each in cover.freezes if each[0] <= until)
    pauses = sorted(cover.pauses)
    known = streak.checkpoints
    archive = Archive(
        until,
        freezes,
        spent,
        tuple(each for each in pauses if is_old(each[1], until)),
        tuple(each for each in known if each.last < until),
    )
    later = [replace(each, spent=each.spent - len(spent)) for each in known if each.last >= until]
    mark = ArchiveMark(until, sum(change for _, change in freezes) - len(spent), len(spent), archive.digest)
    return (
        replace(
            streak,
            spent=streak.spent[len(spent) :],
            checkpoints=tuple(later),
        ),
        replace(
            cover,
            freezes=cover.freezes[len(freezes) :],
            pauses=tuple(each for each in pauses if not is_old(each[1], until)),
            archived=mark,
        ),
    ), archive


def with_archive(streak: Streak, cover: Cover, archive: Archive) -> Protected:
    """Return a streak and its cover as if they had never put anything away: put_away undone."""
    earlier = len(archive.spent)
    later = [replace(each, spent=each.spent + earlier) for each in streak.checkpoints]
    # A month of the archive's may not be among the newest ones any more.
    known = reduce(with_checkpoint, (*archive.checkpoints, *later), tuple[Checkpoint, ...]())
    return (
        replace(
            streak,
            spent=(*archive.spent, *streak.spent),
            checkpoints=known,
        ),
        replace(
            cover,
            freezes=net_freezes([*archive.freezes, *cover.freezes]),
            pauses=tuple(sorted((*archive.pauses, *cover.pauses))),
            archived=None,
        ),
    )


def is_same_streak(stored: Streak | None, mark: ArchiveMark | None, whole: Streak | None) -> bool:
    """Whether a stored streak that may have put dates away can be a streak of which all dates are told."""
    if stored is None or whole is None or mark is None:
        return stored == whole
    earlier = sum(day <= mark.until for day in whole.spent)
    return earlier == mark.spent and stored == replace(whole, spent=whole.spent[earlier:])
