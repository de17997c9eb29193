"""Who is told of a question, and what phones show: intervals are kept, quiet hours follow the wall."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.book_store import shipped_document
from adapters.platform.items import decode_item
from adapters.questions.subscription_store import items_of, keys_of, subscription_from, subscription_item
from rules.book.document import read_book
from rules.book.reminders import ReminderText
from rules.days import AT_MIDNIGHT, DAY, local_date, stamp, start_of, unstamp, zone
from rules.questions.notifications import (
    INTERVAL_MINUTES_MAX,
    NEVER,
    STREAK_SECONDS_MAX,
    QuietHours,
    Subscription,
    claim_expires_at,
    is_eligible,
    is_interval_over,
    is_quiet,
    last_notified_at_max,
    later_stamp,
    message_of_question,
    message_of_streak,
    partitions_to_ask,
    quiet_hours,
    shard_of,
)
from rules.questions.questions import QuestionType, is_in_audience
from tests.support.engagement_strategies import instants, zones
from tests.support.examples import examples
from tests.support.questions.asking import asked

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
SMALL = settings(max_examples=examples(40))
BERLIN = "Europe/Berlin"
TEXT = ReminderText("Tonight", "{days} days")
tags = st.lists(st.sampled_from("abcd"), unique=True, max_size=3).map(sorted)
minutes = st.integers(0, 30) | st.integers(0, INTERVAL_MINUTES_MAX)
clocks = st.builds(time, st.integers(0, 23), st.integers(0, 59))
quiets = st.builds(QuietHours, clocks, clocks).filter(lambda each: each.since != each.until)


def subscription(**more: Any) -> Subscription:
    made = Subscription("id", "owner", "token", (), 60, "UTC", None, False, stamp(NOW), stamp(NOW))
    return replace(made, **more)


@st.composite
def subscriptions(draw: st.DrawFn) -> Subscription:
    return subscription(
        tags=tuple(draw(tags)),
        min_interval_minutes=draw(minutes),
        timezone=draw(zones),
        quiet_hours=draw(st.none() | quiets),
        streak_reminders=draw(st.booleans()),
        last_notified_at=draw(st.just(NEVER) | instants.map(stamp)),
        endpoint_arn=draw(st.sampled_from(["", "arn"])),
        reminders_at=draw(st.none() | clocks),
        language=draw(st.sampled_from(["", "pt-BR"])),
    )


@SMALL
@given(subscriptions())
def test_a_subscription_is_stored_and_read(each: Subscription) -> None:
    assert subscription_from(decode_item(subscription_item(each))) == each


@SMALL
@given(subscriptions(), tags, instants)
def test_the_index_is_asked_for_all_who_hear_and_whose_interval_is_over(
    each: Subscription, wanted: Sequence[str], now: datetime
) -> None:
    places = [decode_item(stored) for stored in items_of(each, now).values()]
    found = [
        place
        for least, partition in partitions_to_ask(wanted, shard_of(each.subscription_id))
        for place in places
        if place.get("active") == partition
        and place["last_notified_at"] <= (last_notified_at_max(least, now) or "3")
    ]
    awake = replace(each, quiet_hours=None)
    assert (bool(found) and is_interval_over(each, now)) == is_eligible(awake, wanted, now)
    assert is_eligible(each, wanted, now) == (
        is_eligible(awake, wanted, now) and not is_quiet(each.quiet_hours, each.timezone, now)
    )
    assert set(items_of(each, now)) <= set(keys_of(each))


@pytest.mark.parametrize(
    ("audience", "wanted", "told"),
    [
        ((), (), True),
        ((), ("a",), False),
        (("a",), (), True),
        (("a", "b"), ("b", "c"), True),
        (("a",), ("b",), False),
    ],
)
def test_a_question_with_tags_is_for_those_with_one_of_them(audience: Any, wanted: Any, told: bool) -> None:
    assert is_in_audience(wanted, audience) is told
    assert is_eligible(subscription(tags=audience), wanted, NOW) is told


@SMALL
@given(minutes.filter(bool), instants)
def test_an_interval_has_elapsed_when_it_is_over_and_no_earlier(minutes: int, last: datetime) -> None:
    each = subscription(min_interval_minutes=minutes, last_notified_at=stamp(last))
    over = last + timedelta(minutes=minutes)
    assert is_eligible(each, (), over)
    assert not is_eligible(each, (), over - timedelta(microseconds=1))


def test_no_interval_is_none_even_if_clocks_differ_and_a_dead_token_hears_nothing() -> None:
    ahead = subscription(min_interval_minutes=0, last_notified_at=stamp(NOW + timedelta(minutes=5)))
    assert is_eligible(ahead, (), NOW)
    assert not is_eligible(subscription(is_active=False), (), NOW)


@SMALL
@given(quiets, zones, instants)
def test_quiet_is_told_by_the_wall(quiet: QuietHours, name: str, now: datetime) -> None:
    wall = now.astimezone(zone(name)).time()
    minute, first, last = (each.hour * 60 + each.minute for each in (wall, quiet.since, quiet.until))
    assert is_quiet(quiet, name, now) == ((minute - first) % 1440 < (last - first) % 1440)


@pytest.mark.parametrize(
    ("now", "quiet"),
    [
        ("2026-03-28T21:00:00Z", True),  # 22:00
        ("2026-03-29T00:59:00Z", True),  # 01:59, the minute before the gap
        ("2026-03-29T01:00:00Z", True),  # 03:00, the minute after it
        ("2026-03-29T04:59:00Z", True),
        ("2026-03-29T05:00:00Z", False),  # 07:00, in summer
        ("2026-10-25T05:59:00Z", True),
        ("2026-10-25T06:00:00Z", False),  # 07:00, in winter
    ],
)
def test_a_night_in_which_the_clocks_change(now: str, quiet: bool) -> None:
    assert is_quiet(quiet_hours("22:00", "07:00"), BERLIN, unstamp(now)) is quiet


def test_an_hour_that_comes_twice_is_quiet_twice_and_one_that_does_not_never() -> None:
    hour = quiet_hours("02:00", "03:00")
    autumn, spring = datetime(2026, 10, 25, tzinfo=UTC), datetime(2026, 3, 29, tzinfo=UTC)

    def minutes(day: datetime) -> int:
        return sum(is_quiet(hour, BERLIN, day + timedelta(minutes=each)) for each in range(-120, 1440))

    assert (minutes(autumn), minutes(spring)) == (120, 0)


@pytest.mark.parametrize(
    ("since", "until", "reason"),
    [
        ("24:00", "07:00", "24:00 is no time of a day"),
        ("22:60", "07:00", "22:60 is no time of a day"),
        ("7:00", "08:00", "'7:00' is no time HH:MM"),
        ("0700", "08:00", "'0700' is no time HH:MM"),
        ("٢٢:00", "08:00", "'٢٢:00' is no time HH:MM"),
        ("08:00", "08:00", "must not end when they begin"),
    ],
)
def test_quiet_hours_that_are_none(since: str, until: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        quiet_hours(since, until)


@SMALL
@given(instants, instants)
def test_a_version_is_never_taken_twice(old: datetime, now: datetime) -> None:
    assert later_stamp(stamp(old), now) == stamp(max(now, old + timedelta(microseconds=1)))
    assert later_stamp("", now) == stamp(now)


@SMALL
@given(st.integers(-100, 10**6), st.text(min_size=1, max_size=30), st.sampled_from(QuestionType))
def test_a_question_is_shown_for_as_long_as_it_takes_answers(
    seconds: int, prompt: str, kind: QuestionType
) -> None:
    question = replace(asked(), prompt=prompt, type=kind)
    message = message_of_question(question, unstamp(question.closes_at) - timedelta(seconds=seconds))
    assert message.ttl_seconds == seconds
    assert (message.title, message.body) == ("A new question", prompt)
    assert message.data == {
        "type": "question",
        "question_id": question.question_id,
        "question_type": kind.value,
    }


@SMALL
@given(st.integers(1, 9), instants, zones)
def test_a_reminder_is_gone_when_its_date_is(length: int, now: datetime, zone: str) -> None:
    message = message_of_streak(length, TEXT, now, zone, AT_MIDNIGHT)
    assert message.ttl_seconds <= STREAK_SECONDS_MAX
    gone = now + timedelta(seconds=message.ttl_seconds)
    ends = start_of(local_date(now, zone, AT_MIDNIGHT) + DAY, zone, AT_MIDNIGHT)
    assert gone <= ends
    assert message.ttl_seconds == STREAK_SECONDS_MAX or ends - gone < timedelta(seconds=1)
    assert message.data == {"type": "streak", "length": str(length)}


@pytest.mark.parametrize(
    ("length", "body"), [(1, "Keep your 1 day going today."), (2, "Keep your 2 days going today.")]
)
def test_a_reminder_counts_days(length: int, body: str) -> None:
    shipped = read_book(shipped_document()).reminders
    assert shipped is not None
    message = message_of_streak(length, shipped.text_in(""), NOW, "UTC", AT_MIDNIGHT)
    assert (message.title, message.body) == ("Your streak ends tonight", body)


@given(instants)
def test_a_claim_is_kept_a_week_after_its_message_may_go_out(last: datetime) -> None:
    assert claim_expires_at(last) == int(last.timestamp()) + 7 * 86400
