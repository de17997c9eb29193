"""The sorted sets are renewed while boards are read from them, and a midnight's crowd leaves them in slices."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.rank_sets import BUILDING, LAPSED_A_SCRIPT, LAPSING, READY, ROUND
from adapters.platform.redis import Redis
from rules.days import stamp
from rules.engagement.account_state import Profile
from rules.engagement.boards import ALL_REGIONS
from rules.engagement.streak import Streak
from tests.support.board_tables import BoardTables
from tests.support.engine import Engine
from tests.support.rank_pages import one_page, pages

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 6, 3, tzinfo=UTC)  # of those who were last active on June 1st
CROWD_SIZE = 3 * LAPSED_A_SCRIPT + 7


def profile(number: int, **more: Any) -> Profile:
    made = Profile(
        f"u{number:05}",
        version=3,
        streak=Streak(NOW.date(), 1 + number, 1 + number, 1 + number),
        total_points=10 * (1 + number),
        timezone="Etc/UTC",
        updated_at="x",
    )
    return replace(made, **more)


CROWD = [profile(number) for number in range(10)]


@pytest.fixture
def redis(redis_url: str) -> Redis:
    redis = Redis(redis_url)
    redis.call("FLUSHALL")
    return redis


@pytest.fixture
def cache(redis: Redis, redis_url: str) -> EngagementCache:
    return EngagementCache(redis_url)


def best(cache: EngagementCache, at: datetime = NOW, board: str = "points") -> list[tuple[str, int]] | None:
    return cache.ranks.top(board, "global", 3, at)


# ---- midnight


def test_a_midnights_crowd_leaves_in_slices(cache: EngagementCache, redis: Redis) -> None:
    alive = profile(0, streak=Streak(NOW.date() + timedelta(days=1), 1, 1, 1))
    crowd = [alive, *(profile(number) for number in range(1, CROWD_SIZE))]
    assert cache.ranks.rebuild(one_page(crowd), NOW)
    assert best(cache, MIDNIGHT - timedelta(seconds=1), "streaks") is not None
    for left in range(CROWD_SIZE - 1, 2 * LAPSED_A_SCRIPT, -LAPSED_A_SCRIPT):
        redis.call("DEL", LAPSING)  # as its time does
        assert best(cache, MIDNIGHT, "streaks") is None, "the snapshot tells it, without those that lapsed"
        redis.call("SET", LAPSING, "1")
        assert best(cache, MIDNIGHT, "streaks") is None, "the next one does not wait for a slice"
        held = {name: redis.call("ZCARD", f"{{board}}:{name}") for name in ("lapses", "streaks:global")}
        assert set(held.values()) == {left - LAPSED_A_SCRIPT + 1}
        assert len(best(cache, MIDNIGHT) or ()) == 3, "points know no midnight"
    redis.call("DEL", LAPSING)
    assert best(cache, MIDNIGHT, "streaks") is None
    assert best(cache, MIDNIGHT, "streaks") == [("u00000", 1)], "few are taken out at once"
    assert cache.ranks.count_above("streaks", "other", 0, MIDNIGHT) == 1


def test_a_schedule_takes_out_all_that_lapsed(cache: EngagementCache, redis: Redis) -> None:
    assert cache.ranks.rebuild(one_page(profile(number) for number in range(CROWD_SIZE)), NOW)
    assert not cache.ranks.lapse(MIDNIGHT, until=-math.inf), "the time is up"
    assert redis.call("ZCARD", "{board}:lapses") == CROWD_SIZE - LAPSED_A_SCRIPT
    assert cache.ranks.lapse(MIDNIGHT)
    assert best(cache, MIDNIGHT, "streaks") == []


def test_no_command_takes_long_however_many_lapse_at_once(cache: EngagementCache, redis: Redis) -> None:
    """All at once took 21 us each, 107 ms here; a slice takes 3. The limit is for a busy machine."""
    assert cache.ranks.rebuild(one_page(profile(number) for number in range(5_000)), NOW)
    redis.call("CONFIG", "SET", "slowlog-log-slower-than", 50_000)
    redis.call("SLOWLOG", "RESET")
    assert cache.ranks.lapse(MIDNIGHT)
    assert redis.call("SLOWLOG", "LEN") == 0
    assert redis.call("ZCARD", "{board}:streaks:global") == 0


def test_who_has_lapsed_long_ago_is_not_renewed(cache: EngagementCache, redis: Redis) -> None:
    cache.ranks.rebuild(one_page(CROWD), MIDNIGHT)
    assert redis.call("EXISTS", "{board}:lapses", "{board}:streaks:global") == 0
    assert best(cache, MIDNIGHT, "streaks") == []
    assert best(cache, MIDNIGHT) == [("u00009", 100), ("u00008", 90), ("u00007", 80)]


# ---- rounds


class Killed(Exception):
    """The process is gone."""


def test_a_round_goes_on_where_a_killed_one_was_and_the_old_sets_answer_meanwhile(
    cache: EngagementCache, redis: Redis
) -> None:
    assert cache.ranks.rebuild(one_page(CROWD), NOW)
    before, read = best(cache), list[str]()
    newer = [replace(each, version=4, total_points=each.total_points + 1000) for each in CROWD]

    def until_killed(after: str) -> Iterator[tuple[Sequence[Profile], str]]:
        for page, following in pages(newer, 2)(after):
            if page[0] is newer[6]:
                raise Killed
            yield page, following

    def noted(after: str) -> Iterator[tuple[Sequence[Profile], str]]:
        for page, following in pages(newer, 2)(after):
            read.extend(each.user_id for each in page)
            assert best(cache) is not None
            yield page, following

    with pytest.raises(Killed):
        cache.ranks.rebuild(until_killed, NOW)
    assert cache.ranks.is_under_way()
    assert cache.ranks.ready()
    assert best(cache) == [("u00005", 1060), ("u00004", 1050), ("u00003", 1040)] != before
    assert cache.ranks.count_above("points", "global", 0, NOW) == 10, "nobody is missing"
    redis.call("DEL", BUILDING)  # as its time does
    assert cache.ranks.rebuild(noted, NOW)
    assert read == [each.user_id for each in newer[6:]]
    assert best(cache) == [("u00009", 1100), ("u00008", 1090), ("u00007", 1080)]
    assert redis.call("EXISTS", ROUND, BUILDING) == 0
    assert cache.ranks.ready(3500)


def test_a_round_that_has_no_time_left_stops_and_the_next_run_goes_on(
    cache: EngagementCache, redis: Redis
) -> None:
    for run in range(4):
        assert not cache.ranks.rebuild(pages(CROWD, 3), NOW, until=-math.inf)
        reached = "sweep:0" if run == 3 else f"scan:{CROWD[3 * run + 2].user_id}"
        assert redis.call("HGET", ROUND, "reached") == reached
        assert best(cache) is None, "the first round's sets are not whole"
        redis.call("DEL", BUILDING)
    assert cache.ranks.rebuild(pages([], 3), NOW)
    assert best(cache) == [("u00009", 100), ("u00008", 90), ("u00007", 80)]


def test_sets_that_are_renewed_count_as_long_as_somebody_renews_them(
    cache: EngagementCache, redis: Redis
) -> None:
    assert cache.ranks.rebuild(one_page(CROWD), NOW)
    left: list[int] = []

    def slowly(after: str) -> Iterator[tuple[Sequence[Profile], str]]:
        for page, following in pages(CROWD, 2)(after):
            left.append(redis.call("TTL", READY))
            redis.call("EXPIRE", READY, 9)
            yield page, following

    assert cache.ranks.rebuild(slowly, NOW)
    assert min(left) > 800


def test_a_round_heals_what_the_sets_hold_wrongly(cache: EngagementCache, redis: Redis) -> None:
    assert cache.ranks.rebuild(one_page([*CROWD, profile(99)]), NOW)
    right = {
        key: redis.call("ZRANGE", key, 0, -1, "WITHSCORES") for key in redis.call("KEYS", "{board}:[sp]*:*")
    }
    redis.call("DEL", "{board}:points:other")
    redis.call("ZREM", "{board}:streaks:global", "u00003")
    late = profile(100)

    def meanwhile(after: str) -> Iterator[tuple[Sequence[Profile], str]]:
        yield CROWD, ""
        cache.write_through([late])

    assert cache.ranks.rebuild(meanwhile, NOW)
    assert best(cache) == [("u00100", 1010), ("u00009", 100), ("u00008", 90)], "u00099 is in no table"
    assert redis.call("HLEN", "{board}:state") == 11
    assert cache.ranks.rebuild(one_page([*CROWD, profile(99)]), NOW)
    assert {key: redis.call("ZRANGE", key, 0, -1, "WITHSCORES") for key in right} == right


def test_a_lost_marker_empties_the_sets_without_a_pause(cache: EngagementCache, redis: Redis) -> None:
    assert cache.ranks.rebuild(one_page([*CROWD, profile(99)]), NOW)
    redis.call("DEL", READY)

    def looked_at(after: str) -> Iterator[tuple[Sequence[Profile], str]]:
        assert redis.call("EXISTS", "{board}:state") == 0
        yield CROWD, ""

    assert cache.ranks.rebuild(looked_at, NOW)
    assert best(cache) == [("u00009", 100), ("u00008", 90), ("u00007", 80)]


# ---- the lists of the first 100


def test_the_lists_are_made_anew_each_minute_and_hold_no_streak_that_lapsed(
    cache: EngagementCache, redis: Redis, engine: Engine
) -> None:
    tables = BoardTables(engine.client("dynamodb"))
    builder, crowd = tables.builder(cache), [profile(number) for number in range(2 * LAPSED_A_SCRIPT)]
    tables.put(crowd)
    streaks = {f"leaderboard:{region}" for region in ALL_REGIONS}
    assert builder.refresh(NOW) == {"refreshed": len(streaks)}, "the sets are not whole"
    assert set(redis.call("KEYS", "leaderboard:*")) == streaks
    assert cache.top_list("global", "points") is None
    assert cache.ranks.rebuild(one_page(crowd), NOW)
    assert builder.refresh(NOW) == {"refreshed": 2 * len(streaks)}
    lists = redis.call("KEYS", "leaderboard:*")
    assert set(lists) == streaks | {f"{each}:points" for each in streaks}
    assert all(60 < redis.call("TTL", key) <= 75 for key in lists)
    made = cache.top_list("global", "streaks") or {}
    assert made["as_of"] == stamp(NOW)
    assert [row["user_id"] for row in made["entries"]] == [each.user_id for each in crowd[:-101:-1]]
    assert made["entries"] == (cache.top_list("other", "streaks") or {})["entries"]
    assert builder.refresh(MIDNIGHT) == {"refreshed": 2 * len(streaks)}
    assert cache.top_list("global", "streaks") == {"as_of": stamp(MIDNIGHT), "entries": []}
    assert len((cache.top_list("other", "points") or {})["entries"]) == 100
