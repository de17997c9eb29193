"""Compares an account's ledger with what follows from it, and with its copy in the lake.

In this order: the classes for what a nightly comparison finds and does; the profile and the days that follow
from a ledger; how a ledger breaks rule 6 (docs/rules.md); how ledger and copy differ (rule 7); what to do
about it.

The *place* of an entry is its `created_at`. Firehose brings entries to the lake some minutes late, in any
order.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from rules.days import EPOCH, MICROSECOND, stamp, unstamp
from rules.engagement.account import days_with_entries, profile_with_entries
from rules.engagement.account_state import Day, Profile
from rules.engagement.ledger import (
    EVER_EARNED,
    INTO_DEBT,
    OPENED_AT,
    Entry,
    EntryKind,
    active_dates,
)
from rules.engagement.lots import expiry_of
from rules.engagement.rest_days import RestDays
from rules.engagement.review import is_in_doubt
from rules.engagement.streak import Cover, fold

# An older entry that is still not in the lake is late. A younger one is in flight.
LAKE_LAG = timedelta(hours=2)
# Firehose retries for a day. An entry that is not in the lake then will not come by itself.
LAKE_LOST = timedelta(hours=24)
# If more accounts are in one doubt (is_systemic), their ledgers are not at fault: the lake has lost files, or
# the code that makes or reads hashes is wrong. Then no redemption waits for an admin.
MANY_MIN = 20
MANY_SHARE = 100  # more than one account in this many
REVIEW = ("tz_review", "review_since", "review_evidence")  # the fields of a profile that a review sets
SEPARATOR = "\x1f"  # between the values of a row that is hashed
DIGEST_BITS = 64
# A difference counts if a second look sees it, too. The first may have been in the middle of a write.
LOOKS_MIN = 2


class Doubt(StrEnum):
    """A reason to distrust the ledger of an account, or its copy in the lake (rule 7).

    An entry never changes, so both must hold the same entries. If they differ, nobody knows which is right:
    nothing is repaired, and redemptions wait for an admin.
    """

    NONE = ""
    LATE = "late"  # the lake lacks entries that are older than LAKE_LAG
    LACKING = "lacking"  # the lake lacks entries that are older than LAKE_LOST
    UNPROVEN = "unproven"  # both agree, and contradict the last root (rule 19)
    CONTRADICTED = "contradicted"  # they differ, or the ledger breaks rule 6


@dataclass(frozen=True, slots=True)
class LakeFigures:
    """The figures that the entries of an account's copy add up to."""

    place: str = ""  # of the newest entry; "" where there is none
    entries: int = 0  # their number
    points: int = 0  # the sum of all entries' points
    earned: int = 0  # points ever earned, with those of achievements
    seq: int | None = None  # of the newest entry
    balance: int = 0  # after the newest entry
    digest: int = 0  # of all entries (digest_of)


@dataclass(frozen=True, slots=True)
class ProjectionState:
    """A stored profile or day, compared with the ledger."""

    place: str  # of the newest entry that it says is counted in; "" for none
    is_right: bool  # it is exactly the result of the entries up to that one; False if it cannot be read


WRONG_STATE = ProjectionState("", is_right=False)  # of an item that cannot be read


@dataclass(frozen=True, slots=True)
class Look:
    """The result of one comparison of an account."""

    differs: bool  # the profile or a day is not the result of all entries
    is_only_behind: bool  # they are the results of earlier entries, and a writer has only to finish them
    doubt: Doubt = Doubt.NONE  # about the ledger or its copy


class Step(StrEnum):
    """What to do after a look."""

    DONE = "done"  # everything is right
    SETTLE = "settle"  # finish the write that another writer has begun
    LOOK_AGAIN = "look again"
    TELL = "tell"  # report the difference, and change nothing
    REPAIR = "repair"  # write the profile and the days that the ledger leads to


def profile_of(kept: Profile, entries: Sequence[Entry]) -> Profile:
    """Return the profile that follows from all entries of an account, oldest first. It is whole.

    kept: a profile with what the ledger does not hold: version, alias, how far lots are settled, which
    version an import made, a review because the ledger is in doubt; and with what the books say of dates.
    Nothing else of it counts.
    """
    begun = Profile(
        kept.user_id,
        version=kept.version,
        updated_at=kept.updated_at,
        alias=kept.alias,
        backfilled=kept.backfilled,
        cover=Cover(rest=RestDays(kept.cover.rest.terms)),
    )
    profile = profile_with_entries(begun, entries)
    if is_in_doubt(kept):
        review = {name: getattr(kept, name) for name in REVIEW}
        profile = replace(profile, **review)
    return replace(
        profile,
        streak=fold(active_dates(entries), profile.cover),
        expiry=expiry_of(entries, profile.holds, kept.expiry, kept.updated_at),
    )


