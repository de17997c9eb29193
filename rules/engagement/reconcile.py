"""What a reconciliation makes of one account.

Does the lake's copy of its journal agree? Is what is stored wrong, or only behind? And what is to be done?
The journal is the ledger's entries, oldest first. The profile and the days are stored projections of it: each
says up to which entry it has counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from rules.engagement.ledger import Entry
from rules.engagement.ledger_doubts import Doubt
from rules.engagement.rebuild import days_of, entries_up_to

# What is wrong counts when it is seen again after a pause: the first look may have met a writer at work.
LOOKS_MIN = 2


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
    """What one look at an account showed. doubt: of its journal.

    differs: something stored is not what the whole journal says. is_behind: it is right as of earlier
    entries.
    """

    differs: bool
    is_behind: bool
    doubt: Doubt = Doubt.NONE


class Step(StrEnum):
    """What to do after a look."""

    DONE = "done"  # everything is right
    SETTLE = "settle"  # finish what a writer has begun
    LOOK_AGAIN = "look again"
    TELL = "tell"  # it is wrong, and to be left as it is
    REPAIR = "repair"


def next_step(look: Look, times: int, may_repair: bool) -> Step:
    """Return what to do after a look. times: how many looks, this one included, have shown something wrong.

    Of a journal in doubt nothing is counted in or repaired: nobody knows what is right.
    """
    if look.doubt is Doubt.NONE:
        if not look.differs:
            return Step.DONE
        if look.is_behind:
            return Step.SETTLE
    if times < LOOKS_MIN:
        return Step.LOOK_AGAIN
    return Step.REPAIR if may_repair and look.doubt is Doubt.NONE else Step.TELL


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


def has_lapsed(lapses_at: int | None, now: datetime) -> bool:
    """Whether a streak shows 0 by now. lapses_at: epoch seconds, None without a streak."""
    return lapses_at is not None and lapses_at <= now.timestamp()
