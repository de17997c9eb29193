"""Rule 8: which accounts wait for an admin, and what a release forgets."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rules import days
from rules.engagement.account import change_timezone
from rules.engagement.account_state import Profile
from rules.engagement.events import Event
from rules.engagement.review import (
    EVIDENCE_KEPT_MAX,
    ZONES_KEPT_MAX,
    end_review,
    note_zones,
    put_under_review,
    with_zone_review,
)
from rules.engagement.streak import Cover
from tests.support.account_world import World
from tests.support.engagement_strategies import NOW, event

T = datetime(2026, 6, 10, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def seen(*zones: str, hours: int = 5, kind: str = "CONTRIBUTION") -> Profile:
    events = [
        event(str(n), (T + n * hours * HOUR).date(), kind, zone=zone, at=T + n * hours * HOUR)
        for n, zone in enumerate(zones)
    ]
    return with_zone_review(note_zones(Profile("u"), events), NOW)


def test_zones_that_events_name_count_as_changes() -> None:
    told = seen("Asia/Tokyo", "Asia/Dubai", "Asia/Kolkata", "Asia/Bangkok")
    assert told.tz_review
    assert told.review_evidence == ("3 changes of zone in 24 hours: Asia/Dubai, Asia/Kolkata, Asia/Bangkok",)
    assert not seen("Asia/Tokyo", "Asia/Dubai", "Asia/Kolkata").tz_review
    assert not seen("Asia/Tokyo", "Asia/Dubai", "Asia/Kolkata", "Asia/Bangkok", hours=12).tz_review


@pytest.mark.parametrize(
    "zones",
    [
        ("Europe/Berlin", "+02:00") * 4,  # one offset in summer
        ("Europe/Berlin", "+00:00") * 4,  # a server writes UTC
        ("Europe/Berlin", "UTC") * 4,
    ],
)
def test_a_phone_and_a_server_are_no_traveller(zones: tuple[str, ...]) -> None:
    assert not seen(*zones, hours=1).tz_review


def test_utc_in_between_hides_no_change() -> None:
    assert seen("-12:00", "UTC", "+14:00", "UTC", "-11:00", "UTC", "+13:00", hours=1).tz_review


def flights(world: World, first: int, count: int) -> None:
    """Two events a minute apart, every other date at 11:00 UTC: in the world's last zone, and in its first."""
    for number in range(first, first + count):
        for minute, zone in enumerate(("-12:00", "+14:00")):
            at = T - HOUR + timedelta(days=2 * number, minutes=minute)
            claimed = at.astimezone(days.zone(zone)).date()
            world.apply([event(f"{number}{zone}", claimed, zone=zone, at=at)])


def test_who_flies_west_over_the_date_line_every_other_day_is_looked_at_and_who_does_at_times_is_not() -> (
    None
):
    world = World(Profile("u"))
    flights(world, 0, 3)
    assert not world.profile.tz_review
    flights(world, 3, 1)
    assert world.profile.tz_review
    (reason,) = world.profile.review_evidence
    assert reason == "more than 3 flights west over the date line in 30 days"
    assert (world.profile.streak and world.profile.streak.length) == 5, "its activity counts"
    world.set(end_review(world.profile, T + timedelta(days=7)))
    flights(world, 4, 3)
    assert not world.profile.tz_review
    flights(world, 40, 3)
    assert not world.profile.tz_review
    flights(world, 43, 1)
    assert world.profile.tz_review


def test_dates_of_an_outage_are_no_flights() -> None:
    outage = tuple(T.date() + timedelta(days=day) for day in range(-6, -1))
    cover = Cover(skipped=frozenset(outage))
    world = World(replace(Profile("u"), cover=cover, amnesties=((1, outage),)))
    flights(world, 0, 3)
    assert not world.profile.tz_review
    flights(world, 3, 1)
    assert world.profile.tz_review


def test_what_a_server_declares_says_nothing_of_the_user_s_zone() -> None:
    assert seen("-12:00", "+14:00", "-11:00", "+13:00", hours=1, kind="PURCHASE_COMPLETED").zones_seen == ()


def test_a_release_forgets_what_was_seen_and_not_what_comes() -> None:
    profile = seen("Asia/Tokyo", "Asia/Dubai", "Asia/Kolkata", "Asia/Bangkok")
    free = end_review(profile, T + 16 * HOUR)
    assert (free.tz_review, free.review_evidence) == (False, ())
    assert not with_zone_review(free, T + 16 * HOUR).tz_review
    for minute, zone in enumerate(("Europe/Rome", "Europe/Paris", "Asia/Tokyo")):
        free = change_timezone(free, zone, T + 17 * HOUR + timedelta(minutes=minute))
    assert free.tz_review
    assert end_review(Profile("u"), NOW) == Profile("u")


def test_little_is_kept_of_it() -> None:
    profile = Profile("u")
    for number in range(50):
        profile = put_under_review(profile, NOW, f"reason {number}")
    assert (profile.review_evidence[0], profile.review_evidence[-1]) == ("reason 0", "reason 49")
    assert len(profile.review_evidence) == EVIDENCE_KEPT_MAX
    assert len(seen(*("+01:00", "+02:00") * 9).zones_seen) == ZONES_KEPT_MAX


def three_dates_of_one_instant() -> list[Event]:
    return [
        event(str(place), T.date() + timedelta(days=place), at=T, zone=zone)
        for place, zone in enumerate(("-12:00", "+00:00", "+14:00"))
    ]


def test_a_writer_that_dies_after_the_ledger_hides_no_impossible_claim() -> None:
    claims = three_dates_of_one_instant()
    world = World()
    world.apply(claims, writes=1)
    assert not world.profile.tz_review
    world.apply(claims)
    assert world.profile.tz_review
    alive = World()
    alive.apply(claims)
    assert world.profile.review_evidence == alive.profile.review_evidence


def test_claims_that_an_admin_has_seen_come_again_and_are_no_news() -> None:
    world = World()
    world.apply(three_dates_of_one_instant())
    world.set(end_review(world.profile, world.now + HOUR))
    world.now += 2 * HOUR
    world.apply(three_dates_of_one_instant())
    assert not world.profile.tz_review
    assert not World().apply([event("x", T.date(), at=T)]).profile.tz_review
