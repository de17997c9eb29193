"""Whose an event is, on a real PostgreSQL: round trips, shared things and maxima."""

from random import Random

import pytest

from rules.leads.identity.identities import Identity
from tests.support.identity_events import C1, C2, D1, E1, E2, K1, P1, check, events
from tests.support.identity_model import World
from tests.support.identity_server import NOW, WAYS, Registry

pytestmark = [
    pytest.mark.xdist_group("identity"),
    pytest.mark.parametrize("registry", WAYS, indirect=True),
]


def trips(registry: Registry, *identities: Identity, organization: str = "acme") -> int:
    before: int = registry.counting.trips
    registry.see(*identities, organization=organization)
    after: int = registry.counting.trips
    return after - before


def test_the_everyday_event_takes_one_round_trip(registry: Registry) -> None:
    registry.see(K1)  # opens the connection
    assert trips(registry, C1, E1, P1, D1) == 1  # all new
    assert trips(registry, P1, D1, E1, C1) == 1  # all known
    assert trips(registry, E1) == 1
    assert trips(registry, D1) == 1
    assert trips(registry, E1, organization="other") == 1  # known, but not to that organization
    assert trips(registry, E1, E2) == 5  # a new identity of a known lead: read, decide, apply


def test_the_same_identities_have_the_same_leaf_in_each_organization(registry: Registry) -> None:
    first, again = registry.see(E1, P1), registry.see(P1)
    other = registry.see(E1, organization="other")
    assert first == again
    assert first.leaf == first.root_id
    assert other.lead_id == first.lead_id
    assert other.leaf != first.leaf
    assert len(registry.rows("SELECT FROM identity.lead_organization")) == 2


def test_two_people_on_one_device_stay_two(registry: Registry) -> None:
    ann, bob = registry.see(E1, D1), registry.see(E2, D1)
    assert ann.lead_id != bob.lead_id
    alone = registry.see(D1)
    assert alone.lead_id not in {ann.lead_id, bob.lead_id}
    assert registry.see(E1, D1).leaf == ann.leaf
    assert registry.see(E2, D1).leaf == bob.leaf
    assert registry.see(D1) == alone


def test_an_anonymous_lead_is_adopted_and_its_events_stay_its_own(registry: Registry) -> None:
    before = registry.see(D1)
    known = registry.see(E1, D1)
    assert known.leaf != before.leaf
    assert known.root_id == before.leaf  # the older one
    assert registry.see(D1).leaf == before.leaf


def test_maxima_hold_and_a_refused_merge_is_noted_once(registry: Registry) -> None:
    registry.see(C1, E1)
    second = registry.see(C2, E1)
    for _ in range(3):
        assert registry.see(C2, E1) == second
    assert registry.see(E1).lead_id == registry.see(C1).lead_id != second.lead_id
    assert registry.rows("SELECT leads FROM identity.identity_change WHERE kind = 'refused'") == [([1, 2],)]
    assert second.changes == ()


@pytest.mark.parametrize("seed", range(3))
def test_random_events_come_to_what_the_decision_alone_comes_to(registry: Registry, seed: int) -> None:
    """Now and then an operator undoes the newest merge."""
    world, random = World(), Random(seed)
    for identities, organization in events(random, 60):
        found = registry.see(*identities, organization=organization)
        assert found.lead_id == world.see(*identities)
        if world.merged and random.random() < 0.2:
            world.undo()
            registry.store.unmerge(registry.rows(NEWEST)[0][0], "why", "me", NOW)
    assert registry.groups() == world.groups()
    assert {(reason, tuple(leads)) for reason, leads in registry.rows(REFUSED)} == world.refused
    check(registry)


REFUSED = "SELECT evidence->>'reason', leads FROM identity.identity_change WHERE kind = 'refused'"
NEWEST = "SELECT max(number) FROM identity.identity_change WHERE kind = 'merged' AND reversed_by IS NULL"
