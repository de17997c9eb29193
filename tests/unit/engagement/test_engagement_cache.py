"""The engagement cache answers from Redis, and goes on without it."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.engagement import rank_sets
from adapters.engagement.account_items import day_attributes, profile_attributes
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.rank_sets import (
    BEGIN,
    BUILDING,
    FINISH,
    PLACE,
    READY,
    RECOVERED_AT_ONCE,
    RENEW,
    RETRY_AFTER_SECONDS,
    ROUND,
    SWEEP,
)
from adapters.platform.redis import RedisError, RedisUnsupported
from rules.engagement.account_state import Day, Profile
from rules.engagement.streak import Streak
from tests.support.rank_pages import one_page

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
    monkeypatch.setattr(rank_sets, "time", SimpleNamespace(monotonic=lambda: moment[0]))
    yield moment


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> Fake:
    fake = Fake()
    monkeypatch.setattr(rank_sets, "Redis", lambda url: fake)
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
        cache.top_list("global", "streaks"),
        cache.count_events("u", 5, NOW),
        cache.ranks.top("streaks", "global", 10, NOW),
        cache.ranks.count_above("streaks", "global", 3, NOW),
        cache.processed({"u": [A, B]}) or None,
        cache.ranks.ready() or None,
    ]


def write_everything(cache: EngagementCache) -> None:
    cache.remember(PROFILE)
    cache.write_through([PROFILE], [DAY], {"u": [A]})
    cache.keep_top_list("global", "streaks", {})
    cache.ranks.rebuild(one_page([PROFILE]), NOW)


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
    writes: list[Callable[[EngagementCache], object]] = [
        lambda each: each.remember(PROFILE),
        lambda each: each.write_through([PROFILE], [DAY], {"u": [A]}),
        lambda each: each.keep_top_list("global", "streaks", {}),
        lambda each: each.ranks.rebuild(one_page([PROFILE]), NOW),
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
    assert deleted(redis)[:3] == [READY, BUILDING, ROUND], (
        "ranks first; those too that somebody is just building"
    )
    assert set(deleted(redis)[3:]) == {"streak:u", "streak:v", "active:u:2026-06-01"}
    assert all(len(each) == 2 for each in redis.asked), "one command a key"
    assert redis.asked[6:] == [["GET", "streak:u"]]
    cache.profile("u")
    assert redis.asked[7:] == [["GET", "streak:u"]]


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
    assert deleted(redis) == [READY, BUILDING, ROUND, "streak:u"]


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
    assert deleted(redis) == [READY, BUILDING, ROUND, "streak:u"]


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
    assert sorted(deleted(redis)) == sorted(
        [READY, BUILDING, ROUND, "streak:u", "streak:v", "active:u:2026-06-01"]
    )
    redis.asked.clear()
    clock[0] += RETRY_AFTER_SECONDS
    redis.refused = set()
    assert cache.profile("u") == PROFILE
    assert deleted(redis) == [READY, BUILDING, ROUND, "streak:u"]


def test_ranks_that_may_be_old_are_not_told(cache: EngagementCache, redis: Fake, clock: list[float]) -> None:
    redis.told |= {"ZRANGE": [], "ZCOUNT": 4, "EXISTS": 1, "TTL": 9}
    redis.down = True
    cache.write_through([PROFILE])
    redis.down, redis.refused = False, {READY}
    clock[0] += RETRY_AFTER_SECONDS
    assert cache.ranks.top("streaks", "global", 10, NOW) is None
    assert cache.ranks.count_above("streaks", "global", 3, NOW) is None
    assert not cache.ranks.ready()


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
    assert len(set(deleted(redis)) - {READY, BUILDING, ROUND}) == RECOVERED_AT_ONCE + 3
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
    assert read_everything(cache) == [None] * 8
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
    redis.told |= {"GET": "{}", "INCRBY": 6, "TTL": 7, "SMISMEMBER": [1, 0]}
    assert cache.top_list("global", "streaks") == {}
    assert cache.count_events("u", 5, NOW) == 6
    assert cache.ranks.ready(6)
    assert not cache.ranks.ready(7)
    assert cache.processed({"u": [A, B], "v": []}) == {"u": {A}}


def test_ranks_are_answered_only_while_they_are_whole(cache: EngagementCache, redis: Fake) -> None:
    redis.told |= {"ZRANGE": ["a", "-7", "b", "-3"], "ZCOUNT": 4, "EXISTS": 1}
    assert cache.ranks.top("streaks", "global", 10, NOW) == [("a", 7), ("b", 3)]
    assert cache.ranks.count_above("streaks", "global", 3, NOW) == 4
    redis.told["EXISTS"] = 0
    assert cache.ranks.top("streaks", "global", 10, NOW) is None
    assert cache.ranks.count_above("streaks", "global", 3, NOW) is None


def test_a_write_through_is_one_round_trip(cache: EngagementCache, redis: Fake) -> None:
    cache.write_through([PROFILE], [DAY], {"u": [A, B]})
    assert redis.tried == 1
    assert [each[0] for each in redis.asked] == ["EVAL", "EVAL", "SET", "SADD", "EXPIRE"]
    assert redis.asked[0][3:5] == ["streak:u", 3]


REBUILT = {BEGIN: "scan:", PLACE: 1, RENEW: 1, SWEEP: "0", FINISH: 1}


def test_ranks_are_rebuilt_by_one_process_at_a_time(cache: EngagementCache, redis: Fake) -> None:
    assert not cache.ranks.rebuild(one_page([PROFILE]), NOW)
    assert [each[1] for each in redis.asked] == [BEGIN], "somebody has the lock"
    redis.asked.clear()
    redis.told |= REBUILT
    assert cache.ranks.rebuild(one_page([PROFILE]), NOW)
    begin, place, _, hold, sweep, _, finish = redis.asked
    token = begin[-3]
    assert (begin[3:6], begin[-2]) == ([BUILDING, READY, ROUND], 60)
    assert "u" in place
    assert hold[1:8] == [RENEW, 3, BUILDING, READY, ROUND, token, "sweep:0"]
    assert sweep[1] == SWEEP
    assert finish == ["EVAL", FINISH, 3, BUILDING, READY, ROUND, token, 3600]


@pytest.mark.parametrize(("script", "steps"), [(RENEW, 2), (SWEEP, 4), (FINISH, 6)])
def test_whoever_has_lost_the_lock_stops(
    cache: EngagementCache, redis: Fake, script: str, steps: int
) -> None:
    redis.told |= REBUILT | {script: 0 if script != SWEEP else None}
    assert not cache.ranks.rebuild(one_page([PROFILE]), NOW)
    assert len(redis.asked) == steps + 1


def test_a_rebuild_that_breaks_off_does_not_say_that_it_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Breaking(Fake):
        def pipeline(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
            self.down = self.tried == 2
            return super().pipeline(commands)

    fake = Breaking()
    fake.told |= REBUILT
    monkeypatch.setattr(rank_sets, "Redis", lambda url: fake)
    crowd = (Profile(str(number), version=1) for number in range(1200))
    moments = iter(range(0, 10**6, 100))
    monkeypatch.setattr(rank_sets, "time", SimpleNamespace(monotonic=lambda: float(next(moments))))
    assert not EngagementCache("redis://cache").ranks.rebuild(one_page(crowd), NOW)
    assert fake.tried == 3
    assert not any(each[1] == FINISH for each in fake.asked)
