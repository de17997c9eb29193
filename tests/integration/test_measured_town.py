"""Nights over a town whose events add something to streaks: what they add is compared and repaired as points are."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.engagement.account_items import ACHIEVEMENTS, GOALS
from adapters.platform.items import Item, encode_item
from rules.engagement.events import Event
from tests.support.corruptions import value
from tests.support.engine import Engine
from tests.support.town import Town, lived_in

pytestmark = pytest.mark.xdist_group("reconcile")
MEASURES = (None, "n", "n,minutes=500", "n,minutes=30500,pages=2000")


@pytest.fixture
def town(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Town]:
    real = Town.event

    def event(self: Town, user: str, number: int, days_ago: int) -> Event:
        return replace(real(self, user, number, days_ago), measures=self.chance.choice(MEASURES))

    monkeypatch.setattr(Town, "event", event)
    with lived_in(engine, tmp_path, f"g-{request.node.name}", 12) as made:
        for name in (GOALS, ACHIEVEMENTS):
            kept = {"user_id": made.users[0], "activity_date": name, "is_passive": True}
            made.put("DailyActivity", encode_item(kept))
        yield made


def test_nothing_is_repaired(town: Town) -> None:
    for run in ("one", "two"):
        told = town.reconcile(run, everybody=True)
        assert (told["different"], told["disagreements"], told["frozen"]) == ([], [], [])


def more(each: Item) -> None:
    (name, _), *_ = each["measures"]["M"].items()
    each["measures"]["M"][name] = {"N": "77"}


CHANGES: dict[str, Callable[[Item], Any]] = {"more": more, "gone": lambda each: each.pop("measures")}


@pytest.mark.parametrize("what", CHANGES)
def test_a_day_changed_by_hand_is_repaired(town: Town, what: str) -> None:
    town.reconcile("before")
    user = town.users[1]
    day = next(each for each in town.projections.days(user).values() if "measures" in each)
    before = {**day, "measures": {"M": dict(day["measures"]["M"])}}
    CHANGES[what](day)
    town.put("DailyActivity", day)
    told = town.reconcile("one", everybody=True)
    assert set(told["different"]) == {user}
    assert town.projections.days(user)[day["activity_date"]["S"]] == before


def test_a_mark_of_the_past_that_is_wrong_is_repaired(town: Town) -> None:
    town.reconcile("before")
    user = town.users[1]
    profile = town.profile(user)
    before = dict(profile)
    value("past_entry", {"S": "2031-01-01T00:00:00.000000Z"})(profile)
    town.put("UserStreaks", profile)
    assert set(town.reconcile("one", everybody=True)["different"]) == {user}
    assert town.profile(user).get("past_entry") == before.get("past_entry")
