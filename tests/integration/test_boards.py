"""Leaderboards: Redis and the tables give the answers of sorting everybody."""

import random
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.engagement.account_items import profile_attributes
from adapters.engagement.engagement_cache import EngagementCache
from adapters.platform.redis import Redis
from processors import ranks
from rules.days import region_of
from rules.engagement.account_state import Profile
from rules.engagement.events import Event
from rules.engagement.ledger import Head
from rules.engagement.streak import Streak
from rules.smoke_names import smoke_name
from tests.support.board_tables import BoardTables
from tests.support.engine import Engine
from tests.support.rank_pages import one_page

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
ZONES = ("Europe/Berlin", "America/Lima", "+02:00")


def event(user: str, **more: Any) -> Event:
    made = Event(
        user_id=user,
        event_id="2026-03-01T00:00:00.000000Z#e",
        idempotency_key="k",
        event_type="CONTRIBUTION",
        occurred_at="2026-03-01T00:00:00Z",
        activity_date=date(2026, 3, 1),
        zone="UTC",
        points_awarded=10,
        source="test",
        created_at="2026-03-01T00:00:00.000000Z",
    )
    return replace(made, **more)


def profile(user: str, chance: random.Random) -> Profile:
    length = chance.randrange(1, 6)
    last = NOW.date() - timedelta(days=chance.randrange(0, 4))
    return Profile(
        user_id=user,
        version=chance.randrange(1, 5),
        head=Head("2026-03-01T00:00:00.000000Z", 1, 5),
        total_points=chance.randrange(0, 5) * 10,
        streak=Streak(last, length, length + 1, length + 3),
        timezone=chance.choice(ZONES),
        updated_at=NOW.isoformat(),
    )


def expected(crowd: list[Profile], board: str, region: str) -> list[tuple[str, int]]:
    """A board by sorting everybody."""
    rows = []
    for each in crowd:
        attributes = profile_attributes(each, 2)
        alive = attributes["lapses_at"] > NOW.timestamp()
        score = each.total_points if board == "points" else attributes["current_streak"] * alive
        if score and region in ("global", region_of(each.zone)):
            rows.append((each.user_id, score))
    return sorted(rows, key=lambda row: (-row[1], row[0]))


@pytest.mark.parametrize("seed", range(5))
def test_redis_snapshot_index_and_sorting_agree(engine: Engine, redis_url: str, seed: int) -> None:
    Redis(redis_url).call("FLUSHALL")
    chance = random.Random(seed)
    crowd = [profile(f"u{number:02}", chance) for number in range(40)]
    tables = BoardTables(engine.client("dynamodb"))
    tables.put(crowd)
    cache = EngagementCache(redis_url)
    assert cache.ranks.top("streaks", "global", 5, NOW) is None, "not before the sets are whole"
    assert tables.builder(cache).build(NOW) == {"counted": 40, "rebuilt": True}
    snapshots, index = tables.snapshots(), tables.index()
    for board in ("streaks", "points"):
        for region in ("global", "europe", "america", "other", "asia"):
            rows = expected(crowd, board, region)
            if board == "streaks":
                assert index.top(region, NOW) == index.tops(NOW)[region] == rows
            else:
                as_of, found = snapshots.top(region, NOW)  # type: ignore[misc]
                assert as_of == NOW
                assert [(each.user_id, each.score) for each in found] == rows
            for limit in (1, 3, 100):
                assert cache.ranks.top(board, region, limit, NOW) == rows[:limit]
            for score in range(60):
                above = sum(each > score for _, each in rows)
                assert cache.ranks.count_above(board, region, score, NOW) == above
                assert snapshots.count_above(board, region, score, NOW) == (NOW, above)
                assert board == "points" or index.count_above(region, score, NOW) == above


def test_an_older_version_never_replaces_a_newer_one(redis_url: str) -> None:
    Redis(redis_url).call("FLUSHALL")
    cache = EngagementCache(redis_url)
    old = profile("u", random.Random(1))
    new = replace(old, version=old.version + 1, total_points=990, timezone="Asia/Tokyo")
    cache.write_through([new])
    cache.write_through([old])
    cache.remember(old)
    assert cache.profile("u") == new
    cache.ranks.rebuild(one_page([old]), NOW)
    cache.write_through([new])
    assert cache.ranks.top("points", "asia", 5, NOW) == [("u", 990)]
    assert cache.ranks.top("points", "global", 5, NOW) == [("u", 990)]
    assert cache.ranks.count_above("points", "america", 1, NOW) == 0


def test_who_is_forgotten_is_on_no_board(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Redis(redis_url).call("FLUSHALL")
    cache, smoke = EngagementCache(redis_url), smoke_name(7)
    crowd = [
        replace(profile(user, random.Random(1)), total_points=points, timezone="Asia/Tokyo")
        for user, points in (("u", 10), (smoke, 90))
    ]
    cache.ranks.rebuild(one_page(crowd), NOW)
    cache.write_through(crowd)
    monkeypatch.setattr(ranks, "_parts", lambda: SimpleNamespace(cache=cache))
    context = SimpleNamespace(
        function_name="f", memory_limit_in_mb=1, invoked_function_arn="a", aws_request_id="r"
    )
    assert ranks.handler({"streakline_forget": [smoke, "u"]}, context) == {"forgotten": True}
    for region in ("global", "asia"):
        assert cache.ranks.top("points", region, 5, NOW) == [("u", 10)]
        assert cache.ranks.count_above("streaks", region, 0, NOW) == 1
    assert cache.profile(smoke) is None
    assert cache.profile("u") == crowd[0]
    held = Redis(redis_url)
    assert [key for key in held.call("KEYS", "*") if smoke in key] == []
    assert smoke not in held.call("HGETALL", "{board}:state")


def test_a_streak_leaves_the_board_when_it_lapses(redis_url: str) -> None:
    Redis(redis_url).call("FLUSHALL")
    cache = EngagementCache(redis_url)
    alive = replace(profile("u", random.Random(1)), streak=Streak(NOW.date(), 4, 4, 4), timezone="UTC")
    cache.ranks.rebuild(one_page([alive]), NOW)
    assert cache.ranks.top("streaks", "global", 5, NOW + timedelta(hours=35)) == [("u", 4)]
    assert cache.ranks.top("streaks", "global", 5, NOW + timedelta(hours=36)) == []
