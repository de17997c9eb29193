"""The archive: old protection of a streak, moved out of the profile (docs/rules.md, rule 3).

A profile must not grow with the user's history. A fold that continues from a checkpoint needs no earlier
freezes, covered dates or pauses, only the number of freezes that were left. So these go into an archive, an
item beside the profile. A reader who needs the time before the checkpoint calls `with_archive`, which returns
the profile as it would be without an archive. All other rules work on that one.

Example: a user of ten years with a freeze each fortnight has a profile of 0.9 KB, so each event costs one
write unit. Without an archive it would be 3.1 KB and four units.

The first part of this module writes dates as short texts, in archives and profiles: `2026-05-01 2 14` is 1, 3
and 17 May. A number counts the days since the date before. A suffix belongs to its date. `2026-05-01/2 14` is
1, 2, 3 and 15 May: two dates follow the first. `2026-05-01+1 2-1` are changes of freezes, `2026-05-01/3 30/0`
pauses of four dates and of one.
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
LATER_DATE = re.compile(r"(\d+)(.*)", re.ASCII)  # days since the date before, and the suffix
FOLLOWERS = re.compile(r"/(\d+)", re.ASCII)  # a suffix
Changes = tuple[tuple[date, int], ...]
Spans = tuple[tuple[date, date], ...]
# An event may be 72 hours late, and its zone and the zone of the newest date add a day each. So ordinary
# events need no archive. Events of a device that was offline longer, and backfills, do.
UNSETTLED = timedelta(days=5)
# Fewer dates, pauses and checkpoints are not worth a write.
ARCHIVED_MIN = 8
DIGEST_LENGTH = 8


def _pack(dated: Iterable[tuple[date, str]]) -> str:
    """Return ascending dates, each with a suffix, as a text."""
    words: list[str] = []
    before = None
    for day, suffix in dated:
        words.append(f"{(day - before).days if before else day.isoformat()}{suffix}")
        before = day
    return " ".join(words)


def _unpack(text: str) -> list[tuple[date, str]]:
    """Return the dates of a text, each with its suffix; raises ValueError."""
    dated: list[tuple[date, str]] = []
    day = date.min
    for word in text.split():
        if not dated:
            day, suffix = date.fromisoformat(word[:ISO_LENGTH]), word[ISO_LENGTH:]
        elif match := LATER_DATE.fullmatch(word):
            day, suffix = _days_after(day, match[1]), match[2]
        else:
            raise ValueError(f"no number of days: {word!r}")
        dated.append((day, suffix))
    return dated


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
    return tuple(
        first + number * DAY
        for first, followers in _unpack(text)
        for number in range((_last_of(first, followers or "/0") - first).days + 1)
    )


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
    return tuple((first, _last_of(first, followers)) for first, followers in _unpack(text))


def _last_of(first: date, followers: str) -> date:
    """Return the last date of a run. followers: how many dates follow the first: `/4`. Raises ValueError."""
    match = FOLLOWERS.fullmatch(followers)
    if match is None:
        raise ValueError(f"no number of dates: {followers!r}")
    return _days_after(first, match[1])


def _days_after(day: date, days: str) -> date:
    try:
        return day + timedelta(days=int(days))
    except OverflowError:
        raise ValueError(f"no date: {days} days after {day}") from None


def listed_dates(attributes: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the packed attributes of a profile, each as a list of texts.

    Examples: freezes_spent `2026-05-01`, freezes `2026-05-01+1`, pauses `2026-05-01/2026-05-04`.
    """
    lists: dict[str, list[str]] = {}
    if isinstance(dates := attributes.get("freezes_spent"), str):
        lists["freezes_spent"] = [day.isoformat() for day in unpack_dates(dates)]
    if isinstance(changes := attributes.get("freezes"), str):
        lists["freezes"] = [f"{day.isoformat()}{change:+d}" for day, change in unpack_changes(changes)]
    if isinstance(spans := attributes.get("pauses"), str):
        lists["pauses"] = [f"{first.isoformat()}/{last.isoformat()}" for first, last in unpack_spans(spans)]
    return lists


