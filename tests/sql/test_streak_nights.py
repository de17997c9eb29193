"""The streaks that nights have built, one after the other, are those of the rule, whatever came late or went."""

import random
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest

from analytics.forgetting.erasees import Erasee
from analytics.forgetting.warehouse_rows import WarehouseRows
from analytics.warehouse.build import build
from analytics.warehouse.models import models
from analytics.warehouse.warehouse import Warehouse
from rules.engagement.streak import Checkpoint
from rules.lake.entities import ENTITIES
from rules.lake.residues import ErasureNames
from rules.privacy.erasures import LEADS, PERSONS, PHONES, USERS
from tests.sql.conftest import Laptop, family
from tests.sql.test_streaks_twin import OPENINGS, User
from tests.support.effort import effort
from tests.support.lake_sample import Row, Sample

MODEL = "marts.streaks_recomputed"
WANTED = family(MODEL)
FIRST, DATES = date(2025, 12, 10), 150  # over the ends of a year and of a short month
LATER = datetime(2027, 1, 1, tzinfo=UTC)  # by which a day's rows are versions of each other
NAMES = [f"u{number}" for number in range(8)]
NOBODY = User((), (), (), frozenset(), ())
# What is told of a user in a night, and how often.
CHANGES = {"active": 8, "reversed": 3, "freeze": 1, "pause": 2, "amnesty": 2, "opening": 1}


class Town:
    """Users who change, and the lake's rows of them."""

    def __init__(self, seed: int) -> None:
        self.chance, self.sample = random.Random(seed), Sample()
        self.users = dict.fromkeys(NAMES, NOBODY)
        self.number = 0

    def some_date(self) -> date:
        return FIRST + timedelta(days=self.chance.randrange(DATES))

    def change(self) -> None:
        name = self.chance.choice(NAMES)
        kind = self.chance.choices(list(CHANGES), list(CHANGES.values()))[0]
        getattr(self, f"_{kind}")(name, self.users[name])

    def erase(self, name: str) -> None:
        self.users[name] = NOBODY
        for entity, column in (
            ("daily_activity", "user_id"),
            ("ledger", "account_id"),
            ("streaks", "user_id"),
        ):
            rows = self.sample.rows[entity]
            gone = [row for row in rows.values() if row[column] == name]
            self.sample.touched.update(self.sample.place(entity, row) for row in gone)
            self.sample.rows[entity] = {key: row for key, row in rows.items() if row[column] != name}

    def _active(self, name: str, user: User) -> None:
        first = self.some_date()
        days = [first + timedelta(days=number) for number in range(self.chance.randrange(1, 25))]
        self.users[name] = replace(user, days=tuple(sorted({*user.days, *days})))
        self._days(name, days, 1)

    def _reversed(self, name: str, user: User) -> None:
        gone = self.chance.sample(user.days, min(2, len(user.days)))
        self.users[name] = replace(user, days=tuple(day for day in user.days if day not in gone))
        self._days(name, gone, 0)

    def _freeze(self, name: str, user: User) -> None:
        granted = self.some_date()
        changes = [(granted, 1)]
        if self.chance.random() < 0.3:
            changes.append((granted + timedelta(days=self.chance.randrange(16)), -1))
        points = self.chance.randrange(50)
        self.users[name] = replace(
            user, freezes=tuple(sorted([*user.freezes, *changes])), points=(*user.points, points)
        )
        for day, change in changes:
            told = {"kind": "REDEEM" if change > 0 else "REVERSE", "freeze_date": day}
            self._entry(name, 0, freeze="freeze_granted" if change > 0 else "freeze_revoked", **told)
        self._entry(name, points, kind="EARN")

    def _pause(self, name: str, user: User) -> None:
        first = self.some_date()
        pause = (first, first + timedelta(days=self.chance.randrange(10)))
        self.users[name] = replace(user, pauses=(*user.pauses, pause))
        set_to = f"{pause[0]}/{pause[1]}"
        self._entry(name, 0, kind="SETTING", setting="pause", set_to=set_to)

    def _amnesty(self, name: str, user: User) -> None:
        kept = frozenset(day for day in user.skipped if self.chance.random() < 0.6)
        self.users[name] = replace(user, skipped=kept | {self.some_date(), self.some_date()})
        self._profile(name)

    def _opening(self, name: str, user: User) -> None:
        opening = Checkpoint(self.some_date(), *self.chance.choice(OPENINGS), 0)
        self.users[name] = replace(user, opening=opening)
        self._profile(name)

    def _days(self, name: str, days: list[date], events: int) -> None:
        for day in days:
            told = {"user_id": name, "activity_date": day, "first_event_id": f"{day}", "points_earned": 0}
            at = {"created_at": self._at(), "ledger_head": LATER + timedelta(seconds=self.number)}
            self._put("daily_activity", told | at | {"events_count": events})

    def _entry(self, name: str, points: int, **more: Any) -> None:
        self.number += 1
        told = {"account_id": name, "created_at": self._at(), "seq": self.number, "balance": 0}
        self._put("ledger", told | {"points": points} | more)

    def _profile(self, name: str) -> None:
        self.number += 1
        user = self.users[name]
        told = {"user_id": name, "version": self.number, "timezone": "UTC", "updated_at": self._at()}
        told |= {"total_bestie_points": 0, "balance": 0}
        told |= {"skipped_dates": ",".join(map(str, sorted(user.skipped))) or None}
        self._put("streaks", told | {"opening": user.opening.text if user.opening else None})

    def _at(self) -> datetime:
        """An instant of any month: what is told comes in any order."""
        self.number += 1
        return datetime.combine(self.some_date(), time(7), UTC) + timedelta(seconds=self.number)

    def _put(self, entity: str, told: Row) -> None:
        names = [*(each.name for each in ENTITIES[entity].fields), "extra"]
        self.sample.put(entity, dict.fromkeys(names) | told)


