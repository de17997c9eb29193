"""Night after night on what is settled, or anew from all partitions: one answer."""

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects, StoredObject
from analytics.lake.arrow import arrow_schema
from analytics.lake.layout import curated_files
from analytics.recompute.recompute import LEDGER, SETTLED_AFTER, recompute, stored_fold_file
from analytics.recompute.user_shares import ALL, UserShare
from rules.engagement.ledger import OPENED_AT, Setting
from rules.lake.entities import ENTITIES
from tests.support.examples import examples

BASE = date(2026, 3, 1)
NIGHTS = 14
ZERO = datetime.fromisoformat(OPENED_AT)


class World:
    """A crowd that lives some dates. Its rows come late, twice, or long after; covers change at any time."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.objects, self.chance = FolderObjects(folder), random.Random(seed)
        self.rows: dict[tuple[str, date], list[dict[str, Any]]] = {}
        self.seq: dict[str, int] = {}
        self.balance: dict[str, int] = {}
        self.earned: dict[str, list[dict[str, Any]]] = {}
        self.users = [f"u{number}" for number in range(6)]

    def add(self, entity: str, day: date, row: dict[str, Any]) -> None:
        self.rows.setdefault((entity, day), []).append(row)
        self._write(entity, day)

    def _write(self, entity: str, day: date) -> None:
        data = BytesIO()
        pq.write_table(pa.Table.from_pylist(self.rows[entity, day], arrow_schema(ENTITIES[entity])), data)
        self.objects.put(f"curated/{entity}/dt={day}/day.parquet", data.getvalue())

    def enter(self, user: str, today: date, points: int, **more: Any) -> None:
        if user not in self.seq:
            opening = {"account_id": user, "created_at": ZERO, "seq": 0, "kind": "OPEN", "points": 0}
            self.add("ledger", today, {**opening, "balance": 0})
            if self.chance.random() < 0.3:  # copies of it may lie in two partitions
                self.add(
                    "ledger", today - timedelta(days=self.chance.randrange(9)), {**opening, "balance": 0}
                )
        self.seq[user] = self.seq.get(user, 0) + 1
        self.balance[user] = self.balance.get(user, 0) + points
        at = datetime(today.year, today.month, today.day, tzinfo=UTC) + timedelta(seconds=self.seq[user])
        made = {"account_id": user, "created_at": at, "seq": self.seq[user], "points": points}
        self.add("ledger", today, {**made, "balance": self.balance[user], "kind": "EARN", **more})

    def live(self, today: date) -> None:
        """One date: most events are of it, some are late, a few are very late."""
        chance = self.chance
        for user in self.users:
            if chance.random() < 0.6:
                late = chance.choice([0, 0, 0, 1, 2, 3]) if chance.random() > 0.03 else chance.randrange(12)
                day = today - timedelta(days=late)
                self.earn(user, today, day)
            elif chance.random() < 0.2 and self.earned.get(user):
                self.take_back(user, today)
            if chance.random() < 0.1:
                back = timedelta(days=chance.choice([0, 0, 0, 8]))
                note = chance.choice(["freeze_granted", "freeze_granted", "freeze_revoked"])
                self.enter(user, today, 0, kind="REVERSE", freeze=note, freeze_date=today - back)
            if chance.random() < 0.05:
                self.set_something(user, today)

    def earn(self, user: str, today: date, day: date) -> None:
        """An event of a date, which may keep no streak."""
        event: dict[str, Any] = {
            "event_id": f"{day}T10:00:00Z#{self.seq.get(user, 0)}",
            "event_type": "CHECK_IN",
        }
        event |= {"activity_date": day, "is_passive": self.chance.choice([None, None, None, True])}
        self.earned.setdefault(user, []).append(event)
        self.enter(user, today, self.chance.randrange(9), **event)
        if not event["is_passive"]:
            self.add("daily_activity", day, {"user_id": user, "activity_date": day, "events_count": 1})

    def take_back(self, user: str, today: date) -> None:
        """An event that is reversed: of any date."""
        event = self.earned[user].pop(self.chance.randrange(len(self.earned[user])))
        self.enter(user, today, -1, kind="CLAWBACK", **event)
        left = [each for each in self.earned[user] if not each["is_passive"]]
        day = event["activity_date"]
        if not event["is_passive"] and day not in {each["activity_date"] for each in left}:
            rows = self.rows["daily_activity", day]
            rows[:] = [row | {"events_count": 0} if row["user_id"] == user else row for row in rows]
            self._write("daily_activity", day)

    def set_something(self, user: str, today: date) -> None:
        """A pause, a date that a zone skipped, or an opening position, of any time."""
        chance = self.chance
        first = today + timedelta(days=chance.choice([0, 1, 2, -9]))
        skipped = today - timedelta(days=chance.choice([0, 7]))
        settings = {
            Setting.PAUSE: f"{first}/{first + timedelta(days=chance.randrange(9))}",
            Setting.SKIPPED: skipped.isoformat(),
            Setting.OPENING: chance.choice([f"{skipped} 3 5 8 0", "2019-12-30 1 1 1 0"]),
        }
        setting = chance.choice(list(settings))
        self.enter(user, today, 0, kind="SETTING", setting=setting.value, set_to=settings[setting])


def told(objects: FolderObjects, today: date, *, anew: bool = False) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = recompute(objects, today, anew=anew).table.to_pylist()
    return rows


@settings(max_examples=examples(5))
@given(seed=st.integers(0, 2**32))
def test_nights_on_what_is_settled_tell_what_a_recompute_of_all_tells(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    world = World(tmp_path_factory.mktemp("lake"), seed)
    for number in range(NIGHTS):
        today = BASE + timedelta(days=number)
        world.live(today)
        if world.chance.random() < 0.5:
            continue  # a night without a run
        on_settled = told(world.objects, today)
        before = stored(world.objects)
        assert on_settled == told(world.objects, today, anew=True)
        assert stored(world.objects) == before


def stored(objects: FolderObjects, share: UserShare = ALL) -> list[dict[str, Any]]:
    """What is settled of a share, row by row, but for from where each fold is taken up."""
    table = pq.read_table(BytesIO(objects.get(share.state_key)))
    rows: list[dict[str, Any]] = table.drop_columns("state").to_pylist()
    return rows


def lake_files(world: World) -> dict[str, list[StoredObject]]:
    return {LEDGER: curated_files(world.objects, LEDGER)}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, 7)
    made.set_something = lambda *_: None  # type: ignore[method-assign]
    for number in range(NIGHTS):
        made.live(BASE + timedelta(days=number))
    yield made


def read_by(monkeypatch: pytest.MonkeyPatch, world: World, today: date) -> set[str]:
    """Return the curated files that a recompute opens."""
    opened: set[str] = set()
    get = FolderObjects.get

    def noted(objects: FolderObjects, key: str) -> bytes:
        opened.add(key)
        return get(objects, key)

    with monkeypatch.context() as patched:
        patched.setattr(FolderObjects, "get", noted)
        recompute(world.objects, today)
    return {key for key in opened if key.startswith("curated/")}


def test_a_night_reads_the_later_partitions_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    today = BASE + timedelta(days=NIGHTS - 5) + SETTLED_AFTER
    everything = {each.key for some in lake_files(world).values() for each in some}
    assert read_by(monkeypatch, world, today) == everything
    later = {key for key in everything if key.split("dt=")[1][:10] > (today - SETTLED_AFTER).isoformat()}
    assert read_by(monkeypatch, world, today) == later
    world.enter("new", BASE, 5)
    assert read_by(monkeypatch, world, today) == everything
    assert "new" in {row["user_id"] for row in told(world.objects, today)}


def test_a_state_of_another_form_does_not_count(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    today = BASE + timedelta(days=NIGHTS)
    recompute(world.objects, today)
    assert stored_fold_file(world.objects).load(lake_files(world)).until == today - SETTLED_AFTER
    monkeypatch.setattr("analytics.recompute.recompute.STORED_FOLDS", pa.schema([]))
    assert stored_fold_file(world.objects).load(lake_files(world)).until is None


def test_a_run_on_an_earlier_date_leaves_what_is_settled(world: World) -> None:
    today = BASE + timedelta(days=NIGHTS)
    told(world.objects, today)
    before = world.objects.get(UserShare().state_key)
    assert told(world.objects, today - timedelta(days=3)) == told(world.objects, today)
    assert world.objects.get(UserShare().state_key) == before
