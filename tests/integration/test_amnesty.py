"""A town on a real engine whose outage is forgiven, and a night after it (rule 17)."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.engagement.account_store import AccountStore
from adapters.engagement.amnesty_store import AmnestyApplier
from adapters.engagement.ledger_store import LedgerStore
from analytics.amnesty_users import users_concerned
from local.amnesty_command import AmnestySummary, apply
from rules.days import AT_MIDNIGHT, DAY
from rules.engagement.account import zone_at
from rules.engagement.account_state import Amnesties, Amnesty
from rules.engagement.ledger import active_dates
from rules.engagement.reconciliation import profile_of
from rules.engagement.streak import fold, shown_streak
from tests.support.dying import Dying, Killed
from tests.support.engine import Engine
from tests.support.town import START, Town, lived_in

pytestmark = pytest.mark.xdist_group("reconcile")
SINCE = START - timedelta(days=5, hours=7)
AMNESTY = Amnesty(1, SINCE, SINCE + timedelta(hours=30), reason="the API was away")


@pytest.fixture
def town(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Town]:
    """The same one each time: what users did follows from its name."""
    with lived_in(engine, tmp_path, request.node.name[:40], 25) as made:
        yield made


def forgiver(town: Town, dynamodb: Any = None) -> AmnestyApplier:
    if dynamodb is None:
        return AmnestyApplier(town.accounts, town.redis)
    ledger = LedgerStore(dynamodb, "RewardsLedger")
    return AmnestyApplier(
        AccountStore(dynamodb, "UserStreaks", "DailyActivity", ledger, town.accounts.shards), town.redis
    )


def given(town: Town, said: Amnesty) -> AmnestySummary:
    return apply(forgiver(town), users_concerned(town.objects, said), of(said), town.tick())


def of(said: Amnesty) -> Amnesties:
    return Amnesties((said,), frozenset({said.number}))


def state(town: Town, user: str) -> Any:
    """The streak that shows on each date around the outage, and the freezes."""
    profile = town.accounts.profile(user)
    if profile.streak is None:
        return None
    streak = profile.streak
    shown = [shown_streak(streak, profile.cover, streak.last + each * DAY) for each in range(4)]
    return streak, [(each.current, each.freezes_available) for each in shown]


def must(town: Town, user: str, said: Amnesty) -> Any:
    """The same by a fold of the ledger with the outage's dates added to what is neutral."""
    profile = town.accounts.profile(user)
    own = profile.cover.skipped.difference(*(dates for _, dates in profile.amnesties))
    neutral = own | said.dates_in(zone_at(profile, said.since), AT_MIDNIGHT)
    entries, _ = town.accounts.ledger.after(user, "0")
    cover = replace(profile_of(profile, entries).cover, skipped=neutral)
    streak = fold(active_dates(entries), cover)
    assert streak
    shown = [shown_streak(streak, cover, streak.last + each * DAY) for each in range(4)]
    return streak, [(each.current, each.freezes_available) for each in shown]


def test_a_town_is_forgiven_and_a_night_agrees_and_revoked_it_is_as_before(town: Town) -> None:
    before = {user: state(town, user) for user in town.users}
    found = given(town, AMNESTY)
    assert not found.failed
    assert 0 < len(found.changed) <= found.looked_at <= len(town.users)
    after = {user: state(town, user) for user in town.users}
    assert after == {user: must(town, user, AMNESTY) for user in town.users}
    assert {each.user_id for each in found.changed} >= {
        user for user in town.users if after[user] != before[user]
    }
    assert any(each.streak_after > each.streak_before for each in found.changed)

    assert given(town, AMNESTY).changed == []

    town.curate()
    town.now += timedelta(hours=3)
    told = town.reconcile("after", everybody=True)
    assert (told["different"], told["disagreements"], told["frozen"]) == ([], [], [])

    revoked = replace(AMNESTY, revoked_at="2027-01-01T00:00:00.000000Z")
    taken = given(town, revoked)
    assert {each.user_id for each in taken.changed} == {each.user_id for each in found.changed}
    assert {user: state(town, user) for user in town.users} == before
    assert given(town, revoked).changed == []


def test_neutral_dates_that_change_no_daily_streak_are_kept_too(town: Town) -> None:
    """They count for weeks and months. A streak that has ended long since does not change by the outage."""
    town.now += timedelta(days=20)
    outage = Amnesty(1, town.now - timedelta(days=9), town.now - timedelta(days=7), reason="the API was away")
    user = town.users[0]
    before, profile = state(town, user), town.accounts.profile(user)
    assert profile.streak
    assert profile.streak.last < (outage.since - 3 * DAY).date()
    applied = forgiver(town).apply(user, of(outage), town.now)
    kept = town.accounts.profile(user)
    assert (applied.is_changed, state(town, user)) == (True, before)
    assert kept.amnesties == (
        (1, tuple(sorted(outage.dates_in(zone_at(profile, outage.since), AT_MIDNIGHT)))),
    )
    assert not forgiver(town).apply(user, of(outage), town.now).is_changed
    assert town.accounts.profile(user) == kept
    revoked = replace(outage, revoked_at="2027-01-01T00:00:00.000000Z")
    assert forgiver(town).apply(user, of(revoked), town.now).is_changed
    assert town.accounts.profile(user).amnesties == ()
    assert not forgiver(town).apply("nobody", of(outage), town.now).is_changed


def test_killed_at_any_call_and_run_again_the_result_is_the_same(town: Town) -> None:
    user = next(
        each.user_id
        for each in _would(town)
        if each.freezes_returned or each.streak_after > each.streak_before
    )
    expected = must(town, user, AMNESTY)
    for place in range(1, 40):
        dying = Dying(town.real, place, "dies after" if place % 2 else "dies before")
        try:
            forgiver(town, dying).apply(user, of(AMNESTY), town.tick())
        except Killed:
            continue
        break
    else:
        raise AssertionError("it dies at every call")
    assert place > 3
    forgiver(town).apply(user, of(AMNESTY), town.tick())
    assert state(town, user) == expected
    assert not forgiver(town).apply(user, of(AMNESTY), town.tick()).is_changed


def _would(town: Town) -> list[Any]:
    lake = users_concerned(town.objects, AMNESTY)
    return apply(forgiver(town), lake, of(AMNESTY), town.tick(), is_dry=True).changed
