"""The engagement cache answers from Redis, and goes on without it."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.engagement import engagement_cache
from adapters.engagement.account_items import day_attributes, profile_attributes
from adapters.engagement.engagement_cache import RECOVERED_AT_ONCE, RETRY_AFTER_SECONDS, EngagementCache
from adapters.platform.redis import RedisError, RedisUnsupported
from rules.engagement.account_state import Day, Profile
from rules.engagement.streak import Streak

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
A, B = "2026-06-01T11:50:00.000000Z#a", "2026-06-01T11:59:00.000000Z#b"


class Fake:
    """A Redis that is there or is not, and notes what it is asked. refused: keys that it deletes for nobody."""

    def __init__(self) -> None:
        self.down = False
        self.refused: set[str] = set()
        self.asked: list[list[Any]] = []
        self.tried = 0
        self.told: dict[str, Any] = {}

    def answers(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        return [
            RedisError("NOPERM") if command[:1] == ["DEL"] and command[1] in self.refused else answer
            for command, answer in zip(commands, self.pipeline(commands), strict=True)
        ]

    def pipeline(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        self.tried += 1
        if self.down:
            raise RedisError("gone")
        self.asked += [list(each) for each in commands]
        return [self.told.get(str(each[each[1] in self.told])) for each in commands]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    moment = [1000.0]
    monkeypatch.setattr(engagement_cache, "time", SimpleNamespace(monotonic=lambda: moment[0]))
    yield moment


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> Fake:
    fake = Fake()
    monkeypatch.setattr(engagement_cache, "Redis", lambda url: fake)
    return fake


@pytest.fixture
def cache(redis: Fake, clock: list[float]) -> EngagementCache:
    return EngagementCache("redis://cache")


PROFILE = Profile("u", version=3, streak=Streak(date(2026, 6, 1), 4, 9, 30), total_points=50)
DAY = Day("u", date(2026, 6, 1), "e", 2, 20, {"CHECK_IN": 5}, "h", "c")


def read_everything(cache: EngagementCache) -> list[Any]:
    return [
        cache.profile("u"),
        cache.day("u", date(2026, 6, 1)),
        cache.top_list("global"),
        cache.count_events("u", 5, NOW),
        cache.processed({"u": [A, B]}) or None,
    ]


def write_everything(cache: EngagementCache) -> None:
    cache.remember(PROFILE)
    cache.write_through([PROFILE], [DAY], {"u": [A]})
    cache.keep_top_list("global", {})


def test_without_a_redis_every_read_knows_nothing_and_every_write_is_dropped() -> None:
    cache = EngagementCache("")
    assert not cache.is_configured
    assert read_everything(cache) == [None] * 5
    write_everything(cache)


def test_a_redis_that_raises_is_like_none(cache: EngagementCache, redis: Fake) -> None:
    redis.down = True
    assert cache.is_configured
    assert read_everything(cache) == [None] * 5
    write_everything(cache)
    assert redis.asked == []


def test_each_operation_survives_the_redis_that_raises_on_it(redis: Fake, clock: list[float]) -> None:
    redis.down = True
    for number in range(5):
        assert read_everything(EngagementCache("redis://cache"))[number] is None
    writes: list[Callable[[EngagementCache], object]] = [
        lambda each: each.remember(PROFILE),
        lambda each: each.write_through([PROFILE], [DAY], {"u": [A]}),
        lambda each: each.keep_top_list("global", {}),
    ]
    for write in writes:
        write(EngagementCache("redis://cache"))


def test_after_a_failure_redis_is_left_alone_for_some_seconds(
    cache: EngagementCache, redis: Fake, clock: list[float]
) -> None:
    redis.down = True
    cache.profile("u")
    cache.profile("u")
    assert redis.tried == 1
    clock[0] += RETRY_AFTER_SECONDS
    cache.profile("u")
    assert redis.tried == 2


def deleted(redis: Fake) -> list[str]:
    return [each[1] for each in redis.asked if each[0] == "DEL"]


def test_what_was_not_written_is_deleted_first_when_redis_is_back(
    cache: EngagementCache, redis: Fake, clock: list[float]
) -> None:
    redis.down = True
    cache.write_through([PROFILE], [DAY])
    cache.write_through([Profile("v", version=1)])
    redis.down = False
    clock[0] += RETRY_AFTER_SECONDS
    cache.profile("u")
    assert set(deleted(redis)) == {"streak:u", "streak:v", "active:u:2026-06-01"}
    assert all(len(each) == 2 for each in redis.asked), "one command a key"
    assert redis.asked[3:] == [["GET", "streak:u"]]
    cache.profile("u")
    assert redis.asked[4:] == [["GET", "streak:u"]]


def test_a_write_dropped_while_redis_rests_is_remembered_too(
    cache: EngagementCache, redis: Fake, clock: list[float]
) -> None:
    redis.down = True
    cache.profile("u")
    redis.down = False
    cache.write_through([PROFILE])
    assert redis.asked == []
    clock[0] += RETRY_AFTER_SECONDS
    cache.profile("u")
    assert deleted(redis) == ["streak:u"]


def test_stale_keys_stay_remembered_until_they_are_deleted(
    cache: EngagementCache, redis: Fake, clock: list[float]
) -> None:
    redis.down = True
    cache.write_through([PROFILE])
    for _attempt in range(3):
        clock[0] += RETRY_AFTER_SECONDS
        assert cache.profile("u") is None
    redis.down = False
    clock[0] += RETRY_AFTER_SECONDS
    cache.profile("v")
    assert deleted(redis) == ["streak:u"]


def test_a_deletion_that_is_refused_holds_up_no_other(
    cache: EngagementCache, redis: Fake, clock: list[float]
) -> None:
    redis.down = True
    cache.write_through([PROFILE, Profile("v", version=1)], [DAY])
    redis.down, redis.refused = False, {"streak:u"}
    redis.told["GET"] = json.dumps(profile_attributes(PROFILE, 1))
    clock[0] += RETRY_AFTER_SECONDS
    assert cache.profile("w") == PROFILE, "others are served"
    assert cache.profile("u") is None, "what may be old is not read"
    assert sorted(deleted(redis)) == ["active:u:2026-06-01", "streak:u", "streak:v"]
    redis.asked.clear()
    clock[0] += RETRY_AFTER_SECONDS
    redis.refused = set()
    assert cache.profile("u") == PROFILE
    assert deleted(redis) == ["streak:u"]


def test_a_long_backlog_is_cleared_in_steps_and_what_is_done_is_done(
    cache: EngagementCache, redis: Fake, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.down = True
    cache.write_through(Profile(f"u{number}", version=1) for number in range(RECOVERED_AT_ONCE * 2))
    redis.down = False
    answers, left = redis.answers, [1]

    def breaking(commands: Sequence[Sequence[Any]]) -> list[Any]:
        if not left:
            raise RedisError("gone again")
        left.pop()
        return answers(commands)

    monkeypatch.setattr(redis, "answers", breaking)
    clock[0] += RETRY_AFTER_SECONDS
    assert cache.profile("u1") is None
    assert len(deleted(redis)) == RECOVERED_AT_ONCE
    redis.asked.clear()
    monkeypatch.setattr(redis, "answers", answers)
    clock[0] += RETRY_AFTER_SECONDS
    cache.profile("u1")
    assert len(deleted(redis)) == RECOVERED_AT_ONCE
    assert not cache._link._dropped


def test_a_redis_that_we_cannot_use_is_no_redis(redis: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = EngagementCache("redis://cluster")
    assert cache.is_configured

    def elsewhere(commands: Sequence[Sequence[Any]]) -> list[Any]:
        redis.tried += 1
        raise RedisUnsupported("MOVED")

    monkeypatch.setattr(redis, "pipeline", elsewhere)
    cache.write_through([PROFILE])
    assert not cache.is_configured
    assert read_everything(cache) == [None] * 5
    write_everything(cache)
    assert redis.tried == 1
    assert not cache._link._dropped, "nothing waits for what never comes"


def test_a_failed_read_makes_nothing_stale(cache: EngagementCache, redis: Fake, clock: list[float]) -> None:
    redis.down = True
    read_everything(cache)
    redis.down = False
    clock[0] += RETRY_AFTER_SECONDS
    cache.profile("u")
    assert redis.asked == [["GET", "streak:u"]]


def test_what_is_cached_is_answered(cache: EngagementCache, redis: Fake) -> None:
    redis.told["GET"] = json.dumps(profile_attributes(PROFILE, 1))
    assert cache.profile("u") == PROFILE
    redis.told["GET"] = json.dumps(day_attributes(DAY))
    assert cache.day("u", DAY.activity_date) == day_attributes(DAY)
    redis.told |= {"GET": "{}", "INCRBY": 6, "SMISMEMBER": [1, 0]}
    assert cache.top_list("global") == {}
    assert cache.count_events("u", 5, NOW) == 6
    assert cache.processed({"u": [A, B], "v": []}) == {"u": {A}}


def test_a_write_through_is_one_round_trip(cache: EngagementCache, redis: Fake) -> None:
    cache.write_through([PROFILE], [DAY], {"u": [A, B]})
    assert redis.tried == 1
    assert [each[0] for each in redis.asked] == ["EVAL", "SET", "SADD", "EXPIRE"]
    assert redis.asked[0][3:5] == ["streak:u", 3]