def days_of(entries: Sequence[Entry]) -> dict[str, Day]:
    """Return the days that follow from these entries, by ISO date."""
    return {when.isoformat(): day for when, day in days_with_entries({}, entries).items()}


def has_lapsed(lapses_at: int | None, now: datetime) -> bool:
    """Whether a streak shows 0 at this time. lapses_at: epoch seconds, None without a streak."""
    return lapses_at is not None and lapses_at <= now.timestamp()


def entries_up_to(entries: Sequence[Entry], place: str) -> Sequence[Entry]:
    """Return the entries up to a place, included."""
    return [entry for entry in entries if entry.created_at <= place]


def ledger_faults(entries: Sequence[Entry]) -> list[str]:
    """Return in words how the entries of a ledger, oldest first, break rule 6."""
    faults: list[str] = []
    balance, may_owe = 0, False  # may_owe: the balance may be below 0
    for seq, entry in enumerate(entries):
        balance += entry.draft.points
        if entry.seq != seq:
            faults.append(f"seq {entry.seq} stands where {seq} belongs")
            break
        may_owe |= entry.draft.kind in INTO_DEBT
        if entry.balance != balance or (balance < 0 and not may_owe):
            faults.append(f"balance {entry.balance} after seq {seq}: the points add up to {balance}")
            break
    active_seqs = [entry.seq for entry in entries if entry.active]
    if entries and active_seqs != [entries[-1].seq]:
        faults.append(f"active: seq {active_seqs}; the newest is {entries[-1].seq}")
    if entries and entries[0].draft.kind is not EntryKind.OPEN:
        faults.append(f"it begins with {entries[0].draft.kind}")
    return faults + _mark_faults(entries)


def _mark_faults(entries: Sequence[Entry]) -> list[str]:
    """Return in words where a reversed entry and its reversal do not name each other.

    A reversal has the place of the reversed entry, and marks that entry with its own place. A redemption
    must have its mark: nothing else prevents a second reversal. The entry of an event may lack it, because
    a late write of this entry removes it. Rule 12 prevents a second reversal of an event without it.
    """
    reversals = {(entry.draft.reverses, entry.created_at) for entry in entries if entry.draft.reverses}
    marks = {(entry.created_at, entry.reversed_by) for entry in entries if entry.reversed_by}
    needed_marks = {
        (entry.draft.reverses, entry.created_at)
        for entry in entries
        if entry.draft.reverses and entry.draft.kind is not EntryKind.CLAWBACK
    }
    missing = [f"{place} is not marked as reversed by {by}" for place, by in sorted(needed_marks - marks)]
    return missing + [
        f"{place} is marked as reversed by {by}, which does not say so"
        for place, by in sorted(marks - reversals)
    ]


def doubt_of(
    faults: Sequence[str],
    entries: Sequence[Entry],
    lake: LakeFigures,
    now: datetime,
    unproven: Sequence[str] = (),
) -> Doubt:
    """Return the worst doubt about a ledger and its copy.

    faults: how the ledger breaks rule 6. unproven: how it contradicts the last root (rule 19).
    """
    if faults or contradictions(entries, lake):
        return Doubt.CONTRADICTED
    if unproven:
        return Doubt.UNPROVEN
    if missing_count(entries, lake, now - LAKE_LOST):
        return Doubt.LACKING
    return Doubt.LATE if missing_count(entries, lake, now - LAKE_LAG) else Doubt.NONE


def disagreements(entries: Sequence[Entry], lake: LakeFigures, now: datetime) -> list[str]:
    """Return in words where a ledger that follows rule 6 and its copy differ."""
    differences = contradictions(entries, lake)
    if missing := missing_count(entries, lake, now - LAKE_LAG):
        differences.append(f"the lake lacks {missing} entries")
    return differences


def missing_count(entries: Sequence[Entry], lake: LakeFigures, since: datetime) -> int:
    """Return how many entries that are older than an instant are not in the lake, at least."""
    instant = stamp(since)
    # Up to its newest entry the lake says only how many entries it has. Above that it has none.
    in_range = entries_up_to(entries, lake.place)
    after_range = entries[len(in_range) :]
    old_in_range = sum(entry.created_at < instant for entry in in_range)
    # The opening entry has a fixed place, which does not say how old the entry is. So here it is not missed.
    # In the range it is counted, because `lake.entries` counts it, too.
    old_after_range = sum(OPENED_AT < entry.created_at < instant for entry in after_range)
    return max(0, old_in_range - lake.entries) + old_after_range


