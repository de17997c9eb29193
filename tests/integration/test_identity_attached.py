"""What one statement attaches is what a decision would: the same rows, whatever came before, and at once."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from random import Random
from threading import Barrier
from typing import Any

import pytest

from adapters.leads.identity_store import (
    CannotRepair,
    IdentityStore,
    LeadEventKey,
    Resolution,
    _decide,
    resolution_of,
)
from rules.leads.identity import Identity, considered_identities
from tests.support.identity_events import C1, D1, D2, E1, E2, K1, P1, POOL, check
from tests.support.identity_server import NOW, Registry

pytestmark = pytest.mark.xdist_group("identity")
K2, K3 = (Identity("cookie", f"acme/shop/{n}") for n in "23")
Event = tuple[Identity, ...]


class Deciding(IdentityStore):
    """Reads, decides and applies for every event."""

    def resolve(
        self, organization_id: str, identities: Iterable[Identity], evidence: LeadEventKey, now: datetime
    ) -> Resolution:
        ordered = considered_identities(identities)
        work = partial(_decide, organization_id=organization_id, ordered=ordered, evidence={}, now=now)
        return resolution_of(self._database.run(work, attempts=20))


def random_events(random: Random, count: int) -> list[Event]:
    """Half of them proven, with more things than people, and every other one with a thing never seen before."""
    events = []
    for number in range(count):
        is_verified = random.random() < 0.5
        fresh = [Identity("cookie", f"acme/shop/fresh-{number}")] * random.randint(0, 1)
        some = (*random.sample((*POOL, K2, K3), random.randint(1, 3)), *fresh)
        events.append(
            tuple(replace(each, is_verified=is_verified or not each.kind.is_strong) for each in some)
        )
    return events


def rows(registry: Registry, store: IdentityStore, events: list[Event]) -> tuple[list[int], Any]:
    """Return whose events they are, and all rows but what is by chance."""
    registry.clear()
    found = []
    for number, identities in enumerate(events):
        key = LeadEventKey("acme/shop", f"event-{number}")
        resolution = store.resolve("acme", identities, key, NOW)
        found.append(resolution.lead_id)
        if resolution.changes and number % 7 == 0:
            with suppress(CannotRepair):
                store.unmerge("acme", resolution.changes[-1].number, "why", "me", NOW)
    held = registry.rows("SELECT t::text FROM identity.channel_identity AS t ORDER BY 1")
    leads = registry.rows("SELECT lead_id, root_id FROM identity.lead ORDER BY 1")
    moves = registry.rows("SELECT lead_id, root_before, root_after FROM identity.change_lead ORDER BY 1, 2")
    return found, (held, leads, moves)


@pytest.mark.parametrize("seed", range(12))
def test_it_leaves_the_rows_that_deciding_every_event_leaves(registry: Registry, seed: int) -> None:
    events = random_events(Random(seed), 40)
    decided = rows(registry, Deciding(registry.connect()), events)
    assert rows(registry, registry.store, events) == decided
    check(registry)


def test_a_person_with_more_than_channels_allow_still_gets_things(registry: Registry) -> None:
    """An operator may join two customers of one shop."""
    other = replace(C1, external_id="acme/shop/2")
    one, two = registry.see(C1), registry.see(other)
    told = {"reason": "one person", "by": "me"}
    registry.store.merge_by_hand(["acme"], (one.leaf, two.leaf), told, unite=False, now=NOW)
    assert registry.see(C1, D1).leaf == registry.see(D1).leaf == one.leaf


def test_new_cookies_of_one_person_at_the_same_moment_are_all_his(registry: Registry) -> None:
    person = registry.see(E1, P1)
    cookies = [Identity("cookie", f"acme/shop/new-{number}") for number in range(16)]
    barrier = Barrier(32)

    def event(number: int) -> Resolution:
        store = registry.another()
        barrier.wait()
        key = LeadEventKey("acme/shop", f"at-once-{number}")
        return store.resolve("acme", ((E1, P1)[number % 2], cookies[number // 2]), key, NOW)

    with ThreadPoolExecutor(32) as threads:
        found = list(threads.map(event, range(32)))
    assert {each.leaf for each in found} == {person.leaf}
    assert {registry.see(each).leaf for each in cookies} == {person.leaf}
    check(registry)


def test_a_new_thing_that_two_known_people_use_at_the_same_moment_is_shared(registry: Registry) -> None:
    for each in (E1, E2):
        registry.see(each)
    barrier = Barrier(16)

    def event(number: int) -> None:
        store = registry.another()
        barrier.wait()
        key = LeadEventKey("acme/shop", f"at-once-{number}")
        store.resolve("acme", ((E1, E2)[number % 2], (D2, K1)[number // 2 % 2]), key, NOW)

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(event, range(16)))
    shared = registry.rows("SELECT external_id FROM identity.channel_identity WHERE is_shared")
    assert {each for (each,) in shared} == {D2.external_id, K1.external_id}
    check(registry)
