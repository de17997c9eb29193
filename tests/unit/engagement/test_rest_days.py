"""Rest days: which dates they are, from when a book or a choice counts, and what a profile keeps (rule 2)."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.engagement.account_items import profile_attributes, profile_from
from rules.book.book import Book, Books, Version
from rules.book.daily import NO_REST, DailyRules, Weekday
from rules.days import EPOCH
from rules.engagement.account import decide_settings, profile_with_entries
from rules.engagement.account_settings import setting_drafts, with_setting
from rules.engagement.account_state import (
    Account,
    DateReason,
    Profile,
    covered_dates,
    explain_date,
)
from rules.engagement.rest_days import (
    CHOICE_KEPT,
    ChoiceTooSoon,
    RestDays,
    chosen_anew,
    first_date_to_come,
)
from rules.engagement.streak import Cover, StreakStatus, fold, lapse_date, shown_streak
from tests.support.engagement_strategies import instants
from tests.support.examples import examples

DAY = timedelta(days=1)
SATURDAY, SUNDAY = Weekday.SATURDAY, Weekday.SUNDAY
WEEKEND = DailyRules(frozenset({SATURDAY, SUNDAY}))
CHOSEN = DailyRules(chosen_max=2)
FRIDAY = date(2026, 3, 6)
WEEKENDS = Cover(rest=RestDays(((date.min, WEEKEND),)))
NOON = datetime(2026, 3, 6, 12, tzinfo=UTC)


def version(
    number: int, effective: datetime, rules: DailyRules, published: datetime | None = None
) -> Version:
    return Version(number, effective, lambda: Book({}, daily=rules), published or effective)


def test_a_weekend_is_no_miss_uses_no_freeze_and_adds_nothing() -> None:
    cover = replace(WEEKENDS, freezes=((FRIDAY, 1),))
    streak = fold([FRIDAY, FRIDAY + 3 * DAY], cover)
    assert streak and (streak.length, streak.spent) == (2, ())
    worked = fold([FRIDAY + number * DAY for number in range(4)], cover)
    assert worked and worked.length == 4, "activity on a rest date counts as ever"


def test_a_rest_date_is_not_at_risk_and_the_streak_lapses_later() -> None:
    streak = fold([FRIDAY], WEEKENDS)
    assert streak
    shown = [shown_streak(streak, WEEKENDS, FRIDAY + number * DAY).status for number in range(5)]
    active, at_risk = StreakStatus.ACTIVE, StreakStatus.AT_RISK
    assert shown == [active, active, active, at_risk, StreakStatus.BROKEN]
    assert lapse_date(streak, WEEKENDS) == FRIDAY + 4 * DAY


def test_a_gap_of_years_ends_at_its_first_miss() -> None:
    cover = replace(WEEKENDS, freezes=tuple((FRIDAY + number * DAY, 1) for number in range(3)))
    streak = fold([FRIDAY, date(9990, 1, 1)], cover)
    assert streak and (streak.length, len(streak.spent)) == (1, 3)


def test_explain_and_calendar_say_why() -> None:
    profile = Profile("ann", cover=WEEKENDS, streak=fold([FRIDAY], WEEKENDS))
    assert explain_date(profile.streak, profile, FRIDAY + DAY, FRIDAY + 5 * DAY) == (DateReason.REST, 1)
    covered = covered_dates(profile, (FRIDAY, FRIDAY + 9 * DAY), FRIDAY + 5 * DAY)
    assert covered == [(FRIDAY + DAY, DateReason.REST), (FRIDAY + 2 * DAY, DateReason.REST)]


@pytest.mark.parametrize("delay", [timedelta(0), timedelta(hours=9)])
def test_a_version_judges_the_dates_that_begin_under_it(delay: timedelta) -> None:
    begins = datetime(2026, 3, 6, tzinfo=UTC)
    books = Books([version(1, EPOCH, NO_REST), version(2, begins + delay, WEEKEND)])
    assert books.daily_terms == ((date.min, NO_REST), (FRIDAY + bool(delay) * DAY, WEEKEND))


def test_a_version_of_the_past_excuses_no_past_date() -> None:
    past = datetime(2026, 1, 1, tzinfo=UTC)
    books = Books([version(1, EPOCH, NO_REST), version(2, past, WEEKEND, published=NOON)])
    assert books.daily_terms[-1] == (FRIDAY + DAY, WEEKEND)


def test_the_shipped_book_has_none() -> None:
    assert Books([version(1, EPOCH, NO_REST), version(2, NOON, NO_REST)]).daily_terms == ()


@settings(max_examples=examples(200))
@given(instants)
def test_a_choice_counts_from_a_date_that_has_begun_nowhere(now: datetime) -> None:
    since = first_date_to_come(now)
    assert datetime.combine(since, datetime.min.time(), UTC) - timedelta(hours=14) > now
    assert datetime.combine(since - DAY, datetime.min.time(), UTC) - timedelta(hours=14) <= now


@settings(max_examples=examples(200))
@given(instants, st.integers(-3, 3), st.integers(1, 86_399))
def test_there_is_one_change_in_28_days(now: datetime, days: int, seconds: int) -> None:
    rest = chosen_anew(RestDays(), [SUNDAY, SATURDAY], now)
    assert chosen_anew(rest, [SATURDAY, SUNDAY], now + DAY) is rest, "the same again is no change"
    later = now + CHOICE_KEPT + days * DAY + timedelta(seconds=seconds)
    try:
        changed = chosen_anew(rest, [SUNDAY], later)
    except ChoiceTooSoon as error:
        assert later < error.again_at
        chosen_anew(rest, [SUNDAY], error.again_at)
        with pytest.raises(ChoiceTooSoon):
            chosen_anew(rest, [SUNDAY], error.again_at - timedelta(microseconds=1))
    else:
        assert changed.chosen[1][0] - changed.chosen[0][0] >= CHOICE_KEPT


def test_a_later_book_that_allows_fewer_takes_the_first_ones() -> None:
    one = DailyRules(chosen_max=1)
    rest = RestDays(((date.min, CHOSEN), (FRIDAY, one)), ((date.min, (SATURDAY, SUNDAY)),))
    assert rest.on(FRIDAY - DAY) == {SATURDAY, SUNDAY}
    assert rest.on(FRIDAY) == {SATURDAY}
    assert replace(rest, terms=((date.min, WEEKEND),)).on(FRIDAY) == {SATURDAY, SUNDAY}
    assert not replace(rest, terms=()).on(FRIDAY)


def test_a_choice_is_an_entry_and_comes_back_from_it() -> None:
    before = Profile("ann", cover=Cover(rest=RestDays(((date.min, CHOSEN),))))
    rest = chosen_anew(before.cover.rest, [SATURDAY], NOON)
    changed = replace(before, cover=replace(before.cover, rest=rest))
    decision = decide_settings(Account(before, {}), changed, NOON)
    assert [entry.draft.set_to for entry in decision.entries] == [None, "2026-03-08 saturday"]
    assert decision.profile.cover.rest.is_same(rest)
    assert profile_with_entries(before, decision.entries).cover == changed.cover
    stored = profile_from(
        {name: value for name, value in profile_attributes(decision.profile).items() if value is not None},
        before.cover.rest.terms,
    )
    assert stored.cover == changed.cover and stored.cover.rest.terms


def test_to_choose_none_is_a_choice() -> None:
    first = chosen_anew(RestDays(), [SATURDAY], NOON)
    none = chosen_anew(first, [], NOON + CHOICE_KEPT)
    before, after = (Profile("ann", cover=Cover(rest=rest)) for rest in (first, none))
    (draft,) = setting_drafts(before, after)
    assert with_setting(before, draft) == after
    assert not none.chosen_on(date(2026, 5, 1))


def test_a_text_that_was_never_written_is_refused() -> None:
    (draft,) = setting_drafts(
        Profile("ann"), Profile("ann", cover=Cover(rest=chosen_anew(RestDays(), [SUNDAY], NOON)))
    )
    for text in ("2026-03-08 caturday", "sunday", ""):
        with pytest.raises(ValueError, match=r"weekday|isoformat"):
            with_setting(Profile("ann"), replace(draft, set_to=text))
