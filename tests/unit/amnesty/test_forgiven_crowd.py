"""A crowd in 24 zones is forgiven an outage over midnight and over a change of clocks: each user as the oracle says."""

import random
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from rules.days import DAY
from rules.engagement.account_state import Amnesty
from tests.support.account_world import grant
from tests.support.effort import effort
from tests.support.engagement_strategies import event
from tests.unit.amnesty.test_amnesties import ZONES, Forgiving, plain_streak, shown

# Clocks change within the first three: in Europe, in America and in Australia.
OUTAGES = {
    "Europe": (datetime(2026, 3, 28, 20, tzinfo=UTC), timedelta(hours=8)),
    "America": (datetime(2026, 3, 8, 3, tzinfo=UTC), timedelta(hours=9)),
    "Australia": (datetime(2026, 4, 4, 13, tzinfo=UTC), timedelta(hours=5)),
    "a minute of midnight in UTC": (datetime(2026, 5, 1, 23, 59, 30, tzinfo=UTC), timedelta(minutes=1)),
    "two days": (datetime(2026, 5, 1, 12, tzinfo=UTC), timedelta(days=2)),
}
USERS = effort(40, soak=20_000)  # of each outage: 100,000 in all
BEFORE, AFTER = 9, 6


def minute_by_minute(since: datetime, until: datetime, zone: str) -> frozenset[date]:
    """The local dates that an outage touched, by looking at a clock in that zone."""
    there, minutes = ZoneInfo(zone), int((until - since) / timedelta(minutes=1))
    looks = [since + timedelta(minutes=each) for each in range(minutes)]
    return frozenset(each.astimezone(there).date() for each in [*looks, until - timedelta(microseconds=1)])


@pytest.mark.parametrize("name", OUTAGES)
def test_each_of_a_crowd_is_forgiven_as_the_oracle_says_twice_and_revoked(name: str) -> None:
    since, length = OUTAGES[name]
    declared = Amnesty(1, since, since + length)
    neutral = {zone: minute_by_minute(since, since + length, zone) for zone in ZONES}
    assert len({frozenset(each) for each in neutral.values()}) > 1 or name == "two days"
    chance, kept, restored = random.Random(name), 0, 0
    for number in range(USERS):
        zone = ZONES[number % len(ZONES)]
        days = [since.date() + each * DAY for each in range(-BEFORE, AFTER)]
        often = chance.choice((0.5, 0.8, 0.95))
        active = [each for each in days if chance.random() < often] or days[:1]
        granted = [chance.choice(days) for _ in range(chance.choice((0, 0, 1, 3)))]
        world = Forgiving()
        noons = [datetime.combine(each, time(12), ZoneInfo(zone)) for each in active]
        events = [event(str(at), at.date(), zone=zone, at=at.astimezone(UTC)) for at in noons]
        world.apply(events, [grant(each) for each in granted])
        until, before = max(days), shown(world, max(days))
        world.know(declared)
        world.apply_amnesty(1)
        after = shown(world, until)
        assert after == plain_streak(active, granted, neutral[zone], until), (zone, active, granted)
        assert after[1] >= before[1], "nobody loses by it"
        assert not world.apply_amnesty(1).is_change
        world.check()
        kept, restored = kept + (after == before), restored + (after[1] > before[1])
        world.revoke(1)
        world.apply_amnesty(1)
        assert shown(world, until) == before
        world.check()
    assert kept
    assert restored
