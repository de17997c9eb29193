"""What another book's rest days would have led to: the dates that begin under a candidate are judged by it."""

from datetime import UTC, date, datetime

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
