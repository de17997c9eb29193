"""Merges are announced until somebody has heard of them, and undone exactly."""

from dataclasses import replace

import pytest

from adapters.leads.identity_store import AlreadyUndone, CannotRepair
from rules.leads.identity import Identity
from rules.leads.lead_events import Group
from tests.support.identity_server import AUDIT, NOW, Registry, undo

pytestmark = pytest.mark.xdist_group("identity")

A, B, C, D = (Identity("email", f"{name}@x") for name in "abcd")
P, Q = Identity("phone", "4915100000001"), Identity("phone", "4915100000002")
DEVICE = Identity("device", "acme/shop/1")


@pytest.mark.parametrize("both", [(A, P), (P, A), (A, DEVICE), (B, DEVICE)])
def test_whatever_was_merged_is_restored(registry: Registry, both: tuple[Identity, ...]) -> None:
    for each in (A, P, B, DEVICE):
        registry.see(each)
    before = registry.dump(but=AUDIT)
    (merged,) = registry.see(*both).changes
    assert registry.dump(but=AUDIT) != before
    change = registry.store.unmerge(None, merged.number, "two sisters", "ann", NOW)[-1]
    assert registry.dump(but=AUDIT) == before
    assert (change.kind, len(change.groups)) == ("unmerged", 2)
    assert (change.organization_id, change.note) == ("acme", {"reason": "two sisters", "by": "ann"})


def test_a_chain_is_undone_from_its_end(registry: Registry) -> None:
    """C joins B, whose group joins A: what C's merge is part of is undone first."""
    for each in (A, B, C):
        registry.see(each)
    alone = registry.dump(but=AUDIT)
    first = registry.see(C, B).changes[-1].number
    joined = registry.dump(but=AUDIT)
    second = registry.see(B, A).changes[-1].number
    with pytest.raises(CannotRepair, match=f"change {second} builds on change {first}: undo it first"):
        undo(registry, first)
    undo(registry, second)
    assert registry.dump(but=AUDIT) == joined
    undo(registry, first)
    assert registry.dump(but=AUDIT) == alone


def test_merges_that_do_not_build_on_each_other_are_undone_in_any_order(registry: Registry) -> None:
    for each in (A, B, C):
        registry.see(each)
    alone = registry.dump(but=AUDIT)
    first = registry.see(A, B).changes[-1].number
    second = registry.see(A, C).changes[-1].number
    undo(registry, first)
    assert ("email", "c@x") in next(each for each in registry.groups() if ("email", "a@x") in each)
    undo(registry, second)
    assert registry.dump(but=AUDIT) == alone


def test_a_merge_by_way_of_an_absorbed_lead_builds_on_its_merge(registry: Registry) -> None:
    """C came to A's group because of B: without B, C would not be there."""
    for each in (A, B, C):
        registry.see(each)
    first = registry.see(A, B).changes[-1].number
    second = registry.see(B, C).changes[-1].number
    with pytest.raises(CannotRepair, match=f"change {second} builds on"):
        undo(registry, first)


def test_undoing_twice_or_what_is_no_merge_is_refused(registry: Registry) -> None:
    registry.see(A)
    registry.see(B)
    number = registry.see(A, B).changes[0].number
    undo(registry, number)
    with pytest.raises(AlreadyUndone, match=f"change {number} has been undone by change {number + 1}"):
        undo(registry, number)
    for wrong in (number + 1, 999):
        with pytest.raises(CannotRepair, match=f"change {wrong} is no merge"):
            undo(registry, wrong)


def test_a_change_is_returned_until_it_is_announced_whoever_dies(registry: Registry) -> None:
    registry.see(A)
    registry.see(P)
    (change,) = registry.see(A, P).changes  # and then the process dies
    assert registry.see(A, P).changes == (change,)
    assert registry.see(P).changes == (change,)
    assert registry.store.pending() == (change,)
    assert registry.see(B).changes == ()
    registry.store.note_announced([replace(change, organization_id="other")])
    assert registry.store.pending() == (change,)
    registry.store.note_announced([change])
    registry.store.note_announced([change])
    assert registry.see(A, P).changes == registry.store.pending() == ()


def test_what_a_change_tells_stays_as_it_was_told(registry: Registry) -> None:
    """It may have been stored before the process died: the same number must tell the same again."""
    for each in (A, B, C):
        registry.see(each)
    (change,) = registry.see(A, B).changes
    again, later = registry.see(B, C).changes
    assert again == change
    assert len(change.groups[0].leaves) == 2
    assert len(later.groups[0].leaves) == 2, "whom it moved, and the root"


def test_a_merge_is_told_to_its_own_organization(registry: Registry) -> None:
    a, b = registry.see(A), registry.see(B)
    other = [registry.see(each, organization="other") for each in (A, B)]
    (change,) = registry.see(A, B).changes
    assert (change.organization_id, change.groups) == ("acme", (Group(a.leaf, (a.leaf, b.leaf)),))
    assert change.at > NOW
    assert [registry.see(each, organization="other") for each in (A, B)] == other


def test_the_next_lead_of_a_person_of_many_is_told_and_noted_alone(registry: Registry) -> None:
    root, told = registry.see(A).leaf, list[Group]()
    for number in range(12):
        cookie = Identity("device", f"acme/shop/cookie-{number}")
        leaf = registry.see(cookie).leaf
        (change,) = registry.see(A, cookie).changes
        registry.store.note_announced([change])
        assert change.groups == (Group(root, (root, leaf)),)
        told += change.groups
    (most,) = registry.rows("SELECT max(cardinality(leads)) FROM identity.identity_change")
    assert most == (2,)
    (parted,) = registry.store.unmerge(None, change.number, "a friend's", "ann", NOW)
    assert parted.groups == (Group(root, (root,)), Group(leaf, (leaf,)))


def test_an_organization_undoes_its_own_merges_alone(registry: Registry) -> None:
    registry.see(A)
    registry.see(B)
    number = registry.see(A, B).changes[0].number
    before = registry.dump()
    with pytest.raises(CannotRepair, match=f"change {number} is no merge"):
        registry.store.unmerge("other", number, "why", "me", NOW)
    assert registry.dump() == before
    assert registry.store.unmerge("acme", number, "why", "me", NOW)


def test_history_tells_who_did_what_and_why(registry: Registry) -> None:
    leaf = registry.see(A).leaf
    registry.see(B)
    number = registry.see(A, B, external_id="order-7").changes[0].number
    undo(registry, number)
    unmerged, merged = registry.store.history(["acme"], leaf, None, 9) or []
    assert merged["evidence"] == {
        "source": "acme/shop",
        "external_event_id": "order-7",
        "identities": [["email", "a@x", True], ["email", "b@x", True]],
    }
    assert unmerged["evidence"] == {"reason": "by mistake", "by": "operator"}
    assert merged["reversed_by"] == unmerged["number"]
    assert registry.store.history(["acme"], "nobody", None, 9) is None
    assert registry.store.history(["other"], leaf, None, 9) is None
