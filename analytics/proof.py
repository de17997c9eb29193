"""What is known of all accounts' heads since the last night: a file for each bucket of the tree.

state/heads/ROOT.leaves   the leaves of a bucket with this root: a file never changes
state/heads.json          the buckets' roots, and the root over them. It is put last, so it is true of files
                          that are all there; a night that died before is as if it had not been.
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
    fault_texts,
    leaves_from_bytes,
    link_of,
    own_faults,
    packed_leaves,
    path_of,
    root_of,
)

HEADS, LEAVES = "state/heads.json", "state/heads/"
# By then every account has been looked at, and has a leaf.
KNOWN_AFTER = timedelta(days=30)
ROOTS = "roots/"
LATEST = f"{ROOTS}latest.json"
Head = list[str | int]  # bucket, name, seq, digest: as findings keep it


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
        """Return what the last night has left."""
        try:
            held = json.loads(objects.get(HEADS))
        except NoObject:
            return cls()
        roots = list(map(bytes.fromhex, held["roots"]))
        return cls(roots, held["accounts"], held["at"], held["run_id"], held["since"])

    def leaves(self, objects: Objects, bucket: int) -> Leaves:
        """Return a bucket's leaves; raises ValueError if they do not give its root."""
        root = self.roots[bucket]
        if root == EMPTY:
            return {}
        found = leaves_from_bytes(objects.get(_key(root)))
        if root_of(digests_of(found)) != root:
            raise ValueError(f"the leaves of bucket {bucket} do not give its root: {_key(root)} was changed")
        return found

    def path(self, leaves: Leaves, bucket: int, name: bytes) -> Path:
        """Return what leads from an account's leaf to the root."""
        inside = path_of(digests_of(leaves), sorted(leaves).index(name))
        return [*inside, *path_of(self.roots, bucket)]

    def with_changes(
        self, objects: Objects, changed: Mapping[int, Mapping[bytes, TreeLeaf]], at: str, run_id: str
    ) -> "Heads":
        """Return the heads after a night; only buckets with changes are read and written."""
        roots, accounts = list(self.roots), list(self.accounts)
        for bucket, some in changed.items():
            leaves = {**self.leaves(objects, bucket), **some}
            roots[bucket], accounts[bucket] = root_of(digests_of(leaves)), len(leaves)
            objects.put(_key(roots[bucket]), packed_leaves(leaves))
        made = Heads(roots, accounts, at, run_id, self.since or at)
        objects.put(HEADS, json.dumps(made._fields()).encode())
        objects.delete([_key(each) for each in set(self.roots) - {*roots, EMPTY}])
        return made

    def _fields(self) -> dict[str, Any]:
        roots = [each.hex() for each in self.roots]
        return {
            "at": self.at,
            "run_id": self.run_id,
            "since": self.since,
            "root": self.root.hex(),
            "accounts": self.accounts,
            "roots": roots,
        }


def _key(root: bytes) -> str:
    return f"{LEAVES}{root.hex()}.leaves"


class PreviousTree:
    """What last night's tree says against a journal, and the head that a sound journal brings to tonight's.

    The night reads the whole journal of whoever is looked at anyway: of all who have changed, and of a slice
    of the others (rule 7). So the chain is recomputed from its beginning, and no history is read for it.
    """

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
        leaf = self._leaf(account_id, chain)
        if leaf is None:
            return self._unknown(entries)
        if leaf.seq > chain.seq:
            return [f"entries {chain.seq + 1} to {leaf.seq} were dropped: the last root has them"]
        if chain.leaf_at(leaf.seq) != leaf.digest:
            return [f"entry {leaf.seq}, or one before it, is not the one of the last root"]
        return []

    def _leaf(self, account_id: str, chain: AccountChain) -> TreeLeaf | None:
        bucket = bucket_of(account_id)
        if bucket not in self._known:
            self._known[bucket] = self._heads.leaves(self._objects, bucket)
        return self._known[bucket].get(chain.name)

    def _unknown(self, entries: Sequence[Entry]) -> list[str]:
        """A chain that began long ago has a leaf: without one it is not the chain that was published."""
        begun = [each.created_at for each in entries if each.created_at > OPENED_AT]
        if not self._heads.since or not begun:
            return []
        oldest = datetime.fromisoformat(self._heads.at) - KNOWN_AFTER
        is_old = datetime.fromisoformat(self._heads.since) < oldest and unstamp(begun[0]) < oldest
        return ["its chain is in no root"] if is_old else []

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


def root_key(run_id: str) -> str:
    """Return where a run's root is."""
    return f"{ROOTS}{run_id}.json"


def publish_root(objects: Objects, heads: Heads) -> dict[str, Any]:
    """Write the root of a night; returns it as it is published: with the one before, so none can be left out.

    The bucket keeps each version under a lock, so nobody can replace a root, whatever their rights. What is
    put under the key again is a further version, and who asks for the first one gets it.
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
