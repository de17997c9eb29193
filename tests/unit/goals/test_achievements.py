"""Achievements that a book declares (rule 15), against a plain reading that goes event by event."""

import copy
import random
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any

import pytest

from adapters.book_store import shipped_document
from ingest.book_document import book_of_document
from rules.book.daily import Weekday
from rules.book.document import BookRefused
from rules.engagement.achievements import (
    AchievementSnapshot,
    Position,
    UserHistory,
    achievement_positions,
    dated_positions,
    next_snapshot,
    ordered_history,
    shown_achievements,
)
from rules.engagement.goals import declared_achievements
from tests.support.achievement_story import AchievementStory
from tests.support.effort import effort
from tests.support.goal_story import DAYS
from tests.unit.goals.test_measures import document

SEEDS = range(1, 1 + effort(1, soak=100))  # the first one has all of it


@cache
def lived(seed: int) -> AchievementStory:
    """Every other story has events that are reversed, and versions that take effect in the past."""
    story = AchievementStory(seed)
    story.live(2, 90)
    if seed % 2:
        story.rewrite()
    return story


@pytest.mark.parametrize("seed", SEEDS)
def test_live_is_the_plain_reading(seed: int) -> None:
    story = lived(seed)
    known, dated = declared_achievements(story.books, story.now), 0
    for user, world in story.worlds.items():
        found = achievement_positions(known, UserHistory(ordered_history(world.entries)), story.history(user))
        assert {name: event_id for name, (_, event_id) in found.items()} == story.dated(user)
        dated += len(found)
    assert dated > 5


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_kept_changes_no_answer(seed: int) -> None:
    """Readers come at some times; each goes on from what the one before has kept."""
    story, chance = lived(seed), random.Random(seed)
    known = declared_achievements(story.books, story.now)
    for user, world in story.worlds.items():
        streaks = story.history(user)
        whole = achievement_positions(known, UserHistory(ordered_history(world.entries)), streaks)
        kept = AchievementSnapshot()
        for ahead in sorted(chance.sample(range(DAYS + 90), 5)):
            entries = [each for each in world.entries if each.created_at > kept.place_before_later()]
            told = kept.history_with(entries)
            assert kept.is_usable(known, streaks, told)
            assert dated_positions(kept, known, told, streaks) == whole
            kept = next_snapshot(kept, known, told, streaks, story.base + timedelta(days=ahead))
            assert AchievementSnapshot.of(kept.text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "{}",
        "[1, 2, 3, 4, 5, 6, 7, 8]",
        '["2026-01-01", "", {}, {"a": 5}, {}, {}, {}, 1]',
        "[" * 10**5,
    ],
)
def test_a_text_that_is_no_snapshot_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        AchievementSnapshot.of(text)


def test_a_late_entry_another_cover_or_another_rule_make_it_unusable() -> None:
    story = lived(1)
    known, (user, world) = declared_achievements(story.books, story.now), next(iter(story.worlds.items()))
    streaks = story.history(user)
    told = AchievementSnapshot().history_with(world.entries)
    kept = next_snapshot(AchievementSnapshot(), known, told, streaks, story.now + timedelta(days=60))
    assert kept.is_usable(known, streaks, told)
    entry = next(each for each in world.entries if each.draft.event_id)
    late = kept.history_with([replace(entry, created_at="2031-01-01T00:00:00.000000Z")])
    assert not kept.is_usable(known, streaks, late)
    other = replace(streaks.cover, freezes=((story.base.date(), 5),))
    assert not kept.is_usable(known, replace(streaks, cover=other), told)
    # Only an opening position brings a choice of the past.
    rest = streaks.cover.rest.with_choice(story.base.date(), [Weekday.SUNDAY])
    assert not kept.is_usable(known, replace(streaks, cover=replace(streaks.cover, rest=rest)), told)
    later = streaks.cover.rest.with_choice(kept.until + timedelta(days=1), [Weekday.SUNDAY])
    assert kept.is_usable(known, replace(streaks, cover=replace(streaks.cover, rest=later)), told)
    name = next(iter(known))
    changed = known | {name: replace(known[name], since=story.base.date())}
    assert not kept.is_usable(changed, streaks, told)


