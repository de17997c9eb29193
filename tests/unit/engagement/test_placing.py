"""Rule 8: one instant never earns more than one date, and an honest calendar is never touched."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rules.days import AT_MIDNIGHT, DAY, local_date
from rules.engagement.earnings import NEAR, assign_dates, flight_gap_dates
from rules.engagement.events import Event, instant_of
from rules.engagement.streak import shown_streak
from tests.support.account_world import World, june
from tests.support.engagement_strategies import event

T = datetime(2026, 6, 10, 11, tzinfo=UTC)
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


def claim(key: str, at: datetime, zone: str) -> Event:
    return event(key, local_date(at, zone, AT_MIDNIGHT), zone=zone, at=at)


def dates(world: World) -> list[date]:
    return sorted(world.days)


def test_three_zones_at_one_instant_are_one_date_and_put_the_account_under_review() -> None:
    world = World()
    world.apply([claim(zone, T, zone) for zone in ("-12:00", "+00:00", "+14:00")])
    assert dates(world) == [june(9)]
    assert world.profile.streak is not None
    assert (world.profile.streak.length, world.profile.streak.active_days) == (1, 1)
    assert world.profile.tz_review
    assert "claimed 2026-06-11" in world.profile.review_evidence[-1]
    assert world.days[june(9)].events_count == 3
    world.check()


def test_the_cap_of_a_date_holds_for_what_claimed_another_one() -> None:
    world = World()
    world.apply([event(f"{n}", june(8 + n), "CHECK_IN", at=T) for n in range(3)])
    assert world.profile.total_points == 5


def test_a_flight_west_over_the_date_line_keeps_the_streak_and_is_not_suspicious() -> None:
    """Los Angeles on the evening of the 9th, Sydney on the morning of the 11th: there was no 10th."""
    flight = [
        claim("la-8", datetime(2026, 6, 9, 4, tzinfo=UTC), "America/Los_Angeles"),
        claim("la-9", datetime(2026, 6, 10, 4, tzinfo=UTC), "America/Los_Angeles"),
        claim("sydney-11", datetime(2026, 6, 10, 23, tzinfo=UTC), "Australia/Sydney"),
        claim("sydney-12", datetime(2026, 6, 11, 23, tzinfo=UTC), "Australia/Sydney"),
    ]
    for order in (flight, flight[::-1], [flight[2], flight[0], flight[3], flight[1]]):
        world = World()
        for each in order:
            world.apply([each])
        assert dates(world) == [june(8), june(9), june(11), june(12)]
        assert world.profile.cover.skipped == {june(10)}
        shown = shown_streak(world.profile.streak, world.profile.cover, june(12))
        assert (shown.current, shown.active_days, shown.spent) == (4, 4, ())
        assert not world.profile.tz_review
        world.check()


def test_a_date_that_is_missed_in_one_zone_is_missed() -> None:
    world = World()
    world.apply([claim("a", datetime(2026, 6, 9, 23, 59, tzinfo=UTC), "UTC")])
    world.apply([claim("b", datetime(2026, 6, 11, 0, 0, tzinfo=UTC), "UTC")])
    assert world.profile.cover.skipped == frozenset()
    assert world.profile.streak is not None
    assert world.profile.streak.length == 1


journeys = st.lists(
    st.tuples(st.integers(0, 40 * 60), st.integers(-3, 3)), min_size=1, max_size=12
)  # minutes that pass, and how many hours the offset moves in them at most


@st.composite
def travels(draw: st.DrawFn) -> list[Event]:
    """Events of somebody who flies at the speed of an aeroplane, and not over the date line."""
    at, offset = T, draw(st.integers(-12, 14))
    events = []
    for number, (minutes, moves) in enumerate(draw(journeys)):
        at += timedelta(minutes=minutes)
        # An hour of offset takes at least 40 minutes.
        offset = max(-12, min(14, offset + max(-(minutes // 40), min(minutes // 40, moves))))
        events.append(claim(str(number), at, f"{'-' if offset < 0 else '+'}{abs(offset):02}:00"))
    return events


@given(travels(), st.randoms(use_true_random=False))
def test_no_journey_loses_a_date_in_any_order(events: list[Event], chance: object) -> None:
    shuffled = sorted(events, key=lambda _: chance.random())  # type: ignore[attr-defined]
    whole, split = World(), World()
    whole.apply(events)
    for each in shuffled:
        split.apply([each])
    assert dates(whole) == sorted({each.activity_date for each in events})
    assert split.answer() == whole.answer()


def test_three_dates_of_a_night_over_the_date_line_are_earned_the_next_morning() -> None:
    """Samoa in the evening of the 9th, Tonga before and after midnight: nothing is lost for who is active later."""
    night = [
        claim("9", datetime(2026, 6, 10, 8, tzinfo=UTC), "Pacific/Pago_Pago"),
        claim("10", datetime(2026, 6, 10, 10, 30, tzinfo=UTC), "Pacific/Tongatapu"),
        claim("11", datetime(2026, 6, 10, 11, 30, tzinfo=UTC), "Pacific/Tongatapu"),
    ]
    assert [each.activity_date for each in night] == [june(9), june(10), june(11)]
    world = World()
    world.apply(night)
    assert dates(world) == [june(9), june(10)]
    world.apply([claim("morning", datetime(2026, 6, 10, 20, tzinfo=UTC), "Pacific/Tongatapu")])
    assert dates(world) == [june(9), june(10), june(11)]


claims = st.lists(
    st.tuples(
        st.integers(0, 60 * 24 * 4), st.sampled_from(["-12:00", "-07:00", "+00:00", "+05:45", "+14:00"])
    ),
    min_size=1,
    max_size=25,
)


@given(claims, st.booleans())
def test_whatever_is_claimed_eight_hours_open_at_most_two_dates(
    lies: list[tuple[int, str]], apart: bool
) -> None:
    events = [claim(str(n), T + timedelta(minutes=m - m % 60), zone) for n, (m, zone) in enumerate(lies)]
    world = World()
    for part in [[each] for each in events] if apart else [events]:
        world.apply(part)
        world.check()
    opened: dict[date, list[datetime]] = {}
    for each in assign_dates(events, {}):
        opened.setdefault(each.activity_date, []).append(instant_of(each.event_id))
    firsts = sorted(min(instants) for instants in opened.values())
    assert len(set(firsts)) == len(firsts)
    assert all(later - first >= NEAR for first, later in zip(firsts, firsts[2:], strict=False))


def seen(*events: Event) -> list[tuple[str, date]]:
    return [(event.event_id, event.activity_date) for event in events]


def test_a_date_between_is_flown_over_only_within_a_day() -> None:
    evening, morning = event("a", june(9), at=T), event("b", june(11), at=T + DAY - SECOND)
    assert flight_gap_dates(seen(evening, morning), {}) == {june(10)}
    later = replace(morning, event_id=event("b", june(11), at=T + DAY).event_id)
    assert flight_gap_dates(seen(evening, later), {}) == set()


def test_a_date_that_was_flown_over_is_kept_when_a_writer_dies_after_the_ledger() -> None:
    evening, morning = event("a", june(9), at=T), event("b", june(11), at=T + DAY - SECOND)
    world = World()
    world.apply([morning])
    world.apply([evening], writes=1)
    world.apply()
    assert world.profile.cover.skipped == {june(10)}
    assert world.profile.streak is not None
    assert world.profile.streak.length == 2


def test_an_event_that_keeps_no_streak_opens_no_date_and_has_its_own() -> None:
    """Three zones at one instant: a passive one first, then an active one, which opens the date that it claims."""
    at = datetime(2026, 6, 1, 11, tzinfo=UTC)
    world = World()
    world.apply([replace(claim("passive", at, "+14:00"), is_passive=True)])
    assert (world.profile.streak, dates(world)) == (None, [june(2)])
    world.apply([claim("active", at, "-12:00")])
    streak = world.profile.streak
    assert streak
    assert (streak.last, streak.active_days) == (claim("active", at, "-12:00").activity_date, 1)