def contradictions(entries: Sequence[Entry], lake: LakeFigures) -> list[str]:
    """Return in words where ledger and copy contradict each other; entries that the lake lacks do not."""
    in_range = entries_up_to(entries, lake.place)
    if len(in_range) < lake.entries:
        return [f"the lake has {lake.entries - len(in_range)} entries that the table lacks"]
    return _other_figures(in_range, lake) if in_range and len(in_range) == lake.entries else []


def _other_figures(entries: Sequence[Entry], lake: LakeFigures) -> list[str]:
    """Return in words the first difference between entries and the figures of as many entries in the lake."""
    points = sum(entry.draft.points for entry in entries)
    earned = sum(entry.draft.points for entry in entries if entry.draft.kind in EVER_EARNED)
    if (points, earned) != (lake.points, lake.earned):
        return [f"points {points}, earned {earned}; in the lake {lake.points} and {lake.earned}"]
    if (entries[-1].seq, entries[-1].balance) != (lake.seq, lake.balance):
        return [f"the entry {lake.place} differs in the lake"]
    if digest_of(entries) != lake.digest:
        return [f"entries up to {lake.place} differ in the lake"]
    return []


def digest_of(entries: Sequence[Entry]) -> int:
    """Return a number of 64 bits that tells ledgers apart (digest_of_rows).

    The opening entry is left out: its place is the same in all ledgers. For the lake's copy
    analytics/recompute/user_fold.py adds this up, row by row.
    """
    return digest_of_rows(_values(entry) for entry in entries if entry.seq > 0)


def _values(entry: Entry) -> tuple[object, ...]:
    """Return the values of an entry that the lake has, too."""
    draft = entry.draft
    return (
        *((unstamp(entry.created_at) - EPOCH) // MICROSECOND, entry.seq, draft.kind.value),
        *(draft.points, entry.balance, draft.event_id, draft.event_type, draft.activity_date),
        *(draft.reward_id, draft.reverses, draft.freeze and draft.freeze.value, draft.freeze_date),
        *(draft.rules_version, draft.cap and draft.cap.text, draft.is_passive or None),
        *(draft.expires_on, draft.held_at, draft.reason, draft.brand, draft.measures),
        *(draft.timezone, draft.setting and draft.setting.value, draft.set_to),
    )


def digest_of_rows(rows: Iterable[Iterable[object]]) -> int:
    """Return a number of 64 bits that tells sets of rows apart: the sum of the hashes of their values."""
    texts = (SEPARATOR.join("" if value is None else str(value) for value in row) for row in rows)
    digests = (hashlib.md5(text.encode(), usedforsecurity=False).digest() for text in texts)
    return sum(int.from_bytes(digest[8:], "little") for digest in digests) % (1 << DIGEST_BITS)


def next_step(look: Look, times: int, may_repair: bool) -> Step:
    """Return what to do after a look. times: how many looks, with this one, saw a difference or a doubt.

    If there is a doubt, nobody knows what is right. So profile and days are neither finished nor repaired.
    """
    if look.doubt is Doubt.NONE:
        if not look.differs:
            return Step.DONE
        if look.is_only_behind:
            return Step.SETTLE
    if times < LOOKS_MIN:
        return Step.LOOK_AGAIN
    return Step.REPAIR if may_repair and look.doubt is Doubt.NONE else Step.TELL


def is_only_behind(
    entries: Sequence[Entry],
    profile: ProjectionState | None,
    days: Mapping[str, ProjectionState],
    has_had_profile: bool,
) -> bool:
    """Whether profile and days are the results of earlier entries, and a writer has only to finish them.

    profile: None if none is stored. has_had_profile: the lake has entries, so a profile that is not stored
    was lost, and is not just late. days: the stored ones, by ISO date. A writer writes the days before the
    profile. So no day may lack an entry that the profile has counted.
    """
    is_lost = profile is None and has_had_profile
    if is_lost or (profile is not None and not profile.is_right):
        return False
    days_of_profile = days_of(entries_up_to(entries, profile.place if profile else ""))
    for when in days_of_profile.keys() | days.keys():
        day_of_profile, stored = days_of_profile.get(when), days.get(when)
        if stored is None or not stored.is_right:
            return False
        if day_of_profile is not None and stored.place < day_of_profile.watermark:
            return False
    return True


def is_systemic(accounts: int, users: int) -> bool:
    """Whether so many accounts are in one doubt that their ledgers are not at fault. users: all."""
    return accounts > max(MANY_MIN, users // MANY_SHARE)
