"""Rule 24: a level is told when points change it, up and down, once; a newer book tells nobody anything."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.book.levels import Level, standing_of
from rules.engagement.account_state import Profile
from rules.outgoing.derivation import UserNoticeState, notices_of_profile
from rules.outgoing.notices import NoticeType
from tests.unit.outgoing.test_derive import START

SILVER, GOLD = Level("silver", 100, "Silver"), Level("gold", 200, "Gold")
LEVELS = (SILVER, GOLD)
Told = list[tuple[str | None, str | None, str]]


class Earner:
    """A user, and what is told of the user's levels."""

    def __init__(self, state: UserNoticeState | None = None, version: int = 0) -> None:
        self.profile, self.state = Profile("ann", version=version), state or UserNoticeState()

    def has(self, points: int, levels: tuple[Level, ...] = LEVELS, **more: object) -> Told:
        """Let the user have earned so many points in all, and hear what is told: level, level before, direction."""
        self.profile = replace(self.profile, total_points=points, version=self.profile.version + 1, **more)  # type: ignore[arg-type]
        return self.hear(levels)

    def hear(self, levels: tuple[Level, ...] = LEVELS) -> Told:
        at = START + timedelta(hours=self.profile.version)
        notices, self.state = notices_of_profile(self.state, self.profile, at, levels)
        return [
            (each.data["level"], each.data["level_before"], each.data["direction"])
            for each in notices
            if each.type == NoticeType.LEVEL_CHANGED
        ]


def test_a_clawback_takes_a_level_and_the_next_event_brings_it_back() -> None:
    ann = Earner()
    assert ann.has(99) == []
    assert ann.has(100) == [("silver", None, "up")]
    assert ann.has(150) == ann.has(199) == []
    assert ann.has(99) == [(None, "silver", "down")]
    assert ann.has(250) == [("gold", None, "up")]
    assert ann.has(100) == [("silver", "gold", "down")]
    assert ann.has(200) == [("gold", "silver", "up")]


def test_a_level_has_its_title_and_the_profile_after_it() -> None:
    notices, _ = notices_of_profile(
        UserNoticeState(), Profile("ann", version=1, total_points=120), START, LEVELS
    )
    (told,) = (each for each in notices if each.type == NoticeType.LEVEL_CHANGED)
    assert told.data["title"] == "Silver"
    assert told.data["profile"]["total_bestie_points"] == 120


@pytest.mark.parametrize(
    "newer",
    [
        (Level("silver", 10), Level("gold", 20)),  # moved down: everybody rises
        (Level("silver", 1000),),  # moved up: everybody falls
        (Level("steel", 100), Level("gold", 200)),  # renamed
        (),
    ],
)
def test_a_newer_book_tells_nobody(newer: tuple[Level, ...]) -> None:
    ann = Earner()
    ann.has(150)
    assert ann.hear(newer) == []
    assert ann.has(150, newer, chosen_zone="Asia/Tokyo") == []
    assert ann.has(151, newer) == [], "151 points are on the level of 150 in the newer book, too"


def test_a_level_from_0_is_no_news() -> None:
    assert Earner().has(0, (Level("newcomer", 0), SILVER)) == []
    assert Earner().has(100, (Level("newcomer", 0), SILVER)) == [("silver", "newcomer", "up")]


def test_what_somebody_had_before_the_first_look_or_brought_along_is_no_news() -> None:
    assert Earner(version=6).has(150) == []
    moved = Earner()
    assert moved.has(150, backfilled=1) == []
    assert moved.has(250) == [("gold", "silver", "up")]


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 2)), max_size=12))
def test_all_that_is_told_adds_up_to_the_level_however_often_it_comes(steps: list[tuple[int, int]]) -> None:
    """Each change comes once or twice. The processor leaves out the version that it has seen."""
    ann, level = Earner(), None
    for points, times in steps:
        found = ann.has(points) + (ann.hear() if times > 1 else [])
        assert len(found) <= 1
        for after, before, direction in found:
            assert before == level
            assert (direction == "up") == (after is not None and (before is None or after == "gold"))
            level = after
        reached = standing_of(LEVELS, points).level
        assert level == (reached.name if reached else None)
