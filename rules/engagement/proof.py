"""Proofs (docs/rules.md, rule 19).

No entry stores a hash: a night computes those of a ledger from its entries, as whoever checks it does. In
this order: the canonical form of an entry; an account's chain of hashes; the faults of a copy of a ledger;
the tree over all accounts' newest entries; the small file that proves one entry.

A digest has 32 bytes: SHA-256 over a first byte, which says what is hashed, and the content. The tree is the
one of RFC 6962, in 256 buckets. An account's bucket is the first byte of a hash of its user id. Within a
bucket, accounts are ordered by their tags: a tag stands for an account and does not reveal the user. A tree
over the buckets' roots joins them. So a night hashes only the buckets that have changed.

local/check_proof.py has the same a second time, on purpose: a verifier shares nothing with the writer.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from hashlib import sha256
from itertools import pairwise
from typing import Any

from rules.days import stamp
from rules.engagement.ledger import Entry, draft_values

DIGEST_BYTES, NUMBER_BYTES = 32, 8
ZERO = bytes(DIGEST_BYTES)  # stands for the hash before an account's first entry
# The first bytes of what is hashed, so that no digest can stand for one of another kind.
LEAF, NODE, ENTRY_SALT, COMMITMENT, CONTENT, LINK, TAG = (bytes([each]) for each in range(7))
# What may have been done to an entry of a copy.
FLIPPED, DROPPED, ADDED, REORDERED = "flipped", "dropped", "added", "reordered"
BUCKETS = 256
EMPTY = sha256(b"").digest()  # the root of a tree without leaves
ROW_BYTES = DIGEST_BYTES + NUMBER_BYTES + DIGEST_BYTES  # of a leaf: tag, seq, digest
LEFT, RIGHT = "left", "right"
FORM = "streakline-proof-1"  # of the file that proves one entry
# Kinds of values, so that the number 1 and the text "1" are not the same.
INTEGER, TEXT, BOOLEAN = "i", "t", "b"
Field = tuple[str, str, str]  # name, kind, value as a text
# The fields that stay of an erased person's entry (rules/lake/residue.py), in the order in which they are
# hashed.
SHOWN_FIELDS: Mapping[str, str] = {
    "seq": INTEGER,
    "kind": TEXT,
    "points": INTEGER,
    "balance": INTEGER,
    "event_type": TEXT,
    "activity_date": TEXT,
    "freeze": TEXT,
    "freeze_date": TEXT,
    "rules_version": INTEGER,
    "cap": TEXT,
    "is_passive": BOOLEAN,
    "expires_on": TEXT,
    "brand": TEXT,
    "measures": TEXT,
    "setting": TEXT,
}
# The fields that an erasure takes away, or changes.
HIDDEN_FIELDS: Mapping[str, str] = dict.fromkeys(
    (
        *("account_id", "created_at", "event_id", "reward_id", "reverses", "held_at", "reason"),
        *("timezone", "set_to"),
    ),
    TEXT,
)


def encoded_fields(fields: Iterable[Field]) -> bytes:
    """Return fields as bytes that can be read in one way only: each text has its length before it.

    Example: ("seq", "i", "12") is `3:seqi2:12`. The caller leaves out fields without a value.
    """
    return "".join(
        [f"{_length(name)}:{name}{kind}{_length(value)}:{value}" for name, kind, value in fields]
    ).encode()


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def number_bytes(value: int) -> bytes:
    """Return a number that is not below 0 as bytes of one length."""
    return value.to_bytes(NUMBER_BYTES, "big")


def entry_salt(salt: bytes, seq: int) -> bytes:
    """Return the salt of one entry. Somebody who knows it cannot open the commitments of other entries."""
    return sha256(ENTRY_SALT + salt + number_bytes(seq)).digest()


def commitment(salt: bytes, hidden: bytes) -> bytes:
    """Return the commitment to an entry's hidden fields, which nobody can guess without the entry's salt."""
    return sha256(COMMITMENT + salt + hidden).digest()


def content_digest(shown: bytes, commitment_digest: bytes) -> bytes:
    """Return the digest of an entry without its predecessor."""
    return sha256(CONTENT + commitment_digest + shown).digest()


def link_hash(before: bytes, content: bytes) -> bytes:
    """Return an entry's hash: over its predecessor's hash and its own content."""
    return sha256(LINK + before + content).digest()


def tag_of(salt: bytes, account_id: str) -> bytes:
    """Return an account's tag: it stands for the account in the tree, and does not reveal the user."""
    return sha256(TAG + salt + account_id.encode()).digest()