@dataclass(frozen=True, slots=True)
class Archive:
    """The protection of a streak up to an active date. Its fields are those of Cover and Streak."""

    until: date  # the active date
    freezes: Changes = ()
    spent: tuple[date, ...] = ()
    pauses: Spans = ()
    checkpoints: tuple[Checkpoint, ...] = ()  # before `until`

    @property
    def text(self) -> str:
        """The archive as a text of five lines."""
        checkpoints = ";".join(checkpoint.text for checkpoint in self.checkpoints)
        packed = (pack_changes(self.freezes), pack_dates(self.spent), pack_spans(self.pauses), checkpoints)
        return "\n".join((self.until.isoformat(), *packed))

    @property
    def digest(self) -> str:
        """The digest by which a profile names its archive."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:DIGEST_LENGTH]

    @classmethod
    def of(cls, text: str) -> "Archive":
        """Read a text; raises ValueError for one that is no archive's."""
        until, freezes, spent, pauses, checkpoints = text.split("\n")
        return cls(
            date.fromisoformat(until),
            unpack_changes(freezes),
            unpack_dates(spent),
            unpack_spans(pauses),
            tuple(map(Checkpoint.of, filter(None, checkpoints.split(";")))),
        )


def possible_archive_ends(streak: Streak | None, cover: Cover) -> list[date]:
    """Return the dates up to which an archive may reach, the oldest first: those of settled checkpoints.

    There are none if less than ARCHIVED_MIN could be archived up to the newest of them.
    """
    if streak is None:
        return []
    newest = checkpoint_index(streak.checkpoints, streak.last - UNSETTLED)
    if newest is None:
        return []
    ends = [checkpoint.last for checkpoint in streak.checkpoints[: newest + 1]]
    archive = _archive_until(streak, cover, ends[-1])
    parts = (archive.freezes, archive.spent, archive.pauses, archive.checkpoints)
    return ends if sum(map(len, parts)) >= ARCHIVED_MIN else []


def _archive_until(streak: Streak, cover: Cover, until: date) -> Archive:
    """Return the archive of the protection up to an active date."""
    return Archive(
        until=until,
        freezes=tuple((day, change) for day, change in cover.freezes if day <= until),
        spent=tuple(day for day in streak.spent if day <= until),
        pauses=tuple(sorted((first, last) for first, last in cover.pauses if is_old_pause(last, until))),
        checkpoints=tuple(checkpoint for checkpoint in streak.checkpoints if checkpoint.last < until),
    )


def is_old_pause(last: date, until: date) -> bool:
    """Whether a pause that ends on a date no longer counts for the limit of paused dates a year (rule 2)."""
    return last <= until - YEAR


def archive_streak(streak: Streak, cover: Cover, until: date) -> tuple[Streak, Cover, Archive]:
    """Return a streak and its cover without the protection up to an active date, and the archive that has it.

    streak, cover: without an archive. until: before the streak's last date.
    """
    archive = _archive_until(streak, cover, until)
    spent_count = len(archive.spent)
    later_checkpoints = (checkpoint for checkpoint in streak.checkpoints if checkpoint.last >= until)
    later_streak = replace(
        streak,
        spent=streak.spent[spent_count:],
        checkpoints=_with_freezes_used(later_checkpoints, -spent_count),
    )
    mark = ArchiveMark(
        until=until,
        freezes_left=sum(change for _, change in archive.freezes) - spent_count,
        freezes_used=spent_count,
        digest=archive.digest,
    )
    later_cover = replace(
        cover,
        freezes=cover.freezes[len(archive.freezes) :],
        pauses=tuple(sorted((first, last) for first, last in cover.pauses if not is_old_pause(last, until))),
        archived=mark,
    )
    return later_streak, later_cover, archive


def with_archive(streak: Streak, cover: Cover, archive: Archive) -> tuple[Streak, Cover]:
    """Return a streak and its cover together with their archive: the inverse of archive_streak."""
    spent_count = len(archive.spent)
    later_checkpoints = _with_freezes_used(streak.checkpoints, spent_count)
    # New checkpoints may have come since. So those of the archive are thinned out again.
    checkpoints = reduce(
        with_checkpoint, (*archive.checkpoints, *later_checkpoints), tuple[Checkpoint, ...]()
    )
    full_cover = replace(
        cover,
        freezes=net_freezes([*archive.freezes, *cover.freezes]),
        pauses=tuple(sorted((*archive.pauses, *cover.pauses))),
        archived=None,
    )
    return replace(streak, spent=(*archive.spent, *streak.spent), checkpoints=checkpoints), full_cover


def _with_freezes_used(checkpoints: Iterable[Checkpoint], more: int) -> tuple[Checkpoint, ...]:
    """Return checkpoints before which freezes covered so many dates more; below 0: fewer."""
    return tuple(replace(each, freezes_used=each.freezes_used + more) for each in checkpoints)


def is_same_streak(stored: Streak | None, mark: ArchiveMark | None, full: Streak | None) -> bool:
    """Whether a stored streak, part of which may be archived, is the same as a streak without an archive."""
    if stored is None or full is None or mark is None:
        return stored == full
    spent_count = sum(day <= mark.until for day in full.spent)
    return spent_count == mark.freezes_used and stored == replace(full, spent=full.spent[spent_count:])
