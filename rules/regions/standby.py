"""A standby's ledger (rule 23): how it grows by the writer's own entries; and once the standby writes itself,
what becomes of what the old writer's ledger has beyond it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from rules.engagement.ledger import Entry, EntryKind, FreezeNote, Head, unfold_carrier
from rules.engagement.seals import DIGEST_BYTES, ZERO, content_of, link_hash

NO_HEAD = Head("", -1, 0)
# What a person sets, of a profile.
SETTINGS = ("timezone_chosen", "pauses", "alias", "holds")


class LedgerContradiction(ValueError):
    """An entry does not follow from those before it: a fault, that no waiting mends. The text says which."""


@dataclass(frozen=True, slots=True)
class FollowedEntries:
    """What to write."""

    carrier: Entry | None  # the new head, or None if the ledger has it
    carried: Sequence[Entry] = ()  # entries that it names


def follow_entry(head: Head | None, entry: Entry) -> FollowedEntries | None:
    """Return what an entry of the writer becomes on a standby's head; None: it must wait for others.

    entry: as the writer has stored it; one with `folded` brings along those that it names. How far into the
    writer's stream events are applied is left out: the standby has a stream of its own, so it looks into its
    ledger instead. Raises LedgerContradiction where balance or hash is not what the entries lead to.
    """
    on = head or NO_HEAD
    entries = [*unfold_carrier(entry), entry]
    if entry.seq <= on.seq:
        return FollowedEntries(None, entries[:-1])
    new = [each for each in entries if each.seq > on.seq]
    if new[0].seq != on.seq + 1:
        return None
    balance = on.balance + sum(each.draft.points for each in new)
    if balance != entry.balance:
        raise LedgerContradiction(
            f"seq {entry.seq}: balance {entry.balance}, and the points lead to {balance}"
        )
    chain = _chain(on, new)
    if entry.chain and chain and entry.chain != chain:
        raise LedgerContradiction(f"seq {entry.seq}: its hash is not that of its predecessors")
    followed = replace(entry, active=True, reversed_by=None, applied_through="", chain=entry.chain or chain)
    return FollowedEntries(followed, entries[:-1])


def _chain(on: Head, new: Sequence[Entry]) -> bytes:
    """Return the last entry's hash and salt; b"" if its chain has not begun."""
    before, salt = on.chain[:DIGEST_BYTES], on.chain[DIGEST_BYTES:]
    for each in new:
        if each.begins:
            before, salt = ZERO, each.begins
        if salt:
            before = link_hash(before, content_of(each, salt))
    return before + salt if salt else b""


# What a region wrote that the new writer never saw, and what becomes of it (rule 23).
#
# Both ledgers of an account have one beginning. What the old writer's has beyond it is *unseen*. Its points
# were promised to somebody, so nothing of it is thrown away: it is applied by the rules that hold for
# everybody, or it is listed by name.


class UnseenFate(StrEnum):
    """What becomes of an unseen entry."""

    EVENT = "event"  # its event goes to the new writer, as a late one
    REDEEM = "redeem"  # is asked for again, under its key
    REVERSE = "reverse"  # is asked for again
    FOLLOWS = "follows"  # from events and rules: the new writer writes its own
    UNDONE = "undone"  # it and its reversal are both unseen: nothing is left of it
    LISTED = "listed"  # somebody must decide


@dataclass(frozen=True, slots=True)
class UnseenEntry:
    """An unseen entry."""

    entry: Entry
    fate: UnseenFate
    key: str = ""  # of the command that wrote it, "" if it had none
    reason: str = ""  # why it is listed


def common_length(theirs: Sequence[Entry], ours: Sequence[Entry]) -> int:
    """Return how many entries two ledgers of an account have in common. Both: all entries, oldest first."""
    count = 0
    for one, other in zip(theirs, ours, strict=False):
        if (one.created_at, one.seq, one.balance, one.draft) != (
            *(other.created_at, other.seq, other.balance, other.draft),
        ):
            break
        count += 1
    return count


def unseen_entries(
    theirs: Sequence[Entry], ours: Sequence[Entry], keys: Mapping[str, str]
) -> list[UnseenEntry]:
    """Return what the old writer's ledger has beyond the new one's, oldest first. keys: place -> key."""
    beyond = theirs[common_length(theirs, ours) :]
    places = {each.created_at for each in beyond}
    reversals = [each.draft.reverses for each in beyond if each.draft.kind is EntryKind.REVERSE]
    undone = {each for each in reversals if each in places}
    return [_unseen_entry(each, places, undone, keys.get(each.created_at, "")) for each in beyond]


def _unseen_entry(  # noqa: PLR0911 (a kind each)
    entry: Entry, places: set[str], undone: set[str], key: str
) -> UnseenEntry:
    draft = entry.draft
    if draft.kind is EntryKind.EARN:
        return UnseenEntry(entry, UnseenFate.EVENT)
    if draft.kind in (EntryKind.OPEN, EntryKind.EXPIRE, EntryKind.RERATE):
        return UnseenEntry(entry, UnseenFate.FOLLOWS)
    if draft.freeze in (FreezeNote.SPENT, FreezeNote.REFUNDED):
        return UnseenEntry(entry, UnseenFate.FOLLOWS)
    if entry.created_at in undone or (draft.kind is EntryKind.REVERSE and draft.reverses in places):
        return UnseenEntry(entry, UnseenFate.UNDONE, key)
    if draft.kind is EntryKind.REVERSE and draft.reverses:
        return UnseenEntry(entry, UnseenFate.REVERSE, key)
    if draft.kind is EntryKind.REDEEM and draft.freeze is FreezeNote.GRANTED:
        return UnseenEntry(
            entry, UnseenFate.LISTED, key, "a freeze: give it again, unless the user has taken another"
        )
    if draft.kind is EntryKind.REDEEM and draft.held_at:
        return UnseenEntry(
            entry, UnseenFate.LISTED, key, "a captured hold: capture it again, or redeem the points"
        )
    if draft.kind is EntryKind.REDEEM and draft.points:
        return UnseenEntry(entry, UnseenFate.REDEEM, key)
    return UnseenEntry(entry, UnseenFate.LISTED, key, f"{draft.kind}: to be declared again")


def settings_unseen(theirs: Mapping[str, object], ours: Mapping[str, object]) -> list[str]:
    """Return which settings of a profile differ. Both: attributes; {} for no profile."""
    return [name for name in SETTINGS if theirs.get(name) != ours.get(name)]


class UnseenPolicy(StrEnum):
    """What is done about items of a table that the old writer has and the new one has not."""

    CARRIED = "carried"  # put: they never change, and whoever reads them does what is to be done
    LISTED = "listed"
    DERIVED = "derived"  # the new writer has made its own, or will


UNSEEN_POLICIES: Mapping[str, UnseenPolicy] = {
    **dict.fromkeys(("Erasures", "IdempotencyKeys", "BPEvents", "Event"), UnseenPolicy.CARRIED),
    **dict.fromkeys(("Rewards", "RuleBooks", "Questions", "Responses", "Subscriptions"), UnseenPolicy.LISTED),
    **dict.fromkeys(("WebhookEndpoints", "Notifications"), UnseenPolicy.LISTED),
    **dict.fromkeys(("DailyActivity", "Memory", "Feature", "GroupEvents", "UserStats"), UnseenPolicy.DERIVED),
}


def tables_in_order(tables: Iterable[str]) -> list[str]:
    """Return tables of UNSEEN_POLICIES as they are looked at: erasures first, claims before events."""
    return sorted(tables, key=list(UNSEEN_POLICIES).index)
