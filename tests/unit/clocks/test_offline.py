"""Which late events count: those of a stretch between two contacts, as far as the book allows (rule 16)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.book.book import OfflineRules
from rules.engagement.events import InputRefused
from rules.engagement.offline import (
    OPEN_FOR,
    RECEIPT_AGE_MAX,
    STRETCHES_MAX,
    OfflineProof,
    Receipt,
    Stretch,
    new_stretch,
    offline_in_a_year,
    open_stretch,
)

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
PHONE, TABLET = "a" * 16, "b" * 16
BOOK = OfflineRules(14, 60)


def receipt(days_ago: float, owner: str = PHONE) -> Receipt:
    return Receipt(NOW - days_ago * DAY, owner)


def stretch(since_days_ago: float, until_days_ago: float = 0, owner: str = PHONE) -> Stretch:
    since = NOW - since_days_ago * DAY
    until = NOW - until_days_ago * DAY
    return Stretch(owner, since, since, until, until + OPEN_FOR)


def reason(error: InputRefused) -> str:
    return f"{error.code} {error.field} {error.reason}"


def refused(proof: OfflineProof, days_ago: float, book: OfflineRules = BOOK) -> str:
    with pytest.raises(InputRefused) as told:
        proof.check(NOW - days_ago * DAY, book)
    return reason(told.value)


def unknown(now: datetime, own: Receipt, *used: Stretch) -> str:
    with pytest.raises(InputRefused) as told:
        open_stretch(own, used, now)
    return told.value.reason


INSTANTS = st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 (aware by timezones)


@given(INSTANTS, INSTANTS, INSTANTS, INSTANTS)
def test_a_stretch_is_read_as_it_was_written(
    receipt_at: datetime, since: datetime, until: datetime, open_until: datetime
) -> None:
    one = Stretch(PHONE, receipt_at, since, until, open_until)
    assert Stretch.of(one.text) == one


@given(st.floats(3.01, 13.9), st.floats(0, 1))
def test_whatever_happened_in_a_week_at_sea_counts(days: float, part: float) -> None:
    found = new_stretch(receipt(days), [], [], NOW)
    assert OfflineProof(found, (found,)).check(NOW - part * days * DAY, BOOK)


def test_before_the_receipt_nothing_is_proven() -> None:
    proof = OfflineProof(stretch(7))
    assert proof.check(NOW - 7 * DAY - timedelta(minutes=4), BOOK)
    assert "before 2026-06-03T12:00:00" in refused(proof, 7.01)


def test_the_book_says_how_old_an_event_may_be() -> None:
    proof = OfflineProof(stretch(40))
    assert proof.check(NOW - 14 * DAY, BOOK)
    assert "more than 14 days ago" in refused(proof, 14.01)
    assert proof.check(NOW - 30 * DAY, OfflineRules(30, 60))
    assert "more than 0 days ago" in refused(proof, 3.5, OfflineRules(0, 60))


def test_a_receipt_that_was_used_begins_no_other_stretch() -> None:
    first = stretch(7)
    assert open_stretch(receipt(7), [first], NOW) == first
    assert open_stretch(receipt(7), [first], NOW + OPEN_FOR) == first
    assert unknown(NOW + OPEN_FOR + HOUR, receipt(7), first).startswith("was used before")


def test_a_receipt_whose_answer_was_lost_stands_for_the_one_that_was_in_it() -> None:
    first, later = stretch(7), NOW + OPEN_FOR + 2 * DAY
    assert open_stretch(receipt(7), [first], later, lambda over: over == first) is None
    second = new_stretch(receipt(7), [first], [], later)
    assert (second.since, second.until, second.receipt_at) == (NOW, later, first.receipt_at)
    assert second == replace(new_stretch(receipt(0), [first], [], later), receipt_at=first.receipt_at)
    assert open_stretch(receipt(7), [first, second], later + HOUR) == second, "another batch of the queue"
    assert unknown(later + OPEN_FOR + HOUR, receipt(7), first, second).startswith("was used before")


def test_older_receipts_of_a_device_are_out_of_order_and_those_of_another_are_not() -> None:
    first = stretch(7)
    assert unknown(NOW, receipt(8), first).startswith("is out of order")
    assert open_stretch(receipt(8, TABLET), [first], NOW) is None


def test_a_newer_receipt_goes_on_with_a_stretch_that_is_open_and_begins_another_later() -> None:
    first = stretch(7)
    assert open_stretch(receipt(5), [first], NOW + HOUR) == first
    later = NOW + OPEN_FOR + HOUR
    assert open_stretch(Receipt(later - 3 * DAY, PHONE), [first], later) is None


@given(st.floats(3.1, 30), st.floats(3.1, 30))
def test_a_new_stretch_begins_after_all_that_is_known_of_the_user(
    receipt_days: float, contact_days: float
) -> None:
    contact = NOW - contact_days * DAY
    found = new_stretch(receipt(receipt_days), [stretch(30, 5, TABLET)], [contact], NOW)
    assert found.since == max(NOW - receipt_days * DAY, contact, NOW - 5 * DAY)
    assert (found.receipt_at, found.until) == (NOW - receipt_days * DAY, NOW)


@given(st.lists(st.floats(0.001, 20), max_size=6), st.floats(0.1, 20), st.floats(0, 3))
def test_nobody_has_more_than_72_hours_after_the_first_contact(
    contacts: list[float], event: float, wait: float
) -> None:
    """What a drawer device brings: an event that could have been sent with another device's batch is late."""
    found = new_stretch(receipt(20), [], [NOW - days * DAY for days in contacts], NOW)
    first = min([0 * DAY, *(-days * DAY for days in contacts if days < event)])
    is_taken = wait * DAY <= found.open_until - NOW and found.since <= NOW - event * DAY
    could = wait * DAY - first <= OPEN_FOR
    assert not is_taken or could


