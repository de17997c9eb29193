"""Whose an event is, on a real PostgreSQL; merges that are announced, undone and kept apart; what is forgotten."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from adapters.leads.identity_store import ATTEMPTS_MAX, AlreadyUndone, CannotRepair, IdentityStore
from adapters.postgresql.sql import PostgresRefused, PostgresUnavailable
from ingest.leads import lead_consumer
from rules.leads.identity import Identity
from rules.leads.lead_events import Group
from rules.smoke_names import smoke_name
from tests.support.identity_events import C1, C2, D1, D2, E1, E2, K1, ORGANIZATIONS, P1, check, events
from tests.support.identity_model import World
from tests.support.identity_server import AUDIT, NOW, Registry, undo

pytestmark = pytest.mark.xdist_group("identity")


def trips(registry: Registry, *identities: Identity, organization: str = "acme") -> int:
    before: int = registry.counting.trips
    registry.see(*identities, organization=organization)
    after: int = registry.counting.trips
    return after - before


def test_an_event_takes_one_round_trip_or_two_if_it_changes_anything(registry: Registry) -> None:
    registry.see(Identity("cookie", "acme/shop/9"))  # opens the connection
    assert trips(registry, C1, E1, P1, D1) == 2  # all new
    assert trips(registry, P1, D1, E1, C1) == 1  # all known
    assert trips(registry, E1) == 1
    assert trips(registry, D1) == 1
    assert trips(registry, E1, organization="other") == 2  # new to that organization
    assert trips(registry, E1, K1) == 2  # a new cookie of a known person
    assert trips(registry, replace(P1, is_verified=False), D2) == 1  # claims nothing of a proven person
    assert trips(registry, K1, D2) == 2  # a new device beside a known cookie
    assert trips(registry, E1, E2) == 2  # a new identity that proves somebody: read, decide, apply


def test_the_same_identities_have_the_same_leaf_and_in_each_organization_another(registry: Registry) -> None:
    first, again = registry.see(E1, P1), registry.see(P1)
    other = registry.see(E1, organization="other")
    assert first == again
    assert first.leaf == first.root_id
    assert other.lead_id != first.lead_id
    assert other.leaf != first.leaf
    assert registry.see(P1, organization="other").lead_id not in {other.lead_id, first.lead_id}


@pytest.mark.parametrize("seed", range(2))
def test_random_events_come_to_what_the_decision_alone_comes_to(registry: Registry, seed: int) -> None:
    """Some identities are only claimed. Now and then an operator undoes the newest merge."""
    numbers: list[int] = []
    random = Random(seed)
    worlds = {name: World(numbers=numbers) for name in ORGANIZATIONS}
    for identities, organization in events(random, 60):
        world = worlds[organization]
        found = registry.see(*identities, organization=organization)
        assert found.lead_id == world.see(*identities)
        if world.merged and random.random() < 0.2:
            world.undo()
            number = registry.rows(NEWEST, organization)[0][0]
            registry.store.unmerge(organization, number, "why", "me", NOW)
    for organization, world in worlds.items():
        assert registry.groups(organization) == world.groups()
        noted = registry.rows(REFUSED, organization)
        assert {(reason, tuple(leads)) for reason, leads in noted} == world.refused
        assert {tuple(each) for each in registry.rows(PROVEN, organization)} == {
            (each.channel, each.external_id) for each in world.proven
        }
    check(registry)


def test_a_person_with_more_than_channels_allow_still_gets_things(registry: Registry) -> None:
    """An operator may join two customers of one shop."""
    one, two = registry.see(C1), registry.see(C2)
    told = {"reason": "one person", "by": "me"}
    registry.store.merge_by_hand(["acme"], (one.leaf, two.leaf), told, unite=False, now=NOW)
    assert registry.see(C1, D1).leaf == registry.see(D1).leaf == one.leaf


OF = "FROM identity.identity_change WHERE organization_id = %s AND kind = "
REFUSED = f"SELECT evidence->>'reason', leads {OF} 'refused'"
NEWEST = f"SELECT max(number) {OF} 'merged' AND reversed_by IS NULL"
PROVEN = (
    "SELECT channel, external_id FROM identity.channel_identity WHERE organization_id = %s AND is_verified"
)


REAL = IdentityStore._call


def between(monkeypatch: pytest.MonkeyPatch, *others: Callable[[], object]) -> list[str]:
    """Let others come between reading and applying, one each time; returns what each attempt came to."""
    left, outcomes = list(others), list[str]()

    def call(store: IdentityStore, name: str, *arguments: Any) -> Any:
        if not name.startswith("apply"):
            return REAL(store, name, *arguments)
        if left:
            other = left.pop(0)
            with monkeypatch.context() as alone:
                alone.setattr(IdentityStore, "_call", REAL)
                other()
        answer = REAL(store, name, *arguments)
        outcomes.append("applied" if "resolution" in answer else "others were first")
        return answer

    monkeypatch.setattr(IdentityStore, "_call", call)
    return outcomes


def test_somebody_else_got_the_number_meanwhile(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planned without him, the number would be stored twice, or taken from him."""
    one, _ = registry.see(E1), registry.see(E2)
    outcomes = between(monkeypatch, lambda: registry.see(E2, P1))
    found = registry.see(E1, P1)
    assert outcomes == ["others were first", "applied"]
    assert found.root_id == registry.see(P1).root_id == one.root_id  # the number proves that both are one
    check(registry)


