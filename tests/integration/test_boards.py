"""Leaderboards: snapshot and index give the answers of sorting everybody."""

import random
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from adapters.engagement.account_items import profile_attributes
from rules.days import region_of
from rules.engagement.account_state import Profile
from rules.engagement.events import Event
from rules.engagement.ledger import Head
from rules.engagement.streak import Streak
from tests.support.board_tables import BoardTables
from tests.support.effort import effort
from tests.support.engine import Engine

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
        chosen_zone=chance.choice(ZONES),
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


@pytest.mark.parametrize("seed", range(effort(1, soak=20)))
def test_snapshot_index_and_sorting_agree(engine: Engine, seed: int) -> None:
    chance = random.Random(seed)
    crowd = [profile(f"u{number:02}", chance) for number in range(40)]
    tables = BoardTables(engine.client("dynamodb"))
    tables.put(crowd)
    assert tables.builder().build(NOW) == {"counted": 40}
    snapshots, index = tables.snapshots(), tables.index()
    manifest = snapshots.newest(NOW)
    assert manifest is not None
    assert manifest.as_of == NOW
    for board in ("streaks", "points"):
        for region in ("global", "europe", "america", "other", "asia"):
            rows = expected(crowd, board, region)
            if board == "streaks":
                assert index.top(region, NOW) == index.tops(NOW)[region] == rows
            else:
                best = snapshots.top(manifest, region) or []
                assert [(each.user_id, each.score) for each in best] == rows
            for score in (0, 1, 2, 5, 6, 9, 10, 11, 39, 40, 41):
                above = sum(each > score for _, each in rows)
                assert snapshots.count_above(manifest, board, region, score) == above
                assert board == "points" or index.count_above(region, score, NOW) == above
