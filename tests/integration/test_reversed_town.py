"""Nights over a town some of whose events were reversed: nothing is repaired, and faults are found."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.platform.items import Item, decode_item
from ingest.engagement.points.clawbacks import Clawbacks
from ingest.web.caller import ApiError
from tests.support.books import KnownBooks
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.town import Town, lived_in

pytestmark = pytest.mark.xdist_group("reconcile")


@pytest.fixture
def town(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Town]:
    with lived_in(engine, tmp_path, f"r-{request.node.name}", effort(8, soak=16)) as made:
        reverse_some(made)
        made.curate()
        yield made


def reverse_some(town: Town) -> None:
    """Everybody loses an event or two, so that dates are active no more, and some people are in debt."""
    clawbacks = Clawbacks(town.rewards.commands, KnownBooks())
    for place, user in enumerate(town.users):
        earned = [decode_item(each) for each in town.entries(user) if each["kind"] == {"S": "EARN"}]
        for each in earned[: 1 + place % 3]:
            clawbacks.claw_back(user, each["event_id"], "refunded", f"c{each['event_id']}", town.tick())


def test_nothing_is_repaired_and_the_warehouse_recomputes_the_same(town: Town) -> None:
    kinds = [each["kind"]["S"] for user in town.users for each in town.entries(user)]
    assert kinds.count("CLAWBACK") > len(town.users)
    for run in ("one", "two")[: effort(1, soak=2)]:
        told = town.reconcile(run, everybody=True)
        assert (told["different"], told["disagreements"], told["frozen"]) == ([], [], [])
    town.models("one")
    rows = {each["user_id"]: each for each in town.warehouse.rows("SELECT * FROM marts.streaks_recomputed")}
    for user in town.users:
        profile = town.accounts.profile(user)
        found, streak = rows[user], profile.streak
        assert (found["total_bestie_points"], found["balance"]) == (profile.total_points, profile.balance)
        assert found["active_days"] == (streak.active_days if streak else 0)
        assert found["current_streak"] == (streak.length if streak else 0)


def lost(town: Town) -> Iterator[tuple[str, Item]]:
    for user in town.users:
        for day in town.projections.days(user).values():
            if "reversed_events" in day:
                yield user, day


def test_reversed_days_changed_by_hand_are_found_and_marks_that_a_late_writer_has_undone_are_not(
    town: Town,
) -> None:
    town.reconcile("before")
    before, users = town.tables(), set[str]()
    for name in ("reversed_events", "is_inactive"):
        user, day = next((user, day) for user, day in lost(town) if name in day and user not in users)
        town.put("DailyActivity", {key: each for key, each in day.items() if key != name})
        users.add(user)
    other = next(user for user in town.users if user not in users)
    entry = next(each for each in town.entries(other) if "reversed_by" in each)
    town.put("RewardsLedger", {name: each for name, each in entry.items() if name != "reversed_by"})
    clawbacks = Clawbacks(town.rewards.commands, KnownBooks())
    with pytest.raises(ApiError, match="reversed before"):
        clawbacks.claw_back(other, entry["event_id"]["S"], "again", "another key", town.tick())
    assert town.reconcile("found")["different"] == sorted(users)
    assert town.tables() == before
    told = town.reconcile("again", everybody=True)
    assert (told["different"], told["disagreements"], told["frozen"]) == ([], [], [])


def test_a_mark_of_a_reversal_that_there_is_not_is_told(town: Town) -> None:
    user = town.users[0]
    entry = next(
        each for each in town.entries(user) if each["kind"] == {"S": "EARN"} and "active" not in each
    )
    town.put("RewardsLedger", {**entry, "reversed_by": {"S": "2026-03-20T11:00:00.000000Z"}})
    told = town.reconcile("one", everybody=True)
    assert {name for name, *_ in told["disagreements"]} == {user}
