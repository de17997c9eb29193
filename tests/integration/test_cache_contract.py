"""The engagement cache on a real Redis, alone and in cluster mode."""

import json
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.engagement.engagement_cache import EngagementCache
from adapters.platform import redis_cache
from adapters.platform.redis import Redis
from rules.engagement.account_state import Day, Profile
from rules.engagement.streak import Streak
from tests.support import redis_servers

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
TODAY = NOW.date()
DAY = Day("u1", TODAY, "e", 2, 20, {"CHECK_IN": 5}, "h", "c")


def profile(user: str, version: int = 1, points: int = 10, **more: Any) -> Profile:
    streak = Streak(TODAY, version, version, version)
    return Profile(user, version=version, streak=streak, total_points=points, updated_at="x", **more)


CROWD = [profile(f"u{number}", points=10 * number) for number in range(1, 9)]


@pytest.fixture
def redis(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> Redis:
    monkeypatch.setattr(redis_cache, "RETRY_AFTER_SECONDS", 0.0)
    redis = Redis(redis_url)
    redis.call("FLUSHALL")
    return redis


@pytest.fixture
def cache(redis: Redis, redis_url: str) -> EngagementCache:
    return EngagementCache(redis_url)


@contextmanager
def away(cache: EngagementCache) -> Iterator[None]:
    """The network to Redis is gone meanwhile."""
    assert cache._redis
    cache._redis.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "create_connection", lambda *_, **__: (_ for _ in ()).throw(OSError("away")))
        yield


def test_what_is_written_through_is_read(cache: EngagementCache, redis: Redis) -> None:
    cache.write_through(CROWD, [DAY], {"u1": ["a", "b"], "u2": ["c"]})
    assert [cache.profile(each.user_id) for each in CROWD] == CROWD
    assert cache.day("u1", TODAY) == json.loads(redis.call("GET", f"active:u1:{TODAY}"))
    assert cache.processed({"u1": ["a", "z"], "u2": ["c"], "u3": ["a"]}) == {
        "u1": {"a"},
        "u2": {"c"},
        "u3": set(),
    }
    assert cache.profile("u9") is None
    lives = {key: redis.call("TTL", key) for key in ("streak:u1", f"active:u1:{TODAY}", "processed:u2:c")}
    assert all(0 < seconds <= 86400 for seconds in lives.values())


def test_an_older_profile_never_replaces_a_newer_one(cache: EngagementCache) -> None:
    new, old = profile("u", 7, 70), profile("u", 6, 60)
    cache.write_through([new])
    cache.write_through([old])
    cache.remember(old)
    assert cache.profile("u") == new


def test_top_lists_and_counters(cache: EngagementCache, redis: Redis) -> None:
    made = {"as_of": "now", "entries": [{"user_id": "u", "score": 4}]}
    cache.keep_top_list("europe", made)
    assert cache.top_list("europe") == made
    assert cache.top_list("asia") is None
    assert 60 < redis.call("TTL", "leaderboard:europe") <= 75
    assert [cache.count("u", 2, NOW), cache.count("u", 3, NOW)] == [2, 5]
    assert cache.count("u", 1, NOW + timedelta(minutes=1)) == 1
    assert cache.count("v", 1, NOW) == 1


def test_dropped_writes_are_made_good_and_the_backlog_is_cleared(
    cache: EngagementCache, redis: Redis
) -> None:
    cache.write_through(CROWD, [DAY])
    newer = [replace(each, version=5) for each in CROWD]
    with away(cache):
        cache.write_through(newer, [replace(DAY, events_count=3)])
    assert cache.profile("nobody") is None
    assert [redis.call("GET", f"streak:{each.user_id}") for each in CROWD] == [None] * 8, (
        "stale ones are gone"
    )
    assert cache.day("u1", date(2026, 6, 1)) is None
    assert not cache._dropped
    cache.write_through(newer)
    assert cache.profile("u8") == newer[-1]


def test_a_script_touches_only_the_keys_that_it_is_given(cache: EngagementCache, redis: Redis) -> None:
    """Serverless caches refuse others. MONITOR shows what the scripts do."""
    watched = Redis(redis._url.geturl())
    assert watched.call("MONITOR") == "OK"
    cache.write_through(CROWD)
    cache.write_through([replace(each, version=7) for each in CROWD])
    redis.call("PING")
    declared: set[str] = set()
    touched = 0
    while (line := watched._read()).find('"PING"') < 0:
        words = [json.loads(f'"{each}"') for each in re.findall(r'"((?:[^"\\]|\\.)*)"', line)]
        if " lua]" in line.partition('"')[0]:
            assert words[1] in declared, words
            touched += 1
        elif words[0] == "EVAL":
            declared = set(words[3 : 3 + int(words[2])])
    assert touched >= 2 * len(CROWD)
    watched.close()


def test_another_database_in_cluster_mode_is_as_no_redis(
    redis_url: str, redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    cache = EngagementCache(redis_url.removesuffix("/0") + "/3")
    cache.write_through(CROWD)
    is_cluster = "cluster_enabled:1" in redis.call("INFO", "cluster")
    assert (cache.profile("u1") is None) is is_cluster
    assert len(caplog.messages) == is_cluster


def test_a_cluster_of_several_nodes_is_as_no_redis(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with redis_servers.two_nodes(tmp_path) as url:
        cache = EngagementCache(url)
        cache.write_through(CROWD)
        assert not cache.is_configured
        assert all(cache.profile(each.user_id) is None for each in CROWD)
        (told,) = caplog.messages
        assert "several nodes, which is not supported: MOVED" in told


def test_threads_that_share_a_connection_get_their_own_answers(redis_url: str) -> None:
    """Commands of operators write from sixteen threads, with one client."""
    redis = Redis(redis_url)

    def asked(number: int) -> list[list[str]]:
        return [redis.pipeline([["ECHO", f"{number}-{at}"], ["ECHO", number]]) for at in range(200)]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(asked, range(8)))
    assert found == [[[f"{number}-{at}", str(number)] for at in range(200)] for number in range(8)]
