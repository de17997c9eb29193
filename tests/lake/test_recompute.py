"""The recompute of all users at once against the rule for one."""

import random
from datetime import date, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects
from analytics.lake.arrow import arrow_schema
from analytics.recompute.recompute import recompute
from rules.engagement.streak import Cover, fold
from rules.lake.entities import ENTITIES
from tests.support.examples import examples

BASE = date(2026, 3, 1)
TODAYS = [BASE - timedelta(days=99), BASE + timedelta(days=17), BASE + timedelta(days=99)]


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
    totals = {user: 7 * len(days) for user, days in crowd.items()}
    for user, days in crowd.items():
        ledger = rows.setdefault(("ledger", "dt=2026-03-01/hour-00"), [])
        listed: list[dict[str, Any]] = []
        for day in chance.sample(sorted(days), len(days)):  # events come in any order
            event = {"event_id": f"{day}#{user}", "activity_date": day}
            listed.append({"points": 7, **event})
            if chance.random() < 0.2:  # one that keeps no streak, and one that is reversed
                listed.append({"points": 0, "kind": "EARN", **event, "is_passive": True})
        for day in set(dates) - days:
            if chance.random() < 0.2:  # it was active until its events were reversed
                event = {"event_id": f"{day}#{user}", "activity_date": day}
                listed += [{"points": 3, **event}, {"points": -3, "kind": "CLAWBACK", **event}]
        for day in grants.get(user, ()):
            listed.append({"points": 5, "kind": "REVERSE", "freeze": "freeze_granted", "freeze_date": day})
        balance = 0
        ledger.append(entry(user, 0, 0, 0))
        for seq, each in enumerate(listed, 1):
            balance += each["points"]
            ledger.append(entry(user, seq, balance=balance, **each))
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
        balance = totals[user] + 5 * (user in grants)
        assert (row["total_bestie_points"], row["balance"], row["sound"]) == (totals[user], balance, True)


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
    days = [BASE - timedelta(days=1), BASE, date.max - timedelta(days=9)]
    ledger = [entry("a", 0, 0, 0)]
    ledger += [
        entry("a", seq, 5, 5 * seq, event_id=f"{seq}", activity_date=day) for seq, day in enumerate(days, 1)
    ]
    (found,) = recompute(lake(tmp_path, {("ledger", "dt=2026-03-01/day"): ledger}), BASE).table.to_pylist()
    assert (found["last_activity_date"], found["current_streak"]) == (days[-1], 1)
    assert (found["longest_streak"], found["active_days"]) == (2, 3)


def test_a_ledger_without_activity_has_no_streak(tmp_path: Path) -> None:
    rows = {("ledger", "dt=2026-03-01/hour-00"): [entry("a", 0, 0, 0), entry("a", 1, 5, 5)]}
    (found,) = recompute(lake(tmp_path, rows), BASE).table.to_pylist()
    assert (found["user_id"], found["balance"], found["current_streak"]) == ("a", 5, None)


def test_a_row_that_no_entry_can_be_is_one_of_its_points_alone(tmp_path: Path) -> None:
    odd = [
        entry("a", 1, 5, 5, kind="GIFT"),
        entry("a", 2, 5, 10, freeze="melted"),
        entry("a", 3, 5, 15, cap="x"),
    ]
    rows = {("ledger", "dt=2026-03-01/hour-00"): [entry("a", 0, 0, 0), *odd]}
    (found,) = recompute(lake(tmp_path, rows), BASE).table.to_pylist()
    assert (found["balance"], found["entries"], found["sound"]) == (15, 4, True)
