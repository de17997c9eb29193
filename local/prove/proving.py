"""Makes a proof from the table and what the last night has left in the lake (rule 19)."""

from typing import Any

from adapters.engagement.account_store import BEFORE_ALL
from adapters.engagement.ledger_store import LedgerStore
from adapters.platform.objects import Objects
from analytics.proof import Heads
from rules.engagement.ledger import Entry, entry_id
from rules.engagement.proof import bucket_of, chain_of, fault_texts, link_of, own_faults, proof_of


def proof(objects: Objects, ledger: LedgerStore, user_id: str, named: str = "") -> dict[str, Any]:
    """Return the proof of an entry: by its id, its place or its seq; of the newest one that has a root.

    Raises RuntimeError if there is none, or if the ledger contradicts the last root.
    """
    entries, _ = ledger.after(user_id, BEFORE_ALL)
    links = list(map(link_of, entries))
    heads, bucket = Heads.read(objects), bucket_of(user_id)
    chain, leaves = chain_of(user_id, links), heads.leaves(objects, bucket)
    known = leaves.get(chain.name) if chain else None
    if chain is None or known is None:
        raise RuntimeError(f"no root has {user_id} yet: the next nightly run writes one")
    if faults := own_faults(user_id, links):
        raise RuntimeError(f"the ledger of {user_id} contradicts itself: {'; '.join(fault_texts(faults))}")
    if chain.leaf_at(known.seq) != known.digest:
        raise RuntimeError(f"the ledger of {user_id} is not the one of the last root: `streakline audit`")
    entry = _named(entries, known.seq, named)
    return proof_of(entry, chain, known.seq, heads.path(leaves, bucket, chain.name), heads.root)


def _named(entries: list[Entry], newest: int, named: str) -> Entry:
    wanted = named or str(newest)
    for each in entries:
        if wanted in (entry_id(each.created_at), each.created_at, str(each.seq)):
            if each.seq > newest:
                raise RuntimeError(f"entry {wanted} is newer than the last root: the next nightly run has it")
            return each
    raise RuntimeError(f"there is no entry {wanted}")
