"""The tree over all accounts, against RFC 6962's own definition (rule 19)."""

from hashlib import sha256
from pathlib import Path as FilePath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects
from analytics.proof import HEADS, LATEST, LEAVES, Head, LedgerTree, publish_root, root_fault, root_key
from rules.engagement.proof import (
    LEFT,
    Path,
    TreeLeaf,
    bucket_of,
    digests_of,
    leaves_from_bytes,
    node_of,
    packed_leaves,
    path_of,
    root_of,
)

digests = st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=70, unique=True)


def plain_root(some: list[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1: split at the largest power of two below the number."""
    if len(some) == 1:
        return some[0]
    split = 1
    while split * 2 < len(some):
        split *= 2
    return sha256(b"\x01" + plain_root(some[:split]) + plain_root(some[split:])).digest()


def root_by_path(digest: bytes, path: Path) -> bytes:
    """The root that a leaf and its path give."""
    for side, beside in path:
        digest = node_of(beside, digest) if side == LEFT else node_of(digest, beside)
    return digest


@given(digests)
def test_the_root_is_the_one_of_rfc_6962(some: list[bytes]) -> None:
    assert root_of(some) == plain_root(some)


@given(digests, st.integers(0, 69))
def test_each_leaf_has_a_path_to_the_root(some: list[bytes], at: int) -> None:
    place = at % len(some)
    path = path_of(some, place)
    assert root_by_path(some[place], path) == root_of(some)
    assert len(path) <= (len(some) - 1).bit_length()
    assert root_by_path(sha256(some[place]).digest(), path) != root_of(some)


@given(digests, st.integers(0, 2**40))
def test_a_buckets_leaves_are_read_as_they_were_packed(some: list[bytes], seq: int) -> None:
    leaves = {each: TreeLeaf(seq, sha256(each).digest()) for each in some}
    assert leaves_from_bytes(packed_leaves(leaves)) == leaves
    assert digests_of(leaves) == [leaves[name].digest for name in sorted(some)]
    with pytest.raises(ValueError, match="cut off"):
        leaves_from_bytes(packed_leaves(leaves)[:-1])


def test_the_root_of_nothing_and_buckets() -> None:
    assert root_of([]) == sha256(b"").digest()
    assert {bucket_of(str(number)) for number in range(5000)} == set(range(256))


def test_a_repeated_night_keeps_the_leaves_of_the_night_before_and_the_next_one_does_not(
    tmp_path: FilePath,
) -> None:
    objects = FolderObjects(tmp_path)

    def tree_after(night: int) -> LedgerTree:
        head = Head(5, "aa" * 32, night, sha256(bytes(night)).hexdigest())
        tree = LedgerTree.read(objects).grown(objects, [head], f"2026-11-2{night}", f"night-{night}")
        tree.store(objects)
        return tree

    first, second = tree_after(1), tree_after(2)
    assert tree_after(2) == second
    assert tree_after(2) == second
    assert first.leaves(objects, 5)
    tree_after(3)
    assert second.leaves(objects, 5)
    assert len(list(objects.list(LEAVES))) == 2


def test_no_leaves_stay_of_a_night_that_died_before_it_deleted_them(
    tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = FolderObjects(tmp_path)

    def die(*_: object) -> None:
        raise ConnectionError

    def store_tree(night: int) -> None:
        head = Head(5, "aa" * 32, night, sha256(bytes(night)).hexdigest())
        tree = LedgerTree.read(objects).grown(objects, [head], f"2026-11-2{night}", f"night-{night}")
        tree.store(objects)

    store_tree(1)
    store_tree(2)
    with monkeypatch.context() as patch:
        patch.setattr(FolderObjects, "delete", lambda _, keys: die() if list(keys) else None)
        with pytest.raises(ConnectionError):
            store_tree(3)
    store_tree(3)
    assert len(list(objects.list(LEAVES))) == 2
    store_tree(4)
    assert len(list(objects.list(LEAVES))) == 2


def test_a_tree_whose_root_was_not_published_was_changed(tmp_path: FilePath) -> None:
    objects, roots = FolderObjects(tmp_path / "lake"), FolderObjects(tmp_path / "roots")
    assert root_fault(LedgerTree.read(objects), roots) == "", "no night has been"
    for night in (1, 2):
        head = Head(5, "aa" * 32, night, sha256(bytes(night)).hexdigest())
        tree = LedgerTree.read(objects).grown(objects, [head], f"2026-11-2{night}", f"night-{night}")
        publish_root(roots, tree)
        assert root_fault(LedgerTree.read(objects), roots) == "", "a night dies before it has stored its tree"
        tree.store(objects)
        assert root_fault(LedgerTree.read(objects), roots) == ""
    latest, stored = roots.get(LATEST), objects.get(HEADS)
    roots.put(LATEST, latest.replace(tree.root.hex().encode(), b"00" * 32))
    assert root_fault(LedgerTree.read(objects), roots) == "roots/latest.json is not roots/night-2.json"
    roots.put(root_key("night-2"), roots.get(LATEST))
    assert "is not that of roots/night-2.json" in root_fault(LedgerTree.read(objects), roots)
    for key in (LATEST, root_key("night-2")):
        roots.put(key, latest)
    other = Head(5, "aa" * 32, 2, "cc" * 32)
    LedgerTree.read(objects).grown(objects, [other], tree.at, tree.run_id).store(objects)
    assert "is not that of roots/night-2.json" in root_fault(LedgerTree.read(objects), roots)
    objects.put(HEADS, stored.replace(b"night-2", b"night-3"))
    assert "is not that of roots/night-3.json" in root_fault(LedgerTree.read(objects), roots)
    objects.delete([HEADS])
    assert "it is gone" in root_fault(LedgerTree.read(objects), roots)
