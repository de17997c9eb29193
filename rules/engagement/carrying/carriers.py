"""Several ledger entries at once (docs/rules.md, rule 6): one is written dearly, and names those before it.

The transaction writes only the carriers among the new entries. A carrier names EARN entries just before it,
the carried entries. The writer puts those afterwards, at half the price. If it dies first, the next one
rebuilds them from their carrier (`split_carriers`, `unfold`). Example: twenty events are one carrier and
nineteen carried entries.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest

from rules.days import MICROSECOND, stamp, unstamp
from rules.engagement.carrying.packed_drafts import Packing
from rules.engagement.ledger import Entry

WRITE_UNIT_BYTES = 1024  # a write is billed in steps of so many
# Of each carrier: its attributes' names, the values whose length is known, and its hash and place in the
# stream, which come later.
OWN_BYTES = 265
OPTIONAL = (
    *("cap", "is_passive", "expires_on", "measures"),
    *("reward_id", "reverses", "freeze", "freeze_date", "held_at", "reason", "brand"),
)


def split_carriers(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Split appended entries into the carriers, which the transaction writes, and the carried entries.

    A carrier names as many as fit beside its own attributes into one write unit. The last entry is always a
    carrier, and becomes the active head.
    """
    carriers: list[Entry] = []
    rest: list[Entry] = []
    packing = Packing()
    for entry, follower in zip_longest(entries, entries[1:]):
        # What begins a chain tells its salt itself.
        if follower and not entry.begins and packing.takes(entry.draft, _room_in(follower)):
            rest.append(entry)
            continue
        carriers.append(replace(entry, folded=tuple(packing.drafts), active=follower is None))
        packing = Packing()
    return carriers, rest


def _room_in(entry: Entry) -> int:
    """Return the bytes that an entry has for what it names, in the write unit that it takes itself."""
    draft = entry.draft
    told = (entry.account_id, draft.event_id, draft.event_type, draft.activity_date)
    own = OWN_BYTES + sum(len(each.encode()) for each in told if each)
    for name in OPTIONAL:
        if each := getattr(draft, name):
            own += len(name) + (1 if each is True else len(str(getattr(each, "text", each)).encode()))
    return WRITE_UNIT_BYTES - own


def unfold(carrier: Entry) -> list[Entry]:
    """Return the carried entries that a carrier names, oldest first."""
    entries: list[Entry] = []
    seq, moment = carrier.seq, unstamp(carrier.created_at)
    balance = carrier.balance - carrier.draft.points
    for draft in reversed(carrier.folded):
        seq, moment = seq - 1, moment - MICROSECOND
        entries.append(Entry(carrier.account_id, stamp(moment), seq, balance, draft))
        balance -= draft.points
    return entries[::-1]


def with_folded(stored: Iterable[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Return stored and carried entries, oldest first; and those of them that are not stored yet."""
    known = {entry.created_at: entry for entry in stored}
    missing = [
        entry
        for carrier in list(known.values())
        for entry in unfold(carrier)
        if entry.created_at not in known
    ]
    everything = {**known, **{entry.created_at: entry for entry in missing}}
    return [everything[key] for key in sorted(everything)], missing