def removed(warehouse: Warehouse, name: str) -> None:
    nobody: dict[str, dict[str, Erasee]] = {kind: {} for kind in (LEADS, PERSONS, PHONES)}
    WarehouseRows(warehouse, {**nobody, USERS: {name: Erasee("e", ErasureNames("salt"))}}).remove()


def some_of(wanted: Collection[str], chance: random.Random) -> set[str]:
    """Models that a night built before it failed: those without which they make no sense are among them."""
    done: set[str] = set()
    for name, model in models().items():
        if name in wanted and chance.random() < 0.8 and model.reads & models().keys() <= done:
            done.add(name)
    return done


def told(warehouse: Warehouse, name: str = MODEL) -> Iterator[tuple[Any, ...]]:
    yield from (tuple(row.values()) for row in warehouse.rows(f"SELECT * FROM {name}"))


@pytest.mark.parametrize("seed", range(effort(1, soak=60)))
def test_each_night_is_what_the_rule_says(laptop: Laptop, seed: int) -> None:
    """The last one is also held against what is built at once."""
    town, warehouse = Town(seed), laptop.warehouse
    for number in range(12):
        for _ in range(town.chance.randrange(30 if number == 0 else 9)):
            town.change()
        gone = town.chance.choice(NAMES) if town.chance.random() < 0.3 else None
        if gone:
            town.erase(gone)
        laptop.load(f"n{number}", town.sample.write(laptop.objects))
        if gone:
            removed(warehouse, gone)
        if town.chance.random() < 0.3:
            build(warehouse, only=some_of(WANTED, town.chance))
            continue
        build(warehouse, only=WANTED)
        wanted = {name: row for name, user in town.users.items() if (row := user.row(name))}
        assert {row[0]: row for row in told(warehouse)} == wanted, number
    build(warehouse, only=WANTED)
    by_night = {name: sorted(map(repr, told(warehouse, name))) for name in WANTED}
    build(warehouse, only=WANTED, full=True)
    assert by_night == {name: sorted(map(repr, told(warehouse, name))) for name in WANTED}
