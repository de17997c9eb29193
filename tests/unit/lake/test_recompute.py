"""The recompute of all users at once against the rule for one."""

import random
from datetime import date, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects
from analytics.lake.arrow_schema import arrow_schema
from analytics.recompute import activity_runs
from analytics.recompute.plain_streaks import EPOCH, Runs, day_number
from analytics.recompute.recompute import recompute
from analytics.recompute.user_numbers import UNKNOWN, UNSETTLED, Users, directory
from rules.engagement.streaks import Cover, fold
from rules.lake.entities import ENTITIES
from tests.support.engagement_strategies import covers, near

BASE = date(2026, 3, 1)
# Ids that share long beginnings, contain one another, or differ in their last byte alone.
ids = st.one_of(
    st.uuids().map(str),
    st.integers(0, 40).map(lambda n: f"user-{n}"),
    st.text(min_size=1, max_size=12),
    st.integers(0, 30).map(lambda n: "same-beginning-of-many-ids-" + "x" * n),
)


@given(known=st.sets(ids, max_size=40), asked=st.sets(ids, max_size=40))
def test_a_directory_finds_what_it_knows_and_nothing_else(known: set[str], asked: set[str]) -> None:
    listed, wanted = sorted(known, reverse=True), sorted(asked | set(list(known)[::2]))
    found = directory(pa.array(listed, pa.string())).find(pa.array(wanted, pa.string()))
    for user, code in zip(wanted, found.tolist(), strict=True):
        if code >= 0:
            assert listed[code] == user
        elif code == UNKNOWN:
            assert user not in known


@given(batches=st.lists(st.lists(ids, max_size=30), max_size=8))
def test_users_keep_their_codes(batches: list[list[str]]) -> None:
    users, codes = Users(pa.array([], pa.string())), dict[str, int]()
    for batch in batches:
        column = pa.array(batch, pa.string())
        held = users.directory
        found = held.find(column)
        users.settle([column], [found], len(held.ids))
        for user, code in zip(batch, found.tolist(), strict=True):
            assert codes.setdefault(user, code) == code
    assert users.ids.to_pylist() == sorted(codes, key=codes.__getitem__)
    assert sorted(codes.values()) == list(range(len(codes)))


def test_ids_that_one_key_cannot_tell_apart_are_left_to_the_hash_table() -> None:
    many = pa.array(["a", *(f"12345678{n:03}" for n in range(50)), "z"])
    assert set(directory(many).find(many[40:41]).tolist()) == {UNSETTLED}
    users = Users(many)
    found = users.directory.find(many)
    users.settle([many], [found], len(many))
    assert found.tolist() == list(range(52))


@given(
    crowd=st.lists(st.lists(near(BASE, 25), max_size=20), min_size=1, max_size=6),
    cover=covers(BASE),
    kept=st.integers(0, 2),
)
def test_all_users_at_once_are_as_each_alone(crowd: list[list[date]], cover: Cover, kept: int) -> None:
    runs = Runs(min(kept, len(crowd)))
    runs.grow(len(crowd))
    for day in sorted({day for days in crowd for day in days}):
        codes = [code for code, days in enumerate(crowd) for each in days if each == day]
        runs.advance(day_number(day), np.array(codes, np.int32))
    for code, days in enumerate(crowd):
        alone = fold(days, Cover())
        if alone:
            told = (
                EPOCH + timedelta(days=int(runs.last[code])),
                runs.length[code],
                runs.longest[code],
                runs.active_days[code],
            )
            assert told == (alone.last, alone.length, alone.longest, alone.active_days)
        else:
            assert runs.active_days[code] == 0
    refolded = runs.refold([cover] * runs.kept)
    assert refolded == {code: streak for code in range(runs.kept) if (streak := fold(crowd[code], cover))}


def test_a_date_out_of_order_is_refused() -> None:
    runs = Runs()
    runs.grow(1)
    runs.advance(5, np.array([0], np.int32))
    with pytest.raises(ValueError, match="out of order"):
        runs.advance(4, np.array([0], np.int32))


def lake(folder: Path, rows: dict[tuple[str, str], list[dict[str, Any]]]) -> FolderObjects:
    objects = FolderObjects(folder)
    for (entity, place), listed in rows.items():
        file = BytesIO()
        pq.write_table(pa.Table.from_pylist(listed, arrow_schema(ENTITIES[entity])), file)
        objects.put(f"curated/{entity}/{place}.parquet", file.getvalue())
    return objects


def entry(user: str, seq: int, points: int, balance: int, **more: Any) -> dict[str, Any]:
    moment = EPOCH + timedelta(days=20000 + seq)
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


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32))
def test_the_whole_lake(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    chance = random.Random(seed)
    crowd = {
        f"user-{n}": {BASE + timedelta(days=chance.randrange(20)) for _ in range(chance.randrange(15))}
        for n in range(30)
    }
    grants = {user: [BASE + timedelta(days=chance.randrange(20))] for user in crowd if chance.random() < 0.3}
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for user, days in crowd.items():
        for day in days:
            for place in {"hour-00", chance.choice(("hour-00", "hour-01"))}:  # a row may come twice
                rows.setdefault(("daily_activity", f"dt={day}/{place}"), []).append(
                    {"user_id": user, "activity_date": day}
                )
        ledger = rows.setdefault(("ledger", "dt=2026-03-01/hour-00"), [])
        ledger += [entry(user, 0, 0, 0), entry(user, 1, 7, 7)]
        for day in grants.get(user, ()):
            ledger.append(entry(user, 2, 5, 12, kind="REVERSE", freeze="freeze_granted", freeze_date=day))
    found = recompute(lake(tmp_path_factory.mktemp("lake"), rows)).table.to_pylist()
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
    found = recompute(lake(tmp_path, rows)).table.to_pylist()
    assert {row["user_id"]: row["sound"] for row in found} == {"a": True, "b": True, "c": False, "d": False}
    assert found[2]["last_activity_date"] is None


def test_batches_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    rows = {
        ("daily_activity", f"dt={BASE + timedelta(days=day)}/hour-00"): [
            {"user_id": f"u{n:03}", "activity_date": BASE + timedelta(days=day)}
            for n in range(200)
            if chance.random() < 0.5
        ]
        for day in range(30)
    }
    objects = lake(tmp_path, rows)
    whole = recompute(objects).table
    monkeypatch.setattr(activity_runs, "BATCH_ROWS_MAX", 50)
    assert recompute(objects).table == whole
