"""The tree over the heads of all accounts' ledgers (rule 19). Each night continues the last night's tree.

A ledger's *head* is its newest entry. Its hash is over all entries before it, too, and nothing but the tree
has it: as the account's *leaf*. Accounts are in 256 *buckets* (rules/engagement/proof.py). A night computes
the hashes of each journal that it has read anyway, to compare it (rule 7). It reads none for the tree alone,
so an account without new entries costs nothing until its turn comes. If a journal agrees with the tree of the
night before, its head is noted (PreviousTree). When all shares of users are done, share_steps.py puts these
heads into the tree (LedgerTree.grown), publishes its root (publish_root), and then stores the tree. A night
that dies before that changes nothing.

state/heads/ROOT.leaves   the leaves of the bucket that has this root. A file never changes, and goes when a
                          second tree is without it: whoever reads the tree before the last one still can.
state/heads.json          the buckets' roots, and the root over them. It is put when its root is published,
                          so a tree whose root was not published was changed (root_fault).
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from adapters.platform.objects import NoObject, Objects
from rules.days import unstamp
from rules.engagement.ledger import OPENED_AT, Entry
from rules.engagement.proof import (
    BUCKETS,
    EMPTY,
    Leaves,
    Path,
    TreeLeaf,
    bucket_of,
    chain_of,
    digests_of,
    leaves_from_bytes,
    link_of,
    own_faults,
    packed_leaves,
    path_of,
    root_of,
)

HEADS, LEAVES = "state/heads.json", "state/heads/"
ROOTS = "roots/"
LATEST = f"{ROOTS}latest.json"
# Within so many days of its first entry, some night has examined an account, and put its head into the tree.
ALL_HAVE_LEAVES_AFTER = timedelta(days=30)


class Head(NamedTuple):
    """An account's newest entry, in the form of a share's findings, which are JSON. It names nobody."""

    bucket: int
    tag: str  # of the account in the tree, hexadecimal
    seq: int
    digest: str  # the leaf's, hexadecimal


@dataclass(slots=True)
class LedgerTree:
    """The tree as a night has stored it: 256 buckets of accounts, and a root over the buckets' roots."""

    roots: list[bytes] = field(default_factory=lambda: [EMPTY] * BUCKETS)  # of the buckets
    accounts: list[int] = field(default_factory=lambda: [0] * BUCKETS)  # how many are in each bucket
    at: str = ""  # when the night that stored it began; "": none has
    run_id: str = ""  # of that night
    since: str = ""  # when the first night that stored a tree began
    former: frozenset[bytes] = frozenset()  # roots of buckets that only the tree before this one has
    unused: frozenset[bytes] = frozenset()  # roots that neither has. Perhaps their leaves are still there

    @property
    def root(self) -> bytes:
        """The root over all accounts."""
        return root_of(self.roots)

    @classmethod
    def read(cls, objects: Objects) -> "LedgerTree":
        """Return the tree that the last night has stored; an empty one if no night has."""
        try:
            values = json.loads(objects.get(HEADS))
        except NoObject:
            return cls()
        roots, former, unused = (
            list(map(bytes.fromhex, values.get(name, ()))) for name in ("roots", "former", "unused")
        )
        night = (values["at"], values["run_id"], values["since"])
        return cls(roots, values["accounts"], *night, frozenset(former), frozenset(unused))

    def leaves(self, objects: Objects, bucket: int) -> Leaves:
        """Return a bucket's leaves; raises ValueError if they do not give its root."""
        root = self.roots[bucket]
        if root == EMPTY:
            return {}
        key = _leaves_key(root)
        leaves = leaves_from_bytes(objects.get(key))
        if root_of(digests_of(leaves)) != root:
            raise ValueError(f"the leaves of bucket {bucket} do not give its root: {key} was changed")
        return leaves

    def path(self, leaves: Leaves, bucket: int, tag: bytes) -> Path:
        """Return what leads from an account's leaf to the root."""
        path_in_bucket = path_of(digests_of(leaves), sorted(leaves).index(tag))
        return [*path_in_bucket, *path_of(self.roots, bucket)]

    def grown(self, objects: Objects, heads: Iterable[Head], at: str, run_id: str) -> "LedgerTree":
        """Return a night's tree, with new heads. Its leaves are put; `store` makes it the tree.

        Only buckets with new heads are read and written. Raises ValueError if their leaves were changed.
        """
        objects.delete(map(_leaves_key, self.unused))  # those of a call that died before it did
        new_leaves: dict[int, Leaves] = {}  # by bucket
        for head in heads:
            leaf = TreeLeaf(head.seq, bytes.fromhex(head.digest))
            new_leaves.setdefault(head.bucket, {})[bytes.fromhex(head.tag)] = leaf
        roots, accounts = list(self.roots), list(self.accounts)
        for bucket, leaves_of_heads in new_leaves.items():
            leaves = {**self.leaves(objects, bucket), **leaves_of_heads}
            roots[bucket], accounts[bucket] = root_of(digests_of(leaves)), len(leaves)
            objects.put(_leaves_key(roots[bucket]), packed_leaves(leaves))
        kept = self.former if self.run_id == run_id else frozenset[bytes]()  # this night is repeated
        former = kept.union(self.roots) - {*roots, EMPTY}
        unused = self.former - {*roots, *former}
        return LedgerTree(roots, accounts, at, run_id, self.since or at, former, unused)

    def store(self, objects: Objects) -> None:
        """Store this tree in the place of the one before it, and delete leaves that no tree needs now."""
        values = {
            "at": self.at,
            "run_id": self.run_id,
            "since": self.since,
            "root": self.root.hex(),
            "accounts": self.accounts,
            "roots": [root.hex() for root in self.roots],
            "former": sorted(root.hex() for root in self.former),
            "unused": sorted(root.hex() for root in self.unused),
        }
        objects.put(HEADS, json.dumps(values).encode())
        objects.delete(map(_leaves_key, self.unused))


