"""A profile and its days are lost: the ledger alone leads to them again (docs/rules.md, rule 6)."""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.platform.items import decode_item
from ingest.engagement.points.holds import Holds
from rules.engagement import account
from rules.engagement.account_settings import with_setting
from rules.engagement.account_state import Profile
from rules.engagement.ledger import Draft
from rules.engagement.lots import HoldRequest
from tests.support.engine import Engine
from tests.support.short_profiles import keep_profiles_short
from tests.support.town import Town, lived_in

pytestmark = pytest.mark.xdist_group("reconcile")
# What a repair may change: the version, and where the profile begins.
CHANGING = ("version", "updated_at", "streak", "cover")


@pytest.fixture
def town(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Town]:
    with lived_in(engine, tmp_path, f"l-{request.node.name}", 24) as made:
        holds = Holds(made.rewards.commands)
        for number, user in enumerate(made.users):
            made.preferences.set_timezone(user, ("Asia/Tokyo", "America/Lima")[number % 2], made.tick())
            made.apply([made.event(user, 900 + place, 40 + 3 * place) for place in range(3)])
            balance = made.accounts.profile(user).balance
            if balance > 1:
                made.preferences.release(user, made.tick())
                held = HoldRequest(1, "a mug, blue", "kept", timedelta(days=1))
                holds.hold(user, held, made.tick())
                other = HoldRequest(1, "a mug, blue", f"ended-{number}", timedelta(days=1))
                ended = holds.hold(user, other, made.tick())
                if number % 3:
                    holds.capture(user, ended.hold.hold_id, None, made.tick())
                else:
                    holds.release(user, ended.hold.hold_id, made.tick())
            if number % 4 == 0:
                for zone in ("Europe/Berlin", "Asia/Tokyo", "Europe/Rome"):
                    made.preferences.set_timezone(user, zone, made.tick())
            if number % 8 == 0:
                made.preferences.release(user, made.tick())
            if number % 3 == 0:
                made.preferences.set_groups(user, {"class": "4b"}, made.tick())
                made.preferences.set_hidden(user, number % 2 == 0, made.tick())
            made.rewards.give_freeze(user, None, None, made.tick())
        made.curate()
        yield made


def lose(town: Town, user: str) -> None:
    """Delete a user's profile and days, past the code."""
    town.delete("UserStreaks", user_id=user)
    for day in town.projections.days(user):
        town.delete("DailyActivity", user_id=user, activity_date=day)


def state(town: Town, user: str) -> tuple[dict[str, Any], Any]:
    """Return the answers that a user's items give: the whole profile, and the days."""
    profile = town.accounts.reaching_back(town.accounts.profile(user), date.min)
    values = {name: getattr(profile, name) for name in Profile.__dataclass_fields__ if name not in CHANGING}
    days = {day: decode_item(item) for day, item in town.projections.days(user).items()}
    return values | {"streak": profile.streak, "cover": profile.cover}, days


@pytest.mark.parametrize("is_short", [False, True])
def test_the_next_write_makes_them_again(town: Town, is_short: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_short:
        keep_profiles_short(monkeypatch)
        for user in town.users:
            town.apply([town.event(user, 950 + place, 100 + 9 * place) for place in range(4)])
    before = {user: state(town, user) for user in town.users}
    assert {values["tz_review"] for values, _ in before.values()} == {True, False}
    assert any(values["released_at"] for values, _ in before.values())
    assert any(values["holds"] for values, _ in before.values())
    assert any(values["cover"].pauses for values, _ in before.values())
    versions = {user: town.accounts.profile(user).version for user in town.users}
    for user in town.users:
        lose(town, user)
        assert town.accounts.profile(user) == Profile(user)
        town.accounts.finish_pending(user, town.tick())
    assert {user: state(town, user) for user in town.users} == before
    assert all(town.accounts.profile(user).version > version for user, version in versions.items())
    for user in town.users[:4]:  # writers go on from there
        town.apply([town.event(user, 990, 0)])
    town.curate()
    town.now += timedelta(hours=3)
    told = town.reconcile("after", everybody=True)
    assert (told["different"], told["disagreements"], told["frozen"]) == ([], [], [])


FORGOTTEN = ("zone", "zone_seen", "pause", "review", "release", "boards", "hold", "hold_ended")


def test_a_rebuild_that_forgets_one_kind_of_setting_is_noticed(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {user: state(town, user) for user in town.users}
    for setting in FORGOTTEN:

        def forgetful(profile: Profile, draft: Draft, left_out: str = setting) -> Profile:
            return profile if draft.setting == left_out else with_setting(profile, draft)

        monkeypatch.setattr(account, "with_setting", forgetful)
        for user in town.users:
            lose(town, user)
            town.accounts.finish_pending(user, town.tick())
        assert {user: state(town, user) for user in town.users} != before, setting


def test_an_event_that_comes_again_makes_them_again(town: Town) -> None:
    user = next(user for user in town.users if town.accounts.profile(user).holds)
    again = town.event(user, 980, 1)
    town.apply([again])
    before = state(town, user)
    lose(town, user)
    town.apply([again])
    assert state(town, user) == before


def test_a_night_makes_them_again_and_needs_nothing_but_the_ledger(town: Town) -> None:
    before = {user: state(town, user) for user in town.users}
    lost = town.users[::2]
    for user in lost:
        lose(town, user)
    for each in [*town.objects.list("curated/streaks/")]:  # no version of any profile is in the lake
        town.objects.delete([each.key])
    town.now += timedelta(hours=3)
    told = town.reconcile("night", everybody=True)
    assert sorted(told["different"]) == sorted(lost)
    assert told["unrepaired"] == []
    assert {user: state(town, user) for user in town.users} == before


def test_a_setting_that_somebody_changes_by_hand_is_found_and_taken_back(town: Town) -> None:
    before = {user: state(town, user) for user in town.users}
    one, other, third = [user for user in town.users if town.accounts.profile(user).holds][:3]
    town.put("UserStreaks", {**town.profile(one), "chosen_zone": {"S": "Asia/Dubai"}})
    town.put("UserStreaks", {**town.profile(other), "pauses": {"S": "2026-03-01/90"}})
    town.put("UserStreaks", {name: value for name, value in town.profile(third).items() if name != "holds"})
    town.now += timedelta(hours=3)
    told = town.reconcile("night", everybody=True)
    assert sorted(told["different"]) == sorted([one, other, third])
    assert {user: state(town, user) for user in town.users} == before
