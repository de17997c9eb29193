"""Nights over a town whose profiles have put away what is settled."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.engagement import account_store
from adapters.engagement.account_items import ARCHIVE
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.expiry import Settler
from adapters.platform.items import encode_item
from ingest.engagement.profiles import Profiles
from rules.engagement import archive as archive_rule
from rules.user_ids import kept_partition
from tests.support.books import KnownBooks
from tests.support.effort import effort
from tests.support.engine import Engine
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
    monkeypatch.setattr(account_store, "PROFILE_BYTES_MAX", 0)
    monkeypatch.setattr(archive_rule, "ARCHIVED_MIN", 1)
    monkeypatch.setattr(Town, "live", live)
    with lived_in(engine, tmp_path, f"a-{request.node.name}", 4) as made:
        assert all("archived" in made.profile(user) for user in made.users)
        yield made


def answers(town: Town, user: str) -> Any:
    settler = Settler(town.accounts, KnownBooks())
    profiles = Profiles(town.accounts, town.events, EngagementCache(""), settler)
    asked = [(START - timedelta(days=ago)).date() for ago in range(0, DAYS, effort(19, soak=7))]
    return [
        (profiles.view(user, day, START), profiles.explain(user, day, START)["streak_length"])
        for day in asked
    ]


def test_nobody_is_named_and_a_damaged_archive_is_named_and_the_profile_made_whole(town: Town) -> None:
    town.now += timedelta(days=9)  # what was lived so far is settled
    for run in ("one", "two")[: effort(1, soak=2)]:
        town.now += timedelta(hours=3)
        told = town.reconcile(run, everybody=True)
        assert (told["different"], told["disagreements"], told["frozen"]) == ([], [], [])
    assert told["counts"]["looked_at"] == len(town.users)

    one, other, third = town.users[:3]
    before = {user: answers(town, user) for user in town.users}
    key = encode_item({"user_id": kept_partition(one), "activity_date": ARCHIVE})
    stored = town.real.get_item(TableName="DailyActivity", Key=key)["Item"]
    town.put("DailyActivity", {**stored, "packed": {"B": b"broken"}})
    town.delete("DailyActivity", user_id=kept_partition(other), activity_date=ARCHIVE)
    profile = town.profile(third)
    until, left, spent, digest = profile["archived"]["S"].split(" ")
    town.put("UserStreaks", {**profile, "archived": {"S": f"{until} {int(left) + 1} {spent} {digest}"}})
    town.now += timedelta(hours=3)
    told = town.reconcile("three", everybody=True)
    assert sorted(told["different"]) == sorted([one, other, third])
    assert told["unrepaired"] == []
    assert {user: answers(town, user) for user in town.users} == before
    assert "archived" not in town.profile(one)
    town.curate()
    town.now += timedelta(hours=3)
    told = town.reconcile("four", everybody=True)
    assert (told["different"], told["disagreements"]) == ([], [])

    town.apply([town.event(one, 900, 0)])
    assert "archived" in town.profile(one)
