"""Several ledger entries at once (docs/rules.md, rule 6): one is written dearly, and names those before it.

The transaction writes only the carriers among the new entries. A carrier names EARN entries just before it,
the carried entries. The writer puts those afterwards, at half the price. If it dies first, the next one
rebuilds them from their carrier (`split_carriers`, `unfold`). Example: twenty events are one carrier and
nineteen carried entries.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from rules.days import MICROSECOND, stamp, unstamp
from rules.engagement.carrying.packed_drafts import (
    HEADER_BYTES,
    RECORD_BYTES,
    is_packable,
    kind_bytes,
    kind_of,
)
from rules.engagement.ledger import Entry

# A write is billed in steps of 1 KB. The rest is for the carrier itself, with an account_id of 36 bytes and
# its hash (53 bytes).
CARRIED_BYTES_MAX = 627
ACCOUNT_ID_BYTES = 36


def split_carriers(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Split appended entries into the carriers, which the transaction writes, and the carried entries.

    A carrier names as many as it has room for. The last entry is always a carrier, and becomes the active
    head.
    """
    carriers: list[Entry] = []
    rest: list[Entry] = []
    run = _Run()
    for entry in entries:
        last = entry is entries[-1]
        if not last and run.takes(entry):
            continue
        carriers.append(replace(entry, folded=tuple(each.draft for each in run.entries), active=last))
        rest += run.entries
        run = _Run()
    return carriers, rest


@dataclass(slots=True)
class _Run:
    """Entries that the next carrier names, and how many bytes they take."""

    entries: list[Entry] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    size: int = HEADER_BYTES

    def takes(self, entry: Entry) -> bool:
        """Add an entry if there is room for it; whether there was."""
        # What begins a chain tells its salt itself.
        if entry.begins or not is_packable(entry.draft):
            return False
        kind = kind_of(entry.draft)
        more = RECORD_BYTES + (0 if kind in self.kinds else kind_bytes(kind))
        if self.size + more > CARRIED_BYTES_MAX - max(0, len(entry.account_id.encode()) - ACCOUNT_ID_BYTES):
            return False
        self.entries.append(entry)
        self.kinds.add(kind)
        self.size += more
        return True


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
