"""The tree over all accounts' heads (rule 19): RFC 6962's, in 256 buckets.

A bucket is the accounts whose hash of the user id has the same first two digits, in the order of their names
in the tree. The tree of all buckets' roots is always full. So a night hashes the buckets that have changed.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from rules.engagement.proving.hashes import DIGEST_BYTES, NUMBER_BYTES, node_of, number

BUCKETS = 256
EMPTY = sha256(b"").digest()
ROW_BYTES = DIGEST_BYTES + NUMBER_BYTES + DIGEST_BYTES
LEFT, RIGHT = "left", "right"
Path = list[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class TreeLeaf:
    """An account in the tree: seq of its newest entry, and the digest that commits to its chain."""

    seq: int
    digest: bytes


Leaves = dict[bytes, TreeLeaf]


def bucket_of(user_id: str) -> int:
    """Return an account's bucket."""
    return hashlib.md5(user_id.encode(), usedforsecurity=False).digest()[0]


def packed(leaves: Mapping[bytes, TreeLeaf]) -> bytes:
    """Return a bucket's leaves as bytes, by name."""
    return b"".join(name + number(leaves[name].seq) + leaves[name].digest for name in sorted(leaves))


def unpacked(rows: bytes) -> Leaves:
    """Read what packed() wrote; raises ValueError for bytes that are cut off."""
    if len(rows) % ROW_BYTES:
        raise ValueError(f"leaves of {len(rows)} bytes, which are cut off")
    found: Leaves = {}
    for start in range(0, len(rows), ROW_BYTES):
        row = rows[start : start + ROW_BYTES]
        seq = int.from_bytes(row[DIGEST_BYTES:-DIGEST_BYTES], "big")
        found[row[:DIGEST_BYTES]] = TreeLeaf(seq, row[-DIGEST_BYTES:])
    return found


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


def path_of(digests: Sequence[bytes], place: int) -> Path:
    """Return what a leaf must be joined with, from below, to give the root; each with its side."""
    path: Path = []
    level = list(digests)
    while len(level) > 1:
        beside = place ^ 1
        if beside < len(level):
            path.append((LEFT if beside < place else RIGHT, level[beside]))
        pairs = [node_of(level[at], level[at + 1]) for at in range(0, len(level) - 1, 2)]
        level, place = pairs + level[len(level) - len(level) % 2 :], place // 2
    return path


def joined(digest: bytes, path: Iterable[tuple[str, bytes]]) -> bytes:
    """Return the root that a leaf and its path give."""
    for side, beside in path:
        digest = node_of(beside, digest) if side == LEFT else node_of(digest, beside)
    return digest
