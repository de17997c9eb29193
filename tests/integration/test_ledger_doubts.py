"""Where ledger and lake contradict each other, nothing is repaired, and nothing is paid out."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.platform.items import Item, decode_item
from ingest.web.caller import ApiError
from tests.support.corruptions import HAND, number
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.lake_corruptions import LAKE
from tests.support.ledger_corruptions import LEDGER, edit_entry
from tests.support.town import START, Town, lived_in

pytestmark = pytest.mark.xdist_group("reconcile")
NIGHTS = range(0, 29, effort(14, soak=1))[1:]  # a night makes good those before it that were left out


@pytest.fixture
def town(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Town]:
    with lived_in(engine, tmp_path, request.node.name[5:24], getattr(request, "param", 6)) as made:
        yield made


def earners(town: Town, count: int) -> list[str]:
    """Give further users three entries each, and bring them into the lake."""
    users = [f"{town.name}-earner-{place:02}" for place in range(count)]
    town.apply(town.event(user, 200 + place, place) for user in users for place in range(3))
    town.curate()
    return users


def is_frozen(town: Town, user: str) -> bool:
    try:
        town.rewards.redeem(user, 1, "mug", f"r{town.tick()}", town.now)
    except ApiError as refused:
        return refused.code == "under_review"
    return False


def without_review(profile: Item | None) -> Item:
    changed = {"version", "streak_updated_at", "tz_review", "review_state", "review_since", "review_evidence"}
    return {name: value for name, value in (profile or {}).items() if name not in changed}


def test_points_that_the_lake_does_not_know_are_not_paid_out(town: Town) -> None:
    """The ledger was raised by 1000 points, the profile was not: the night must not pay them."""
    user, other = earners(town, 2)
    before, balance = town.profile(user), decode_item(town.profile(user))["balance"]
    LEDGER["1000 points more"](town, user)
    dry = town.reconcile("dry", repair=False)
    assert (dry["frozen"], town.profile(user)) == ([user], before)
    found = town.reconcile("wet")
    assert (found["frozen"], found["counts"]["frozen"], found["counts"]["repaired"]) == ([user], 1, 0)
    assert {name for name, _ in found["disagreements"]} == {user}
    profile = decode_item(town.profile(user))
    assert profile["balance"] == balance
    assert without_review(town.profile(user)) == without_review(before)
    assert str(balance + 1000) in profile["review_evidence"][0]
    assert is_frozen(town, user)
    assert not is_frozen(town, other)
    version = profile["version"]
    assert town.reconcile("again")["frozen"] == [user]
    assert decode_item(town.profile(user))["version"] == version, "the same reason is noted once"
    town.preferences.release(user, town.tick())
    assert not is_frozen(town, user)


def corrupted(town: Town) -> dict[str, str]:
    """Bring a town into the lake, and corrupt the ledgers of some users; returns them by what was done."""
    users = dict(zip(LEDGER, earners(town, len(LEDGER)), strict=True))
    clean = town.reconcile("before")
    assert (clean["frozen"], clean["disagreements"], clean["different"]) == ([], [], [])
    assert clean["counts"]["compared"] == clean["counts"]["users"], "the first night compares all"
    for what, user in users.items():
        LEDGER[what](town, user)
    return users


def test_ledgers_changed_alone_are_named_within_28_nights(town: Town) -> None:
    users = corrupted(town)
    profiles = {user: without_review(town.profile(user)) for user in users.values()}
    seen: set[str] = set()
    for night in NIGHTS:
        town.now = START + timedelta(days=night)
        found = town.reconcile(f"night-{night}")
        seen |= set(found["frozen"])
        if night > NIGHTS[0]:
            assert found["counts"]["compared"] < len(users), "a slice, and who was frozen the night before"
    assert {what for what, user in users.items() if user not in seen} == set()
    assert seen == set(users.values())
    for what, user in users.items():
        assert decode_item(town.profile(user))["tz_review"], what
        lapsed = {"current_streak", "run_length", "leaderboard_partition"}
        kept = without_review(town.profile(user))
        assert {kept[name] == profiles[user][name] for name in kept.keys() - lapsed} == {True}, what


def test_everybody_s_ledger_is_compared_if_asked_for(town: Town) -> None:
    users = corrupted(town)
    profiles = {user: without_review(town.profile(user)) for user in users.values()}
    assert town.reconcile("all", everybody=True)["frozen"] == sorted(users.values())
    assert {user: without_review(town.profile(user)) for user in users.values()} == profiles


def test_an_account_in_doubt_is_left_as_it_is(town: Town) -> None:
    """Also what would be repaired otherwise, and what a writer has left half done."""
    user, gone = earners(town, 2)
    for each in (user, gone):
        edit_entry(number("points", 7))(town, each)
    HAND["longest"](town, user)
    HAND["day lost"](town, user)
    HAND["lost"](town, gone)
    damaged = without_review(town.profile(user)), town.projections.days(user)
    found = town.reconcile("wet")
    assert found["frozen"] == found["unrepaired"] == sorted((user, gone))
    assert (without_review(town.profile(user)), town.projections.days(user)) == damaged
    assert decode_item(town.profile(gone))["balance"] == 0
    assert is_frozen(town, gone), "a lost profile must not come back from such a ledger by a redemption"


def test_what_never_came_into_the_lake_is_frozen_after_a_day(town: Town) -> None:
    town.dynamodb.paused = True
    user = earners(town, 1)[0]
    town.dynamodb.rows.clear()
    assert town.reconcile("early")["disagreements"] == []
    town.now += timedelta(hours=3)
    late = town.reconcile("late", everybody=True)
    assert ([name for name, _ in late["disagreements"]], late["frozen"]) == ([user], [])
    found, first = [], town.now
    for night in NIGHTS:
        town.now = first + timedelta(days=night)
        found += town.reconcile(f"night-{night}")["frozen"]
    assert found == [user], "the part of the table that has the profile has its turn once"
    assert is_frozen(town, user)


def test_a_lake_that_has_lost_very_much_freezes_nobody_but_whom_his_own_balances_contradict(
    town: Town,
) -> None:
    users = earners(town, 22)
    town.objects.delete([each.key for each in town.objects.list("curated/ledger/")])
    newest = town.entries(users[0])[-1]
    number("balance", 7)(newest)
    town.put("RewardsLedger", newest)
    town.now += timedelta(days=2)
    found = town.reconcile("lost")
    assert found["frozen"] == users[:1], "the entries do not give this balance, whatever the lake has"
    assert {name for name, _ in found["disagreements"]} >= set(users)


def test_a_lake_that_was_changed_is_named_and_nothing_follows_it(town: Town) -> None:
    """The tables are right, and stay as they are. Where the entries differ nobody can know that."""
    users = dict(zip(LAKE, earners(town, len(LAKE)), strict=True))
    before = {
        user: (without_review(town.profile(user)), town.projections.days(user)) for user in users.values()
    }
    for what, user in users.items():
        LAKE[what](town, user)
    town.now += timedelta(hours=25)
    found = town.reconcile("changed")
    named = {user for user, _ in found["disagreements"]}
    assert {what for what, user in users.items() if user not in named} == set()
    assert named == set(users.values())
    assert (found["different"], found["frozen"]) == ([], sorted(named))
    after = {
        user: (without_review(town.profile(user)), town.projections.days(user)) for user in users.values()
    }
    assert after == before
