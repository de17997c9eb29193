"""Nights over a town whose events have many versions, caps of weeks, and keep no streak at times."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapters.platform.items import Item
from rules.book.point_rules import Cap, Period
from rules.engagement.events import Event
from tests.support.corruptions import value
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.ledger_corruptions import edit_entry
from tests.support.town import Town, lived_in

pytestmark = pytest.mark.xdist_group("reconcile")
CAPS = (None, Cap(20, Period.DAY), Cap(25, Period.DAY), Cap(40, Period.WEEK), Cap(31, Period.WEEK))


@pytest.fixture
def town(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Town]:
    real = Town.event

    def event(self: Town, user: str, number: int, days_ago: int) -> Event:
        made = real(self, user, number, days_ago)
        chance = self.chance
        return replace(
            made,
            cap=chance.choice(CAPS),
            rules_version=chance.randrange(2, 13),  # of which no book is here: what entries say counts
            is_passive=chance.random() < 0.5,
            points_awarded=chance.choice((0, 3, 10, 15)),
        )

    monkeypatch.setattr(Town, "event", event)
    with lived_in(engine, tmp_path, f"p-{request.node.name}", effort(14, soak=24)) as made:
        yield made


def edit_any_day(town: Town, user: str, change: Callable[[Item], Any]) -> bool:
    """Change the first of a user's days that can be changed so; returns whether there is one."""
    for day in town.projections.days(user).values():
        before = dict(day)
        change(day)
        if day != before:
            town.put("DailyActivity", day)
            return True
    return False


def other_cap(each: Item) -> None:
    (first, points), *rest = each["points_by_cap"]["M"].items()
    name, _, cap = first.partition(" ")
    changed = {f"{name} {'21/day' if cap != '21/day' else '22/day'}": points}
    each["points_by_cap"] = {"M": {**dict(rest), **changed}}


DAYS: dict[str, Callable[[Item], Any]] = {
    "cap": other_cap,
    "passive up": lambda each: each.update(
        passive_events={"N": str(1 + int(each.get("passive_events", {"N": "0"})["N"]))}
    ),
    "passive gone": lambda each: [each.pop("passive_events", None), each.pop("is_inactive", None)],
    "mark": lambda each: each.update(is_inactive={"BOOL": True}) if "is_inactive" not in each else None,
    "mark gone": lambda each: each.pop("is_inactive", None),
    "last": value("last_event_id", {"S": "2026-03-20T11:00:00Z#ffffffff-9e4a-5e2b-9e6b-1263af0034a7"}),
}


def test_nothing_is_repaired_but_days_changed_by_hand(town: Town) -> None:
    """Each in another way, in one night."""
    for run in ("one", "two")[: effort(1, soak=2)]:
        told = town.reconcile(run, everybody=True)
        assert (told["different"], told["disagreements"], told["frozen"]) == ([], [], [])
    before, untouched = town.tables(), list(town.users)
    for what, change in DAYS.items():
        user = next((each for each in untouched if edit_any_day(town, each, change)), None)
        assert user, f"nobody has such a day: {what}"
        untouched.remove(user)
    assert town.reconcile("found")["different"] == sorted({*town.users} - {*untouched})
    assert town.reconcile("again")["different"] == []
    assert town.tables() == before


ENTRIES: dict[str, Callable[[Item], Any]] = {
    "passive": lambda each: (
        each.update(is_passive={"BOOL": True}) if not each.pop("is_passive", None) else None
    ),
    "cap": value("cap", {"S": "77/day"}),
    "cap gone or new": lambda each: each.update(cap={"S": "5/week"}) if not each.pop("cap", None) else None,
    "cap unreadable": value("cap", {"S": "77/year"}),
    "version": value("rules_version", {"N": "99"}),
    "version gone": lambda each: each.pop("rules_version"),
    "version and cap swap": lambda each: each.update(rules_version={"N": "1"}, cap={"S": "120/day"}),
    "version text": value("rules_version", {"S": "1"}),
}


def test_entries_changed_by_hand_are_found(town: Town) -> None:
    """Each in another way, in one night."""
    town.reconcile("before")
    users = [user for user in town.users if len(town.entries(user)) > 2][: len(ENTRIES)]
    for change, user in zip(ENTRIES.values(), users, strict=True):
        edit_entry(change)(town, user)
    told = town.reconcile("found", everybody=True)
    assert told["frozen"] == sorted(users)
    assert {name for name, _ in told["disagreements"]} == {*users}
