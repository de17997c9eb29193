"""Whose days and ledgers a night looks at: those that have changed, and everybody's within four weeks."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from rules.turns import NIGHTS
from tests.support.corruptions import HAND, lost_day
from tests.support.effort import only_soak
from tests.support.engine import Engine
from tests.support.town import Town, lived_in

pytestmark = pytest.mark.xdist_group("reconcile")


@pytest.fixture
def town(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Town]:
    with lived_in(engine, tmp_path, request.node.name[5:24], getattr(request, "param", 12)) as made:
        yield made


def test_a_day_that_nobody_has_changed_is_looked_at_within_four_weeks(town: Town) -> None:
    town.load()
    town.now += timedelta(days=9)  # what was lived so far is settled, and in the lake
    first = town.reconcile("first")
    assert first["counts"]["looked_at"] == len(town.users), "nothing was compared before"
    lost_day(town, town.users[0])
    HAND["day made up"](town, town.users[1])
    stranger = f"{town.name}-stranger"  # whom the lake does not know
    town.put("UserStreaks", {**town.profile(town.users[2]), "user_id": {"S": stranger}})
    found: list[str] = []
    looks = []
    for night in range(NIGHTS):
        town.now += timedelta(days=1)
        told = town.reconcile(f"night-{night}")
        looks.append(told["counts"]["looked_at"])
        found += told["different"]
    assert sorted(found) == sorted([*town.users[:2], stranger])
    assert sum(looks) == len(town.users) + 1, "everybody once"


def test_everybody_is_looked_at_when_an_operator_asks(town: Town) -> None:
    town.load()
    town.now += timedelta(days=9)
    town.reconcile("first")
    lost_day(town, town.users[0])
    HAND["day made up"](town, town.users[1])
    town.now += timedelta(hours=3)
    assert town.reconcile("night")["different"] == []
    assert sorted(town.reconcile("all", everybody=True)["different"]) == sorted(town.users[:2])


def test_a_day_that_an_entry_has_changed_is_compared_the_same_night(town: Town) -> None:
    town.load()
    town.now += timedelta(days=9)
    town.reconcile("first")
    town.now += timedelta(days=1)
    user = town.users[2]
    town.apply([town.event(user, 9, 1)])
    town.curate()
    lost_day(town, user)
    town.now += timedelta(hours=3)
    assert user in town.reconcile("night")["different"]


def test_a_streak_that_lapses_is_lowered_the_same_night(town: Town) -> None:
    town.reconcile("first")
    for night in range(12):
        town.now += timedelta(days=1)
        town.reconcile(f"night-{night}")
        for user in town.users:
            profile = town.profile(user)
            is_low = "run_length" in profile or "lapses_at" not in profile
            assert is_low or int(profile["lapses_at"]["N"]) > town.now.timestamp() - 60, (night, user)
    assert any("run_length" in town.profile(user) for user in town.users)


@pytest.mark.parametrize("town", [len(HAND)], indirect=True)
@only_soak(
    "the first test here, of a day lost and a day made up, and"
    " tests/integration/test_reconcile.py::test_each_corruption_is_named_and_put_right, of all of them in one night"
)
def test_each_corruption_that_nobody_has_touched_since_is_found_within_four_weeks(town: Town) -> None:
    town.shares = 3
    town.now += timedelta(days=9)
    assert town.reconcile("first")["different"] == []
    victims = dict(zip(HAND, town.users, strict=True))
    for what, user in victims.items():
        HAND[what](town, user)
    seen: list[str] = []
    for night in range(NIGHTS):
        town.now += timedelta(days=1)
        told = town.reconcile(f"night-{night}")
        assert (told["unrepaired"], told["contended"], told["disagreements"]) == ([], [], [])
        seen += told["different"]
    assert {what for what, user in victims.items() if user not in seen} == set()
    assert sorted(seen) == sorted(town.users), "each of them once"
    assert town.reconcile("after", everybody=True)["different"] == []
