"""What another book's rest days would have led to: the dates that begin under a candidate are judged by it."""

from datetime import UTC, date, datetime, time

from analytics.what_if.timeline import Timeline
from analytics.what_if.user_history import UserSettings, actual_world
from rules.book.book import Book, Books, Version
from rules.book.daily import NO_REST, DailyRules, Weekday
from rules.days import EPOCH

WEEKEND = DailyRules(frozenset({Weekday.SATURDAY, Weekday.SUNDAY}))
CHOSEN = DailyRules(chosen_max=1)
SINCE = datetime(2026, 3, 6, 12, tzinfo=UTC)
REAL = Books([Version(1, EPOCH, lambda: Book({}, daily=CHOSEN))])


def test_a_candidate_judges_the_dates_that_would_have_begun_under_it() -> None:
    until = datetime(2026, 4, 1, tzinfo=UTC)
    terms = Timeline(REAL, Book({}, daily=WEEKEND), SINCE, until).predicted.daily_terms
    assert terms == ((date.min, CHOSEN), (date(2026, 3, 7), WEEKEND), (date(2026, 4, 1), CHOSEN))
    assert Timeline(REAL, Book({}, daily=WEEKEND)).predicted.daily_terms == ((date.min, WEEKEND),)
    assert Timeline(REAL, Book({}, daily=NO_REST)).predicted.daily_terms == ()


def test_choices_stay_as_they_were() -> None:
    chosen = ((date(2026, 3, 1), (Weekday.SUNDAY,)),)
    world = actual_world([], UserSettings(chosen=chosen), SINCE, REAL.daily_terms)
    assert world.cover.rest.on(date(2026, 3, 2)) == {Weekday.SUNDAY}


def test_dates_begin_as_they_did() -> None:
    at_three = DailyRules(day_starts_at=time(3))
    real = Books(
        [Version(1, EPOCH, lambda: Book({})), Version(2, SINCE, lambda: Book({}, daily=at_three), SINCE)]
    )
    judged = (date(2026, 3, 7), at_three)
    assert Timeline(real, Book({})).predicted_terms == real.daily_terms == ((date.min, NO_REST), judged)
    assert Timeline(real, Book({})).moves_dates
    weekends = Timeline(real, Book({}, daily=WEEKEND)).predicted_terms
    assert [(day, rules.rest_days, rules.day_starts_at) for day, rules in weekends] == [
        (date.min, WEEKEND.rest_days, time(0)),
        (judged[0], WEEKEND.rest_days, time(3)),
    ]
    assert not Timeline(real).moves_dates
    assert not Timeline(REAL, Book({}, daily=WEEKEND)).moves_dates
    assert Timeline(REAL, Book({}, daily=NO_REST)).predicted_terms == ()
