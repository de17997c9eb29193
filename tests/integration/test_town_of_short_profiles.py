"""Nights over a town whose profiles were brought forward."""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.expiry import Settler
from ingest.engagement.profiles import Profiles
from tests.support.books import KnownBooks
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.short_profiles import keep_profiles_short
from tests.support.town import START, Town, lived_in

pytestmark = pytest.mark.xdist_group("reconcile")
DAYS = 60


def live(town: Town) -> None:
    """Months with many freezes; the newest events come last, and a few come very late."""
    for user in town.users:
        for ago in (DAYS, 40, 20):
            for _ in range(8):
                granted = (START - timedelta(days=ago)).date()
                town.rewards.give_freeze(user, None, granted, town.tick())
        active = sorted(town.chance.sample(range(DAYS), 28), reverse=True)
        late = set(town.chance.sample(active, 3))
        events = [town.event(user, number, ago) for number, ago in enumerate(active) if ago not in late]
        for first in range(0, len(events), 9):
            town.apply(events[first : first + 9])
        town.apply([town.event(user, 500 + ago, ago) for ago in late])


@pytest.fixture
def town(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Town]:
    keep_profiles_short(monkeypatch)
    monkeypatch.setattr(Town, "live", live)
    with lived_in(engine, tmp_path, f"a-{request.node.name}", 4) as made:
        assert all("brought_forward" in made.profile(user) for user in made.users)
        yield made


def answers(town: Town, user: str) -> Any:
    settler = Settler(town.accounts, KnownBooks())
    profiles = Profiles(town.accounts, town.events, EngagementCache(""), settler)
    asked = [(START - timedelta(days=ago)).date() for ago in range(0, DAYS, effort(19, soak=7))]
    return [
        (profiles.view(user, day, START), profiles.explain(user, day, START)["streak_length"])
        for day in asked
    ]


def test_nobody_is_named_but_whose_sums_are_wrong_and_these_are_repaired(town: Town) -> None:
    town.now += timedelta(days=9)  # what was lived so far is settled
    for run in ("one", "two")[: effort(1, soak=2)]:
        town.now += timedelta(hours=3)
        told = town.reconcile(run, everybody=True)
        assert (told["different"], told["disagreements"], told["frozen"]) == ([], [], [])
    assert told["counts"]["looked_at"] == len(town.users)

    before = {user: answers(town, user) for user in town.users}
    damaged = town.users[:3]
    for place, user in enumerate(damaged):  # a date, a length, the freezes that are left
        profile = town.profile(user)
        words = profile["brought_forward"]["S"].split(" ")
        if place:
            words[(1, -1)[place - 1]] = str(int(words[(1, -1)[place - 1]]) + 1)
        else:
            words[0] = (date.fromisoformat(words[0]) - timedelta(days=1)).isoformat()
        town.put("UserStreaks", {**profile, "brought_forward": {"S": " ".join(words)}})
    town.now += timedelta(hours=3)
    told = town.reconcile("three", everybody=True)
    assert sorted(told["different"]) == sorted(damaged)
    assert told["unrepaired"] == []
    assert {user: answers(town, user) for user in town.users} == before
    assert all("brought_forward" in town.profile(user) for user in damaged)
    town.curate()
    town.now += timedelta(hours=3)
    told = town.reconcile("four", everybody=True)
    assert (told["different"], told["disagreements"]) == ([], [])
    town.apply([town.event(damaged[0], 900, 0)])
    assert "brought_forward" in town.profile(damaged[0])
