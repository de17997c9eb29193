"""Nights in shares, of which some fail: each share tells what a recompute of all tells of its users."""

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects
from analytics.recompute.lake_days import days_touched
from analytics.recompute.recompute import recompute
from analytics.recompute.user_shares import UserShare
from analytics.reconcile.findings import NightPlan
from rules.days import DAY
from rules.engagement.account_state import Day
from rules.engagement.reconciliation import LAKE_LAG
from tests.lake.test_recompute_nights import BASE, World, stored, told
from tests.support.examples import examples

NIGHTS, FIRST_RUN = 11, 8  # by then older partitions are settled
SEED_OF_FAILURE = 19  # of three shares, one fails on the second night of three


def noon(today: date) -> datetime:
    return datetime(today.year, today.month, today.day, 12, tzinfo=UTC)


def days_of(objects: Any, before: datetime, share: UserShare) -> tuple[list[Day], set[str]]:
    days, long_ago = days_touched(objects, before - LAKE_LAG, share)
    return list(days), long_ago


def test_a_share_that_fails_on_a_night_tells_the_same_on_the_next(tmp_path: Path) -> None:
    assert live_in_shares(tmp_path, seed=SEED_OF_FAILURE, shares=3), "a share has failed, and caught up"


@settings(max_examples=examples(1))
@given(seed=st.integers(0, 2**32), shares=st.sampled_from((2, 3, 8)))
def test_shares_tell_what_a_recompute_of_all_tells(
    tmp_path_factory: pytest.TempPathFactory, seed: int, shares: int
) -> None:
    live_in_shares(tmp_path_factory.mktemp("lake"), seed, shares)


def live_in_shares(folder: Path, seed: int, shares: int) -> set[int]:
    """Compare nights in shares with a recompute of all; returns the shares that failed and caught up."""
    lived, behind, caught_up = World(folder, seed), set[int](), set[int]()
    chance, objects = random.Random(seed), lived.objects
    for number in range(NIGHTS):
        today = BASE + timedelta(days=number)
        lived.live(today)
        if number < FIRST_RUN or chance.random() < 0.2:
            continue  # a night without a run
        plan = NightPlan.of(objects, noon(today), shares, {"run_id": f"night-{number}"})
        anew = told(objects, today, anew=True)
        failed = {each for each in range(shares) if chance.random() < 0.25}
        for share in (UserShare(each, shares) for each in set(range(shares)) - failed):
            rows = recompute(objects, today, share=share).table.to_pylist()
            assert rows == [row for row in anew if share.has(row["user_id"])]
            assert stored(objects, share) == [row for row in stored(objects) if share.has(row["user_id"])]
            if before := plan.last_compared_at[share.number]:
                all_days, all_users = days_of(objects, before, UserShare())
                mine_days = [day for day in all_days if share.has(day.user_id)]
                mine_users = {user for user in all_users if share.has(user)}
                assert days_of(objects, before, share) == (mine_days, mine_users)
        plan.note_compared(objects, failed)
        caught_up |= behind - failed
        behind = failed
        after = NightPlan.of(objects, noon(today), shares, {"run_id": "next"}).last_compared_at
        assert after == [plan.last_compared_at[n] if n in failed else plan.at for n in range(shares)]
    return caught_up


def test_of_another_number_of_shares_nothing_is_known(tmp_path_factory: pytest.TempPathFactory) -> None:
    objects = World(tmp_path_factory.mktemp("lake"), 7).objects
    NightPlan.of(objects, noon(BASE), 2, {"run_id": "two"}).note_compared(objects, ())
    assert NightPlan.of(objects, noon(BASE), 2, {"run_id": "again"}).last_compared_at == [noon(BASE)] * 2
    assert NightPlan.of(objects, noon(BASE), 4, {"run_id": "four"}).last_compared_at == [None] * 4


def test_a_night_over_named_dates_leaves_the_watermarks(tmp_path: Path) -> None:
    objects = FolderObjects(tmp_path)
    NightPlan.of(objects, noon(BASE), 2, {"run_id": "one"}).note_compared(objects, ())
    dates = {"from": "2020-01-01", "to": "2020-01-02"}
    named = NightPlan.of(objects, noon(BASE), 2, {"run_id": "two", **dates})
    NightPlan.of(objects, noon(BASE + DAY), 2, {"run_id": "meanwhile"}).note_compared(objects, ())
    named.note_compared(objects, ())
    after = NightPlan.of(objects, noon(BASE + DAY), 2, {"run_id": "three"})
    assert after.last_compared_at == [noon(BASE + DAY)] * 2
