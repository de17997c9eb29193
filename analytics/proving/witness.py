"""What last night's tree says against a journal, and the head that a sound journal brings to tonight's.

The night reads the whole journal of whoever is looked at anyway: of all who have changed, and of a slice of
the others (rule 7). So the chain is recomputed from its beginning, and no history is read for it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from adapters.platform.objects import Objects
from analytics.proving.heads import Heads
from rules.days import unstamp
from rules.engagement.ledger import OPENED_AT, Entry
from rules.engagement.proof import (
    AccountChain,
    Leaves,
    TreeLeaf,
    bucket_of,
    chain_of,
    fault_texts,
    link_of,
    own_faults,
)

# By then every account has been looked at, and has a leaf.
KNOWN_AFTER = timedelta(days=30)
Head = list[str | int]  # bucket, name, seq, digest: as findings keep it


class Witness:
    """Last night's tree; what is read of it is kept."""

    def __init__(self, objects: Objects) -> None:
        self._objects, self._heads = objects, Heads.read(objects)
        self._known: dict[int, Leaves] = {}
        self._brought: dict[str, Head] = {}

    def faults(self, account_id: str, entries: Sequence[Entry]) -> list[str]:
        """Return, in words, what a journal contradicts: its own hashes, or the tree of the last night."""
        links = list(map(link_of, entries))
        if own := own_faults(account_id, links):
            return fault_texts(own)
        chain = chain_of(account_id, links)
        if chain is None:
            return []
        known = self._leaf(account_id, chain)
        if known is None:
            return self._unknown(chain, entries)
        if known.seq > chain.seq:
            return [f"entries {chain.seq + 1} to {known.seq} were dropped: the last root has them"]
        if chain.leaf_at(known.seq) != known.digest:
            return [f"entry {known.seq}, or one before it, is not the one of the last root"]
        return []

    def _leaf(self, account_id: str, chain: AccountChain) -> TreeLeaf | None:
        bucket = bucket_of(account_id)
        if bucket not in self._known:
            self._known[bucket] = self._heads.leaves(self._objects, bucket)
        return self._known[bucket].get(chain.name)

    def _unknown(self, chain: AccountChain, entries: Sequence[Entry]) -> list[str]:
        """A chain that began long ago has a leaf: without one it is not the chain that was published."""
        first = min(chain.parts)
        begun = [each.created_at for each in entries if each.seq >= first and each.created_at > OPENED_AT]
        if not self._heads.since or not begun:
            return []
        oldest = datetime.fromisoformat(self._heads.at) - KNOWN_AFTER
        is_old = datetime.fromisoformat(self._heads.since) < oldest and unstamp(begun[0]) < oldest
        return [f"its chain, which begins at entry {first}, is in no root"] if is_old else []

    def bring(self, account_id: str, entries: Sequence[Entry]) -> None:
        """Note the head of a journal that nothing speaks against."""
        chain = chain_of(account_id, list(map(link_of, entries)))
        if chain:
            self._brought[account_id] = [bucket_of(account_id), chain.name.hex(), chain.seq, chain.leaf.hex()]

    def brought(self) -> list[Head]:
        """Return what was noted since this was asked."""
        found, self._brought = self._brought, {}
        return list(found.values())


def changes_of(heads: Sequence[Head]) -> dict[int, dict[bytes, TreeLeaf]]:
    """Return heads as findings keep them, by bucket and name."""
    found: dict[int, dict[bytes, TreeLeaf]] = {}
    for bucket, name, seq, digest in heads:
        found.setdefault(int(bucket), {})[bytes.fromhex(str(name))] = TreeLeaf(
            int(seq), bytes.fromhex(str(digest))
        )
    return found
