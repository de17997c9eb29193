"""Twenty achievements under a book of twelve versions and more: live and in SQL they are the same.

Histories have weeks 53, changes of clocks and moves between zones (tests/support/achievement_story.py); the
plain reading of tests/unit/goals stands beside them.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from adapters.platform.objects import FolderObjects
from analytics.warehouse.build import build
from analytics.warehouse.ddl import prepare
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.load import Loader
from analytics.warehouse.models import ancestors, check_model, models
from analytics.warehouse.warehouse import Warehouse
from rules.engagement.achievements import (
    UserHistory,
    achievement_positions,
    declared_achievements,
    ordered_history,
)
from tests.sql.conftest import Lake
from tests.support.achievement_story import AchievementStory
from tests.support.effort import effort
from tests.support.point_story import VERSIONS_MIN

MART = "marts.achievements_recomputed"
KNOWN = models()
FAMILY = {MART, *(each.name for each in ancestors(KNOWN[MART], KNOWN))}
Row = tuple[str, str, str]


def live(story: AchievementStory) -> list[Row]:
    known = declared_achievements(story.books, story.now)
    return sorted(
        (user, name, event_id)
        for user, world in story.worlds.items()
        for name, (_, event_id) in achievement_positions(
            known, UserHistory(ordered_history(world.entries)), story.history(user)
        ).items()
    )


def in_sql(warehouse: Warehouse) -> list[Row]:
    rows = warehouse.rows(f"SELECT * FROM {MART} ORDER BY user_id, name")
    for each in rows:
        assert f"{each['achieved_at']:%Y-%m-%dT%H:%M:%S.%f}Z" == each["event_id"].partition("#")[0]
    return [(each["user_id"], each["name"], each["event_id"]) for each in rows]


@pytest.mark.parametrize("seed", range(effort(2, soak=40)))
def test_live_and_sql_agree(lake: Lake, seed: int) -> None:
    story = AchievementStory(seed)
    story.live()
    if seed % 2:
        story.rewrite()
    lake.load("one", story.into(lake.objects))
    wanted = live(story)
    assert len(wanted) > 10
    assert len(story.books.versions) > VERSIONS_MIN
    for warehouse in lake.warehouses:
        build(warehouse, FAMILY)
        assert in_sql(warehouse) == wanted
        assert check_model(warehouse, KNOWN[MART]) == []


def test_a_planted_fault_is_found(tmp_path: Path) -> None:
    """The tables lack an entry that the lake has: the first event of each user."""
    story, objects = AchievementStory(4), FolderObjects(tmp_path / "lake")
    story.live()
    places = story.into(objects)
    for world in story.worlds.values():
        first = ordered_history(world.entries)[0]
        world.entries[:] = [
            replace(each, draft=replace(each.draft, points=0, event_type="NONE", measures=None))
            if each is first
            else each
            for each in world.entries
        ]
    warehouse = DuckWarehouse(tmp_path / "w.duckdb", str(tmp_path / "lake"), objects)
    with warehouse.kept_open():
        prepare(warehouse)
        Loader(warehouse, objects, str(tmp_path / "lake")).load("one", places)
        build(warehouse, FAMILY)
        assert in_sql(warehouse) != live(story)
