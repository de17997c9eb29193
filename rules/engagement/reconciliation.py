"""A reconciliation of accounts: what an account must be by its ledger alone (rule 6), whether a ledger and
its copy in the lake are one journal (rule 7), what follows for one account, and whose turn it is.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
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
# This many nights pass at most until a ledger that nobody writes to is compared again.
NIGHTS = 28
# A lake that lacks entries of more accounts has lost something itself, and chains of more accounts do not
# break by themselves: then the code that makes or reads them is wrong. Nobody's redemptions wait for either.
MANY_MIN = 20
MANY_SHARE = 100  # one account of this many
SEPARATOR = "\x1f"
HEXADECIMAL = 16
TURN_DIGITS = slice(3, 6)  # those before them are the share (rules/engagement/reconciliation.py)
DIGEST_BITS = 64
# What is wrong counts when it is seen again after a pause: the first look may have met a writer at work.
LOOKS_MIN = 2
HASH_DIGITS = 3  # hexadecimal, of the id's MD5: the warehouse has the same function
HASHES = 4096  # this many values have three digits
SHARES = 8  # of all users in a night, whatever their number: a share keeps what it knows from night to night


def profile_of(settings: Profile, entries: Sequence[Entry]) -> Profile:
    """Return the profile that follows from all entries of an account, oldest first.

    settings: a profile with what the ledger does not hold: zones, all pauses, skipped dates, version. What is
    returned has put nothing away.
    """
    cover = replace(settings.cover, freezes=(), archived=None)
    absorbed = apply_entries(
        replace(settings, head=None, total_points=0, streak=None, cover=cover, applied_through=""), entries
    )
    return replace(
        absorbed,
        streak=fold(active_dates(entries), absorbed.cover),
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


def _mark_faults(entries: Sequence[Entry]) -> list[str]:
    """Return where the mark of a reversed entry and its reversal do not name each other.

    A redemption whose mark is gone could be reversed a second time. An event could not (rule 12), and its
    mark may be gone: the writer of a carried entry that was late puts it as it was.
    """
    reversals = {(each.draft.reverses, each.created_at) for each in entries if each.draft.reverses}
    marked = {(each.created_at, each.reversed_by) for each in entries if each.reversed_by}
    must = {
        (each.draft.reverses, each.created_at)
        for each in entries
        if each.draft.reverses and each.draft.kind is not EntryKind.CLAWBACK
    }
    return [f"{undone} is not marked as reversed by {by}" for undone, by in sorted(must - marked)] + [
        f"{undone} is marked as reversed by {by}, which does not say so"
        for undone, by in sorted(marked - reversals)
    ]


# Whether a ledger and its copy in the lake are one journal (docs/rules.md, rule 7), and whose turn it is.
#
# An entry never changes, so both must hold the same entries. A digest of them compares whole journals. Where
# they disagree, nobody knows which is right: nothing is repaired, and redemptions wait for an admin.


class Doubt(StrEnum):
    """What speaks against a journal. late: the lake lacks entries that should be there by now.

    lacking: it has lacked them for a day. unproven: ledger and lake are one, and its chain of hashes is
    broken, or contradicts the last root (rule 19). contradicted: ledger and lake differ, or
    the ledger breaks rule 6.
    """

    NONE = ""
    LATE = "late"
    LACKING = "lacking"
    UNPROVEN = "unproven"
    CONTRADICTED = "contradicted"


@dataclass(frozen=True, slots=True)
class LakeFigures:
    """What the lake's copy of an account's journal comes to."""

    head: str = ""  # head, seq, balance: of the newest entry; head is "" where there is none
    entries: int = 0
    points: int = 0  # the sum of all entries
    earned: int = 0  # of those that earn
    seq: int | None = None
    balance: int = 0
    digest: int = 0  # see digest_of


def digest_of(entries: Sequence[Entry]) -> int:
    """Return a number of 64 bits that distinguishes journals: the sum of the hashes of all their entries.

    The opening entry is left out, because it has no time of its own.
    """
    return sum(map(_hash, (each for each in entries if each.seq > 0))) % (1 << DIGEST_BITS)


def _hash(entry: Entry) -> int:
    draft = entry.draft
    values: tuple[object, ...] = (
        *((unstamp(entry.created_at) - EPOCH) // MICROSECOND, entry.seq, draft.kind.value),
        *(draft.points, entry.balance, draft.event_id, draft.event_type, draft.activity_date),
        *(draft.reward_id, draft.reverses, draft.freeze and draft.freeze.value, draft.freeze_date),
        *(draft.rules_version, draft.cap and draft.cap.text, draft.is_passive or None),
        *(draft.expires_on, draft.held_at, draft.reason, draft.brand, draft.measures),
    )
    text = SEPARATOR.join("" if each is None else str(each) for each in values)
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[8:], "little")


def doubt_of(
    faults: Sequence[str],
    entries: Sequence[Entry],
    lake: LakeFigures,
    now: datetime,
    unproven: Sequence[str] = (),
) -> Doubt:
    """Return what speaks against a journal.

    faults: how it breaks rule 6. unproven: what its chain, or the last root,
    says against it.
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
    found = contradictions(entries, lake)
    if lost := missing_count(entries, lake, now - LAKE_LAG):
        found.append(f"the lake lacks {lost} entries")
    return found


