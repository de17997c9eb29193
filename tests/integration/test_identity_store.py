"""Whose events are, on a real PostgreSQL: round trips, concurrency, shared things, maxima."""

import contextlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from adapters.leads.identity_store import CannotUnmerge, _columns, _facts, _plan
from rules.leads.identity.identities import STRONG, Identity, in_order
from rules.leads.identity.identity_plan import fits_one_lead, plan_identities
from tests.support.identity_model import World
from tests.support.identity_server import NOW, Registry

pytestmark = pytest.mark.xdist_group("identity")

SHOP = "acme/shop"
C1, C2 = (Identity("customer", f"{SHOP}/{n}") for n in "12")
E1, E2 = Identity("email", "a@x"), Identity("email", "b@x")
P1, P2 = Identity("phone", "4915100000001"), Identity("phone", "4915100000002")
D1, D2 = (Identity("device", f"{SHOP}/{n}") for n in "12")
K1 = Identity("cookie", f"{SHOP}/1")
POOL = (C1, C2, E1, E2, P1, P2, D1, D2, K1)


def trips(registry: Registry, *identities: Identity, organization: str = "acme") -> int:
    before = registry.counting.trips
    registry.see(*identities, organization=organization)
    return registry.counting.trips - before


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


@pytest.mark.parametrize("both_at", [0, 31, None])
def test_32_concurrent_first_events_of_one_person_over_two_channels_are_one_lead(
    registry: Registry, both_at: int | None
) -> None:
    barrier = Barrier(32)

    def first_event(number: int) -> Any:
        store = registry.another()
        both = both_at is None or number == both_at
        identities = (E1, P1) if both else (E1, P1)[number % 2 :][:1]
        barrier.wait()
        return Registry.see(registry_of(registry, store, number), *identities)

    with ThreadPoolExecutor(32) as threads:
        found = list(threads.map(first_event, range(32)))
    assert registry.groups() == {frozenset({("email", E1.external_id), ("phone", P1.external_id)})}
    leads = registry.rows("SELECT lead_id FROM identity.lead")
    assert len(leads) == (1 if both_at is None else len({each.lead_id for each in found}))
    assert len(leads) <= 2
    assert registry.see(E1).root_id == registry.see(P1).root_id


def registry_of(registry: Registry, store: Any, number: int) -> Any:
    """The same registry with a store of its own."""
    return SimpleNamespace(store=store, numbers=iter([number]))


def test_two_people_on_one_device_stay_two(registry: Registry) -> None:
    ann, bob = registry.see(E1, D1), registry.see(E2, D1)
    assert ann.lead_id != bob.lead_id
    alone = registry.see(D1)
    assert alone.lead_id not in {ann.lead_id, bob.lead_id}
    assert registry.see(E1, D1).leaf == ann.leaf
    assert registry.see(E2, D1).leaf == bob.leaf
    assert registry.see(D1) == alone


def test_two_people_who_use_one_device_at_the_same_moment_stay_two(registry: Registry) -> None:
    barrier = Barrier(16)

    def event(number: int) -> Any:
        store = registry.another()
        barrier.wait()
        return Registry.see(registry_of(registry, store, number), (E1, E2)[number % 2], D1)

    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(event, range(16)))
    assert len({each.lead_id for each in found[::2]}) == len({each.lead_id for each in found[1::2]}) == 1
    assert registry.groups() == {frozenset({(each.channel, each.external_id)}) for each in (E1, E2, D1)}


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


def events(random: Random, count: int) -> list[tuple[tuple[Identity, ...], str]]:
    return [
        (tuple(random.sample(POOL, random.randint(1, 3))), random.choice(["acme", "acme", "other"]))
        for _ in range(count)
    ]


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


@pytest.mark.parametrize("seed", range(2))
def test_random_events_from_8_threads_leave_nothing_contradictory(registry: Registry, seed: int) -> None:
    def run(number: int) -> None:
        store, random = registry.another(), Random(f"{seed}-{number}")
        for place, (identities, organization) in enumerate(events(random, 25)):
            mine = registry_of(registry, store, 1000 * number + place)
            for change in Registry.see(mine, *identities, organization=organization).changes:
                if random.random() < 0.2:
                    with contextlib.suppress(CannotUnmerge):
                        store.unmerge(change.number, "why", "me", NOW)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(run, range(8)))
    check(registry)


MOVES = "SELECT lead_id, root_before, root_after FROM identity.change_lead ORDER BY number, lead_id"
APART = (
    "SELECT array_agg(lead_id) FILTER (WHERE is_moved), array_agg(lead_id) FILTER (WHERE NOT is_moved)"
    " FROM identity.kept_apart GROUP BY number"
)


