"""What an account's profile and days must be, told from its ledger alone (rule 6)."""

from collections.abc import Sequence
from dataclasses import replace

from rules.engagement.absorbing import absorb, absorb_days
from rules.engagement.account_state import Day, Profile
from rules.engagement.ledger import INTO_DEBT, Entry, EntryKind
from rules.engagement.points.lots import expiry_of
from rules.engagement.streak.active_dates import active_dates
from rules.engagement.streaks import fold


def profile_of(settings: Profile, entries: Sequence[Entry]) -> Profile:
    """Return the profile that follows from all entries of an account, oldest first.

    settings: a profile with what the ledger does not hold: zones, all pauses, skipped dates, version. What is
    returned has put nothing away.
    """
    cover = replace(settings.cover, freezes=(), archived=None)
    absorbed = absorb(
        replace(settings, head=None, total_points=0, streak=None, cover=cover, applied_through=""), entries
    )
    return replace(
        absorbed,
        streak=fold(active_dates(entries), absorbed.cover),
        expiry=expiry_of(entries, settings.holds, settings.expiry, settings.updated_at),
    )


def days_of(entries: Sequence[Entry]) -> dict[str, Day]:
    """Return the days that follow from these entries, by ISO date."""
    return {when.isoformat(): day for when, day in absorb_days({}, entries).items()}


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
    told = {(each.draft.reverses, each.created_at) for each in entries if each.draft.reverses}
    marked = {(each.created_at, each.reversed_by) for each in entries if each.reversed_by}
    must = {
        (each.draft.reverses, each.created_at)
        for each in entries
        if each.draft.reverses and each.draft.kind is not EntryKind.CLAWBACK
    }
    return [f"{undone} is not marked as reversed by {by}" for undone, by in sorted(must - marked)] + [
        f"{undone} is marked as reversed by {by}, which does not say so"
        for undone, by in sorted(marked - told)
    ]
