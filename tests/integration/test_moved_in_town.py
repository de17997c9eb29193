"""A town into which people move: nights, columns and SQL tell of them what the system shows (rule 20)."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from adapters.engagement.achievements import AchievementStore
from local.move_in.positions import PositionImporter
from rules.engagement.events import InputRefused
from rules.engagement.opening_positions import OpeningPosition
from tests.support.books import KnownBooks
from tests.support.engine import Engine
from tests.support.town import START, Town, lived_in

pytestmark = pytest.mark.xdist_group("reconcile")


@pytest.fixture
def town(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Town]:
    """The same one each time: what users did follows from its name."""
    with lived_in(engine, tmp_path, request.node.name[:40], 12) as made:
        yield made


def position(user: str, number: int, day: date) -> OpeningPosition:
    lots = {day + timedelta(days=200): 30 + number, None: 5}
    told = OpeningPosition(user, day, day - timedelta(days=1), 4, 9, 20, lots, number % 3)
    return told if number % 4 else replace(told, last_date=None, streak=0, longest=0, active_days=0)


def test_nights_after_people_have_moved_in_find_nothing_and_mend_what_is_damaged(town: Town) -> None:
    mover = PositionImporter(
        town.accounts, town.redis, AchievementStore(town.dynamodb, "DailyActivity"), KnownBooks().books
    )
    moved, day = [], START.date()
    for number, user in enumerate([*town.users[::2], *(f"{town.name}-new-{each}" for each in range(9))]):
        try:
            assert mover.move(position(user, number, day), town.tick())
            moved.append(user)
        except InputRefused as refused:
            assert "a history here" in refused.reason
    assert len(moved) >= 9
    profiles = {user: town.accounts.profile(user) for user in moved}
    town.curate()
    town.now += timedelta(hours=3)
    told = town.reconcile("after", everybody=True)
    assert (told["different"], told["disagreements"], told["frozen"]) == ([], [], [])
    assert {user: town.accounts.profile(user) for user in moved} == profiles
    user = f"{town.name}-new-1"
    damaged = {":zero": {"N": "1"}}
    town.real.update_item(
        TableName="UserStreaks",
        Key={"user_id": {"S": user}},
        UpdateExpression="SET longest_streak = :zero, current_streak = :zero REMOVE opening",
        ExpressionAttributeValues=damaged,
    )
    town.reconcile("mended", everybody=True)
    mended = town.accounts.profile(user)
    assert (mended.streak, mended.cover) == (profiles[user].streak, profiles[user].cover)
