"""The nightly comparison of one account: what its ledger alone says it must be (rule 6), whether ledger and
lake hold the same entries (rule 7), and what to do about a difference. rules.turns says whose turn it is.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from rules.days import EPOCH, MICROSECOND, stamp, unstamp
from rules.engagement.account import apply_entries, apply_to_days
from rules.engagement.account_state import Day, Profile
from rules.engagement.ledger import EARNING, INTO_DEBT, OPENED_AT, Entry, EntryKind, active_dates
from rules.engagement.lots import expiry_of
from rules.engagement.streak import fold

# An older entry that is still not in the lake is late. A younger one is in flight.
LAKE_LAG = timedelta(hours=2)
# Firehose tries for a day. What is not in the lake then will not come by itself.
LAKE_LOST = timedelta(hours=24)
# A lake that lacks entries of more accounts has lost something itself, and chains of more accounts do not
# break by themselves: then the code that makes or reads them is wrong. Nobody's redemptions wait for either.
MANY_MIN = 20
MANY_SHARE = 100  # one account in this many
SEPARATOR = "\x1f"
DIGEST_BITS = 64
# A difference counts when a second look sees it too: the first may have met a writer at work.
LOOKS_MIN = 2


class Doubt(StrEnum):
    """What speaks against a journal, which is the ledger of an account and its copy in the lake (rule 7).

    An entry never changes, so both must hold the same entries. Where they disagree, nobody knows which is
    right: nothing is repaired, and redemptions wait for an admin.
    """

    NONE = ""
    LATE = "late"  # the lake lacks entries that should be there by now
    LACKING = "lacking"  # it has lacked them for a day
    UNPROVEN = "unproven"  # they agree; the chain of hashes is broken, or contradicts the last root (rule 19)
    CONTRADICTED = "contradicted"  # they differ, or the ledger breaks rule 6


@dataclass(frozen=True, slots=True)
class LakeFigures:
    """The figures that the lake's copy of an account's journal adds up to."""

    head: str = ""  # created_at of the newest entry; "" where there is none
    entries: int = 0  # how many
    points: int = 0  # the sum of all entries
    earned: int = 0  # the sum of the entries that earn
    seq: int | None = None  # of the newest entry
    balance: int = 0  # after the newest entry
    digest: int = 0  # of all entries (digest_of)


@dataclass(frozen=True, slots=True)
class ProjectionState:
    """A stored profile or day."""

    place: str  # the newest entry that it says it counts, "" for none
    is_right: bool  # it is exactly what the entries up to that place say; False if it cannot be read


WRONG_STATE = ProjectionState("", is_right=False)


@dataclass(frozen=True, slots=True)
class Look:
    """The result of one comparison of an account."""

    differs: bool  # the profile or a day is not what the whole journal says
    is_behind: bool  # all that is stored is right as of earlier entries
    doubt: Doubt = Doubt.NONE  # of its journal


class Step(StrEnum):
    """What to do after a look."""

    DONE = "done"  # everything is right
    SETTLE = "settle"  # finish what a writer has begun
    LOOK_AGAIN = "look again"
    TELL = "tell"  # report it, and leave it as it is
    REPAIR = "repair"  # write what the journal says


def profile_of(settings: Profile, entries: Sequence[Entry]) -> Profile:
    """Return the profile that follows from all entries of an account, oldest first. It has no archive.

    settings: a profile with what the ledger does not hold: zones, all pauses, skipped dates, version. The
    profile that is returned has no archive.
    """
    cover = replace(settings.cover, freezes=(), archived=None)
    profile = apply_entries(
        replace(settings, head=None, total_points=0, streak=None, cover=cover, applied_through=""), entries
    )
    return replace(
        profile,
        streak=fold(active_dates(entries), profile.cover),
        expiry=expiry_of(entries, settings.holds, settings.expiry, settings.updated_at),
    )


def days_of(entries: Sequence[Entry]) -> dict[str, Day]:
    """Return the days that follow from these entries, by ISO date."""
    return {when.isoformat(): day for when, day in apply_to_days({}, entries).items()}


def entries_up_to(entries: Sequence[Entry], place: str) -> Sequence[Entry]:
    """Return the entries that are not newer than a place."""
    return [entry for entry in entries if entry.created_at <= place]


def chain_faults(entries: Sequence[Entry]) -> list[str]:
    """Return, in words, how entries, oldest first, break rule 6; an empty list if they do not."""
    faults: list[str] = []
    balance, may_owe = 0, False
    for seq, entry in enumerate(entries):
        balance += entry.draft.points
        if entry.seq != seq:
            faults.append(f"seq {entry.seq} stands where {seq} belongs")
            break
        may_owe |= entry.draft.kind in INTO_DEBT
        if entry.balance != balance or (balance < 0 and not may_owe):
            faults.append(f"balance {entry.balance} after seq {seq}: the points add up to {balance}")
            break
    active = [entry.seq for entry in entries if entry.active]
    if entries and active != [entries[-1].seq]:
        faults.append(f"active: seq {active}; the newest is {entries[-1].seq}")
    if entries and entries[0].draft.kind is not EntryKind.OPEN:
        faults.append(f"it begins with {entries[0].draft.kind}")
    return faults + _mark_faults(entries)


def digest_of(entries: Sequence[Entry]) -> int:
    """Return a number of 64 bits that distinguishes journals: the sum of the hashes of all their entries.

    The opening entry is left out, because it has no time of its own.
    """
    return sum(map(_hash, (entry for entry in entries if entry.seq > 0))) % (1 << DIGEST_BITS)


def doubt_of(
    faults: Sequence[str],
    entries: Sequence[Entry],
    lake: LakeFigures,
    now: datetime,
    unproven: Sequence[str] = (),
) -> Doubt:
    """Return what speaks against a journal.

    faults: how it breaks rule 6. unproven: what its chain, or the last root, says against it.
    """
    if faults or contradictions(entries, lake):
        return Doubt.CONTRADICTED
    if unproven:
        return Doubt.UNPROVEN
    if missing_count(entries, lake, now - LAKE_LOST):
        return Doubt.LACKING
    return Doubt.LATE if missing_count(entries, lake, now - LAKE_LAG) else Doubt.NONE


def disagreements(entries: Sequence[Entry], lake: LakeFigures, now: datetime) -> list[str]:
    """Return where a sound journal and the lake's copy of it differ, in words."""
    differences = contradictions(entries, lake)
    if missing := missing_count(entries, lake, now - LAKE_LAG):
        differences.append(f"the lake lacks {missing} entries")
    return differences


