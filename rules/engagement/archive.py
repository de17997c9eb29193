"""What a profile puts away, so that it does not grow with the user's history (docs/rules.md, rule 3).

A fold that goes on from a checkpoint needs no freeze, covered date or pause of before, but only how many
freezes were left. So these go into an archive, an item beside the profile. Who asks about the time before,
or changes it, puts the two together again: `with_archive` gives exactly the profile that never put anything
away, and the rules know no other.

A user of ten years with a freeze each fortnight has a profile of 0.9 KB so, one write unit for each event; it
would have 3.1 KB and cost four.

Dates are stored as one short text: `2026-05-01 2 14` is 1, 3 and 17 May. A number is the days since the one
before. What belongs to a date stands behind it. `2026-05-01/2 14` is 1, 2, 3 and 15 May: two dates follow the
first. `2026-05-01+1 2-1` are changes of freezes, `2026-05-01/3 30/0` pauses of four dates and of one.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import reduce
from typing import Any

from rules.days import DAY
from rules.engagement.streak import (
    YEAR,
    ArchiveMark,
    Checkpoint,
    Cover,
    Streak,
    checkpoint_index,
    net_freezes,
    with_checkpoint,
)

ISO_LENGTH = len("2026-05-01")
LATER = re.compile(r"(\d+)(.*)", re.ASCII)
Changes = tuple[tuple[date, int], ...]
Spans = tuple[tuple[date, date], ...]
# Longer than an event may be late (72 hours), with a day for each of its zone and the newest date's: what
# anybody may send needs no archive. Of a device that was offline longer, or a backfill, it is read.
UNSETTLED = timedelta(days=5)
# Fewer things are not worth a write.
ARCHIVED_MIN = 8
DIGEST_LENGTH = 8


def pack_dates(dates: Iterable[date]) -> str:
    """Return ascending dates as a text; an empty one for none."""
    runs: list[list[date]] = []
    for day in dates:
        if runs and day == runs[-1][-1] + DAY:
            runs[-1].append(day)
        else:
            runs.append([day])
    return _pack((run[0], f"/{len(run) - 1}" if run[1:] else "") for run in runs)


def unpack_dates(text: str) -> tuple[date, ...]:
    """Read what pack_dates wrote; raises ValueError for another text."""
    return tuple(first + n * DAY for first, more in _unpack(text) for n in range(int(more[1:] or 0) + 1))


def pack_changes(changes: Iterable[tuple[date, int]]) -> str:
    """Return changes of freezes, ascending by date, as a text."""
    return _pack((day, f"{change:+d}") for day, change in changes)


def unpack_changes(text: str) -> Changes:
    """Read what pack_changes wrote; raises ValueError for another text."""
    return tuple((day, int(change)) for day, change in _unpack(text))


def pack_spans(spans: Iterable[tuple[date, date]]) -> str:
    """Return pauses, ascending by their first date, as a text: each with how many dates follow the first."""
    return _pack((first, f"/{(last - first).days}") for first, last in spans)


def unpack_spans(text: str) -> Spans:
    """Read what pack_spans wrote; raises ValueError for another text."""
    return tuple((first, first + timedelta(days=int(more[1:]))) for first, more in _unpack(text))


def listed_dates(texts: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return those of a profile's attributes that are packed as lists.

    Examples: freezes_spent `2026-05-01`, freezes `2026-05-01+1`, pauses `2026-05-01/2026-05-04`.
    """
    found: dict[str, list[str]] = {}
    if isinstance(dates := texts.get("freezes_spent"), str):
        found["freezes_spent"] = [day.isoformat() for day in unpack_dates(dates)]
    if isinstance(changes := texts.get("freezes"), str):
        found["freezes"] = [f"{day.isoformat()}{change:+d}" for day, change in unpack_changes(changes)]
    if isinstance(spans := texts.get("pauses"), str):
        found["pauses"] = [f"{first.isoformat()}/{last.isoformat()}" for first, last in unpack_spans(spans)]
    return found


def _pack(dated: Iterable[tuple[date, str]]) -> str:
    texts: list[str] = []
    before = None
    for day, more in dated:
        texts.append(f"{(day - before).days if before else day.isoformat()}{more}")
        before = day
    return " ".join(texts)


