"""What Redis holds, and for how long it is busy, does not grow with the years or with a midnight's crowd."""

from datetime import UTC, datetime, timedelta

from adapters.engagement.engagement_cache import EngagementCache
from adapters.platform.redis import Redis
from rules.days import stamp
from tests.support.redis_time import pass_time

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
EVENTS_A_DAY = 6


def event_ids(begin: datetime) -> list[str]:
    times = (begin + number * timedelta(hours=24 / EVENTS_A_DAY) for number in range(EVENTS_A_DAY))
    return [f"{stamp(each)}#{each:%j}" for each in times]


def test_a_year_of_a_steady_user_leaves_no_more_event_ids_than_two_days(redis_url: str) -> None:
    redis, cache = Redis(redis_url), EngagementCache(redis_url)
    redis.call("FLUSHALL")
    held, day = [], timedelta(days=1)
    for number in range(365):
        ids = event_ids(NOW + number * day)
        cache.write_through([], [], {"u": ids})
        assert cache.processed({"u": [*ids, "2026-06-01T00:00:00.000000Z#no"]}) == {"u": set(ids)}
        held.append(sum(redis.call("SCARD", key) for key in redis.call("KEYS", "processed:*")))
        pass_time(redis, day - timedelta(seconds=60))
    assert max(held) <= 2 * EVENTS_A_DAY
    assert cache.processed({"u": event_ids(NOW)}) == {"u": set()}


def test_who_is_forgotten_leaves_no_event_ids_of_the_last_day(redis_url: str) -> None:
    redis, cache = Redis(redis_url), EngagementCache(redis_url)
    redis.call("FLUSHALL")
    ids = {
        user: [f"{stamp(NOW - minutes * timedelta(minutes=1))}#e" for minutes in range(0, 1441, 7)]
        for user in ("u", "v")
    }
    cache.write_through([], [], ids)
    assert cache.forget("u", NOW)
    assert redis.call("KEYS", "processed:u:*") == []
    assert cache.processed(ids) == {"u": set(), "v": set(ids["v"])}
