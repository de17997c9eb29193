"""The limits of a minute and of a day, with Redis and without it, however many processes count."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from ingest.web.caller import ApiError
from ingest.web.rate_limit import CHEAP_STEP, DAY, MINUTE, RateLimit

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


class Counter:
    """A cache that counts; or one that is away."""

    is_configured = True

    def __init__(self, is_away: bool = False) -> None:
        self.totals: dict[tuple[str, int], int] = {}
        self.is_away = is_away

    def count(self, name: str, events: int, now: datetime) -> int | None:
        key = (name, int(now.timestamp()) // 60)
        self.totals[key] = self.totals.get(key, 0) + events
        return None if self.is_away else self.totals[key]


class Shared:
    """The counters that all processes share; or a table that is down."""

    def __init__(self, is_down: bool = False) -> None:
        self.totals: dict[str, int] = {}
        self.writes, self.is_down = 0, is_down

    def add(self, name: str, count: int, now: datetime, kept_seconds: int) -> int:
        self.writes += 1
        if self.is_down:
            raise ClientError({"Error": {"Code": "ProvisionedThroughputExceededException"}}, "UpdateItem")
        self.totals[name] = self.totals.get(name, 0) + count
        return self.totals[name]


def limit_of(shared: Any, most: int, step: int = 1, redis: Any = None, window: int = MINUTE) -> RateLimit:
    return RateLimit(shared, "events", most, step=step, redis=redis, window=window)


def passes(limit: RateLimit, user: str, count: int = 1, at: datetime = NOW) -> bool:
    try:
        limit.check(user, count, at)
    except ApiError as refused:
        assert (refused.status, refused.code) == (429, "rate_limited")
        return False
    return True


@pytest.mark.parametrize("redis", ["none", "there", "away"])
@pytest.mark.parametrize("is_down", [True, False])
@pytest.mark.parametrize("step", [1, 20])
def test_over_the_limit_the_caller_is_told_when_to_come_again(redis: str, is_down: bool, step: int) -> None:
    limit = limit_of(Shared(is_down), 100, step, None if redis == "none" else Counter(redis == "away"))
    limit.check("told", 100, NOW)
    with pytest.raises(ApiError) as refused:
        limit.check("told", 1, NOW + timedelta(seconds=20))
    assert refused.value.status == 429
    assert refused.value.headers == {"Retry-After": "40"}
    assert passes(limit, "another", 100)
    assert passes(limit, "told", 100, NOW + timedelta(minutes=1))


def test_a_limit_of_a_day_ends_at_midnight() -> None:
    limit = limit_of(Shared(), 2, window=DAY)
    assert [passes(limit, "u", at=NOW + timedelta(hours=each)) for each in (0, 5, 11)] == [True, True, False]
    with pytest.raises(ApiError, match="over 2 events a day") as refused:
        limit.check("u", 1, NOW + timedelta(hours=11))
    assert refused.value.headers == {"Retry-After": "3600"}
    assert passes(limit, "u", at=NOW + timedelta(hours=12))


@pytest.mark.parametrize(("step", "is_down", "writes"), [(1, False, 101), (CHEAP_STEP, True, 6)])
def test_a_flood_of_refused_requests_writes_nothing_more(step: int, is_down: bool, writes: int) -> None:
    shared = Shared(is_down)
    limit = limit_of(shared, 100, step)
    assert sum(passes(limit, "flood") for _ in range(5_000)) == 100
    assert shared.writes <= writes


@pytest.mark.parametrize("step", [1, 20])
def test_with_redis_all_processes_together_let_exactly_the_limit_pass(step: int) -> None:
    shared, redis = Shared(), Counter()
    processes = [limit_of(shared, 100, step, redis) for _ in range(10)]
    assert sum(passes(processes[each % 10], "u") for each in range(1_000)) == 100
    assert shared.writes == 0


@given(
    st.integers(1, 300),
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 30)), max_size=200),
)
def test_nobody_is_refused_below_the_limit_and_each_process_lets_less_than_a_step_more_pass(
    most: int, step: int, requests: list[tuple[int, int]]
) -> None:
    shared = Shared()
    processes = [limit_of(shared, most, step) for _ in range(10)]
    asked = passed = 0
    for process, count in requests:
        asked += count
        if passes(processes[process], "u", count):
            passed += count
        else:
            assert asked > most
    used = len({process for process, _ in requests})
    size = max(1, min(step, most // 5))
    assert passed <= most + used * (size - 1)
    assert shared.writes <= asked / size
