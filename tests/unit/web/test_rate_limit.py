"""The limits of a minute, with Redis and without it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from ingest.engagement.events_api import EVENTS_BLOCK
from ingest.web.caller import ApiError
from ingest.web.rate_limit import NOTED_EACH, USERS_COUNTED_MAX, Limits, RateLimit, RequestLimit

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


class Counter:
    """A cache that counts, or knows nothing."""

    def __init__(self, counts: bool) -> None:
        self.counts, self.total = counts, 0

    def count_events(self, _: str, events: int, now: datetime) -> int | None:
        self.total += events
        return self.total if self.counts else None


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


def limit_of(shared: Any, per_minute: int, block: int = 1, with_redis: bool = False) -> RateLimit:
    cache: Any = Counter(with_redis)
    return Limits(cache, shared).of("events", per_minute, block)


def passes(limit: RateLimit, user: str, count: int, at: datetime = NOW) -> bool:
    try:
        limit.check(user, count, at)
    except ApiError as refused:
        assert (refused.status, refused.code) == (429, "rate_limited")
        return False
    return True


@pytest.mark.parametrize("with_redis", [True, False])
@pytest.mark.parametrize("shared", [None, Shared(), Shared(is_down=True)])
def test_over_the_limit_the_caller_is_told_when_to_come_again(with_redis: bool, shared: Any) -> None:
    limit = limit_of(shared, 100, 20, with_redis)
    limit.check("u", 100, NOW)
    with pytest.raises(ApiError) as refused:
        limit.check("u", 1, NOW + timedelta(seconds=20))
    assert refused.value.status == 429
    assert refused.value.headers == {"Retry-After": "40"}


@pytest.mark.parametrize("shared", [None, Shared(), Shared(is_down=True)])
def test_users_and_minutes_are_counted_apart(shared: Any) -> None:
    limit = limit_of(shared, 100, 20)
    for user, moment in (("u2", NOW), ("v2", NOW), ("u2", NOW + timedelta(minutes=1))):
        assert passes(limit, user, 100, moment)


def test_twenty_events_a_user_and_minute_cost_one_write() -> None:
    shared = Shared()
    limit = limit_of(shared, 1200, EVENTS_BLOCK)
    for user in range(50):
        for minute in range(3):
            for _ in range(20):
                assert passes(limit, f"u{user}", 1, NOW + timedelta(minutes=minute))
    assert shared.writes / (50 * 3 * 20) <= 0.05


def test_a_flood_of_refused_requests_writes_nothing_more() -> None:
    shared = Shared()
    limit = limit_of(shared, 20, 1)
    assert sum(passes(limit, "u", 1) for _ in range(5_000)) == 20
    assert shared.writes == 21


@given(
    st.integers(1, 300),
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 30)), max_size=200),
)
def test_processes_together_let_at_most_a_fifth_more_pass(
    per_minute: int, block: int, requests: list[tuple[int, int]]
) -> None:
    shared = Shared()
    processes = [limit_of(shared, per_minute, block) for _ in range(10)]
    passed = sum(count for process, count in requests if passes(processes[process], "u", count))
    assert passed <= 1.2 * per_minute


@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 300))
def test_one_process_alone_lets_the_whole_limit_pass(per_minute: int, block: int, wanted: int) -> None:
    limit = limit_of(Shared(), per_minute, block)
    passed = sum(passes(limit, "u", 1) for _ in range(wanted))
    assert min(per_minute, wanted) <= passed <= 1.2 * per_minute


def asks(limit: RequestLimit, who: str = "u", at: datetime = NOW) -> bool:
    try:
        limit.check(who, at)
    except ApiError as refused:
        assert (refused.status, refused.code) == (429, "rate_limited")
        assert refused.headers["Retry-After"] == str(60 - at.second)
        return False
    return True


@given(
    st.integers(100, 300), st.lists(st.tuples(st.integers(0, 9), st.integers(1, 90)), min_size=1, max_size=60)
)
def test_a_read_costs_a_twentieth_of_a_unit_and_each_process_lets_at_most_19_more_pass(
    most: int, bursts: list[tuple[int, int]]
) -> None:
    shared: Any = Shared()
    processes = [RequestLimit(lambda: shared, "reads", most) for _ in range(10)]
    passed = refused = 0
    for process, count in bursts:
        for _ in range(count):
            if asks(processes[process]):
                passed += 1
            else:
                refused += 1
    used = len({process for process, _ in bursts})
    assert passed <= most + used * (NOTED_EACH - 1)
    assert not refused or passed > most - NOTED_EACH, "nobody is refused below the limit"
    assert shared.writes <= (passed + refused) / NOTED_EACH


def test_who_is_over_the_limit_costs_nothing_more_until_the_next_minute() -> None:
    shared: Any = Shared()
    limit = RequestLimit(lambda: shared, "reads", 100)
    assert sum(asks(limit, at=NOW + timedelta(milliseconds=each)) for each in range(5_000)) == 119
    assert shared.writes == 6
    assert asks(limit, "another")
    assert asks(limit, at=NOW + timedelta(minutes=1))


def test_a_process_counts_alone_while_the_table_is_away() -> None:
    down: Any = Shared(is_down=True)
    limit = RequestLimit(lambda: down, "reads", 100)
    assert sum(asks(limit) for _ in range(1_000)) == 119


def test_a_process_remembers_so_many_and_forgets_who_has_not_asked_for_longest() -> None:
    shared: Any = Shared()
    limit = RequestLimit(lambda: shared, "requests", 100)
    for _ in range(200):
        asks(limit, "flood")
    for each in range(3 * USERS_COUNTED_MAX):
        assert asks(limit, f"stranger {each}")
        if each % 100 == 0:
            assert not asks(limit, "flood")
    assert len(limit._asked) <= USERS_COUNTED_MAX
