"""What a reconciliation makes of one account.

Does the lake's copy of its journal agree? Is what is stored wrong, or only behind? And what is to be done?
The journal is the ledger's entries, oldest first. The profile and the days are stored projections of it: each
says up to which entry it has counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from rules.days import stamp
from rules.engagement.ledger import OPENED_AT, Entry, EntryKind
from rules.engagement.rebuild import days_of, entries_up_to

# A difference counts when it is seen again after a pause: the first look may have met a writer at work.
LOOKS_MIN = 2
# An older entry that is still not in the lake is lost. A younger one may be on its way.
LAKE_LAG = timedelta(hours=2)


@dataclass(frozen=True, slots=True)
class LakeFigures:
    """What the lake's copy of an account's journal comes to.

    head, seq, balance: of the newest entry; head is "" where there is none. points: the sum of all entries;
    earned: of those that earn.
    """

    head: str = ""
    entries: int = 0
    points: int = 0
    earned: int = 0
    seq: int | None = None
    balance: int = 0


@dataclass(frozen=True, slots=True)
class Counted:
    """A stored profile or day. place: the newest entry that it says it counts, "" for none.

    is_right: whether it is stored exactly as the entries up to that place say. What cannot be read is not.
    """

    place: str
    is_right: bool


WRONG = Counted("", is_right=False)


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at an account showed. has_faults: its journal itself is broken.

    differs: something stored is not what the whole journal says. is_behind: it is right as of earlier
    entries. is_lost: the lake knows entries that the journal lacks.
    """

    has_faults: bool
    differs: bool
    is_behind: bool
    is_lost: bool


class Step(StrEnum):
    """What to do after a look."""

    DONE = "done"  # everything is right
    SETTLE = "settle"  # finish what a writer has begun
    LOOK_AGAIN = "look again"
    TELL = "tell"  # it is wrong, and to be left as it is
    REPAIR = "repair"


def next_step(look: Look, times: int, may_repair: bool) -> Step:
    """Return what to do after a look. times: how many looks, this one included, have shown something wrong.

    Nothing is repaired from a journal that is broken, or that has lost entries.
    """
    if not look.has_faults and not look.differs:
        return Step.DONE
    if not look.has_faults and look.is_behind:
        return Step.SETTLE
    if times < LOOKS_MIN:
        return Step.LOOK_AGAIN
    return Step.REPAIR if may_repair and not look.has_faults and not look.is_lost else Step.TELL


def is_behind(
    entries: Sequence[Entry], profile: Counted | None, days: Mapping[str, Counted], has_had_profile: bool
) -> bool:
    """Whether all that is stored is right as of earlier entries, and only later ones are not counted yet.

    profile: None where there is none. has_had_profile: the lake knows one, so where none is stored, it is
    gone and not late. days: those that are stored, by ISO date. A writer finishes the days before the
    profile, so no day may count less than the profile does.
    """
    if (profile is None and has_had_profile) or (profile is not None and not profile.is_right):
        return False
    counted_by_profile = days_of(entries_up_to(entries, profile.place if profile else ""))
    for when in counted_by_profile.keys() | days.keys():
        floor, stored = counted_by_profile.get(when), days.get(when)
        if stored is None or not stored.is_right:
            return False
        if floor is not None and stored.place < floor.ledger_head:
            return False
    return True


def is_lost(entries: Sequence[Entry], lake: LakeFigures) -> bool:
    """Whether entries that the lake has are gone from the journal: then it is no ground to repair on."""
    return lake.head != "" and len(entries_up_to(entries, lake.head)) < lake.entries


def has_lapsed(lapses_at: int | None, now: datetime) -> bool:
    """Whether a streak shows 0 by now. lapses_at: epoch seconds, None without a streak."""
    return lapses_at is not None and lapses_at <= now.timestamp()


def disagreements(entries: Sequence[Entry], lake: LakeFigures, now: datetime) -> list[str]:
    """Return where a sound journal and the lake's copy of it differ, in words."""
    known = entries_up_to(entries, lake.head)
    later = entries[len(known) :]
    found = []
    if len(known) < lake.entries:
        found.append(f"the lake has {lake.entries - len(known)} entries that the table lacks")
    settled = stamp(now - LAKE_LAG)
    lost = max(0, sum(each.created_at < settled for each in known) - lake.entries)
    lost += sum(OPENED_AT < each.created_at < settled for each in later)
    if lost:
        found.append(f"the lake lacks {lost} entries")
    if known and len(known) == lake.entries:
        found += _other_figures(known, lake)
    return found


def _other_figures(known: Sequence[Entry], lake: LakeFigures) -> list[str]:
    """Compare sums and the newest entry of two journals that have the same number of entries."""
    points = sum(each.draft.points for each in known)
    earned = sum(each.draft.points for each in known if each.draft.kind is EntryKind.EARN)
    if (points, earned) != (lake.points, lake.earned):
        return [f"points {points}, earned {earned}; in the lake {lake.points} and {lake.earned}"]
    if (known[-1].seq, known[-1].balance) != (lake.seq, lake.balance):
        return [f"the entry {lake.head} differs in the lake"]
    return []
