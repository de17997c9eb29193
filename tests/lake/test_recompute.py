"""The recompute of all users at once against the rule for one."""

import random
from datetime import date, datetime, timedelta
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects
from analytics.lake.arrow import arrow_schema
from analytics.recompute.activity_runs import places_of
from analytics.recompute.recompute import recompute
from rules.engagement.streak import Cover, fold
from rules.lake.entities import ENTITIES
from tests.support.engagement_strategies import near
from tests.support.examples import examples

BASE = date(2026, 3, 1)
TODAYS = [BASE - timedelta(days=99), BASE + timedelta(days=17), BASE + timedelta(days=99)]


@given(days=st.sets(near(BASE, 25)))
def test_neighbours_are_places_apart_by_one_and_others_by_two(days: set[date]) -> None:
    places = places_of(days)
    ordered = sorted(days)
    assert list(places) == ordered
    for earlier, later in pairwise(ordered):
        assert places[later] - places[earlier] == (1 if later - earlier == timedelta(days=1) else 2)


def lake(folder: Path, rows: dict[tuple[str, str], list[dict[str, Any]]]) -> FolderObjects:
    objects = FolderObjects(folder)
    for (entity, place), listed in rows.items():
        file = BytesIO()
        pq.write_table(pa.Table.from_pylist(listed, arrow_schema(ENTITIES[entity])), file)
        objects.put(f"curated/{entity}/{place}.parquet", file.getvalue())
    return objects


def entry(user: str, seq: int, points: int, balance: int, **more: Any) -> dict[str, Any]:
    moment = date(1970, 1, 1) + timedelta(days=20000 + seq)
    at = f"{moment}T00:00:00Z" if seq else "1970-01-01T00:00:00Z"
    kind = "EARN" if points else "OPEN"
    return {
        "account_id": user,
        "created_at": datetime.fromisoformat(at),
        "seq": seq,
        "kind": kind,
        "points": points,
        "balance": balance,
        **more,
    }


@settings(max_examples=examples(15))
@given(seed=st.integers(0, 2**32))
def test_the_whole_lake(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    chance = random.Random(seed)
    dates = [BASE + timedelta(days=each) for each in chance.sample(range(40), chance.randrange(1, 30))]
    crowd = {
        f"user-{n}": {chance.choice(dates) for _ in range(chance.randrange(2 * len(dates)))}
        for n in range(30)
    }
    grants = {user: [BASE + timedelta(days=chance.randrange(20))] for user in crowd if chance.random() < 0.3}
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for user, days in crowd.items():
        for day in days:
            for place in {"hour-00", chance.choice(("hour-00", "hour-01"))}:  # a row may come twice
                rows.setdefault(("daily_activity", f"dt={day}/{place}"), []).append(
                    {"user_id": user, "activity_date": day, "events_count": 1}
                )
        for day in set(dates) - days:
            if chance.random() < 0.2:  # it was active until its events were reversed
                gone = {"user_id": user, "activity_date": day, "events_count": 0}
                rows.setdefault(("daily_activity", f"dt={day}/hour-00"), []).append(gone)
        ledger = rows.setdefault(("ledger", "dt=2026-03-01/hour-00"), [])
        ledger += [entry(user, 0, 0, 0), entry(user, 1, 7, 7)]
        for day in grants.get(user, ()):
            ledger.append(entry(user, 2, 5, 12, kind="REVERSE", freeze="freeze_granted", freeze_date=day))
    found = recompute(lake(tmp_path_factory.mktemp("lake"), rows), chance.choice(TODAYS)).table.to_pylist()
    assert [row["user_id"] for row in found] == sorted(crowd)
    for row in found:
        user = row["user_id"]
        streak = fold(crowd[user], Cover(tuple((day, 1) for day in grants.get(user, ()))))
        told = [
            row[name] for name in ("last_activity_date", "current_streak", "longest_streak", "active_days")
        ]
        assert told == (
            [streak.last, streak.length, streak.longest, streak.active_days] if streak else [None] * 4
        )
        spent = ",".join(map(str, streak.spent)) if streak and streak.spent else None
        assert row["freezes_spent"] == spent
        balance = 12 if user in grants else 7
        assert (row["total_bestie_points"], row["balance"], row["sound"]) == (7, balance, True)


def test_a_gap_in_the_lakes_ledger_is_seen(tmp_path: Path) -> None:
    sound = [entry("a", 0, 0, 0), entry("a", 1, 5, 5), entry("a", 2, 5, 10)]
    opened_twice = [entry("b", 0, 0, 0), entry("b", 0, 0, 0), entry("b", 1, 5, 5)]
    gap = [entry("c", 0, 0, 0), entry("c", 2, 5, 5)]
    sums = [entry("d", 0, 0, 0), entry("d", 1, 5, 6)]
    rows = {("ledger", "dt=2026-03-01/hour-00"): [*sound, *opened_twice, *gap, *sums]}
    found = recompute(lake(tmp_path, rows), BASE).table.to_pylist()
    assert {row["user_id"]: row["sound"] for row in found} == {"a": True, "b": True, "c": False, "d": False}
    assert found[2]["last_activity_date"] is None


def test_dates_thousands_of_years_apart_take_no_more_room(tmp_path: Path) -> None:
    days = [date.min, date.min + timedelta(days=1), BASE, date.max]
    rows = {
        ("daily_activity", f"dt={day}/day"): [{"user_id": "a", "activity_date": day, "events_count": 1}]
        for day in days
    }
    (found,) = recompute(lake(tmp_path, rows), BASE).table.to_pylist()
    assert (found["last_activity_date"], found["current_streak"]) == (date.max, 1)
    assert (found["longest_streak"], found["active_days"]) == (2, 4)


def test_a_lake_without_activity_gives_what_the_ledger_says(tmp_path: Path) -> None:
    rows = {("ledger", "dt=2026-03-01/hour-00"): [entry("a", 0, 0, 0), entry("a", 1, 5, 5)]}
    (found,) = recompute(lake(tmp_path, rows), BASE).table.to_pylist()
    assert (found["user_id"], found["balance"], found["current_streak"]) == ("a", 5, None)
