"""Dates without activity that end no streak: the same as `explain` says of each date by itself."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.engagement.history import covered_span
from ingest.web.caller import ApiError
from rules.engagement.account_state import DateReason, Profile, covered_dates, explain_date
from rules.engagement.streak import Cover, fold
from tests.support.engagement_strategies import histories

DAY = timedelta(days=1)
COVERED = (DateReason.FREEZE, DateReason.PAUSE, DateReason.REST, DateReason.SKIPPED)


@given(histories(days_min=1), st.integers(0, 20))
def test_it_is_what_explain_says_of_each_date(history: tuple[list[date], Cover], later: int) -> None:
    days, cover = history
    first, today = min(days) - 3 * DAY, max(days) + later * DAY
    span = (first, today + 5 * DAY)
    told = dict(covered_dates(Profile("ann", streak=fold(days, cover), cover=cover), span, today))
    expected = {}
    for number in range((today - first).days + 1):
        day = first + number * DAY
        upto = fold([each for each in days if each <= day], cover)
        reason, _ = explain_date(upto, Profile("ann", cover=cover), day, today)
        if reason in COVERED:
            expected[day] = reason
    from_the_first = {day: why for day, why in told.items() if day >= min(days) and day not in days}
    assert from_the_first == expected


@pytest.mark.parametrize(
    "query",
    [
        {"covered": "true"},
        {"covered": "true", "from": "2026-01-01"},
        {"covered": "true", "from": "2025-01-01", "to": "2026-01-02"},
        {"covered": "yes"},
    ],
    ids=str,
)
def test_a_span_of_more_than_a_year_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(ApiError, match="covered"):
        covered_span(query)


def test_a_leap_year_is_a_span() -> None:
    query = {"covered": "true", "from": "2024-01-01", "to": "2024-12-31"}
    assert covered_span(query) == (date(2024, 1, 1), date(2024, 12, 31))
    assert covered_span(query | {"covered": "false"}) is None
