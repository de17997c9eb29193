"""The limit of events a minute, with Redis and without it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ingest.web.caller import ApiError
from ingest.web.rate_limit import RateLimit

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


class Counter:
    """A cache that counts, or knows nothing."""

    def __init__(self, counts: bool) -> None:
        self.counts, self.total = counts, 0

    def count_events(self, _: str, events: int, now: datetime) -> int | None:
        self.total += events
        return self.total if self.counts else None


@pytest.mark.parametrize("with_redis", [True, False])
def test_over_the_limit_the_caller_is_told_when_to_come_again(with_redis: bool) -> None:
    cache: Any = Counter(with_redis)
    limit = RateLimit(cache, 100)
    limit.check("u", 100, NOW)
    with pytest.raises(ApiError) as refused:
        limit.check("u", 1, NOW + timedelta(seconds=20))
    assert refused.value.status == 429
    assert refused.value.headers == {"Retry-After": "40"}


def test_without_redis_users_and_minutes_are_counted_apart() -> None:
    cache: Any = Counter(counts=False)
    limit = RateLimit(cache, 100)
    for user, moment in (("u", NOW), ("v", NOW), ("u", NOW + timedelta(minutes=1))):
        limit.check(user, 100, moment)
