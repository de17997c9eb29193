"""Nights over a town whose events add something to streaks: what they add is compared and repaired as points are."""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.book_store import shipped_version
from adapters.engagement.account_items import ACHIEVEMENTS, GOALS
from adapters.platform.items import Item, encode_item
from adapters.platform.tables import BEFORE_ALL
from analytics.reconcile import share_steps
from analytics.reconcile.user_goals import goal_row
from rules.book.book import Books
from rules.book.goal_rules import (
    AchievementRule,
    Condition,
    ConditionKind,
    Need,
    NeedKind,
    StreakPeriod,
    StreakRule,
)
from rules.days import unstamp
from rules.engagement.events import Event
from rules.user_ids import kept_partition
from tests.support.books import SHIPPED
from tests.support.corruptions import value
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.town import KINDS, Town, lived_in

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
            kept = {"user_id": kept_partition(made.users[0]), "activity_date": name}
            made.put("DailyActivity", encode_item(kept) | {"packed": {"B": b"kept"}})
        yield made


def more(each: Item) -> None:
    (name, _), *_ = each["measures"]["M"].items()
    each["measures"]["M"][name] = {"N": "77"}


CHANGES: tuple[Callable[[Item], Any], ...] = (more, lambda each: each.pop("measures"))


def test_nothing_is_repaired_but_what_was_changed_by_hand(town: Town) -> None:
    for run in ("one", "two")[: effort(1, soak=2)]:
        told = town.reconcile(run, everybody=True)
        assert (told["different"], told["disagreements"], told["frozen"]) == ([], [], [])
    before, users = town.tables(), town.users[1:4]
    for change, user in zip(CHANGES, users, strict=False):
        day = next(each for each in town.projections.days(user).values() if "measures" in each)
        change(day)
        town.put("DailyActivity", day)
    profile = town.profile(users[-1])
    value("past_entry", {"S": "2031-01-01T00:00:00.000000Z"})(profile)
    town.put("UserStreaks", profile)
    assert town.reconcile("three", everybody=True)["different"] == users
    assert town.tables() == before


GOALS_BOOK = replace(
    SHIPPED,
    streaks={
        "daily": StreakRule(
            StreakPeriod.DAY, Need(NeedKind.EVENTS, 1), frozenset(KINDS), freezes=True, pauses=True
        )
    },
    achievements={"begun": AchievementRule((Condition(ConditionKind.POINTS, 1),), of_history=True)},
)


def goals_of(town: Town, run_id: str) -> dict[str, Any]:
    """The rows of goals that a night has written, by user."""
    written = [each.key for each in town.objects.list("raw/user_goals/") if f"/{run_id}-" in each.key]
    lines = [line for key in written for line in gzip.decompress(town.objects.get(key)).splitlines()]
    return {row["user_id"]: row for row in map(json.loads, lines)}


def test_a_night_writes_goals_of_those_whose_ledgers_it_has_read(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both of whom it looks at closely and of whose ledger was enough; what is written is what is shown."""
    books = Books([replace(shipped_version(), read=lambda: GOALS_BOOK)])
    monkeypatch.setattr(share_steps, "lake_books", lambda _: books)
    town.now += timedelta(days=10)  # all that they have written is older than what a night compares again
    town.reconcile("look", repair=False, everybody=True)
    assert goals_of(town, "look") == {}, "a run that repairs nothing writes nothing"
    town.reconcile("one", everybody=True)
    first = goals_of(town, "one")
    assert set(first) == set(town.users)
    assert all("begun " in row["achievements"] and "daily day " in row["streaks"] for row in first.values())
    user = town.users[3]
    town.now += timedelta(days=1)
    town.apply([replace(town.event(user, 90, 0), measures="n")])
    town.curate()
    town.reconcile("two")
    second = goals_of(town, "two")
    assert user in second
    assert len(second) < len(first)
    entries, _ = town.accounts.ledger.after(user, BEFORE_ALL)
    shown = goal_row(user, entries, books, unstamp(second[user]["folded_at"]))
    assert shown == second[user]
    assert shown["version"] > first[user]["version"]
