"""Amnesties of users whose profiles were brought forward (rules 3 and 17)."""

import random
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

import pytest

from rules.days import AT_MIDNIGHT, DAY
from rules.engagement.account_state import Amnesty
from rules.engagement.streak import shown_streak
from tests.support.account_world import grant
from tests.support.effort import effort
from tests.support.engagement_strategies import event
from tests.support.short_profiles import ShortWorld, keep_profiles_short
from tests.unit.amnesty.test_amnesties import Forgiving, plain_streak

FIRST = date(2026, 1, 1)
DATES = 150


@dataclass
class Short(Forgiving, ShortWorld):
    """A user of whom amnesties are known, with a profile that is brought forward."""


def outage(number: int, day: date) -> Amnesty:
    since = datetime(day.year, day.month, day.day, 9, tzinfo=UTC)
    return Amnesty(number, since, since + timedelta(hours=30))


@pytest.mark.parametrize("seed", range(effort(6, soak=20)))
def test_the_answer_is_that_of_a_profile_that_keeps_everything(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_profiles_short(monkeypatch)
    chance, world = random.Random(seed), Short()
    dates = [FIRST + each * DAY for each in range(DATES)]
    granted = sorted(chance.sample(dates, 9))
    active = sorted(chance.sample(dates, 110))
    late = set(chance.sample(active, 6))
    for day in active:
        commands = [grant(each) for each in granted if each == day]
        if day not in late:
            world.apply([event(str(day), day)], commands)
    granted = [each for each in granted if each in active and each not in late]
    outages = [outage(number, day) for number, day in enumerate(chance.sample(dates, 6), 1)]
    for said in outages:
        world.know(said)
        world.apply_amnesty(said.number)
        if late and chance.random() < 0.7:
            day = late.pop()
            world.apply([event(str(day), day)])
    for said in outages[::3]:
        world.revoke(said.number)
        world.apply_amnesty(said.number)
    standing = [each for number, each in enumerate(outages) if number % 3]
    world.apply_amnesty(*(each.number for each in standing))
    assert world.brought > 1
    profile = world.whole()
    until = max(active) + 3 * DAY
    told = shown_streak(profile.streak, profile.cover, until)
    neutral = frozenset(day for each in standing for day in each.dates_in("UTC", AT_MIDNIGHT))
    came = [day for day in active if day not in late]
    assert (told.current, told.longest, list(told.spent)) == plain_streak(came, granted, neutral, until)
    again = world.apply_amnesty(*(each.number for each in standing)).profile
    assert replace(again, version=0, updated_at="") == replace(world.profile, version=0, updated_at="")
