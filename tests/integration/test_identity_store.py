"""Whose an event is, on a real PostgreSQL: round trips, shared things and maxima."""

import itertools
from dataclasses import replace
from random import Random

import pytest

from rules.leads.identity import Identity
from tests.support.identity_events import C1, C2, D1, D2, E1, E2, K1, ORGANIZATIONS, P1, check, events
from tests.support.identity_model import World
from tests.support.identity_server import NOW, Registry

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
