"""The engagement cache answers from Redis, and goes on without it."""

# Long: every test breaks or watches the one fake Redis at the top.

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.engagement import engagement_cache as cache_module
from adapters.engagement.account_items import day_attributes, profile_attributes
from adapters.engagement.engagement_cache import READY_SECONDS, RETRY_AFTER_SECONDS, EngagementCache
from adapters.platform.redis import RedisError
from rules.engagement.account_state import Day, Profile
from rules.engagement.streaks import Streak

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


class Fake:
    """A Redis that is there or is not, and notes what it is asked."""

    def __init__(self) -> None:
        self.down = False
        self.asked: list[list[Any]] = []
        self.tried = 0
        self.answers: dict[str, Any] = {}

    def call(self, *command: Any) -> Any:
        return self.pipeline([command])[0]

    def pipeline(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        self.tried += 1
        if self.down:
            raise RedisError("gone")
        self.asked += [list(each) for each in commands]
        return [self.answers.get(str(each[0])) for each in commands]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    moment = [1000.0]
    monkeypatch.setattr(cache_module, "time", SimpleNamespace(monotonic=lambda: moment[0]))
    yield moment


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> Fake:
    fake = Fake()
    monkeypatch.setattr(cache_module, "Redis", lambda url: fake)
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
        cache.top_list("global", "streaks", 10),
        cache.count_events("u", 5, NOW),
        cache.top("streaks", "global", 10, NOW),
        cache.count_above("streaks", "global", 3, NOW),
        cache.processed({"u": ["a", "b"]}) or None,
        cache.ranks_ready() or None,
    ]


def write_everything(cache: EngagementCache) -> None:
    cache.remember(PROFILE)
    cache.write_through([PROFILE], [DAY], {"u": ["a"]})
    cache.keep_top_list("global", "streaks", 10, [])
    cache.rebuild_ranks([PROFILE])


def test_without_a_redis_every_read_knows_nothing_and_every_write_is_dropped() -> None:
    cache = EngagementCache("")
    assert not cache.is_configured
    assert read_everything(cache) == [None] * 8
    write_everything(cache)


def test_a_redis_that_raises_is_like_none(cache: EngagementCache, redis: Fake) -> None:
    redis.down = True
    assert cache.is_configured
    assert read_everything(cache) == [None] * 8
    write_everything(cache)
    assert redis.asked == []


def test_each_operation_survives_the_redis_that_raises_on_it(redis: Fake, clock: list[float]) -> None:
    redis.down = True
    for number in range(8):
        assert read_everything(EngagementCache("redis://cache"))[number] is None
    writes: list[Callable[[EngagementCache], None]] = [
        lambda each: each.remember(PROFILE),
        lambda each: each.write_through([PROFILE], [DAY], {"u": ["a"]}),
        lambda each: each.keep_top_list("global", "streaks", 10, []),
        lambda each: each.rebuild_ranks([PROFILE]),
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


def test_what_was_not_written_is_deleted_first_when_redis_is_back(
    cache: EngagementCache, redis: Fake, clock: list[float]
) -> None:
    redis.down = True
    cache.write_through([PROFILE], [DAY])
    cache.write_through([Profile("v", version=1)])
    redis.down = False
    clock[0] += RETRY_AFTER_SECONDS
    cache.profile("u")
    first, second = redis.asked
    assert first[:2] == ["DEL", "{board}:ready"]
    assert set(first[2:]) == {"streak:u", "streak:v", "active:u:2026-06-01"}
    assert second == ["GET", "streak:u"]
    cache.profile("u")
    assert redis.asked[2:] == [["GET", "streak:u"]]


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
    assert redis.asked[0] == ["DEL", "{board}:ready", "streak:u"]


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
    assert redis.asked[0] == ["DEL", "{board}:ready", "streak:u"]


def test_a_failed_read_makes_nothing_stale(cache: EngagementCache, redis: Fake, clock: list[float]) -> None:
    redis.down = True
    read_everything(cache)
    redis.down = False
    clock[0] += RETRY_AFTER_SECONDS
    cache.profile("u")
    assert redis.asked == [["GET", "streak:u"]]


def test_what_is_cached_is_answered(cache: EngagementCache, redis: Fake) -> None:
    redis.answers["GET"] = json.dumps(profile_attributes(PROFILE, 1))
    assert cache.profile("u") == PROFILE
    redis.answers["GET"] = json.dumps(day_attributes(DAY))
    assert cache.day("u", DAY.activity_date) == day_attributes(DAY)
    redis.answers |= {"GET": "[]", "INCRBY": 6, "EXISTS": 1, "SMISMEMBER": [1, 0]}
    assert cache.top_list("global", "streaks", 10) == []
    assert cache.count_events("u", 5, NOW) == 6
    assert cache.ranks_ready()
    assert cache.processed({"u": ["a", "b"], "v": []}) == {"u": {"a"}}


def test_ranks_are_answered_only_while_they_are_whole(cache: EngagementCache, redis: Fake) -> None:
    redis.answers |= {"ZRANGE": ["a", "-7", "b", "-3"], "ZCOUNT": 4, "EXISTS": 1}
    assert cache.top("streaks", "global", 10, NOW) == [("a", 7), ("b", 3)]
    assert cache.count_above("streaks", "global", 3, NOW) == 4
    redis.answers["EXISTS"] = 0
    assert cache.top("streaks", "global", 10, NOW) is None
    assert cache.count_above("streaks", "global", 3, NOW) is None


def test_a_write_through_is_one_round_trip(cache: EngagementCache, redis: Fake) -> None:
    cache.write_through([PROFILE], [DAY], {"u": ["a", "b"]})
    assert redis.tried == 1
    assert [each[0] for each in redis.asked] == ["EVAL", "EVAL", "SET", "SADD", "EXPIRE"]
    assert redis.asked[0][3:5] == ["streak:u", 3]


def test_ranks_are_rebuilt_by_one_process_at_a_time(cache: EngagementCache, redis: Fake) -> None:
    cache.rebuild_ranks([PROFILE])
    assert [each[:2] for each in redis.asked] == [["SET", "{board}:building"]]
    redis.answers["SET"] = "OK"
    cache.rebuild_ranks([PROFILE])
    assert redis.asked[-2:] == [
        ["SET", "{board}:ready", "1", "EX", READY_SECONDS],
        ["DEL", "{board}:building"],
    ]
    assert redis.asked[2][:2] == ["DEL", "{board}:ready"]


def test_a_rebuild_that_breaks_off_does_not_say_that_it_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Breaking(Fake):
        def pipeline(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
            self.down = self.tried == 1
            return super().pipeline(commands)

    fake = Breaking()
    fake.answers["SET"] = "OK"
    monkeypatch.setattr(cache_module, "Redis", lambda url: fake)
    crowd = (Profile(str(number), version=1) for number in range(1200))
    moments = iter(range(0, 10**6, 100))
    monkeypatch.setattr(cache_module, "time", SimpleNamespace(monotonic=lambda: float(next(moments))))
    EngagementCache("redis://cache").rebuild_ranks(crowd)
    assert fake.tried == 2
    assert not any(each[:2] == ["SET", "{board}:ready"] for each in fake.asked)
