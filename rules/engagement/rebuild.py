"""What an account's profile and days must be, told from its ledger alone (rule 6)."""

from collections.abc import Sequence
from dataclasses import replace

from rules.engagement.absorbing import absorb, absorb_days, active_dates
from rules.engagement.account_state import Day, Profile
from rules.engagement.ledger import Entry, EntryKind
from rules.engagement.streaks import fold


def profile_of(settings: Profile, entries: Sequence[Entry]) -> Profile:
    """Return the profile that follows from all entries of an account, oldest first.

    settings: a profile with what the ledger does not hold: zones, pauses, skipped dates, version.
    """
    cover = replace(settings.cover, freezes=())
    absorbed = absorb(
        replace(settings, head=None, total_points=0, streak=None, cover=cover, applied_through=""), entries
    )
    return replace(absorbed, streak=fold(active_dates(entries), absorbed.cover))


def days_of(entries: Sequence[Entry]) -> dict[str, Day]:
    """Return the days that follow from these entries, by ISO date."""
    return {when.isoformat(): day for when, day in absorb_days({}, entries).items()}


def entries_up_to(entries: Sequence[Entry], place: str) -> Sequence[Entry]:
    """Return the entries that are not newer than a place."""
    return [entry for entry in entries if entry.created_at <= place]


def chain_faults(entries: Sequence[Entry]) -> list[str]:
    """Return, in words, how entries, oldest first, break rule 6; an empty list if they do not."""
    faults: list[str] = []
    balance = 0
    for seq, entry in enumerate(entries):
        balance += entry.draft.points
        if entry.seq != seq:
            faults.append(f"seq {entry.seq} stands where {seq} belongs")
            break
        if entry.balance != balance or balance < 0:
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

    An entry whose mark is gone could be reversed a second time.
    """
    told = {(each.draft.reverses, each.created_at) for each in entries if each.draft.reverses}
    marked = {(each.created_at, each.reversed_by) for each in entries if each.reversed_by}
    return [f"{undone} is not marked as reversed by {by}" for undone, by in sorted(told - marked)] + [
        f"{undone} is marked as reversed by {by}, which does not say so"
        for undone, by in sorted(marked - told)
    ]
