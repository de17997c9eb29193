"""Streaks of the book and achievements: the marts tell what the live path shows, from rows that nights have written.

Books have twelve versions and more; histories have weeks 53, changes of clocks and moves between zones
(tests/support/achievement_story.py).
"""

from dataclasses import replace
from datetime import UTC, timedelta
from typing import Any

import pytest

from analytics.curation.curate import curate
from analytics.lake.layout import Partition, raw_partition
from analytics.lake.run_notes import odd_objects
from analytics.reconcile.user_goals import GoalRows
from analytics.warehouse.build import build
from analytics.warehouse.models import check_model, models
from analytics.warehouse.warehouse import Warehouse
from rules.book.book import Book, Books, Version
from rules.book.goal_rules import StreakPeriod
from rules.days import stamp, stamp_of_key
from rules.engagement.achievements import UserHistory, achievement_positions, ordered_history
from rules.engagement.goals import (
    KnownPeriods,
    PeriodOutcome,
    declared_achievements,
    fold_periods,
    unsettled_goals,
)
from tests.sql.conftest import Lake, family
from tests.support.achievement_story import AchievementStory
from tests.support.effort import effort
from tests.support.goal_story import SIX, GoalStory
from tests.support.point_story import VERSIONS_MIN, as_they_were_and_rewritten

STREAKS, ACHIEVEMENTS = "marts.goal_streaks_recomputed", "marts.achievements_recomputed"
Row = tuple[Any, ...]


def live_streaks(story: GoalStory) -> list[Row]:
    """Each user's streaks as the days and profiles of the tables tell them, after the newest period reached."""
    found = []
    until = story.now.date() + timedelta(days=80)
    for user, world in sorted(story.worlds.items()):
        days = {when: day.measures for when, day in world.days.items() if day.measures}
        known = KnownPeriods(unsettled_goals(story.books), story.books, days)
        for name, (per, _) in sorted(SIX.items()):
            past = known.before(name, StreakPeriod(per), until)
            past = replace(past, letters=past.letters[: past.letters.rfind(PeriodOutcome.REACHED) + 1])
            streak = fold_periods(past, world.profile.cover)
            if streak.reached:
                figures = (streak.length, streak.longest, streak.reached, len(streak.spent))
                found.append((user, name, per, streak.last, *figures))
    return found


def live_achievements(story: AchievementStory) -> list[Row]:
    known = declared_achievements(story.books, story.now)
    return sorted(
        (user, name, event_id, day)
        for user, world in story.worlds.items()
        for name, (day, event_id) in achievement_positions(
            known, UserHistory(ordered_history(world.entries)), story.history(user)
        ).items()
    )


def streaks_in(warehouse: Warehouse) -> list[Row]:
    rows = warehouse.rows(f"SELECT * FROM {STREAKS} ORDER BY user_id, name")
    return [tuple(each[name] for name in models()[STREAKS].columns) for each in rows]


def achievements_in(warehouse: Warehouse) -> list[Row]:
    rows = warehouse.rows(f"SELECT * FROM {ACHIEVEMENTS} ORDER BY user_id, name")
    for each in rows:
        assert stamp(each["achieved_at"].replace(tzinfo=UTC)) == stamp_of_key(
            each["event_id"].partition("#")[0]
        )
    return [tuple(each[name] for name in ("user_id", "name", "event_id", "activity_date")) for each in rows]


def night(story: GoalStory, lake: Lake, run_id: str, users: set[str] | None = None) -> list[Partition]:
    """A night's rows of goals, published and curated. users: whose ledgers it has read; None: all."""
    goals = GoalRows(lake.objects, run_id, story.now, lambda: story.books)
    for user, world in story.worlds.items():
        if users is None or user in users:
            goals.fold(user, world.entries)
    goals.write(story.now)
    places = {raw_partition(each.key) for each in lake.objects.list("raw/user_goals/")}
    tasks = [Partition(each.entity, each.dt, each.hour) for each in places if each]
    for task in tasks:
        curate(lake.objects, task)
    return tasks


@pytest.mark.parametrize(
    ("seed", "is_rewritten"), as_they_were_and_rewritten(effort(2, soak=40))[effort(1, soak=0) :]
)
def test_the_marts_tell_what_is_shown_live(lake: Lake, seed: int, is_rewritten: bool) -> None:
    """is_rewritten: events are reversed, and versions take effect in the past."""
    story = AchievementStory(seed)
    story.live()
    if is_rewritten:
        story.rewrite()
    lake.load("one", night(story, lake, "one"))
    streaks, achieved = live_streaks(story), live_achievements(story)
    assert len(streaks) > len(SIX)
    assert any(each[-1] for each in streaks), "freezes were used"
    assert len(achieved) > 10
    assert len(story.books.versions) > VERSIONS_MIN
    for warehouse in lake.warehouses:
        build(warehouse, made := family(STREAKS, ACHIEVEMENTS))
        assert (streaks_in(warehouse), achievements_in(warehouse)) == (streaks, achieved)
        assert {name: found for name in made if (found := check_model(warehouse, models()[name]))} == {}


def test_the_newest_night_counts_for_whom_it_has_read(lake: Lake) -> None:
    """Who was not looked at stays as before; what a ledger lost is gone."""
    story = AchievementStory(3)
    story.live()
    lake.load("one", night(story, lake, "one"))
    before = live_streaks(story)
    user, *others = sorted(story.worlds)
    story.worlds[user].entries[:] = story.worlds[user].entries[:1]
    for other in others:
        story.worlds[other].entries[:] = []
    story.now += timedelta(days=1)
    lake.load("two", night(story, lake, "two", {user}))
    for warehouse in lake.warehouses:
        build(warehouse, family(STREAKS, ACHIEVEMENTS))
        assert streaks_in(warehouse) == [each for each in before if each[0] != user]


def test_nothing_is_written_where_no_book_has_a_goal(lake: Lake) -> None:
    story = AchievementStory(3)
    story.live()
    story.books = Books([Version(1, story.base, lambda: Book({}))])
    assert night(story, lake, "one") == []
    assert list(lake.objects.list("raw/")) == []


def test_a_night_that_is_repeated_leaves_one_row(lake: Lake) -> None:
    story = AchievementStory(4)
    story.live()
    users = sorted(story.worlds)
    night(story, lake, "one", set(users[1:]))
    lake.load("one", night(story, lake, "one"))
    for warehouse in lake.warehouses:
        rows = warehouse.rows("SELECT user_id FROM lake.user_goals ORDER BY user_id")
        assert [each["user_id"] for each in rows] == users


def test_a_ledger_that_cannot_be_folded_is_told_and_spoils_no_other(lake: Lake) -> None:
    story = AchievementStory(3)
    story.live()
    user, *others = sorted(story.worlds)
    entries = story.worlds[user].entries
    at = next(at for at, each in enumerate(entries) if each.draft.measures)
    entries[at] = replace(entries[at], draft=replace(entries[at].draft, measures="n,minutes=many"))
    lake.load("one", night(story, lake, "one"))
    rows = lake.duck.rows("SELECT user_id FROM lake.user_goals ORDER BY user_id")
    assert [each["user_id"] for each in rows] == others
    (told,) = odd_objects(lake.objects, "one")
    assert told["object"] == f"ledger of {user}"
    assert "many" in told["reason"]
