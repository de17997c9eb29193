"""What is attached to a lead stays its own, also if many attach at the same moment."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from adapters.leads.identity_store import LeadEventKey, Resolution
from rules.leads.identity import Identity
from tests.support.identity_events import C1, D1, D2, E1, E2, K1, P1, check
from tests.support.identity_server import NOW, Registry

pytestmark = pytest.mark.xdist_group("identity")


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