def missing_count(entries: Sequence[Entry], lake: LakeFigures, since: datetime) -> int:
    """Return how many entries that are older than an instant are not in the lake."""
    instant = stamp(since)
    covered = entries_up_to(entries, lake.head)
    missing = max(0, sum(entry.created_at < instant for entry in covered) - lake.entries)
    return missing + sum(OPENED_AT < entry.created_at < instant for entry in entries[len(covered) :])


def contradictions(entries: Sequence[Entry], lake: LakeFigures) -> list[str]:
    """Return, in words, what cannot be true of a journal and the lake's copy at once."""
    covered = entries_up_to(entries, lake.head)
    if len(covered) < lake.entries:
        return [f"the lake has {lake.entries - len(covered)} entries that the table lacks"]
    return _other_figures(covered, lake) if covered and len(covered) == lake.entries else []


def is_systemic(accounts: int, users: int) -> bool:
    """Whether so many of all users are in one doubt that the lake, or the code of hashes, is wrong."""
    return accounts > max(MANY_MIN, users // MANY_SHARE)


def next_step(look: Look, times: int, may_repair: bool) -> Step:
    """Return what to do after a look. times: how many looks, this one included, have shown something wrong.

    The projections of a journal in doubt are neither finished nor repaired: nobody knows what is right.
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
    entries: Sequence[Entry],
    profile: ProjectionState | None,
    days: Mapping[str, ProjectionState],
    has_had_profile: bool,
) -> bool:
    """Whether all that is stored is right as of earlier entries, and only later ones are not counted yet.

    profile: None if there is none. has_had_profile: the lake has one, so a profile that is not stored is lost
    and not late. days: the stored ones, by ISO date. A writer finishes the days before the profile, so no day
    may count less than the profile does.
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
    """Whether a streak shows 0 at this time. lapses_at: epoch seconds, None without a streak."""
    return lapses_at is not None and lapses_at <= now.timestamp()


def _mark_faults(entries: Sequence[Entry]) -> list[str]:
    """Return where the mark of a reversed entry and its reversal do not name each other.

    The mark of an event may be gone: the writer of a carried entry that was late puts it as it was, and an
    event cannot be reversed twice (rule 12). A redemption could be.
    """
    reversals = {(entry.draft.reverses, entry.created_at) for entry in entries if entry.draft.reverses}
    marked = {(entry.created_at, entry.reversed_by) for entry in entries if entry.reversed_by}
    needed = {
        (entry.draft.reverses, entry.created_at)
        for entry in entries
        if entry.draft.reverses and entry.draft.kind is not EntryKind.CLAWBACK
    }
    missing = [f"{place} is not marked as reversed by {by}" for place, by in sorted(needed - marked)]
    return missing + [
        f"{place} is marked as reversed by {by}, which does not say so"
        for place, by in sorted(marked - reversals)
    ]


def _other_figures(covered: Sequence[Entry], lake: LakeFigures) -> list[str]:
    """Return where two journals with the same number of entries differ, in words."""
    points = sum(entry.draft.points for entry in covered)
    earned = sum(entry.draft.points for entry in covered if entry.draft.kind in EARNING)
    if (points, earned) != (lake.points, lake.earned):
        return [f"points {points}, earned {earned}; in the lake {lake.points} and {lake.earned}"]
    if (covered[-1].seq, covered[-1].balance) != (lake.seq, lake.balance):
        return [f"the entry {lake.head} differs in the lake"]
    if digest_of(covered) != lake.digest:
        return [f"entries up to {lake.head} differ in the lake"]
    return []


def _hash(entry: Entry) -> int:
    draft = entry.draft
    values: tuple[object, ...] = (
        *((unstamp(entry.created_at) - EPOCH) // MICROSECOND, entry.seq, draft.kind.value),
        *(draft.points, entry.balance, draft.event_id, draft.event_type, draft.activity_date),
        *(draft.reward_id, draft.reverses, draft.freeze and draft.freeze.value, draft.freeze_date),
        *(draft.rules_version, draft.cap and draft.cap.text, draft.is_passive or None),
        *(draft.expires_on, draft.held_at, draft.reason, draft.brand, draft.measures),
    )
    text = SEPARATOR.join("" if value is None else str(value) for value in values)
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[8:], "little")