def _leaves_key(root: bytes) -> str:
    return f"{LEAVES}{root.hex()}.leaves"


class JournalCheck(NamedTuple):
    """What a journal is beside the tree of the last night."""

    faults: list[str]  # what it contradicts, in words: the order of its own entries, or the tree
    head: Head | None  # for tonight's tree; None: there is a fault, or no entry


NO_CHECK = JournalCheck([], None)  # there is no tree to compare with


class PreviousTree:
    """Compares journals with last night's tree, and collects the heads of sound journals for tonight's.

    A share's threads use it together.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects, self._tree = objects, LedgerTree.read(objects)
        self._leaves: dict[int, Leaves] = {}  # by bucket
        self._new_heads: dict[str, Head] = {}  # by account

    def check(self, account_id: str, entries: Sequence[Entry]) -> JournalCheck:
        """Compute a journal's hashes, from its first entry on, and compare them with the tree.

        Raises ValueError if the tree's leaves were changed.
        """
        links = list(map(link_of, entries))
        if faults := own_faults(links):
            return JournalCheck([fault.text for fault in faults], None)
        chain = chain_of(account_id, links)
        if chain is None:
            return JournalCheck([], None)
        bucket = bucket_of(account_id)
        if bucket not in self._leaves:
            self._leaves[bucket] = self._tree.leaves(self._objects, bucket)
        leaf = self._leaves[bucket].get(chain.tag)
        if leaf is None:
            if self._should_have_leaf(entries):
                return JournalCheck(["its chain is in no root"], None)
        elif leaf.seq > chain.seq:
            dropped = f"entries {chain.seq + 1} to {leaf.seq} were dropped: the last root has them"
            return JournalCheck([dropped], None)
        elif chain.leaf_at(leaf.seq) != leaf.digest:
            changed = f"entry {leaf.seq}, or one before it, is not the one of the last root"
            return JournalCheck([changed], None)
        return JournalCheck([], Head(bucket, chain.tag.hex(), chain.seq, chain.leaf.hex()))

    def _should_have_leaf(self, entries: Sequence[Entry]) -> bool:
        """Whether a night must have put a journal's head into the tree.

        It must, if the first entry and the first night are both long before the last night.
        """
        # An opening entry has no time of its own.
        times = [entry.created_at for entry in entries if entry.created_at > OPENED_AT]
        if not self._tree.since or not times:
            return False
        first_night, last_night = map(datetime.fromisoformat, (self._tree.since, self._tree.at))
        return max(first_night, unstamp(times[0])) < last_night - ALL_HAVE_LEAVES_AFTER

    def note_head(self, account_id: str, head: Head | None) -> None:
        """Note the head of a journal that nothing speaks against, if it has one."""
        if head:
            self._new_heads[account_id] = head

    def take_heads(self) -> list[Head]:
        """Return the heads that were noted since the last call."""
        heads, self._new_heads = self._new_heads, {}
        return list(heads.values())


def root_key(run_id: str) -> str:
    """Return the key of a run's root."""
    return f"{ROOTS}{run_id}.json"


def root_fault(tree: LedgerTree, roots: Objects) -> str:
    """Return, in words, how a stored tree contradicts the roots that were published; "" if it does not.

    A tree is stored after its root was published. So the root of an unchanged tree is published, and only the
    first night may have published a root and have died before it stored a tree.
    """
    latest = _published(roots, LATEST)
    if not tree.at:
        return f"it is gone, though {LATEST} is there" if latest.get("before") else ""
    if _published(roots, root_key(tree.run_id)).get("root") != tree.root.hex():
        return f"its root {tree.root.hex()} is not that of {root_key(tree.run_id)}"
    if latest and latest != _published(roots, root_key(latest["run_id"])):
        return f"{LATEST} is not {root_key(latest['run_id'])}"
    return ""


def _published(roots: Objects, key: str) -> dict[str, Any]:
    """Return a root as it is published; {} if there is none."""
    try:
        root: dict[str, Any] = json.loads(roots.get(key))
    except NoObject:
        return {}
    return root


def publish_root(roots: Objects, tree: LedgerTree) -> dict[str, Any]:
    """Write the root of a night's tree, and return it as it is published: run_id, at, root, accounts, before.

    It names the root before it, so none can be left out. The bucket locks each version of an object. So
    nobody can replace a root, whatever their rights: a second put under its key only adds a version. If the
    run has published its root already, that root is returned.
    """
    last = _published(roots, LATEST)
    if last.get("run_id") == tree.run_id:
        return last
    root = {
        "run_id": tree.run_id,
        "at": tree.at,
        "root": tree.root.hex(),
        "accounts": sum(tree.accounts),
        "before": last.get("root", ""),
    }
    text = json.dumps(root, indent=1).encode()
    roots.put(root_key(tree.run_id), text)
    roots.put(LATEST, text)
    return root
