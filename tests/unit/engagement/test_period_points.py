"""What boards count of a ledger, in profiles (rules/engagement/period_points.py)."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.engagement.account_items import profile_from, profile_item
from adapters.platform.items import decode_item, encode_item, item_bytes
from analytics.recompute.user_fold import UserFold
from rules.book.board_rules import BoardPeriod, BoardRule
from rules.book.daily import DailyRules, DailyTerms
from rules.days import AT_MIDNIGHT, DAY, Moment, date_of, stamp
from rules.engagement.account import profile_with_entries
from rules.engagement.account_state import Profile
from rules.engagement.ledger import Draft, Entry, EntryKind
from rules.engagement.period_points import (
    CLOSES_AFTER,
    OPENING_TYPE,
    pack_period_points,
    unpack_period_points,
    with_period_points,
)
from rules.engagement.periods import counted_until, ends_at, final_at, period_named
from rules.engagement.reconciliation import profile_of
from rules.engagement.rest_days import RestDays
from rules.engagement.streak import Cover
from tests.support.examples import examples
from tests.support.ten_years import TenYears

WEEKLY, MONTHLY = BoardRule("weekly", BoardPeriod.WEEK), BoardRule("monthly", BoardPeriod.MONTH)
SEASON = BoardRule("autumn", None, date(2026, 9, 1), date(2026, 11, 30))
ALL: DailyTerms = ((date.min, DailyRules(boards=(SEASON, MONTHLY, WEEKLY))),)
ONE: DailyTerms = ((date.min, DailyRules(boards=(WEEKLY,))),)
SEASONS = tuple(BoardRule(f"s{days}", None, date(2026, 1, 1), date(2026, 12, 31 - days)) for days in range(3))
FIVE = (MONTHLY, *SEASONS, WEEKLY)
WEEK = period_named("2026-W48")  # 23 to 29 November
SUNDAY = date(2026, 11, 29)
FINAL, CLOSED = final_at(WEEK, ONE), ends_at(WEEK, ONE) + CLOSES_AFTER
MICROSECOND = timedelta(microseconds=1)


def entry(
    points: int,
    at: datetime,
    day: date | None = SUNDAY,
    kind: EntryKind = EntryKind.EARN,
    event_type: str = "READ",
) -> Entry:
    return Entry("u", stamp(at), 1, 0, Draft(kind, points, "e", event_type, day.isoformat() if day else None))


def counted(*entries: Entry, terms: DailyTerms = ONE) -> dict[str, tuple[int, int]]:
    in_order = sorted(entries, key=lambda each: each.created_at)
    found = with_period_points((), in_order, terms)
    assert unpack_period_points(pack_period_points(found)) == found
    return {each.period.name: (each.points, each.late) for each in found}


def test_entries_of_a_date_count_in_the_periods_that_have_it() -> None:
    at = datetime(2026, 11, 29, 12, tzinfo=UTC)
    assert counted(entry(5, at), entry(7, at, SUNDAY - DAY), terms=ALL) == {
        "2026-09-01--2026-11-30": (12, 0),
        "2026-11": (12, 0),
        "2026-W48": (12, 0),
    }
    assert counted(entry(5, at, SUNDAY + DAY), entry(5, at)) == {"2026-W48": (5, 0), "2026-W49": (5, 0)}
    assert counted(entry(5, at), terms=()) == {}


def test_what_is_taken_back_and_rerated_counts_and_nothing_else_does() -> None:
    at = datetime(2026, 11, 29, 12, tzinfo=UTC)
    entries = [
        entry(50, at),
        entry(-20, at + MICROSECOND, kind=EntryKind.CLAWBACK),
        entry(3, at + MICROSECOND, kind=EntryKind.RERATE),
        entry(100, at + MICROSECOND, kind=EntryKind.BONUS),
        entry(-10, at + MICROSECOND, None, EntryKind.REDEEM),
        entry(1000, at + MICROSECOND, event_type=OPENING_TYPE),
    ]
    assert counted(*entries) == {"2026-W48": (33, 0)}
    assert counted(entry(50, at), entry(-50, at + DAY, kind=EntryKind.CLAWBACK)) == {}


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (CLOSED - MICROSECOND, (5, 0)),
        (CLOSED, (5, 5)),
        (FINAL - MICROSECOND, (5, 5)),
        (FINAL, None),
    ],
)
def test_what_comes_after_the_end_is_late_and_after_the_final_instant_it_does_not_count(
    at: datetime, expected: tuple[int, int] | None
) -> None:
    assert counted(entry(5, at)) == ({"2026-W48": expected} if expected else {})


def test_what_is_taken_back_late_is_late() -> None:
    entries = [entry(5, CLOSED - DAY), entry(-5, CLOSED, kind=EntryKind.CLAWBACK)]
    assert counted(*entries) == {"2026-W48": (0, -5)}


def test_a_period_is_kept_for_two_weeks_after_it_is_final() -> None:
    first, until = entry(5, FINAL - DAY), counted_until(WEEK, ONE)
    nothing = Draft(EntryKind.ADJUST, 0)
    for at, kept in [(until - MICROSECOND, {"2026-W48": (5, 5)}), (until, {})]:
        assert counted(first, Entry("u", stamp(at), 2, 5, nothing)) == kept


moments = st.integers(0, 60 * 24 * 60).map(
    lambda minutes: datetime(2026, 11, 1, tzinfo=UTC) + timedelta(minutes=minutes)
)


@st.composite
def ledgers(draw: st.DrawFn) -> list[Entry]:
    """Entries of one user, oldest first, each with a date of the fortnight before it."""
    places = sorted(draw(st.sets(moments, min_size=1, max_size=20)))
    return [
        entry(
            draw(st.integers(-5, 30)),
            at,
            at.date() - draw(st.integers(-1, 14)) * DAY,
            draw(st.sampled_from([EntryKind.EARN, EntryKind.CLAWBACK, EntryKind.RERATE, EntryKind.BONUS])),
        )
        for at in places
    ]


@settings(max_examples=examples(150))
@given(ledgers(), st.data())
def test_any_split_of_the_entries_counts_the_same(entries: list[Entry], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(entries)))
    blank = Profile("u", cover=Cover(rest=RestDays(ALL)))
    whole = profile_with_entries(blank, entries)
    halves = profile_with_entries(profile_with_entries(blank, entries[:cut]), entries[cut:])
    assert whole.period_points == halves.period_points == profile_of(blank, entries).period_points
    stored = decode_item(profile_item(whole, 4, datetime(2026, 12, 31, tzinfo=UTC)))
    assert profile_from(stored, ALL).period_points == whole.period_points


@settings(max_examples=examples(150))
@given(ledgers())
def test_the_counts_are_those_of_a_plain_reading(entries: list[Entry]) -> None:
    """A period that is kept has the sum over its dates of what was written before it was final."""
    newest = datetime.fromisoformat(entries[-1].created_at)
    names = [f"2026-W{week}" for week in range(40, 54)] + ["2026-10", "2026-11", "2026-12", "2027-01"]
    expected = {}
    for period in (*map(period_named, names), period_named("2026-09-01--2026-11-30")):
        final = final_at(period, ALL)
        if newest >= final + timedelta(days=15):
            continue
        rows = [
            (datetime.fromisoformat(each.created_at), each.draft.points)
            for each in entries
            if each.draft.kind is not EntryKind.BONUS and period.has(each.draft.day)
        ]
        points = sum(points for at, points in rows if at < final)
        late = sum(points for at, points in rows if final > at >= final - timedelta(hours=66))
        if points or late:
            expected[period.name] = (points, late)
    assert counted(*entries, terms=ALL) == expected


@pytest.mark.parametrize(
    "text", ["2026-11-23/6", "2026-11-23", "2026-11-23/6+5x", "x/6+5", "2026-11-23/6+5 -1/6+5"]
)
def test_a_damaged_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no points of a period|no number of days|Invalid isoformat"):
        unpack_period_points(text)


def test_a_fold_of_the_lake_keeps_the_boards_that_it_was_settled_under() -> None:
    fold = UserFold("u", daily_terms=ALL)
    fold.add_entries([entry(5, datetime(2026, 11, 29, 12, tzinfo=UTC))])
    settled = fold.settled_up_to(date(2026, 11, 29))
    again = UserFold.of({**settled.row(), "state": settled.state}, ALL)
    assert again.settled_cover.rest.is_same(settled.settled_cover.rest)
    assert again.profile.period_points == fold.profile.period_points != ()


@pytest.mark.parametrize(
    ("boards", "profile_bytes"), [((WEEKLY,), 1024), ((MONTHLY, WEEKLY), 1024), (FIVE, 1100)]
)
def test_counters_have_a_bound_however_long_the_account_lives(
    boards: tuple[BoardRule, ...], profile_bytes: int
) -> None:
    """With a board of weeks and one of months, the profile of ten years stays within a write unit."""
    terms: DailyTerms = ((date.min, DailyRules(boards=boards)),)
    account = TenYears("5f0f8a43-0b1f-4a2f-8c11-000000000000", date(2026, 3, 19), terms)
    counted = account.profile.period_points
    assert len(counted) <= 5 + 2 + 3
    assert counted[-1].period.name == "2026-W12"
    assert item_bytes(encode_item({"period_points": pack_period_points(counted)})) <= 13 + 4 * 8 + 11 * len(
        boards
    )
    assert max(account.sizes) <= profile_bytes


def test_without_boards_a_profile_has_no_byte_of_them() -> None:
    account = TenYears("5f0f8a43-0b1f-4a2f-8c11-000000000000", date(2026, 3, 19))
    assert "period_points" not in account.written


def test_an_event_at_the_last_second_of_the_zone_farthest_west_counts() -> None:
    last = datetime(2026, 11, 30, 11, 59, 59, tzinfo=UTC)
    came = last + timedelta(hours=71)
    activity_date, _ = date_of(Moment(last, None), "-12:00", None, AT_MIDNIGHT)
    assert counted(entry(5, came, activity_date)) == {"2026-W48": (5, 5)}
    activity_date, _ = date_of(Moment(last + timedelta(seconds=1), None), "-12:00", None, AT_MIDNIGHT)
    assert counted(entry(5, came, activity_date)) == {"2026-W49": (5, 0)}