def check(registry: Registry) -> None:
    """No group breaks a maximum or holds what was parted; what is noted and announced comes to what is."""
    for group in registry.groups():
        assert fits_one_lead(Identity(*each) for each in group)
    roots: dict[int, int] = dict(registry.rows("SELECT lead_id, root_id FROM identity.lead"))
    noted = {lead: lead for lead in roots}
    for lead, before, after in registry.rows(MOVES):
        assert noted[lead] == before
        noted[lead] = after
    assert noted == roots
    for moved, stayed in registry.rows(APART):
        assert {roots[lead] for lead in moved}.isdisjoint(roots[lead] for lead in stayed)
    heard: dict[str, frozenset[str]] = {}
    for (told,) in registry.rows("SELECT announcement FROM identity.identity_change ORDER BY number"):
        for group in (group for groups in told.values() for group in groups):
            assert group["root"] == group["leaves"][0]
            heard |= dict.fromkeys(group["leaves"], frozenset(group["leaves"]))
    held = registry.rows(
        "SELECT array_agg(lead_organization_id ORDER BY number) FROM identity.lead"
        " JOIN identity.lead_organization USING (lead_id) GROUP BY root_id, organization_id"
    )
    for (leaves,) in held:
        for leaf in leaves:
            assert heard.get(leaf, frozenset({leaf})) == frozenset(leaves)


class Held:
    """A merge that has read its facts, under locks, and is slow to apply its plan."""

    def __init__(self, registry: Registry, *identities: Identity) -> None:
        self.identities = in_order(identities)
        self.connection = psycopg.connect(registry.server.owner(registry.database))
        found = self.connection.execute(
            "SELECT identity.facts(%s, %s, %s)", [*_columns(self.identities), list(STRONG)]
        ).fetchone()
        assert found is not None
        self.plan = plan_identities(self.identities, _facts(found[0]))
        assert self.plan.merges

    def apply(self) -> None:
        self.connection.execute(
            "SELECT identity.apply('acme', %s, '{}', %s)", [json.dumps(_plan(self.plan)), NOW]
        )
        self.connection.commit()
        self.connection.close()


def is_waiting(registry: Registry) -> bool:
    """Whether the application waits for a lock."""
    query = "SELECT FROM pg_stat_activity WHERE usename = 'streakline_leads' AND wait_event_type = 'Lock'"
    return bool(registry.rows(query))


def while_held(registry: Registry, held: Held, *identities: Identity, organization: str = "acme") -> Any:
    """Resolve while a merge is under way; returns what came of it, once it had waited."""
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(registry.see, *identities, organization=organization)
        deadline = time.monotonic() + 1.5
        while not is_waiting(registry):
            assert time.monotonic() < deadline, "it did not wait"
            time.sleep(0.005)
        held.apply()
        return waiting.result()


def test_merges_of_one_group_by_different_identities_wait_for_each_other(registry: Registry) -> None:
    for each in ([E1], [E2, P2], [P1]):
        registry.see(*each)
    held = Held(registry, E1, E2)
    before = registry.counting.trips
    found = while_held(registry, held, P2, P1)
    # The statement; then begin, facts, roll back, as the group has changed; then begin, facts, apply, commit.
    assert registry.counting.trips - before == 8
    assert len(registry.groups()) == 1
    assert found.root_id == registry.see(E1).leaf
    check(registry)


def test_a_lead_that_becomes_known_to_an_organization_waits_for_its_merge(registry: Registry) -> None:
    registry.see(E1)
    registry.see(E1, organization="other")
    registry.see(E2)
    found = while_held(registry, Held(registry, E1, E2), E2, organization="other")
    assert [each.kind for each in found.changes] == ["merged", "joined"]
    assert found.root_id != found.leaf
    check(registry)


def test_undoing_waits_for_a_merge_that_builds_on_what_is_undone(registry: Registry) -> None:
    for each in (E1, E2, P1):
        registry.see(each)
    first = registry.see(E1, E2).changes[0].number
    held = Held(registry, E2, P1)
    with ThreadPoolExecutor(1) as thread:
        undone = thread.submit(registry.store.unmerge, first, "why", "me", NOW)
        deadline = time.monotonic() + 1.5
        while not is_waiting(registry):
            assert time.monotonic() < deadline, "it did not wait"
            time.sleep(0.005)
        held.apply()
        with pytest.raises(CannotUnmerge, match=f"change {first + 1} builds on"):
            undone.result()
    check(registry)
