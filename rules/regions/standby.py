"""A standby's ledger (rule 23): how it follows the writer's ledger, and what becomes of unseen entries.

After a promotion, the ledgers of both regions begin with the same entries. The entries that only the old
writer has are *unseen*. Their points were promised to somebody, so none is thrown away: an unseen entry is
applied by the usual rules, or a report lists it for an operator.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rules.engagement.carriers import unfold_carrier
from rules.engagement.ledger import Entry, EntryKind, FreezeNote, Head
from rules.engagement.repairs import gives_repair_back, is_repair
from rules.parts import said
from rules.regions.followed_tables import UnseenPolicy

NO_HEAD = Head("", -1, 0)
# The attributes of a profile that a person sets.
SETTINGS = ("chosen_zone", "pauses", "rest_days", "alias", "holds")


class LedgerContradiction(ValueError):
    """An entry does not follow from those before it, and waiting does not help. The text says why."""


@dataclass(frozen=True, slots=True)
class FollowedEntries:
    """The entries that a standby writes when it follows one of the writer's."""

    carrier: Entry | None  # the new head, or None if the ledger has it
    carried: Sequence[Entry] = ()  # entries that the carrier names


def follow_entry(head: Head | None, entry: Entry) -> FollowedEntries | None:
    """Return what an entry of the writer becomes on a standby's head; None: it must wait for others.

    entry: as the writer has stored it; one with `carried` brings along those that it names. How far into the
    writer's stream events are applied is left out: the standby has a stream of its own, so it looks into its
    ledger instead. Raises LedgerContradiction if the balance is not what the entries lead to.
    """
    base, carried = head or NO_HEAD, unfold_carrier(entry)
    if entry.seq <= base.seq:
        return FollowedEntries(None, carried)
    new = [candidate for candidate in (*carried, entry) if candidate.seq > base.seq]
    if new[0].seq != base.seq + 1:
        return None
    balance = base.balance + sum(new_entry.draft.points for new_entry in new)
    if balance != entry.balance:
        raise LedgerContradiction(
            f"seq {entry.seq}: balance {entry.balance}, and the points lead to {balance}"
        )
    return FollowedEntries(replace(entry, active=True, reversed_by=None, applied_through=""), carried)


class UnseenFate(StrEnum):
    """What becomes of an unseen entry."""

    EVENT = "event"  # its event goes to the new writer, as a late one
    REDEEM = "redeem"  # the command is sent again, under its key
    REVERSE = "reverse"  # the command is sent again
    FOLLOWS = "follows"  # it follows from events and rules: the new writer writes its own
    UNDONE = "undone"  # it and its reversal are both unseen: nothing is left of it
    LISTED = "listed"  # somebody must decide


@dataclass(frozen=True, slots=True)
class UnseenEntry:
    """An entry of the old writer that the new writer never saw."""

    entry: Entry
    fate: UnseenFate
    key: str = ""  # of the command that wrote it, "" if it had none
    reason: str = ""  # why it is listed


def unseen_entries(
    old_entries: Sequence[Entry], new_entries: Sequence[Entry], keys: Mapping[str, str]
) -> list[UnseenEntry]:
    """Return what the old writer's ledger has beyond the new writer's, oldest first.

    Both: all entries of an account, oldest first. keys: place -> key of the command that wrote the entry.
    """
    shared = 0  # how many entries both ledgers begin with
    for old, new in zip(old_entries, new_entries, strict=False):
        # The marks of an entry depend on later ones.
        old_content = (old.created_at, old.seq, old.balance, old.draft)
        if old_content != (new.created_at, new.seq, new.balance, new.draft):
            break
        shared += 1
    unseen = old_entries[shared:]
    places = {entry.created_at for entry in unseen}
    reversals = [entry.draft.reverses for entry in unseen if entry.draft.kind is EntryKind.REVERSE]
    undone = {place for place in reversals if place in places}
    active = {entry.draft.activity_date for entry in unseen if entry.draft.kind is EntryKind.EARN}
    return [
        UnseenEntry(entry, UnseenFate.FOLLOWS)
        if gives_repair_back(entry.draft) and entry.draft.freeze_date in active
        else _unseen_entry(entry, places, undone, keys.get(entry.created_at, ""))
        for entry in unseen
    ]


def _unseen_entry(entry: Entry, places: set[str], undone: set[str], key: str) -> UnseenEntry:
    """places: of all unseen entries of the account. undone: those of them whose reversal is unseen, too."""
    draft, kind, reason = entry.draft, entry.draft.kind, ""
    if kind is EntryKind.EARN:
        return UnseenEntry(entry, UnseenFate.EVENT)
    # Settings that differ are named by settings_unseen.
    follows = kind in (
        *(EntryKind.OPEN, EntryKind.EXPIRE, EntryKind.RERATE, EntryKind.SETTING),
        EntryKind.BONUS,
    )
    if follows or draft.freeze in (FreezeNote.SPENT, FreezeNote.REFUNDED):
        return UnseenEntry(entry, UnseenFate.FOLLOWS)
    fate = UnseenFate.LISTED
    if entry.created_at in undone or (kind is EntryKind.REVERSE and draft.reverses in places):
        fate = UnseenFate.UNDONE
    elif kind is EntryKind.REVERSE and draft.reverses:
        fate = UnseenFate.REVERSE
    elif is_repair(draft):
        reason = "a repair: the user may buy it again, or be given a freeze for that date"
    elif kind is EntryKind.REDEEM and draft.freeze is FreezeNote.GRANTED:
        reason = "a freeze: give it again, unless the user has taken another"
    elif kind is EntryKind.REDEEM and draft.held_at:
        reason = "a captured hold: capture it again, or redeem the points"
    elif kind is EntryKind.REDEEM and draft.points:
        fate = UnseenFate.REDEEM
    else:
        reason = f"{kind}: to be declared again"
    return UnseenEntry(entry, fate, key, reason)


def settings_unseen(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """Return which settings differ between two regions' profiles. Both: attributes; {} for no profile."""
    return [name for name in SETTINGS if old.get(name) != new.get(name)]


UNSEEN_POLICIES: Mapping[str, UnseenPolicy] = {
    **dict.fromkeys(("Erasures", "IdempotencyKeys", "BPEvents"), UnseenPolicy.CARRIED),
    **dict.fromkeys(("Rewards", "Friends", "RuleBooks"), UnseenPolicy.LISTED),
    **{name: table.unseen for tables in said("followed_tables") for name, table in tables.items()},
    **dict.fromkeys(("WebhookEndpoints", "Notifications"), UnseenPolicy.LISTED),
    "DailyActivity": UnseenPolicy.DERIVED,
}


def tables_in_order(tables: Iterable[str]) -> list[str]:
    """Return tables of UNSEEN_POLICIES as they are looked at: erasures first, claims before events."""
    return sorted(tables, key=list(UNSEEN_POLICIES).index)
