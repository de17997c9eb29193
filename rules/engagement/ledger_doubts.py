"""Whether a ledger and its copy in the lake are one journal (docs/rules.md, rule 7), and whose turn it is.

An entry never changes, so both must hold the same entries. A digest of them compares whole journals. Where
they disagree, nobody knows which is right: nothing is repaired, and redemptions wait for an admin.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from rules.days import EPOCH, MICROSECOND, stamp, unstamp
from rules.engagement.ledger import EARNING, OPENED_AT, Entry
from rules.engagement.rebuild import entries_up_to

# An older entry that is still not in the lake is late. A younger one is in flight.
LAKE_LAG = timedelta(hours=2)
# Firehose tries for a day. What is not in the lake then will not come by itself.
LAKE_LOST = timedelta(hours=24)
# So many nights pass at most until a ledger that nobody writes to is compared again.
NIGHTS = 28
# A lake that lacks entries of more accounts has lost something itself, and chains of more accounts do not
# break by themselves: then the code that makes or reads them is wrong. Nobody's redemptions wait for either.
MANY_MIN = 20
MANY_SHARE = 100  # one account of so many
SEPARATOR = "\x1f"
HEXADECIMAL = 16
TURN_DIGITS = slice(3, 6)  # those before them tell the share (rules/lake/user_shares.py)
DIGEST_BITS = 64


class Doubt(StrEnum):
    """What speaks against a journal. late: the lake lacks entries that should be there by now.

    lacking: it has lacked them for a day. unproven: ledger and lake are one, and its chain of hashes is
    broken, or contradicts the last root (rule 19). contradicted: ledger and lake tell different things, or
    the ledger breaks rule 6.
    """

    NONE = ""
    LATE = "late"
    LACKING = "lacking"
    UNPROVEN = "unproven"
    CONTRADICTED = "contradicted"


@dataclass(frozen=True, slots=True)
class LakeFigures:
    """What the lake's copy of an account's journal comes to.

    head, seq, balance: of the newest entry; head is "" where there is none. points: the sum of all entries;
    earned: of those that earn. digest: see digest_of.
    """

    head: str = ""
    entries: int = 0
    points: int = 0
    earned: int = 0
    seq: int | None = None
    balance: int = 0
    digest: int = 0


def digest_of(entries: Sequence[Entry]) -> int:
    """Return a number of 64 bits that tells journals apart: the sum of the hashes of all their entries.

    The opening entry is left out, because it has no time of its own. The SQL of
    analytics/recompute/ledger_totals.py gives the same for the lake's rows.
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

    faults: how it breaks rule 6 (rules/engagement/rebuild.py). unproven: what its chain, or the last root,
    says against it.
    """
    if faults or contradictions(entries, lake):
        return Doubt.CONTRADICTED
    if unproven:
        return Doubt.UNPROVEN
    if missing(entries, lake, now - LAKE_LOST):
        return Doubt.LACKING
    return Doubt.LATE if missing(entries, lake, now - LAKE_LAG) else Doubt.NONE


def disagreements(entries: Sequence[Entry], lake: LakeFigures, now: datetime) -> list[str]:
    """Return where a sound journal and the lake's copy of it differ, in words."""
    found = contradictions(entries, lake)
    if lost := missing(entries, lake, now - LAKE_LAG):
        found.append(f"the lake lacks {lost} entries")
    return found


def missing(entries: Sequence[Entry], lake: LakeFigures, since: datetime) -> int:
    """Return how many entries that are older than an instant are not in the lake."""
    settled = stamp(since)
    known = entries_up_to(entries, lake.head)
    lost = max(0, sum(each.created_at < settled for each in known) - lake.entries)
    return lost + sum(OPENED_AT < each.created_at < settled for each in entries[len(known) :])


def contradictions(entries: Sequence[Entry], lake: LakeFigures) -> list[str]:
    """Return what cannot be true of a journal and the lake's copy at once, in words."""
    known = entries_up_to(entries, lake.head)
    if len(known) < lake.entries:
        return [f"the lake has {lake.entries - len(known)} entries that the table lacks"]
    return _other_figures(known, lake) if known and len(known) == lake.entries else []


def _other_figures(known: Sequence[Entry], lake: LakeFigures) -> list[str]:
    """Compare two journals that have the same number of entries."""
    points = sum(each.draft.points for each in known)
    earned = sum(each.draft.points for each in known if each.draft.kind in EARNING)
    if (points, earned) != (lake.points, lake.earned):
        return [f"points {points}, earned {earned}; in the lake {lake.points} and {lake.earned}"]
    if (known[-1].seq, known[-1].balance) != (lake.seq, lake.balance):
        return [f"the entry {lake.head} differs in the lake"]
    if digest_of(known) != lake.digest:
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
