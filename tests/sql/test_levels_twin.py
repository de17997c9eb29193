"""Levels: live and in SQL each user is on the same one, by the book in force."""

from dataclasses import dataclass
from typing import Any

import pytest

from analytics.warehouse.build import build
from analytics.warehouse.models import check_model, models
from ingest.engagement.profiles import level_view
from rules.engagement.events import instant_of
from tests.sql.conftest import Lake, family
from tests.support.effort import effort
from tests.support.point_story import Json, PointStory, as_they_were_and_rewritten

MART = "marts.user_levels"
STARTS = (0, 1, 40, 150, 400, 1000, 5000)


@dataclass
class LevelStory(PointStory):
    """Books with levels, which move and change their names with each version."""

    def some_book(self) -> Json:
        starts = sorted(self.chance.sample(STARTS, self.chance.randrange(len(STARTS) + 1)))
        levels: list[Json] = [{"name": f"l{self.chance.randrange(10**9)}", "from": start} for start in starts]
        for level in levels[1:]:
            level["title"] = f"Level {level['from']}, 'quoted'"
        return super().some_book() | {"levels": levels}

    def live_levels(self) -> dict[str, Any]:
        """Each user's level as the profile shows it, at the newest instant that the warehouse knows of."""
        occurred = [instant_of(each.event_id) for some in self.users.values() for each in some]
        as_of = max([*occurred, *(version.published_at for version in self.books.versions)])
        levels = self.books.at(as_of).book.levels
        return {
            user: level_view(levels, world.profile.total_points)
            for user, world in self.worlds.items()
            if world.entries
        }


def in_sql(row: Json) -> Any:
    if row["level_name"] is None:
        assert (row["level_title"], row["level_from"], row["next_level"], row["points_missing"]) == (
            None,
        ) * 4
        return None
    following = row["next_level"] and (row["next_level"], row["points_missing"])
    return row["level_name"], row["level_title"] or "", row["level_from"], following


def plain(view: Any) -> Any:
    if view is None:
        return None
    following = view["next"] and (view["next"]["name"], view["next"]["missing"])
    return view["name"], view["title"], view["from"], following


@pytest.mark.parametrize(("seed", "is_rewritten"), as_they_were_and_rewritten(effort(2, soak=60)))
def test_live_and_sql_agree(lake: Lake, seed: int, is_rewritten: bool) -> None:
    story = LevelStory(seed)
    story.live(6, 30)
    if is_rewritten:
        story.rewrite()
    lake.load("one", story.into(lake.objects))
    expected = {user: plain(view) for user, view in story.live_levels().items()}
    for warehouse in lake.warehouses:
        build(warehouse, family(MART))
        rows = warehouse.rows(f"SELECT * FROM {MART}")
        assert {row["user_id"]: in_sql(row) for row in rows} == expected
        totals = {user: world.profile.total_points for user, world in story.worlds.items() if world.entries}
        assert {row["user_id"]: row["points_earned"] for row in rows} == totals
        assert check_model(warehouse, models()[MART]) == []


def test_the_shipped_levels_are_there_before_anything_is_published(lake: Lake) -> None:
    story = LevelStory(5)
    story.live(2, 30)
    story.table.items.clear()
    lake.load("one", story.into(lake.objects))
    for warehouse in lake.warehouses:
        build(warehouse, family(MART))
        named = {row["level_name"] for row in warehouse.rows(f"SELECT * FROM {MART}")}
        assert named <= {"starter", "bronze", "silver", "gold", "platinum"}
        assert None not in named
