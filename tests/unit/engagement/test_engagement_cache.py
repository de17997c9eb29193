"""The engagement cache goes on without Redis. tests/integration/test_cache_contract.py has it on a real one."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pytest

from adapters.engagement import engagement_cache
from adapters.engagement.engagement_cache import RETRY_AFTER_SECONDS, EngagementCache
from adapters.platform.redis import RedisError
from rules.engagement.account_state import Day, Profile
from rules.engagement.streak import Streak

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
PROFILE = Profile("u", version=3, streak=Streak(date(2026, 6, 1), 4, 9, 30), total_points=50)
DAY = Day("u", date(2026, 6, 1), "e", 2, 20, {"CHECK_IN": 5}, "h", "c")


class Fake:
    """A Redis that is there or is not, and notes what it is asked."""

    def __init__(self) -> None:
        self.down, self.tried = False, 0
        self.asked: list[list[Any]] = []

    def pipeline(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        self.tried += 1
        if self.down:
            raise RedisError("gone")
        self.asked += [list(each) for each in commands]
        return ['{"v": 0}'] * len(commands)


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> Fake:
    fake = Fake()
    monkeypatch.setattr(engagement_cache, "Redis", lambda url: fake)
    return fake


OPERATIONS: list[Callable[[EngagementCache], object]] = [
    lambda cache: cache.profile("u"),
    lambda cache: cache.day("u", date(2026, 6, 1)),
    lambda cache: cache.top_list("global"),
    lambda cache: cache.count_events("u", 5, NOW),
    lambda cache: cache.write_through([PROFILE], [DAY]),
    lambda cache: cache.keep_top_list("global", {}),
    lambda cache: cache.forget("u") or None,
]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_operation_survives_a_redis_that_raises_and_one_that_is_not_there(
    operation: Callable[[EngagementCache], object], redis: Fake
) -> None:
    redis.down = True
    assert operation(EngagementCache("redis://cache")) is None
    assert operation(EngagementCache("")) is None
    assert redis.tried == 1


def test_after_a_failure_redis_is_left_alone_for_some_seconds(
    redis: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, cache = [1000.0], EngagementCache("redis://cache")
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    redis.down = True
    cache.profile("u")
    cache.profile("u")
    assert redis.tried == 1
    clock[0] += RETRY_AFTER_SECONDS
    redis.down = False
    assert cache.top_list("global") == {"v": 0}


def test_a_profile_of_another_version_of_the_code_is_not_known(redis: Fake) -> None:
    assert EngagementCache("redis://cache").profile("u") is None


def test_a_write_through_is_one_round_trip(redis: Fake) -> None:
    EngagementCache("redis://cache").write_through([PROFILE], [DAY])
    assert redis.tried == 1
    assert [each[0] for each in redis.asked] == ["EVAL", "SET"]
    assert redis.asked[0][3:5] == ["streak:u", 3]
