"""How a standby's ledger grows: by the writer's own entries, one after the other (rule 23).

A ledger that lacks an entry in the middle would be none. So an entry is followed only on its predecessor,
and waits until that is there. Whenever the standby is promoted, each of its ledgers is one that the writer's
was before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rules.engagement.ledger import EARNING, Entry, Head, unfold_carrier
from rules.engagement.seals import DIGEST_BYTES, ZERO, content_of, link

NO_HEAD = Head("", -1, 0)


class Contradicted(ValueError):
    """An entry does not follow from those before it: a fault, that no waiting mends. The text says which."""


@dataclass(frozen=True, slots=True)
class Following:
    """What to write. carrier: the new head, or None if the ledger has it. carried: entries that it names."""

    carrier: Entry | None
    carried: Sequence[Entry] = ()


def following(head: Head | None, entry: Entry) -> Following | None:
    """Return what an entry of the writer becomes on a standby's head; None: it must wait for others.

    entry: as the writer has stored it; one with `folded` brings along those that it names. How far into the
    writer's stream events are applied is left out: the standby has a stream of its own, so it looks into its
    ledger instead. Raises Contradicted where balance or hash is not what the entries lead to.
    """
    on = head or NO_HEAD
    entries = [*unfold_carrier(entry), entry]
    if entry.seq <= on.seq:
        return Following(None, entries[:-1])
    new = [each for each in entries if each.seq > on.seq]
    if new[0].seq != on.seq + 1:
        return None
    balance = on.balance + sum(each.draft.points for each in new)
    if balance != entry.balance:
        raise Contradicted(f"seq {entry.seq}: balance {entry.balance}, and the points lead to {balance}")
    chain = _chain(on, new)
    if entry.chain and chain and entry.chain != chain:
        raise Contradicted(f"seq {entry.seq}: its hash is not that of its predecessors")
    followed = replace(entry, active=True, reversed_by=None, applied_through="", chain=entry.chain or chain)
    return Following(followed, entries[:-1])


def _chain(on: Head, new: Sequence[Entry]) -> bytes:
    """Return the last entry's hash and salt; b"" if its chain has not begun."""
    before, salt = on.chain[:DIGEST_BYTES], on.chain[DIGEST_BYTES:]
    for each in new:
        if each.begins:
            before, salt = ZERO, each.begins
        if salt:
            before = link(before, content_of(each, salt))
    return before + salt if salt else b""


def days_needed(entries: Iterable[Entry]) -> dict[str, str]:
    """Return the dates that entries count for, each with the place of the newest entry that its day counts
    in.
    """
    return {
        each.draft.activity_date: each.created_at
        for each in entries
        if each.draft.kind in EARNING and each.draft.activity_date
    }
