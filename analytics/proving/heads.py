"""What is known of all accounts' heads since the last night: a file for each bucket of the tree.

state/heads/ROOT.leaves   the leaves of a bucket with this root: a file never changes
state/heads.json          the buckets' roots, and the root over them. It is put last, so it is true of files
                          that are all there; a night that died before is as if it had not been.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adapters.platform.objects import NoObject, Objects
from rules.engagement.proof import (
    BUCKETS,
    EMPTY,
    Leaves,
    Path,
    TreeLeaf,
    digests_of,
    leaves_from_bytes,
    packed_leaves,
    path_of,
    root_of,
)

HEADS, LEAVES = "state/heads.json", "state/heads/"


@dataclass(slots=True)
class Heads:
    """roots: of the buckets. accounts: how many are in each. at: of the night that made them; "": none has.

    since: of the first night that made any.
    """

    roots: list[bytes] = field(default_factory=lambda: [EMPTY] * BUCKETS)
    accounts: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    at: str = ""
    run_id: str = ""
    since: str = ""

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
        objects.put(HEADS, json.dumps(made._told()).encode())
        objects.delete([_key(each) for each in set(self.roots) - {*roots, EMPTY}])
        return made

    def _told(self) -> dict[str, Any]:
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
