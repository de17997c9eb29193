"""Events, merges and reversals at the same moment leave no contradiction in PostgreSQL."""

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

from adapters.leads.identity_store import CannotRepair, columns_of, plan_json, read_facts
from rules.leads.identity import STRONG, Identity, in_order
from rules.leads.identity_plan import plan_identities
from tests.support.identity_events import E1, E2, P1, P2, check, events
from tests.support.identity_server import NOW, Registry

pytestmark = pytest.mark.xdist_group("identity")


@pytest.mark.parametrize("both_at", [31, None])
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


def test_a_number_that_32_people_type_at_the_same_moment_is_nobodys(registry: Registry) -> None:
    """Each of the first ones changes what is known of the number, so the others must plan again."""
    barrier = Barrier(32)

    def event(number: int) -> Any:
        store = registry.another()
        typed = (
            Identity("email", f"person{number}@x.example", is_verified=False),
            Identity("phone", P1.external_id, is_verified=False),
        )
        barrier.wait()
        return Registry.see(registry_of(registry, store, number), *typed)

    with ThreadPoolExecutor(32) as threads:
        found = list(threads.map(event, range(32)))
    assert len({each.root_id for each in found}) == 32
    assert registry.rows("SELECT is_shared FROM identity.channel_identity WHERE channel = 'phone'") == [
        (True,)
    ]
    check(registry)


def test_random_events_from_8_threads_leave_nothing_contradictory(registry: Registry) -> None:
    def run(number: int) -> None:
        store, random = registry.another(), Random(number)
        for place, (identities, organization) in enumerate(events(random, 25)):
            mine = registry_of(registry, store, 1000 * number + place)
            for change in Registry.see(mine, *identities, organization=organization).changes:
                if random.random() < 0.2:
                    with contextlib.suppress(CannotRepair):
                        store.unmerge(None, change.number, "why", "me", NOW)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(run, range(8)))
    check(registry)


class Held:
    """A merge that is applied, under its locks, and slow to commit."""

    def __init__(self, registry: Registry, *identities: Identity) -> None:
        ordered = in_order(identities)
        asked = ["acme", *columns_of(ordered), list(STRONG)]
        self.connection = psycopg.connect(registry.server.owner(registry.database))
        found = self.connection.execute("SELECT identity.facts(%s, %s, %s, %s)", asked).fetchone()
        assert found is not None
        facts = found[0]["facts"]
        plan = plan_identities(ordered, read_facts(facts))
        assert plan.merges
        values = [*asked, json.dumps(facts), json.dumps(plan_json(plan)), NOW]
        self.connection.execute("SELECT identity.apply(%s, %s, %s, %s, %s, %s, '{}', %s)", values)

    def commit(self) -> None:
        self.connection.commit()
        self.connection.close()


def is_waiting(registry: Registry) -> bool:
    """Whether the application waits for a lock."""
    query = "SELECT FROM pg_stat_activity WHERE starts_with(usename, 'streakline_leads') AND wait_event_type = 'Lock'"
    return bool(registry.rows(query))


def while_held(registry: Registry, held: Held, *identities: Identity, organization: str = "acme") -> Any:
    """Resolve while a merge is under way; returns what came of it, once it had waited."""
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(registry.see, *identities, organization=organization)
        deadline = time.monotonic() + 1.5
        while not is_waiting(registry):
            assert time.monotonic() < deadline, "it did not wait"
            time.sleep(0.005)
        held.commit()
        return waiting.result()


def test_merges_of_one_group_by_different_identities_wait_for_each_other(registry: Registry) -> None:
    for each in ([E1], [E2, P2], [P1]):
        registry.see(*each)
    held = Held(registry, E1, E2)
    before = registry.counting.trips
    found = while_held(registry, held, P2, P1)
    # The facts; then the plan waits, and the facts are others; at last.
    assert registry.counting.trips - before == 3
    assert len(registry.groups()) == 1
    assert found.root_id == registry.see(E1).leaf
    check(registry)


def test_another_organization_does_not_wait(registry: Registry) -> None:
    registry.see(E1)
    registry.see(E2)
    held = Held(registry, E1, E2)
    registry.see(E1, P1, organization="other")
    registry.see(E2, organization="other")
    assert len(registry.see(P1, E2, organization="other").changes) == 1
    held.commit()
    check(registry)


def test_undoing_waits_for_a_merge_that_builds_on_what_is_undone(registry: Registry) -> None:
    for each in (E1, E2, P1):
        registry.see(each)
    first = registry.see(E1, E2).changes[0].number
    held = Held(registry, E2, P1)
    with ThreadPoolExecutor(1) as thread:
        undone = thread.submit(registry.store.unmerge, None, first, "why", "me", NOW)
        deadline = time.monotonic() + 1.5
        while not is_waiting(registry):
            assert time.monotonic() < deadline, "it did not wait"
            time.sleep(0.005)
        held.commit()
        with pytest.raises(CannotRepair, match=f"change {first + 1} builds on"):
            undone.result()
    check(registry)
