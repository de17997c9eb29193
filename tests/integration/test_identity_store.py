"""Whose an event is, on a real PostgreSQL: round trips, shared things and maxima."""

import itertools
from dataclasses import replace
from random import Random

import pytest

from rules.leads.identity import Identity
from tests.support.identity_events import C1, C2, D1, D2, E1, E2, K1, ORGANIZATIONS, P1, check, events
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
    """Some identities are only claimed. Now and then an operator undoes the newest merge."""
    numbers, random = itertools.count(1), Random(seed)
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


OF = "FROM identity.identity_change WHERE organization_id = %s AND kind = "
REFUSED = f"SELECT evidence->>'reason', leads {OF} 'refused'"
NEWEST = f"SELECT max(number) {OF} 'merged' AND reversed_by IS NULL"
PROVEN = (
    "SELECT channel, external_id FROM identity.channel_identity WHERE organization_id = %s AND is_verified"
)
