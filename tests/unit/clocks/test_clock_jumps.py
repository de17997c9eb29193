"""Whose clock jumps is looked at (rules 8 and 16)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rules.days import stamp
from rules.engagement.account_state import Profile
from rules.engagement.events import APPS, Event
from rules.engagement.review import SKEWS_KEPT_MAX, end_review, note_skews, with_clock_review
from tests.support.account_world import World
from tests.support.engagement_strategies import event

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def sent(number: int, after: timedelta, wrong: timedelta) -> Event:
    """An event that arrived some time after START from a clock that was ahead by `wrong`."""
    at = START + after
    made = replace(event(f"k{number}", at.date(), at=at), source=APPS)
    said = (at + wrong).isoformat() if wrong else None
    return replace(made, created_at=stamp(at), occurred_at=at.isoformat(), device_time=said)


def seen(*wrong_hours: float, apart: timedelta = HOUR) -> Profile:
    profile = Profile("u")
    for number, hours in enumerate(wrong_hours):
        profile = note_skews(profile, [sent(number, number * apart, hours * HOUR)])
    return with_clock_review(profile, START + len(wrong_hours) * apart)


def test_a_clock_that_is_steadily_wrong_is_no_evidence() -> None:
    profile = seen(5, 5.2, 4.9, 5, 5.1)
    assert not profile.tz_review
    assert len(profile.skews_seen) == 1


def test_a_clock_that_jumps_three_times_a_day_is() -> None:
    assert not seen(0.5, 24, 48).tz_review
    profile = seen(0.5, 24, 48, 72)
    assert profile.review_evidence == (
        "the clock jumped 3 times in 24 hours, to -1440, -2880, -4320 minutes",
    )
    assert not seen(0.5, 24, 48, 72, apart=13 * HOUR).tz_review


def test_a_clock_that_is_put_right_and_wrong_again_jumps_each_time() -> None:
    assert not seen(0, 0, 24, 0).tz_review, "put right once"
    assert seen(0, 24, 0, 24, 0).review_evidence == (
        "the clock jumped 3 times in 24 hours, to 0, -1440, 0 minutes",
    )
    assert seen(0, 0, 0) == with_clock_review(Profile("u"), START), "nothing is kept of a clock that is right"


def test_what_servers_say_is_no_clock_of_a_device() -> None:
    for more in ({"by_server": True}, {"source": "kinesis"}, {"source": "shop"}):
        profile = Profile("u")
        for number, hours in enumerate((24, 0, 24, 0, 24, 0)):
            one = sent(number, number * HOUR, hours * HOUR)
            profile = note_skews(profile, [one if hours else replace(one, **more)])
        assert len(profile.skews_seen) == 1


def test_events_that_come_again_or_late_are_no_jumps() -> None:
    events = [sent(number, number * HOUR, wrong * HOUR) for number, wrong in enumerate((2, 26, 2))]
    events.append(sent(3, 2 * HOUR, 26 * HOUR))  # in the moment of the one before
    profile = note_skews(Profile("u"), events)
    assert note_skews(profile, reversed(events)) == profile
    assert note_skews(profile, events) == profile


def test_a_release_forgets_what_was_seen_and_little_is_kept() -> None:
    profile = seen(0.5, 24, 48, 72)
    free = end_review(profile, START + 5 * HOUR)
    assert not with_clock_review(free, START + 5 * HOUR).tz_review
    assert len(seen(*range(1, 90, 3)).skews_seen) == SKEWS_KEPT_MAX


def test_the_processor_puts_the_account_on_the_list() -> None:
    world = World()
    for number, wrong in enumerate((3, 30, 3, 30)):
        world.apply([sent(number, number * HOUR, wrong * HOUR)])
    assert world.profile.tz_review
    assert world.profile.balance