def test_an_operator_parted_them_meanwhile(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.see(E1)
    registry.see(E2)
    merged = registry.see(E1, E2, C1).changes[-1]
    parted = lambda: registry.store.unmerge("acme", merged.number, "why", "me", NOW)  # noqa: E731
    outcomes = between(monkeypatch, parted)
    registry.see(E1, P1)
    assert outcomes.count("others were first") == 1
    assert registry.see(E1).root_id != registry.see(E2).root_id
    check(registry)


def test_who_always_comes_too_late_is_told_to_come_again(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.see(E1)
    before = registry.dump()
    others: dict[str, Any] = {"facts": {"known": [], "strong": [], "apart": []}, "resolutions": {}}
    attempts: list[str] = []

    def call(_store: IdentityStore, name: str, *_arguments: Any) -> Any:
        attempts.append(name.partition("(")[0])
        return others

    with monkeypatch.context() as late:
        late.setattr(IdentityStore, "_call", call)
        with pytest.raises(PostgresUnavailable, match="other changes were first") as refused:
            registry.see(E1, P1)
    assert attempts == ["facts", *["apply"] * ATTEMPTS_MAX]
    assert not refused.value.is_away
    assert registry.dump() == before
    assert registry.see(E1, P1).leaf == registry.see(P1).leaf


A, B, C = (Identity("email", f"{name}@x") for name in "abc")
P = Identity("phone", "4915100000001")


def part(registry: Registry, *leads: tuple[Identity, ...]) -> None:
    """Make two leads known, merge them, and let an operator undo it."""
    for each in leads:
        registry.see(*each)
    undo(registry, registry.see(*(each[0] for each in leads)).changes[-1].number)


def test_an_event_of_both_is_the_highest_one_s_and_its_refusal_is_noted_once(registry: Registry) -> None:
    part(registry, (A,), (P,))
    leaf = registry.see(A).leaf
    for both in [(A, P), (P, A), (A, P)]:
        assert registry.see(*both, external_id="order-7").leaf == leaf
    refused, unmerged, merged = registry.store.history(["acme"], leaf, None, 9) or []
    assert (merged["kind"], unmerged["kind"], refused["kind"]) == ("merged", "unmerged", "refused")
    assert refused["leads"] == [1, 2]
    assert refused["evidence"] == {
        "source": "acme/shop",
        "external_event_id": "order-7",
        "identities": [["email", "a@x", True], ["phone", P.external_id, True]],
        "reason": "kept apart",
    }


def test_groups_are_parted_as_they_stand_lead_by_lead(registry: Registry) -> None:
    """C came to A after B did: whatever becomes of A and C later, B is neither of them."""
    for each in (A, B, C):
        registry.see(each)
    first = registry.see(A, B).changes[-1].number
    second = registry.see(A, C).changes[-1].number
    undo(registry, first)
    undo(registry, second)
    for both in [(B, C), (A, B), (C, A)]:
        registry.see(*both)
    assert registry.groups() == {frozenset({("email", each.external_id)}) for each in (A, B, C)}


def test_the_schema_itself_keeps_apart(registry: Registry) -> None:
    part(registry, (A,), (B,))
    registry.see(C)
    registry.see(B, C)
    for statement in (
        "UPDATE identity.lead SET root_id = 1",
        "UPDATE identity.kept_apart SET number = 1",  # no undoing
        "INSERT INTO identity.kept_apart SELECT organization_id, number, lead_id, NOT is_moved FROM identity.kept_apart",
    ):
        with pytest.raises(psycopg.IntegrityError), registry.owner.transaction():
            registry.owner.execute(statement)


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


SMOKE = smoke_name(17)


def test_leads_of_a_smoke_test_are_gone_with_all_that_is_known_of_them(registry: Registry) -> None:
    registry.see(E2)
    before = registry.dump()
    registry.see(E1, P1, organization=SMOKE)
    registry.see(D1, organization=SMOKE)
    assert registry.dump() != before
    assert registry.store.forget(SMOKE) == 0
    assert registry.dump() == before
    assert registry.store.forget(SMOKE) == 0


def test_a_lead_that_a_change_touched_stays_and_is_told(registry: Registry) -> None:
    registry.see(E1)
    registry.see(E1, organization=SMOKE)
    registry.see(D1, organization=SMOKE)
    registry.see(E2, D1, organization=SMOKE)  # merges two
    before = registry.dump()
    assert registry.store.forget(SMOKE) == 2
    gone = {name: set(before[name]) - set(rows) for name, rows in registry.dump().items()}
    assert {name: len(rows) for name, rows in gone.items() if rows} == dict.fromkeys(
        ("lead", "channel_identity", "lead_organization"), 1
    )


@pytest.mark.parametrize("organization", ["acme", "smoke-", f"{SMOKE}-kinesis", f"{SMOKE}\nacme", ""])
def test_no_other_organization_can_be_forgotten(registry: Registry, organization: str) -> None:
    registry.see(E1, organization=organization or "acme")
    before = registry.dump()
    with pytest.raises(PostgresRefused, match="SQLSTATE 22023"):
        registry.store.forget(organization)
    assert registry.dump() == before


def test_the_function_does_it(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.see(E1, organization=SMOKE)
    consumer = SimpleNamespace(identities=registry.store)
    monkeypatch.setattr(lead_consumer, "_parts", lambda: (consumer, None))
    context = SimpleNamespace(
        function_name="f", memory_limit_in_mb=1, invoked_function_arn="a", aws_request_id="r"
    )
    assert lead_consumer.handler({"streakline_forget": SMOKE}, context) == {"left": 0}
    assert registry.rows("SELECT FROM identity.lead") == []
