"""The streak of two friends against the oracle: any order of arrival, journeys, freezes, pauses, late events."""

import random
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import pytest

from rules.days import AT_MIDNIGHT, local_date, stamp
from rules.engagement.account_state import date_at
from rules.engagement.events import Event
from rules.engagement.pair_streaks import (
    ActiveDates,
    Friend,
    dense_dates,
    first_date,
    need_of,
    pair_streak,
    pair_today,
    run_reaches,
)
from tests.oracle.friend_reading import friend_streak
from tests.oracle.streak_reading import Protection
from tests.support.account_world import World, grant
from tests.support.effort import effort
from tests.support.engagement_strategies import event

DAY = timedelta(days=1)
FIRST = date(2026, 1, 20)
DATES = 60
# Zones on both sides of the date line, and between. Who travels goes from one to the next.
ZONES = (
    "Pacific/Kiritimati",
    "Asia/Tokyo",
    "Europe/Berlin",
    "America/New_York",
    "Pacific/Honolulu",
    "Etc/GMT+12",
)


def life(chance: random.Random) -> list[Event]:
    """A user's events: on most dates one or two, in a zone that changes now and then."""
    zone, events, misses = chance.choice(ZONES), list[Event](), chance.choice((0.02, 0.1, 0.3))
    for number in range(DATES):
        if chance.random() < 0.05:
            zone = chance.choice(ZONES)
        if chance.random() < misses:
            continue
        for _ in range(chance.randrange(1, 3)):
            at = datetime.combine(FIRST, time(chance.randrange(24), chance.randrange(60)), UTC) + number * DAY
            day = local_date(at, zone, AT_MIDNIGHT)
            events.append(event(f"k{len(events)}", day, zone=zone, at=at, created_at=at))
    return events


def lived(chance: random.Random, events: list[Event]) -> World:
    """The account after the events have arrived in some order, some twice."""
    world = World()
    protections = random.Random(len(events))  # the same in each order
    grants = [grant(FIRST + protections.randrange(DATES) * DAY) for _ in range(protections.randrange(4))]
    first = FIRST + protections.randrange(DATES) * DAY
    pauses = ((first, first + protections.randrange(6) * DAY),) if protections.random() < 0.4 else ()
    world.set(replace(world.profile, cover=replace(world.profile.cover, pauses=pauses)))
    arrived = [*events, *chance.sample(events, min(3, len(events)))]
    chance.shuffle(arrived)
    world.apply([], grants)
    while arrived:
        size = chance.randrange(1, 12)
        world.apply(arrived[:size])
        arrived = arrived[size:]
    return world


def shown(worlds: tuple[World, World], since: str, now: datetime) -> tuple[date, int]:
    """What the code shows, with no more dates than it asks for."""
    one, other = (world.profile for world in worlds)
    today = pair_today(one, other, now)
    run_first = max(run_reaches(one, today), run_reaches(other, today))
    friends = []
    for world in worlds:
        need = need_of(world.profile, first_date(since), run_first, today)
        active = ActiveDates.of(day for day, each in world.days.items() if each.is_active)
        known = active.between(need.first, need.last) if need else ActiveDates()
        friends.append(Friend(world.profile, known | dense_dates(world.profile)))
    return today, pair_streak(friends[0], friends[1], first_date(since), today).length


@pytest.mark.parametrize("seed", range(effort(60, soak=3000)))
def test_any_order_of_two_lives_is_what_a_walk_over_every_date_finds(seed: int) -> None:
    chance = random.Random(seed)
    began = datetime.combine(FIRST, time(chance.randrange(24)), UTC) + chance.randrange(DATES) * DAY
    lives = life(chance), life(chance)
    found = set()
    for _ in range(2):
        worlds = lived(chance, lives[0]), lived(chance, lives[1])
        last = max(each.profile.streak.last for each in worlds if each.profile.streak)
        for later in (-1, 0, 1, 3):
            now = datetime.combine(last, time(12), UTC) + later * DAY
            today, length = shown(worlds, stamp(began), now)
            people = [
                (
                    [day for day, each in world.days.items() if each.is_active],
                    Protection(
                        world.profile.cover.freezes,
                        world.profile.cover.pauses,
                        world.profile.cover.skipped,
                    ),
                )
                for world in worlds
            ]
            assert today == min(date_at(world.profile, now) for world in worlds)
            assert length == friend_streak(people[0], people[1], began, today), (seed, now)
            found.add((later, today, length))
    assert len(found) == 4, "the order of arrival changes nothing"
