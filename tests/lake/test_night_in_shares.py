"""Nights in shares, of which some fail: each share tells what a recompute of all tells of its users."""

import json
import random
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.lake.layout import curated_files
from analytics.recompute.lake_days import EARNED_WITHIN, LakeDays
from analytics.recompute.recompute import RecomputedUsers
from analytics.recompute.settled_users import (
    FOLDED,
    SETTLED_AFTER,
    UserShare,
    etags_digest,
    lake_files,
    settled_until,
)
from analytics.reconcile.shares.night_plan import NightPlan, note_compared
from analytics.reconcile.shares.share_steps import ShareSteps
from rules.engagement.reconciliation import LAKE_LAG, share_of
from tests.lake.test_settled_users import BASE, World, told
from tests.support.examples import examples

NIGHTS, FIRST_RUN = 11, 8  # by then older partitions are settled, and split no more


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, 7)
    for number in range(14):
        made.live(BASE + timedelta(days=number))
    return made


def noon(today: date) -> datetime:
    return datetime(today.year, today.month, today.day, 12, tzinfo=UTC)


def steps_of(world: World, share_bytes: int) -> ShareSteps:
    """The steps without any table: only what they do with the lake is used."""
    nothing = cast("Any", None)
    return ShareSteps(world.objects, nothing, nothing, nothing, share_bytes)


def planned(steps: ShareSteps, run_id: str, today: date) -> NightPlan:
    """Plan a night, and split the lake's files."""
    answer = steps.plan({"run_id": run_id}, noon(today))
    for part in json.loads(steps.objects.get(answer["splits_key"])):
        if part["what"] in FOLDED:
            steps.split({"run_id": run_id, "part": part})
    return NightPlan.load(steps.objects, run_id)


def days_of(objects: Any, before: datetime, files: Any = None) -> tuple[dict[tuple[str, str], int], set[str]]:
    found, long_ago = LakeDays.touched(objects, before - LAKE_LAG, files)
    keys = [(each["user_id"], each["activity_date"]) for each in found.table_keys()]
    return {key: found.signature(place) for place, key in enumerate(keys)}, long_ago


@settings(max_examples=examples(1))
@given(seed=st.integers(0, 2**32), share_bytes=st.sampled_from((20_000, 40_000)))
def test_shares_tell_what_a_recompute_of_all_tells(
    tmp_path_factory: pytest.TempPathFactory, seed: int, share_bytes: int
) -> None:
    lived = World(tmp_path_factory.mktemp("lake"), seed)
    chance, steps, objects = random.Random(seed), steps_of(lived, share_bytes), lived.objects
    for number in range(NIGHTS):
        today = BASE + timedelta(days=number)
        lived.live(today)
        if number < FIRST_RUN or chance.random() < 0.2:
            continue  # a night without a run
        plan = planned(steps, f"night-{number}", today)
        anew = told(objects, today, anew=True)
        failed = {each for each in range(plan.shares) if chance.random() < 0.25}
        for share in (UserShare(each, plan.shares) for each in set(range(plan.shares)) - failed):
            steps.recompute({"run_id": plan.run_id, "share": share.number})
            rows = RecomputedUsers.load(objects, plan.run_id, share).table.to_pylist()
            mine = [row for row in anew if share_of(row["user_id"], share.of) == share.number]
            assert rows == mine
            if (before := plan.before[share.number]) and share.of > 1:
                files = curated_files(objects, "ledger", folder=share.key(plan.run_id))
                all_days, all_users = days_of(objects, before)
                mine_days = {key: day for key, day in all_days.items() if _is_of(share, key[0])}
                mine_users = {user for user in all_users if _is_of(share, user)}
                assert days_of(objects, before, files) == (mine_days, mine_users)
        note_compared(objects, plan.shares, plan.at, failed)


def _is_of(share: UserShare, user: str) -> bool:
    return share_of(user, share.of) == share.number


def test_a_share_that_failed_is_taken_up_from_where_it_was(world: World) -> None:
    late = sum(each.size for each in world.objects.list("curated/"))
    steps, objects = steps_of(world, late // 4), world.objects
    first = BASE + timedelta(days=8) + SETTLED_AFTER
    second = first + timedelta(days=1)
    plan = planned(steps, "first", first)
    assert plan.shares == 2
    assert plan.before == [None, None]
    assert plan.after["ledger"] == ["", ""], "nothing is settled, so all is split"
    steps.recompute({"run_id": "first", "share": 0})
    note_compared(objects, plan.shares, plan.at, {1})
    again = planned(steps, "second", second)
    assert again.before == [noon(first), None]
    assert again.after["daily_activity"] == [(first - SETTLED_AFTER).isoformat(), ""]
    # Days are compared with all their entries: whatever begins earlier, these or what the fold still needs.
    oldest = (noon(first) - LAKE_LAG).date() - EARNED_WITHIN
    needed = min(first - SETTLED_AFTER, oldest - timedelta(days=2))
    assert again.after["ledger"] == [needed.isoformat(), ""]
    pieces = [
        len(curated_files(objects, "daily_activity", folder=UserShare(n, 2).key("second"))) for n in range(2)
    ]
    assert pieces[0] < pieces[1]
    digest = partial(etags_digest, lake_files(objects))
    assert [settled_until(objects, digest, UserShare(n, 2)) for n in range(2)] == [
        first - SETTLED_AFTER,
        None,
    ]


def test_one_share_is_not_split(world: World) -> None:
    answer = steps_of(world, 2**23).plan({"run_id": "one"}, noon(BASE))
    assert answer["shares"] == 1
    assert json.loads(world.objects.get(answer["splits_key"])) == []
    assert json.loads(world.objects.get(answer["shares_key"])) == [
        {"run_id": "one", "share": 0, "repair": False}
    ]
