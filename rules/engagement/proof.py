"""Proofs (docs/rules.md, rule 19).

In this order: an account's chain, recomputed from its entries; the faults of a copy of a ledger; the tree
over all accounts' newest entries; the small file that proves one entry.

The tree is the one of RFC 6962, in 256 buckets. An account's bucket follows from the first byte of its user
id's hash. Within a bucket, accounts are ordered by their names in the tree. A tree over the buckets' roots
joins them. So a night hashes only the buckets that have changed.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from typing import Any

from rules.engagement.ledger import Entry
from rules.engagement.seals import (
    DIGEST_BYTES,
    NUMBER_BYTES,
    ZERO,
    commitment,
    content_digest,
    entry_salt,
    hidden_bytes,
    hidden_fields,
    leaf_of,
    link_hash,
    node_of,
    number_bytes,
    shown_bytes,
    shown_fields,
    tag_of,
)

FLIPPED, DROPPED, ADDED, REORDERED = "flipped", "dropped", "added", "reordered"
BUCKETS = 256
EMPTY = sha256(b"").digest()
ROW_BYTES = DIGEST_BYTES + NUMBER_BYTES + DIGEST_BYTES
LEFT, RIGHT = "left", "right"
FORM = "streakline-proof-1"


@dataclass(frozen=True, slots=True)
class LedgerLink:
    """An entry as any copy of the ledger has it."""

    seq: int
    place: str  # created_at; of an erased person's entry, the part of it that stays
    shown: bytes  # encoded fields that outlive an erasure
    hidden: bytes | None  # encoded fields that an erasure takes away; None once it has taken them
    committed: bytes = b""  # the commitment to the hidden fields, once they are taken away
    salt: bytes = b""  # of the first entry of a chain: the chain's salt
    stored: bytes = b""  # the hash that the copy has; b"": it has none
    name: bytes = b""  # at the first entry, of an erased person: the account in the tree

    def commitment(self, salt: bytes) -> bytes:
        """Return the commitment to what an erasure takes away."""
        if self.hidden is None:
            return self.committed
        return commitment(entry_salt(salt, self.seq), self.hidden)


def link_of(entry: Entry) -> LedgerLink:
    """Return an entry of the table."""
    return LedgerLink(
        seq=entry.seq,
        place=entry.created_at,
        shown=shown_bytes(entry),
        hidden=hidden_bytes(entry),
        salt=entry.salt,
        stored=entry.chain[:DIGEST_BYTES],
    )


@dataclass(slots=True)
class AccountChain:
    """The chain of hashes of an account's entries."""

    name: bytes  # the account in the tree
    salt: bytes  # b"" of an erased person
    seq: int = -1  # of the newest entry
    newest_hash: bytes = ZERO  # of the newest entry
    hashes: dict[int, bytes] = field(default_factory=dict)  # by seq, of the chain up to that entry
    contents: dict[int, bytes] = field(default_factory=dict)  # by seq, digests of the entries alone
    commitments: dict[int, bytes] = field(default_factory=dict)  # by seq, to the hidden fields
    # Seq of entries whose stored hash does not follow, or that begin a chain in the middle of this one
    breaks: list[int] = field(default_factory=list)

    @property
    def leaf(self) -> bytes:
        """The account's leaf in the tree of a night."""
        return leaf_of(self.name, self.seq, self.newest_hash)

    def leaf_at(self, seq: int) -> bytes | None:
        """Return the account's leaf as of an entry, by the entry's seq; None if there is no such entry."""
        return leaf_of(self.name, seq, self.hashes[seq]) if seq in self.hashes else None


def chain_of(account_id: str, links: Sequence[LedgerLink]) -> AccountChain | None:
    """Recompute an account's chain from its entries, oldest first; None if the first one begins none."""
    if not links or not (links[0].salt or links[0].name):
        return None
    salt = links[0].salt
    chain = AccountChain(links[0].name or tag_of(salt, account_id), salt)
    for number, link in enumerate(links):
        commitment_digest = link.commitment(salt)
        content = content_digest(link.shown, commitment_digest)
        chain.seq, chain.newest_hash = link.seq, link_hash(chain.newest_hash, content)
        chain.hashes[link.seq] = chain.newest_hash
        chain.contents[link.seq] = content
        chain.commitments[link.seq] = commitment_digest
        if link.stored not in (b"", chain.newest_hash) or (number and (link.salt or link.name)):
            chain.breaks.append(link.seq)
    return chain


@dataclass(frozen=True, slots=True, order=True)
class LedgerFault:
    """A fault of a copy of an account's ledger."""

    seq: int  # of the entry
    what: str  # what was done to the entry: FLIPPED, DROPPED, ADDED or REORDERED
    place: str = ""  # of the entry

    @property
    def text(self) -> str:
        """The fault in words."""
        at = f" ({self.place})" if self.place else ""
        return f"entry {self.seq}{at} was {self.what}"


def order_faults(links: Sequence[LedgerLink]) -> list[LedgerFault]:
    """Return which entries are missing, occur twice, or are not in the order of their places."""
    by_seq: dict[int, LedgerLink] = {}
    faults = []
    for link in links:
        if link.seq in by_seq:
            faults.append(LedgerFault(link.seq, ADDED, link.place))
        by_seq[link.seq] = by_seq.get(link.seq, link)
    last = max(by_seq, default=-1)
    faults += [LedgerFault(seq, DROPPED) for seq in range(last) if seq not in by_seq]
    for before, after in pairwise(links):
        if after.seq < before.seq:
            faults.append(LedgerFault(after.seq, REORDERED, after.place))
    return faults


