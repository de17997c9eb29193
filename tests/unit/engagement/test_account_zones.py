"""Dates and time zones of one account: travel, skipped dates, and zone changes that ask for a review."""

from datetime import UTC, date, datetime, timedelta

from rules.engagement.account import change_timezone, observe_events
from rules.engagement.account_state import Profile
from rules.engagement.review import TZ_CHANGES_KEPT_MAX
from rules.engagement.streak import Streak
from tests.support.account_world import World, june
from tests.support.engagement_strategies import NOW, event


def test_a_date_that_apia_skipped_joins_its_neighbours() -> None:
    world = World()
    for day in (29, 31):
        world.apply([event(str(day), date(2011, 12, day), zone="Pacific/Apia")])
    assert world.profile.streak == Streak(date(2011, 12, 31), 2, 2, 2)
    assert world.profile.cover.skipped == {date(2011, 12, 30)}
    world.check()


def test_a_skipped_date_that_becomes_known_late_joins_a_run_that_had_ended() -> None:
    world = World()
    for day in (29, 31):
        world.apply([event(str(day), date(2011, 12, day))])
    assert world.profile.streak == Streak(date(2011, 12, 31), 1, 1, 2)
    world.apply([event("late", date(2011, 12, 29), zone="Pacific/Apia")])
    assert world.profile.streak == Streak(date(2011, 12, 31), 2, 2, 2)
    world.check()


def test_travel_west_credits_the_date_that_comes_twice_once() -> None:
    world = World()
    for key, at, zone, day in (
        ("a", datetime(2026, 6, 10, 11, tzinfo=UTC), "Pacific/Auckland", june(10)),
        ("b", datetime(2026, 6, 11, 1, tzinfo=UTC), "America/Los_Angeles", june(10)),
        ("c", datetime(2026, 6, 11, 19, tzinfo=UTC), "America/Los_Angeles", june(11)),
    ):
        world.apply([event(key, day, zone=zone, at=at)])
    assert world.profile.streak == Streak(june(11), 2, 2, 2)
    assert world.days[june(10)].events_count == 2
    assert world.profile.zone == "America/Los_Angeles"
    world.check()


def test_the_zone_is_that_of_the_event_that_occurred_last_whatever_arrives_last() -> None:
    world = World()
    world.apply([event("b", june(2), zone="Asia/Tokyo")])
    world.apply([event("a", june(1), zone="Europe/Berlin")])
    assert world.profile.zone == "Asia/Tokyo"


def test_the_zone_that_the_user_has_set_wins_over_the_observed_one() -> None:
    profile = observe_events(
        Profile("u", chosen_zone="Europe/Paris"), [event("a", june(1), zone="Asia/Tokyo")]
    )
    assert (profile.zone, profile.observed_zone) == ("Europe/Paris", "Asia/Tokyo")
    assert Profile("u").zone == "UTC"


def test_an_event_in_a_zone_that_no_longer_exists_is_still_applied() -> None:
    world = World()
    world.apply([event("a", june(1), zone="Europe/Atlantis")])
    assert world.profile.streak == Streak(june(1), 1, 1, 1)


def test_observing_again_changes_nothing() -> None:
    seen = [event("a", date(2011, 12, 29), zone="Pacific/Apia"), event("b", june(2), zone="Asia/Tokyo")]
    once = observe_events(Profile("u"), seen)
    assert observe_events(once, seen) is once
    assert observe_events(observe_events(Profile("u"), seen[::-1]), seen[:1]) == once


def test_more_than_two_zone_changes_in_24_hours_flag_a_review() -> None:
    profile = Profile("u")
    for hours, zone, flagged in ((0, "UTC", False), (1, "Asia/Tokyo", False), (23, "Europe/Paris", True)):
        profile = change_timezone(profile, zone, NOW + timedelta(hours=hours))
        assert profile.tz_review is flagged
    assert [to for _, to in profile.tz_changes] == ["UTC", "Asia/Tokyo", "Europe/Paris"]


def test_two_zone_changes_a_day_are_no_reason_for_a_review() -> None:
    profile = Profile("u")
    for number in range(12):
        profile = change_timezone(profile, f"+{number:02}:00", NOW + number * timedelta(hours=12))
    assert not profile.tz_review
    assert len(profile.tz_changes) == TZ_CHANGES_KEPT_MAX
    assert profile.tz_changes[-1][1] == "+11:00"