def test_old_receipts_have_expired() -> None:
    days = RECEIPT_AGE_MAX / DAY
    assert open_stretch(receipt(days), [], NOW) is None
    assert unknown(NOW, receipt(days + 0.01)).startswith("has expired")


def test_only_so_many_stretches_are_kept_of_a_year() -> None:
    many = [stretch(300 - number, 299 - number) for number in range(STRETCHES_MAX)]
    assert unknown(NOW, receipt(7, TABLET), *many).startswith("is one too many")
    assert open_stretch(receipt(7, TABLET), many[1:], NOW) is None
    older = replace(many[0], until=NOW - 366 * DAY)
    assert open_stretch(receipt(7, TABLET), [older, *many[1:]], NOW) is None


def test_a_user_is_not_offline_for_most_of_the_year() -> None:
    used = tuple(stretch(100 + number * 20, 87 + number * 20) for number in range(4))  # 4 times 13 days
    proof = OfflineProof(stretch(12), used)
    assert proof.check(NOW - 8 * DAY, BOOK)
    assert "more than 60 days offline within a year" in refused(proof, 8.01)
    assert OfflineProof(stretch(12), used[:3]).check(NOW - 12 * DAY, BOOK)


def test_of_a_long_silence_no_more_is_counted_than_could_be_proven() -> None:
    assert offline_in_a_year(stretch(4), [stretch(100, 40)], NOW - 4 * DAY, BOOK) == 18 * DAY


@given(st.lists(st.tuples(st.floats(0, 300), st.floats(0, 14)), max_size=6), st.floats(3, 14))
def test_time_that_two_stretches_share_counts_once(spans: list[tuple[float, float]], days: float) -> None:
    used = [stretch(ago + length, ago, TABLET) for ago, length in spans]
    own = stretch(days)
    hours = {
        hour
        for each in [*used, own]
        for hour in range(int((NOW - each.until) / HOUR), int((NOW - each.since) / HOUR))
    }
    found = offline_in_a_year(own, [*used, own], own.since, BOOK) / HOUR
    assert abs(found - len(hours)) <= len(spans) + 2
    assert found <= sum((each.until - each.since) / HOUR for each in [*used, own]) + 0.01
