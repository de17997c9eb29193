"""A profile that no longer lists the protection of long ago (docs/rules.md, rule 3).

A profile must not grow with the user's history. A fold that continues from a checkpoint needs no earlier
freezes, covered dates or pauses, only the number of freezes that were left. So a large profile is *brought
forward*: it begins at a checkpoint, as a new page of a book begins with the sums of the pages before. What is
older is in the ledger alone. A reader who needs that time calls `whole_profile`, with the ledger's entries.
All other rules work on either profile.

Example: a user of ten years with a freeze each fortnight has a profile of 0.9 KB, so each event costs one
write unit. With all its freezes it would be 3.1 KB and four units.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

from rules.engagement.account import journalled_freezes, profile_with_entries
from rules.engagement.account_state import Profile
from rules.engagement.ledger import Entry
from rules.engagement.repairs import Repair
from rules.engagement.streak import YEAR, BroughtForward, Checkpoint, Streak

# An event may be 72 hours late, and its zone and the zone of the newest date add a day each. So ordinary
# events do not need the ledger. Events of a device that was offline longer, and backfills, may. What readers
# keep of streaks (rules.engagement.goals) ends eight days ago, in UTC: that is later than this.
UNSETTLED = timedelta(days=10)
# Fewer dates, pauses and checkpoints are not worth the later reads of the ledger.
LEFT_OUT_MIN = 8
LEFT_OUT_MIN_COUNTED = 4  # of a profile in which boards count: their counters take the room


def settled_checkpoints(profile: Profile) -> Sequence[Checkpoint]:
    """Return the checkpoints at which a profile may begin, the oldest first.

    There are none if less than LEFT_OUT_MIN could be left out before the newest of them, or less than
    LEFT_OUT_MIN_COUNTED.
    """
    streak, cover = profile.streak, profile.cover
    settled = [each for each in streak.checkpoints if each.last < streak.last - UNSETTLED] if streak else []
    if not settled:
        return ()
    newest = settled[-1]
    left_out = newest.freezes_used + len(settled) - 1
    left_out += sum(day <= newest.last for day, _ in cover.freezes)
    left_out += sum(is_old_pause(last, newest.last) for _, last in cover.pauses)
    left_out += sum(is_old_repair(repair, newest.last) for repair in profile.repairs)
    left_out += len(cover.rest.chosen) - len(cover.rest.since(newest.last).chosen)
    least = min(LEFT_OUT_MIN, LEFT_OUT_MIN_COUNTED) if profile.period_points else LEFT_OUT_MIN
    return settled if left_out >= least else ()


def is_old_pause(last: date, until: date) -> bool:
    """Whether a pause that ends on a date no longer counts for the limit of paused dates a year (rule 2)."""
    return last <= until - YEAR


def is_old_repair(repair: Repair, until: date) -> bool:
    """Whether a repaired date no longer counts for the limit of a year (rule 2)."""
    return repair.day <= until - YEAR


def bring_forward(profile: Profile, start: Checkpoint) -> Profile:
    """Return a profile that begins at a checkpoint of its streak, before the last date.

    The profile may have been brought forward before.
    """
    streak, cover, used = profile.streak, profile.cover, start.freezes_used
    if streak is None:
        return profile
    before = cover.brought_forward
    left = sum(change for day, change in cover.freezes if day <= start.last) - used
    sums = BroughtForward(
        replace(start, freezes_used=0),
        left + (before.freezes_left if before else 0),
        used + (before.freezes_used if before else 0),
    )
    later = (each for each in streak.checkpoints if each.last > start.last)
    later_streak = replace(
        streak,
        spent=streak.spent[used:],
        checkpoints=tuple(replace(each, freezes_used=each.freezes_used - used) for each in later),
    )
    later_cover = replace(
        cover,
        freezes=tuple((day, change) for day, change in cover.freezes if day > start.last),
        pauses=tuple(sorted(each for each in cover.pauses if not is_old_pause(each[1], start.last))),
        brought_forward=sums,
        rest=cover.rest.since(start.last),
    )
    repairs = tuple(repair for repair in profile.repairs if not is_old_repair(repair, start.last))
    return replace(profile, streak=later_streak, cover=later_cover, repairs=repairs)


def begins_before(profile: Profile, since: date) -> bool:
    """Whether a profile has all that protects its streak from a date on."""
    sums = profile.cover.brought_forward
    return sums is None or sums.start.last < since


def whole_profile(profile: Profile, entries: Sequence[Entry]) -> Profile:
    """Return a profile with all freezes, covered dates, pauses and choices of rest days. It has no
    checkpoints: fold all dates.

    entries: those of the ledger that concern freezes, pauses or rest days, oldest first, up to the profile's
    watermark.
    """
    blank = Profile(profile.user_id)
    read = profile_with_entries(blank, entries)
    protection = read.cover
    spent = tuple(sorted(journalled_freezes(blank, entries)))
    cover = replace(
        profile.cover,
        freezes=protection.freezes,
        pauses=protection.pauses,
        brought_forward=None,
        rest=replace(profile.cover.rest, chosen=protection.rest.chosen),
    )
    streak = profile.streak and replace(profile.streak, spent=spent, checkpoints=())
    return replace(profile, streak=streak, cover=cover, repairs=read.repairs)


def brought_forward_as(whole: Profile, stored: Profile, start: Streak | Checkpoint | None) -> Profile:
    """Return a whole profile, brought forward as a stored one is, if that is possible.

    start: the streak as of the date at which the stored one begins.
    """
    sums, streak = stored.cover.brought_forward, whole.streak
    if sums is None or streak is None or start is None or not start.last == sums.start.last < streak.last:
        return whole
    used = sum(day <= start.last for day in streak.spent)
    at = Checkpoint(start.last, start.length, start.longest, start.active_days, used)
    return bring_forward(whole, at)
