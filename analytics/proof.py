"""The tree over the heads of all accounts' ledgers, which each night goes on with (rule 19).

state/heads/ROOT.leaves   the leaves of the bucket that has this root. A file never changes.
state/heads.json          the buckets' roots, and the root over them. It is put last, so all files that it
                          names are there. A night that died before changes nothing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from adapters.platform.objects import NoObject, Objects
from rules.days import unstamp
from rules.engagement.ledger import OPENED_AT, Entry
from rules.engagement.proof import (
    BUCKETS,
    EMPTY,
    AccountChain,
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
# After so long every account has been looked at, and has a leaf.
ALL_HAVE_LEAVES_AFTER = timedelta(days=30)
ROOTS = "roots/"
LATEST = f"{ROOTS}latest.json"
Head = list[str | int]  # bucket, name (hex), seq, digest (hex): as findings keep it


@dataclass(slots=True)
class Heads:
    """What a night noted of the trees over all ledgers."""

    roots: list[bytes] = field(default_factory=lambda: [EMPTY] * BUCKETS)  # of the buckets
    accounts: list[int] = field(default_factory=lambda: [0] * BUCKETS)  # how many are in each
    at: str = ""  # of the night that made them; "": none has
    run_id: str = ""
    since: str = ""  # of the first night that made any

    @property
    def root(self) -> bytes:
        """The root over all accounts."""
        return root_of(self.roots)

    @classmethod
    def read(cls, objects: Objects) -> "Heads":
        """Return the heads that the last night has stored; empty trees if no night has."""
        try:
            values = json.loads(objects.get(HEADS))
        except NoObject:
            return cls()
        roots = list(map(bytes.fromhex, values["roots"]))
        return cls(roots, values["accounts"], values["at"], values["run_id"], values["since"])

    def leaves(self, objects: Objects, bucket: int) -> Leaves:
        """Return a bucket's leaves; raises ValueError if they do not give its root."""
        root = self.roots[bucket]
        if root == EMPTY:
            return {}
        leaves = leaves_from_bytes(objects.get(_key(root)))
        if root_of(digests_of(leaves)) != root:
            raise ValueError(f"the leaves of bucket {bucket} do not give its root: {_key(root)} was changed")
        return leaves

    def path(self, leaves: Leaves, bucket: int, name: bytes) -> Path:
        """Return what leads from an account's leaf to the root."""
        inside = path_of(digests_of(leaves), sorted(leaves).index(name))
        return [*inside, *path_of(self.roots, bucket)]

    def with_changes(
        self, objects: Objects, changed: Mapping[int, Mapping[bytes, TreeLeaf]], at: str, run_id: str
    ) -> "Heads":
        """Return the heads after a night; only buckets with changes are read and written."""
        roots, accounts = list(self.roots), list(self.accounts)
        for bucket, new_leaves in changed.items():
            leaves = {**self.leaves(objects, bucket), **new_leaves}
            roots[bucket], accounts[bucket] = root_of(digests_of(leaves)), len(leaves)
            objects.put(_key(roots[bucket]), packed_leaves(leaves))
        heads = Heads(roots, accounts, at, run_id, self.since or at)
        values = {
            "at": heads.at,
            "run_id": heads.run_id,
            "since": heads.since,
            "root": heads.root.hex(),
            "accounts": heads.accounts,
            "roots": [root.hex() for root in heads.roots],
        }
        objects.put(HEADS, json.dumps(values).encode())
        objects.delete([_key(root) for root in set(self.roots) - {*roots, EMPTY}])
        return heads


def _key(root: bytes) -> str:
    return f"{LEAVES}{root.hex()}.leaves"


class PreviousTree:
    """Compares journals with last night's tree, and collects the heads of sound journals for tonight's.

    The night reads whole journals anyway: of all accounts that have changed, and of a slice of the others
    (rule 7). So a chain is recomputed from its beginning, and no history is read for it.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects, self._heads = objects, Heads.read(objects)
        self._leaves: dict[int, Leaves] = {}  # by bucket
        self._new_heads: dict[str, Head] = {}  # by account

    def faults(self, account_id: str, entries: Sequence[Entry]) -> list[str]:
        """Return, in words, what a journal contradicts: its own hashes, or the tree of the last night."""
        links = list(map(link_of, entries))
        if faults := own_faults(account_id, links):
            return [fault.text for fault in faults]
        chain = chain_of(account_id, links)
        if chain is None:
            return []
        leaf = self._leaf(account_id, chain)
        if leaf is None:
            return self._faults_without_leaf(entries)
        if leaf.seq > chain.seq:
            return [f"entries {chain.seq + 1} to {leaf.seq} were dropped: the last root has them"]
        if chain.leaf_at(leaf.seq) != leaf.digest:
            return [f"entry {leaf.seq}, or one before it, is not the one of the last root"]
        return []

    def _leaf(self, account_id: str, chain: AccountChain) -> TreeLeaf | None:
        bucket = bucket_of(account_id)
        if bucket not in self._leaves:
            self._leaves[bucket] = self._heads.leaves(self._objects, bucket)
        return self._leaves[bucket].get(chain.name)

    def _faults_without_leaf(self, entries: Sequence[Entry]) -> list[str]:
        """Return what a journal that has no leaf contradicts: an old chain must have been published."""
        times = [entry.created_at for entry in entries if entry.created_at > OPENED_AT]
        if not self._heads.since or not times:
            return []
        published_before = datetime.fromisoformat(self._heads.at) - ALL_HAVE_LEAVES_AFTER
        has_old_tree = datetime.fromisoformat(self._heads.since) < published_before
        return ["its chain is in no root"] if has_old_tree and unstamp(times[0]) < published_before else []

    def note_head(self, account_id: str, entries: Sequence[Entry]) -> None:
        """Note the head of a journal that nothing speaks against."""
        chain = chain_of(account_id, list(map(link_of, entries)))
        if chain:
            head: Head = [bucket_of(account_id), chain.name.hex(), chain.seq, chain.leaf.hex()]
            self._new_heads[account_id] = head

    def take_heads(self) -> list[Head]:
        """Return the heads that were noted since the last call."""
        heads, self._new_heads = self._new_heads, {}
        return list(heads.values())


def changes_of(heads: Sequence[Head]) -> dict[int, dict[bytes, TreeLeaf]]:
    """Return the leaves of heads, by bucket and name. heads: in the form of findings."""
    changes: dict[int, dict[bytes, TreeLeaf]] = {}
    for bucket, name, seq, digest in heads:
        leaf = TreeLeaf(int(seq), bytes.fromhex(str(digest)))
        changes.setdefault(int(bucket), {})[bytes.fromhex(str(name))] = leaf
    return changes


def root_key(run_id: str) -> str:
    """Return the key of a run's root."""
    return f"{ROOTS}{run_id}.json"


def publish_root(objects: Objects, heads: Heads) -> dict[str, Any]:
    """Write the root of a night, and return it as it is published.

    It names the root before it, so none can be left out. The bucket keeps each version under a lock, so
    nobody can replace a root, whatever their rights. A second object under a key is a further version, and
    the first one can still be read. If the run has published its root already, that root is returned.
    """
    try:
        last = json.loads(objects.get(LATEST))
    except NoObject:
        last = {}
    if last.get("run_id") == heads.run_id:
        return dict(last)
    root = {
        "run_id": heads.run_id,
        "at": heads.at,
        "root": heads.root.hex(),
        "accounts": sum(heads.accounts),
        "before": last.get("root", ""),
    }
    text = json.dumps(root, indent=1).encode()
    objects.put(root_key(heads.run_id), text)
    objects.put(LATEST, text)
    return root