def leaf_of(tag: bytes, seq: int, newest_hash: bytes) -> bytes:
    """Return an account's leaf. seq, newest_hash: number and hash of its newest entry."""
    return sha256(LEAF + tag + number_bytes(seq) + newest_hash).digest()


def node_of(left: bytes, right: bytes) -> bytes:
    """Return the digest of two digests of the tree."""
    return sha256(NODE + left + right).digest()


def fields_of(row: Mapping[str, Any], names: Mapping[str, str]) -> list[Field]:
    """Return a row's fields that have a value, in the order of `names`.

    row: of the lake or the warehouse, or an entry's values by name. names: SHOWN_FIELDS, HIDDEN_FIELDS or a
    part of them.
    """
    return [
        (name, kind, _text(value))
        for name, kind in names.items()
        if (value := row.get(name)) is not None and not (kind == BOOLEAN and not value)
    ]


def _text(value: Any) -> str:
    if isinstance(value, datetime):  # those of the warehouse have no zone, and are UTC
        return stamp(value if value.tzinfo else value.replace(tzinfo=UTC))
    if isinstance(value, date):
        return value.isoformat()
    return str(int(value)) if isinstance(value, (bool, int)) else str(value)


def shown_fields(entry: Entry) -> list[Field]:
    """Return the fields of an entry that stay when the person is erased."""
    return fields_of(_values(entry), SHOWN_FIELDS)


def hidden_fields(entry: Entry) -> list[Field]:
    """Return the fields of an entry that an erasure takes away."""
    return fields_of(_values(entry), HIDDEN_FIELDS)


def _values(entry: Entry) -> dict[str, Any]:
    own = {"account_id": entry.account_id, "created_at": entry.created_at}
    return {**draft_values(entry.draft), **own, "seq": entry.seq, "balance": entry.balance}


@dataclass(frozen=True, slots=True)
class LedgerLink:
    """An entry as any copy of the ledger has it: the table, the lake, the warehouse, or a restored one."""

    seq: int
    place: str  # created_at; of an erased person's entry, the part of it that stays
    shown: bytes  # encoded fields that outlive an erasure
    hidden: bytes | None  # encoded fields that an erasure takes away; None once it has taken them
    committed: bytes = b""  # the commitment to the hidden fields, once they are taken away
    salt: bytes = b""  # of the first entry: the chain's salt
    tag: bytes = b""  # the account's, at the first entry of an erased person

    def commitment_to_hidden(self, salt: bytes) -> bytes:
        """Return the commitment to what an erasure takes away. salt: the chain's."""
        if self.hidden is None:
            return self.committed
        return commitment(entry_salt(salt, self.seq), self.hidden)


def link_of(entry: Entry) -> LedgerLink:
    """Return an entry of the table."""
    return LedgerLink(
        seq=entry.seq,
        place=entry.created_at,
        shown=encoded_fields(shown_fields(entry)),
        hidden=encoded_fields(hidden_fields(entry)),
        salt=entry.salt,
    )


@dataclass(slots=True)
class AccountChain:
    """The chain of hashes of an account's entries."""

    tag: bytes  # the account's
    salt: bytes  # b"" of an erased person
    seq: int = -1  # of the newest entry
    newest_hash: bytes = ZERO  # of the newest entry
    hashes: dict[int, bytes] = field(default_factory=dict)  # by seq, of the chain up to that entry
    contents: dict[int, bytes] = field(default_factory=dict)  # by seq, digests of the entries alone
    commitments: dict[int, bytes] = field(default_factory=dict)  # by seq, to the hidden fields

    @property
    def leaf(self) -> bytes:
        """The account's leaf in the tree of a night."""
        return leaf_of(self.tag, self.seq, self.newest_hash)

    def leaf_at(self, seq: int) -> bytes | None:
        """Return the account's leaf as of an entry, by the entry's seq; None if there is no such entry."""
        return leaf_of(self.tag, seq, self.hashes[seq]) if seq in self.hashes else None


def chain_of(account_id: str, links: Sequence[LedgerLink]) -> AccountChain | None:
    """Compute an account's chain from its entries, oldest first; None if the first one has no salt."""
    if not links or not (links[0].salt or links[0].tag):
        return None
    salt = links[0].salt
    chain = AccountChain(links[0].tag or tag_of(salt, account_id), salt)
    for link in links:
        commitment_digest = link.commitment_to_hidden(salt)
        content = content_digest(link.shown, commitment_digest)
        chain.seq, chain.newest_hash = link.seq, link_hash(chain.newest_hash, content)
        chain.hashes[link.seq] = chain.newest_hash
        chain.contents[link.seq] = content
        chain.commitments[link.seq] = commitment_digest
    return chain


