"""The engagement cache goes on without Redis. tests/integration/test_cache_contract.py has it on a real one."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pytest

from adapters.engagement.engagement_cache import EngagementCache
from adapters.platform import redis_cache
from adapters.platform.redis import RedisError
from adapters.platform.redis_cache import DELETED_AT_ONCE, RETRY_AFTER_SECONDS
from rules.engagement.account_state import Day, Profile
from rules.engagement.streak import Streak

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
A, B = "2026-06-01T11:50:00.000000Z#a", "2026-06-01T11:59:00.000000Z#b"
PROFILE = Profile("u", version=3, streak=Streak(date(2026, 6, 1), 4, 9, 30), total_points=50)
DAY = Day("u", date(2026, 6, 1), "e", 2, 20, {"CHECK_IN": 5}, "h", "c")


class Fake:
    """A Redis that answers so many times, and then is down; it notes what it is asked."""

    def __init__(self) -> None:
        self.left, self.tried, self.is_unsupported = 1_000, 0, False
        self.asked: list[list[Any]] = []

    def pipeline(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        self.tried += 1
        if self.left <= 0:
            raise RedisError("gone")
        self.left -= 1
        self.asked += [list(each) for each in commands]
        return [[1, 0] if each[0] == "SMISMEMBER" else '{"v": 0}' for each in commands]

    @property
    def deleted(self) -> list[str]:
        return [each[1] for each in self.asked if each[0] == "DEL"]


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> Fake:
    fake = Fake()
    monkeypatch.setattr(redis_cache, "Redis", lambda url: fake)
    return fake


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    moment = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: moment[0])
    return moment


OPERATIONS: list[Callable[[EngagementCache], object]] = [
    lambda cache: cache.profile("u"),
    lambda cache: cache.day("u", date(2026, 6, 1)),
    lambda cache: cache.top_list("global"),
    lambda cache: cache.count("u", 5, NOW),
    lambda cache: cache.processed({"u": [A, B]}) or None,
    lambda cache: cache.remember(PROFILE),
    lambda cache: cache.write_through([PROFILE], [DAY], {"u": [A]}),
    lambda cache: cache.keep_top_list("global", {}),
    lambda cache: cache.forget("u", NOW) or None,
]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_operation_survives_a_redis_that_raises_and_one_that_is_not_there(
    operation: Callable[[EngagementCache], object], redis: Fake
) -> None:
    redis.left = 0
    assert operation(EngagementCache("redis://cache")) is None
    assert operation(EngagementCache("")) is None
    assert redis.tried == 1


def test_after_a_failure_redis_is_left_alone_for_some_seconds(redis: Fake, clock: list[float]) -> None:
    cache, redis.left = EngagementCache("redis://cache"), 0
    assert [cache.profile("u"), cache.top_list("global")] == [None, None]
    assert redis.tried == 1
    clock[0] += RETRY_AFTER_SECONDS
    redis.left = 9
    assert cache.top_list("global") == {"v": 0}
    assert redis.deleted == [], "a failed read makes nothing stale"


def test_what_was_not_written_is_deleted_first_when_redis_is_back(redis: Fake, clock: list[float]) -> None:
    cache, redis.left = EngagementCache("redis://cache"), 0
    cache.write_through([PROFILE], [DAY])
    redis.left = 9
    cache.write_through([Profile("v", version=1)])
    assert redis.asked == [], "it rests"
    clock[0] += RETRY_AFTER_SECONDS
    cache.top_list("global")
    assert redis.deleted == ["active:u:2026-06-01", "streak:u", "streak:v"]
    assert redis.asked[3:] == [["GET", "leaderboard:global"]]
    cache.top_list("global")
    assert len(redis.deleted) == 3


def test_a_long_backlog_is_cleared_in_steps_and_what_is_done_is_done(redis: Fake, clock: list[float]) -> None:
    cache, redis.left = EngagementCache("redis://cache"), 0
    cache.write_through(Profile(f"u{number}", version=1) for number in range(DELETED_AT_ONCE * 2))
    for left in (1, 9):
        redis.left = left
        clock[0] += RETRY_AFTER_SECONDS
        assert (cache.top_list("global") is None) is (left == 1)
    assert len(redis.deleted) == len(set(redis.deleted)) == 2 * DELETED_AT_ONCE


def test_a_redis_that_we_cannot_use_is_no_redis(redis: Fake) -> None:
    cache, redis.left, redis.is_unsupported = EngagementCache("redis://cluster"), 0, True
    cache.write_through([PROFILE])
    assert not cache.is_configured
    assert [operation(cache) for operation in OPERATIONS] == [None] * len(OPERATIONS)
    assert redis.tried == 1


def test_a_profile_of_another_version_of_the_code_is_not_known(redis: Fake) -> None:
    assert EngagementCache("redis://cache").profile("u") is None


def test_a_write_through_is_one_round_trip_and_events_are_known_by_their_ids(redis: Fake) -> None:
    cache = EngagementCache("redis://cache")
    cache.write_through([PROFILE], [DAY], {"u": [A, B]})
    assert redis.tried == 1
    assert [each[0] for each in redis.asked] == ["EVAL", "SET", "SADD", "EXPIRE"]
    assert redis.asked[0][3:5] == ["streak:u", 3]
    assert cache.processed({"u": [A, B], "v": []}) == {"u": {A}}