def own_faults(account_id: str, links: Sequence[LedgerLink]) -> list[LedgerFault]:
    """Return how a copy contradicts itself: faults of its order, else the first hash that does not follow.

    Carried entries have no stored hash. If there are carried entries before the reported one, the fault may
    be in one of them. With another copy, chain_differences tells which.
    """
    if faults := order_faults(links):
        return faults
    if chain := chain_of(account_id, links):
        broken = chain.breaks
    else:  # if there are hashes without a chain, somebody has removed the salt of its first entry
        broken = [link.seq for link in links if link.stored or link.salt or link.name]
    places = {link.seq: link.place for link in links}
    return [LedgerFault(seq, FLIPPED, places[seq]) for seq in broken[:1]]


def chain_differences(links: Sequence[LedgerLink], sound: Sequence[LedgerLink]) -> list[LedgerFault]:
    """Return every entry by which a copy differs from a sound one. Salts are not compared."""
    by_seq = {link.seq: link for link in sound}
    faults = set(order_faults(links))
    seqs = {link.seq for link in links}
    for link in links:
        other = by_seq.get(link.seq)
        if other is None:
            faults.add(LedgerFault(link.seq, ADDED, link.place))
        elif _has_other_content(link, other):
            faults.add(LedgerFault(link.seq, FLIPPED, other.place))
    faults.update(LedgerFault(link.seq, DROPPED, link.place) for link in sound if link.seq not in seqs)
    return sorted(faults)


def _has_other_content(link: LedgerLink, other: LedgerLink) -> bool:
    """Whether two copies of an entry differ. A copy whose hidden fields were erased is not compared."""
    if link.hidden is None or other.hidden is None:
        return False
    return (link.shown, link.hidden) != (other.shown, other.hidden)


def fault_texts(faults: Iterable[LedgerFault]) -> list[str]:
    """Return faults in words."""
    return [fault.text for fault in faults]


Path = list[tuple[str, bytes]]  # the neighbours of a leaf up to the root, each with its side


@dataclass(frozen=True, slots=True)
class TreeLeaf:
    """An account in the tree: seq of its newest entry, and the digest that commits to its chain."""

    seq: int
    digest: bytes


Leaves = dict[bytes, TreeLeaf]


def bucket_of(user_id: str) -> int:
    """Return an account's bucket."""
    return hashlib.md5(user_id.encode(), usedforsecurity=False).digest()[0]


def packed_leaves(leaves: Mapping[bytes, TreeLeaf]) -> bytes:
    """Return a bucket's leaves as bytes, by name."""
    return b"".join(name + number_bytes(leaves[name].seq) + leaves[name].digest for name in sorted(leaves))


def leaves_from_bytes(rows: bytes) -> Leaves:
    """Return the leaves that packed_leaves wrote; raises ValueError for bytes that are cut off."""
    if len(rows) % ROW_BYTES:
        raise ValueError(f"leaves of {len(rows)} bytes, which are cut off")
    leaves: Leaves = {}
    for start in range(0, len(rows), ROW_BYTES):
        row = rows[start : start + ROW_BYTES]
        seq = int.from_bytes(row[DIGEST_BYTES:-DIGEST_BYTES], "big")
        leaves[row[:DIGEST_BYTES]] = TreeLeaf(seq, row[-DIGEST_BYTES:])
    return leaves


def digests_of(leaves: Mapping[bytes, TreeLeaf]) -> list[bytes]:
    """Return the leaves' digests in the order of the tree."""
    return [leaves[name].digest for name in sorted(leaves)]


def root_of(digests: Sequence[bytes]) -> bytes:
    """Return the root of a tree: of one leaf the leaf itself, of none the hash of nothing."""
    if not digests:
        return EMPTY
    level = list(digests)
    while len(level) > 1:  # an odd one goes up as it is, which gives RFC 6962's tree
        pairs = [node_of(level[at], level[at + 1]) for at in range(0, len(level) - 1, 2)]
        level = pairs + level[len(level) - len(level) % 2 :]
    return level[0]


def path_of(digests: Sequence[bytes], index: int) -> Path:
    """Return what a leaf must be joined with, from below, to give the root; each with its side."""
    path: Path = []
    level = list(digests)
    while len(level) > 1:
        beside = index ^ 1
        if beside < len(level):
            path.append((LEFT if beside < index else RIGHT, level[beside]))
        pairs = [node_of(level[at], level[at + 1]) for at in range(0, len(level) - 1, 2)]
        level, index = pairs + level[len(level) - len(level) % 2 :], index // 2
    return path


def proof_of(entry: Entry, chain: AccountChain, head: int, path: Path, root: bytes) -> dict[str, Any]:
    """Return what proves an entry. chain: of the whole journal that it is in.

    head: seq of the account's newest entry in the tree with this root; path: from its leaf. The file has this
    entry in full with its own salt, and of all others digests: it opens nothing else.
    """
    seq = entry.seq
    return {
        "form": FORM,
        "root": root.hex(),
        "account": chain.name.hex(),
        "entry": {
            "shown": shown_fields(entry),
            "hidden": hidden_fields(entry),
            "salt": entry_salt(chain.salt, seq).hex(),
            "previous": (chain.hashes[seq - 1] if seq else ZERO).hex(),
        },
        "after": [chain.contents[later].hex() for later in range(seq + 1, head + 1)],
        "path": [[side, beside.hex()] for side, beside in path],
    }
