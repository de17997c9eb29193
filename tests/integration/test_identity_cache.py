"""A warm cache answers without PostgreSQL; whatever is wrong with Redis, PostgreSQL answers."""

from dataclasses import replace

import pytest

from adapters.leads.identity_store import IdentityCache
from adapters.platform.redis import Redis
from local.cloud.processes import free_port
from rules.leads.identity import Identity
from tests.support.identity_server import Registry

pytestmark = pytest.mark.xdist_group("identity")

A, B = Identity("email", "a@x"), Identity("email", "b@x")
DEVICE = Identity("device", "acme/shop/1")


@pytest.fixture
def cache(redis_url: str) -> IdentityCache:
    Redis(redis_url).call("FLUSHALL")
    return IdentityCache(redis_url)


def test_a_warm_cache_needs_no_round_trip_to_postgresql(registry: Registry, cache: IdentityCache) -> None:
    def resolve(*identities: Identity) -> object:
        found = cache.get("acme", identities)
        if found is None:
            found = registry.see(*identities)
            cache.remember("acme", identities, found)
        return found

    cold = resolve(A, DEVICE)
    assert registry.counting.trips == 2
    assert resolve(DEVICE, A) == cold
    assert registry.counting.trips == 2


def test_other_organizations_and_other_identities_are_other_keys(
    registry: Registry, cache: IdentityCache
) -> None:
    cache.remember("acme", [A], registry.see(A))
    assert cache.get("acme", [A]) is not None
    assert cache.get("other", [A]) is None
    assert cache.get("acme", [A, B]) is None
    assert cache.get("acme", [B]) is None


def test_what_still_has_to_be_announced_is_not_cached(registry: Registry, cache: IdentityCache) -> None:
    registry.see(A)
    registry.see(B)
    found = registry.see(A, B)
    cache.remember("acme", [A, B], found)
    assert cache.get("acme", [A, B]) is None
    cache.remember("acme", [A, B], replace(found, changes=()))
    assert cache.get("acme", [A, B]) == replace(found, changes=())


def test_things_are_not_cached(registry: Registry, cache: IdentityCache) -> None:
    cache.remember("acme", [DEVICE], registry.see(DEVICE))
    assert cache.get("acme", [DEVICE]) is None


@pytest.mark.parametrize("held", ["{", "[1]", "null", "7"])
def test_what_another_version_wrote_is_a_miss(
    registry: Registry, cache: IdentityCache, redis_url: str, held: str
) -> None:
    found = registry.see(A)
    cache.remember("acme", [A], found)
    redis = Redis(redis_url)
    (key,) = redis.call("KEYS", "identity:*")
    assert 3500 < redis.call("TTL", key) <= 3600
    redis.call("SET", key, held)
    assert cache.get("acme", [A]) is None


def test_no_redis_is_a_miss(registry: Registry) -> None:
    for url in ("", f"redis://127.0.0.1:{free_port()}"):
        cache = IdentityCache(url)
        cache.remember("acme", [A], registry.see(A))
        assert cache.get("acme", [A]) is None
