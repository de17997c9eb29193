"""Six kinds of streaks under a book of twelve versions and more: live and in SQL they are the same.

Histories have weeks 53, changes of clocks and moves between zones (tests/support/goal_story.py); the plain
reading of tests/unit/goals stands beside them.
"""

from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.platform.objects import FolderObjects
from analytics.warehouse.build import build
from analytics.warehouse.ddl import prepare
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.load import Loader
from analytics.warehouse.models import ancestors, check_model, models
from analytics.warehouse.warehouse import Warehouse
from rules.book.goal_rules import StreakPeriod
from rules.engagement.goals import KnownPeriods, Outcome, fold_periods, unsettled_goals
from tests.sql.conftest import Lake
from tests.support.effort import effort
from tests.support.goal_story import DAYS, SIX, GoalStory
from tests.support.point_story import VERSIONS_MIN, as_they_were_and_rewritten

MART = "marts.goal_streaks_recomputed"
KNOWN = models()
FAMILY = {MART, *(each.name for each in ancestors(KNOWN[MART], KNOWN))}
Row = tuple[Any, ...]


def live(story: GoalStory) -> list[Row]:
    """Each user's streaks as the days and profiles of the tables tell them, after the newest period reached."""
    found = []
    until = story.now.date() + timedelta(days=80)
    for user, world in sorted(story.worlds.items()):
        days = {when: day.measures for when, day in world.days.items() if day.measures}
        known = KnownPeriods(unsettled_goals(story.books), story.books, days)
        for name, (per, _) in sorted(SIX.items()):
            past = known.before(name, StreakPeriod(per), until)
            past = replace(past, letters=past.letters[: past.letters.rfind(Outcome.REACHED) + 1])
            told = fold_periods(past, world.profile.cover)
            if told.reached:
                figures = (told.length, told.longest, told.reached, len(told.spent))
                found.append((user, name, per, told.last, *figures))
    return found


def in_sql(warehouse: Warehouse) -> list[Row]:
    rows = warehouse.rows(f"SELECT * FROM {MART} ORDER BY user_id, name")
    return [tuple(each[name] for name in KNOWN[MART].columns) for each in rows]


@pytest.mark.parametrize(("seed", "is_rewritten"), as_they_were_and_rewritten(effort(2, soak=40)))
def test_live_and_sql_agree(lake: Lake, seed: int, is_rewritten: bool) -> None:
    """is_rewritten: events are reversed, and versions take effect in the past."""
    story = GoalStory(seed)
    story.live()
    if is_rewritten:
        story.rewrite()
    lake.load("one", story.into(lake.objects))
    wanted = live(story)
    assert len(wanted) > len(SIX)
    assert any(each[-1] for each in wanted), "freezes were used"
    assert len(story.books.versions) > VERSIONS_MIN
    for warehouse in lake.warehouses:
        build(warehouse, FAMILY)
        assert in_sql(warehouse) == wanted
        assert check_model(warehouse, KNOWN[MART]) == []


@dataclass
class OneEntryLess(GoalStory):
    """The lake lacks what one event adds."""

    def rows(self) -> Any:
        found = dict(super().rows())
        for (table, _), items in found.items():
            if table == "RewardsLedger":
                for each in items:
                    each.pop("measures", None) if each["account_id"] == {"S": "u0"} else None
        return found


@dataclass
class OtherPauses(GoalStory):
    """The tables have a pause that the lake does not know."""

    def rows(self) -> Any:
        found = super().rows()
        first = self.base.date()
        for name, world in self.worlds.items():
            cover = replace(world.profile.cover, pauses=((first, first + timedelta(days=DAYS)),))
            self.worlds[name].put(replace(world.profile, cover=cover))
        return found


@dataclass
class OtherFreezes(GoalStory):
    """The tables have freezes that the lake does not know."""

    def rows(self) -> Any:
        found = super().rows()
        for name, world in self.worlds.items():
            cover = replace(world.profile.cover, freezes=((date(2026, 1, 1), 60),))
            self.worlds[name].put(replace(world.profile, cover=cover))
        return found


@pytest.mark.parametrize("plant", [OneEntryLess, OtherPauses, OtherFreezes])
def test_a_planted_fault_is_found(tmp_path: Path, plant: type[GoalStory]) -> None:
    story, objects = plant(4), FolderObjects(tmp_path / "lake")
    story.live()
    places = story.into(objects)
    warehouse = DuckWarehouse(tmp_path / "w.duckdb", str(tmp_path / "lake"), objects)
    with warehouse.kept_open():
        prepare(warehouse)
        Loader(warehouse, objects, str(tmp_path / "lake")).load("one", places)
        build(warehouse, FAMILY)
        assert in_sql(warehouse) != live(story)