def test_what_was_shown_stays_only_if_the_book_says_so() -> None:
    story = lived(1)
    known = declared_achievements(story.books, story.now)
    kept = AchievementSnapshot(shown=dict.fromkeys(known, "2026-01-01T00:00:00.000000Z"))
    stays = {name for name, each in known.items() if each.rule.stays}
    assert shown_achievements(kept, known, {}).keys() == stays
    assert stays not in (set(), set(known))
    later = shown_achievements(
        kept, known, dict.fromkeys(known, Position(date(2026, 2, 1), "2026-02-01T00:00:00.000000Z#e"))
    )
    assert {name: at[:10] for name, at in later.items()} == {
        name: "2026-01-01" if name in stays else "2026-02-01" for name in known
    }
    assert shown_achievements(AchievementSnapshot(), known, {}) == {}


def test_an_achievement_of_no_history_is_dated_after_it_was_declared() -> None:
    story = lived(2)
    known = declared_achievements(story.books, story.now)
    for user, world in story.worlds.items():
        found = achievement_positions(known, UserHistory(ordered_history(world.entries)), story.history(user))
        for name, (day, _) in found.items():
            assert day >= known[name].since
    assert any(not each.rule.of_history for each in known.values())
    before_all = declared_achievements(story.books, datetime(1990, 1, 1, tzinfo=UTC))
    assert set(before_all) == set(shipped_document()["achievements"])


def refusal(**said: Any) -> str:
    made = document(reading={"per": "week", "needs": {"events": 1}})
    made["achievements"] = {"a": said}
    with pytest.raises(BookRefused) as refused:
        book_of_document(copy.deepcopy(made))
    return str(refused.value.faults[0])


COUNT: Any = {"count": "READ", "at_least": 5}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({}, "achievements.a must have all or any"),
        ({"all": [COUNT], "any": [COUNT]}, "achievements.a must have all or any"),
        ({"all": []}, "achievements.a.all"),
        ({"all": [{}]}, "achievements.a.all.0 must have exactly one"),
        ({"all": [COUNT | {"points_earned": 4}]}, "achievements.a.all.0 must have exactly one"),
        ({"all": [{"count": "READ"}]}, "achievements.a.all.0 needs at_least"),
        ({"all": [{"points_earned": 5, "at_least": 5}]}, "achievements.a.all.0 has its threshold"),
        ({"all": [COUNT | {"at_least": 1.5}]}, "achievements.a.all.0.at_least is not whole"),
        ({"any": [COUNT, {"count": "RUN", "at_least": 1}]}, "achievements.a.any.1.count names RUN"),
        ({"any": [{"streak": "daily", "at_least": 1}]}, "achievements.a.any.0.streak names daily"),
        (
            {"all": [{"sum": {"event_type": "WALK", "property": "minutes"}, "at_least": 1}]},
            "achievements.a.all.0.sum.property is no bounded number of WALK",
        ),
        ({"all": [COUNT], "withdrawn": "maybe"}, "achievements.a.withdrawn"),
        ({"all": [{"points_earned": 0}]}, "achievements.a.all.0.points_earned"),
    ],
)
def test_an_achievement_that_makes_no_sense_is_refused_with_its_place(said: Any, told: str) -> None:
    assert refusal(**said).startswith(told)


def test_a_book_of_achievements_alone_measures_its_events() -> None:
    made = document()
    made["achievements"] = {
        "reader": {"all": [{"sum": {"event_type": "READ", "property": "minutes"}, "at_least": 90}]}
    }
    book = book_of_document(made)
    assert (book.measured("READ"), book.measured("WALK")) == (("minutes",), ())