@dataclass(frozen=True, slots=True, order=True)
class LedgerFault:
    """A fault of a copy of an account's ledger."""

    seq: int  # of the entry
    change: str  # what was done to the entry: FLIPPED, DROPPED, ADDED or REORDERED
    place: str = ""  # of the entry

    @property
    def text(self) -> str:
        """The fault in words."""
        at = f" ({self.place})" if self.place else ""
        return f"entry {self.seq}{at} was {self.change}"


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


def own_faults(links: Sequence[LedgerLink]) -> list[LedgerFault]:
    """Return how a copy contradicts itself: faults of its order, or salts in other places than they belong.

    The first entry has the chain's salt (of an erased person, the tag), and no other entry has one. Whether
    the entries are those that were written, only the root or another copy can say.
    """
    if faults := order_faults(links):
        return faults
    misplaced = (link for number, link in enumerate(links) if bool(link.salt or link.tag) != (number == 0))
    return [LedgerFault(link.seq, FLIPPED, link.place) for link in misplaced]


def chain_differences(links: Sequence[LedgerLink], sound: Sequence[LedgerLink]) -> list[LedgerFault]:
    """Return every entry by which a copy differs from a sound one."""
    by_seq = {link.seq: link for link in sound}
    faults = set(order_faults(links))
    seqs = {link.seq for link in links}
    for link in links:
        other = by_seq.get(link.seq)
        if other is None:
            faults.add(LedgerFault(link.seq, ADDED, link.place))
        elif None in (link.hidden, other.hidden):
            continue  # a copy whose hidden fields were erased is not compared
        elif (link.shown, link.hidden, link.salt) != (other.shown, other.hidden, other.salt):
            faults.add(LedgerFault(link.seq, FLIPPED, other.place))
    faults.update(LedgerFault(link.seq, DROPPED, link.place) for link in sound if link.seq not in seqs)
    return sorted(faults)


Path = list[tuple[str, bytes]]  # the neighbours of a leaf up to the root, each with its side


@dataclass(frozen=True, slots=True)
class TreeLeaf:
    """An account in the tree: seq of its newest entry, and the digest that commits to its chain."""

    seq: int
    digest: bytes


Leaves = dict[bytes, TreeLeaf]  # by the accounts' tags


def bucket_of(user_id: str) -> int:
    """Return an account's bucket."""
    return hashlib.md5(user_id.encode(), usedforsecurity=False).digest()[0]


def packed_leaves(leaves: Mapping[bytes, TreeLeaf]) -> bytes:
    """Return a bucket's leaves as bytes, by tag."""
    return b"".join(tag + number_bytes(leaves[tag].seq) + leaves[tag].digest for tag in sorted(leaves))


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
    return [leaves[tag].digest for tag in sorted(leaves)]


def root_of(digests: Sequence[bytes]) -> bytes:
    """Return the root of a tree: of one leaf the leaf itself, of none the hash of nothing."""
    if not digests:
        return EMPTY
    level = list(digests)
    while len(level) > 1:
        level = _level_above(level)
    return level[0]


def path_of(digests: Sequence[bytes], index: int) -> Path:
    """Return what a leaf must be joined with, from below, to give the root; each with its side."""
    path: Path = []
    level = list(digests)
    while len(level) > 1:
        beside = index ^ 1
        if beside < len(level):
            path.append((LEFT if beside < index else RIGHT, level[beside]))
        level, index = _level_above(level), index // 2
    return path


def _level_above(level: list[bytes]) -> list[bytes]:
    """Join neighbours. The last of an odd number goes up as it is, which gives RFC 6962's tree."""
    pairs = [node_of(level[at], level[at + 1]) for at in range(0, len(level) - 1, 2)]
    return pairs + level[len(level) - len(level) % 2 :]


def proof_of(entry: Entry, chain: AccountChain, head: int, path: Path, root: bytes) -> dict[str, Any]:
    """Return what proves an entry. chain: of the whole journal that it is in.

    head: seq of the account's newest entry in the tree with this root; path: from its leaf. The file shows
    this entry and its own salt. Of all other entries it has digests only, which show nothing.
    """
    seq = entry.seq
    return {
        "form": FORM,
        "root": root.hex(),
        "account": chain.tag.hex(),
        "entry": {
            "shown": shown_fields(entry),
            "hidden": hidden_fields(entry),
            "salt": entry_salt(chain.salt, seq).hex(),
            "previous": (chain.hashes[seq - 1] if seq else ZERO).hex(),
        },
        "after": [chain.contents[later].hex() for later in range(seq + 1, head + 1)],
        "path": [[side, beside.hex()] for side, beside in path],
    }