def missing_count(entries: Sequence[Entry], lake: LakeFigures, since: datetime) -> int:
    """Return how many entries that are older than an instant are not in the lake."""
    settled = stamp(since)
    covered = entries_up_to(entries, lake.head)
    lost = max(0, sum(each.created_at < settled for each in covered) - lake.entries)
    return lost + sum(OPENED_AT < each.created_at < settled for each in entries[len(covered) :])


def contradictions(entries: Sequence[Entry], lake: LakeFigures) -> list[str]:
    """Return what cannot be true of a journal and the lake's copy at once, in words."""
    covered = entries_up_to(entries, lake.head)
    if len(covered) < lake.entries:
        return [f"the lake has {lake.entries - len(covered)} entries that the table lacks"]
    return _other_figures(covered, lake) if covered and len(covered) == lake.entries else []


def _other_figures(covered: Sequence[Entry], lake: LakeFigures) -> list[str]:
    """Compare two journals that have the same number of entries."""
    points = sum(each.draft.points for each in covered)
    earned = sum(each.draft.points for each in covered if each.draft.kind in EARNING)
    if (points, earned) != (lake.points, lake.earned):
        return [f"points {points}, earned {earned}; in the lake {lake.points} and {lake.earned}"]
    if (covered[-1].seq, covered[-1].balance) != (lake.seq, lake.balance):
        return [f"the entry {lake.head} differs in the lake"]
    if digest_of(covered) != lake.digest:
        return [f"entries up to {lake.head} differ in the lake"]
    return []


def is_no_fault_of_theirs(accounts: int, users: int) -> bool:
    """Whether so many accounts are in one doubt that the lake, or the code of hashes, is what is wrong."""
    return accounts > max(MANY_MIN, users // MANY_SHARE)


def slices_due(last: date | None, today: date) -> frozenset[int]:
    """Return which of NIGHTS slices of all accounts are to be compared. last: when it was done before.

    Nights that were left out are made good by the next one.
    """
    nights = NIGHTS if last is None else min(NIGHTS, (today - last).days)
    return frozenset((today.toordinal() - night) % NIGHTS for night in range(nights))


def dates_due(dates: Collection[date], last: date | None, today: date) -> set[date]:
    """Return the dates whose turn has come since the last night, of all dates of an entity.

    A date has its turn once in 28 nights; of 56 dates or more each once in 56; of 112 or more each once in
    112; and so on. So about one is due a night. Nights that were left out are made good. last: None: all are
    due.
    """
    nights = NIGHTS
    while 2 * nights <= len(dates):
        nights *= 2
    since = nights if last is None else (today - last).days
    return {each for each in dates if (today - each).days % nights < since}


def slice_of(user_id: str) -> int:
    """Return the slice that an account is in: by three digits of a hash that the warehouse has too."""
    digest = hashlib.md5(user_id.encode(), usedforsecurity=False).hexdigest()
    return int(digest[TURN_DIGITS], HEXADECIMAL) % NIGHTS


def turn_digits(slices: Collection[int]) -> list[str]:
    """Return the digits (three, hexadecimal) of all accounts in some slices, as SQL compares them."""
    return [f"{value:03x}" for value in range(HEXADECIMAL**3) if value % NIGHTS in slices]


@dataclass(frozen=True, slots=True)
class ProjectionState:
    """A stored profile or day."""

    place: str  # the newest entry that it says it counts, "" for none
    # Whether it is stored exactly as the entries up to that place say. What cannot be read is not.
    is_right: bool


WRONG_STATE = ProjectionState("", is_right=False)


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at an account showed."""

    differs: bool  # something stored is not what the whole journal says
    is_behind: bool  # it is right as of earlier entries
    doubt: Doubt = Doubt.NONE  # of its journal


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
    entries: Sequence[Entry],
    profile: ProjectionState | None,
    days: Mapping[str, ProjectionState],
    has_had_profile: bool,
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


# Which share of all users a user is in. Each night's comparison is done share by share, whatever their number
# is: a share keeps what it knows of its users from night to night. A share is a range of hashes.


def share_of(user_id: str, shares: int) -> int:
    """Return the number of a user's share, from 0. shares: how many there are, 4,096 at most."""
    digits = hashlib.md5(user_id.encode(), usedforsecurity=False).hexdigest()[:HASH_DIGITS]
    return share_of_hash(digits, shares)


def share_of_hash(digits: str, shares: int) -> int:
    """Return the number of the share that has these first three digits of an MD5."""
    return int(digits, HEXADECIMAL) * shares // HASHES