def _unpack(text: str) -> list[tuple[date, str]]:
    found: list[tuple[date, str]] = []
    for each in text.split():
        if not found:
            found.append((date.fromisoformat(each[:ISO_LENGTH]), each[ISO_LENGTH:]))
            continue
        parts = LATER.fullmatch(each)
        if parts is None:
            raise ValueError(f"no number of days: {each!r}")
        found.append((found[-1][0] + timedelta(days=int(parts[1])), parts[2]))
    return found


Protected = tuple[Streak, Cover]


@dataclass(frozen=True, slots=True)
class Archive:
    """What was put away up to an active date: see Cover and Streak."""

    until: date
    freezes: Changes = ()
    spent: tuple[date, ...] = ()
    pauses: Spans = ()
    checkpoints: tuple[Checkpoint, ...] = ()  # those before that date

    @property
    def text(self) -> str:
        """The archive as a text of five lines."""
        marks = ";".join(checkpoint.text for checkpoint in self.checkpoints)
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
    checkpoints = (streak.checkpoints if streak else None) or ()
    place = checkpoint_index(checkpoints, streak.last - UNSETTLED) if streak else None
    if streak is None or place is None:
        return []
    until = checkpoints[place].last
    things = (
        sum(day <= until for day, _ in cover.freezes)
        + sum(day <= until for day in streak.spent)
        + sum(is_old_pause(last, until) for _, last in cover.pauses)
        + sum(checkpoint.last < until for checkpoint in checkpoints)
    )
    return [checkpoint.last for checkpoint in checkpoints[: place + 1]] if things >= ARCHIVED_MIN else []


def is_old_pause(last: date, until: date) -> bool:
    """Whether a pause up to a date cannot count towards what may be paused in a year any more (rule 2)."""
    return last <= until - YEAR


def archive_streak(streak: Streak, cover: Cover, until: date) -> tuple[Protected, Archive]:
    """Return a streak and its cover without what is settled up to an active date; and that as an archive.

    They are whole (with_archive), and until is before the streak's last date.
    """
    spent = tuple(day for day in streak.spent if day <= until)
    freezes = tuple(freez for freez in cover.freezes if freez[0] <= until)
    pauses = sorted(cover.pauses)
    checkpoints = streak.checkpoints
    archive = Archive(
        until,
        freezes,
        spent,
        tuple(pause for pause in pauses if is_old_pause(pause[1], until)),
        tuple(checkpoint for checkpoint in checkpoints if checkpoint.last < until),
    )
    later = [
        replace(checkpoint, spent=checkpoint.spent - len(spent))
        for checkpoint in checkpoints
        if checkpoint.last >= until
    ]
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
            pauses=tuple(pause for pause in pauses if not is_old_pause(pause[1], until)),
            archived=mark,
        ),
    ), archive


def with_archive(streak: Streak, cover: Cover, archive: Archive) -> Protected:
    """Return a streak and its cover as if they had never put anything away: archive_streak undone."""
    earlier = len(archive.spent)
    later = [replace(checkpoint, spent=checkpoint.spent + earlier) for checkpoint in streak.checkpoints]
    # A month of the archive's may not be among the newest ones any more.
    checkpoints = reduce(with_checkpoint, (*archive.checkpoints, *later), tuple[Checkpoint, ...]())
    return (
        replace(
            streak,
            spent=(*archive.spent, *streak.spent),
            checkpoints=checkpoints,
        ),
        replace(
            cover,
            freezes=net_freezes([*archive.freezes, *cover.freezes]),
            pauses=tuple(sorted((*archive.pauses, *cover.pauses))),
            archived=None,
        ),
    )


def is_same_streak(stored: Streak | None, mark: ArchiveMark | None, whole: Streak | None) -> bool:
    """Whether a stored streak that may have put dates away can be a streak that has all of its dates."""
    if stored is None or whole is None or mark is None:
        return stored == whole
    earlier = sum(day <= mark.until for day in whole.spent)
    return earlier == mark.spent and stored == replace(whole, spent=whole.spent[earlier:])
