"""Query parameters (limit, date, from, to, cursor) are read, or the caller gets a 400."""

import base64
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.web.caller import ApiError
from ingest.web.paging import (
    FIRST_DATE,
    LAST_DATE,
    LIMIT_MAX,
    PageSpan,
    day_of,
    days_in,
    integer,
    moment_of,
    page,
    span_of,
)
from rules.days import key_of_stamp, stamp
from tests.support.http_requests import BAD_PARAMETER, cursor, query_refusal

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("text", ["0", "-1", "501", "1.5", "ten", "١", "1e2", " 1", "9" * 5000, "+5"])
def test_a_limit_that_is_none_is_a_400(text: str) -> None:
    assert query_refusal(lambda: integer({"limit": text}, "limit", 50, LIMIT_MAX)) == BAD_PARAMETER


def test_a_limit_is_a_whole_number_or_the_default() -> None:
    assert [integer(query, "limit", 50, 500) for query in ({}, {"limit": ""}, {"limit": "500"})] == [
        50,
        50,
        500,
    ]


@pytest.mark.parametrize(
    "text",
    [
        "yesterday",
        "2026-02-30",
        "20260601",
        "2026-6-1",
        "2026-06-01T00:00:00Z",
        "2026-W01-1",
    ],
)
def test_a_date_that_is_none_is_a_400(text: str) -> None:
    assert query_refusal(lambda: day_of({"date": text}, "date")) == BAD_PARAMETER


@pytest.mark.parametrize("text", ["1969-12-31", "3000-01-01", "0001-01-01", "9999-12-31"])
@pytest.mark.parametrize("time", ["", "T00:00:00Z", "T12:00:00+00:00", "T12:00:00 00:00"])
def test_a_date_beyond_the_bounds_is_a_422_that_names_the_field(text: str, time: str) -> None:
    query = {"from": text + time}
    asked: list[Any] = [lambda: moment_of(query, "from", timedelta())]
    if not time:
        asked.append(lambda: day_of(query, "from"))
    for read in asked:
        with pytest.raises(ApiError) as refused:
            read()
        assert refused.value.status == 422
        assert refused.value.details == [
            {"field": "from", "reason": "must lie between 1970-01-01 and 2999-12-31"}
        ]


def test_a_date_is_read() -> None:
    assert day_of({"date": "2026-06-01"}, "date") == date(2026, 6, 1)
    assert day_of({}, "date") is None
    assert day_of({"date": "1970-01-01"}, "date") == FIRST_DATE
    assert day_of({"date": "2999-12-31"}, "date") == LAST_DATE


def test_a_date_as_an_end_includes_its_whole_day() -> None:
    span = span_of({"from": "2026-06-01", "to": "2026-06-02"}, NOW, NOW)
    assert span == PageSpan("2026-06-01T00:00:00Z", "2026-06-03T00:00:00Z", 50)


def test_an_instant_is_taken_as_it_is() -> None:
    span = span_of({"from": "2026-06-01T02:00:00+02:00", "limit": "7"}, NOW, NOW)
    assert span == PageSpan("2026-06-01T00:00:00Z", key_of_stamp(stamp(NOW)), 7)


@pytest.mark.parametrize("text", ["now", "2026-06-01T00:00:00", "2026-06-01 00", "99999-01-01"])
def test_an_instant_that_is_none_is_a_400(text: str) -> None:
    assert query_refusal(lambda: moment_of({"from": text}, "from", timedelta())) == BAD_PARAMETER


def test_the_cursor_of_a_full_page_leads_to_the_next() -> None:
    first = page("entries", [{"created_at": stamp(NOW)}], 1, "created_at")
    assert span_of({"cursor": first["cursor"]}, NOW - timedelta(1), NOW).until == key_of_stamp(stamp(NOW))
    assert page("entries", [{"created_at": stamp(NOW)}], 2, "created_at")["cursor"] is None


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "é",
        "\ud800",
        "%%%%",
        "e30=",
        cursor([]),
        cursor("before"),
        cursor(5),
        cursor(None),
        cursor({"after": "x"}),
        base64.urlsafe_b64encode(b"\xff\xff").decode(),
        base64.urlsafe_b64encode(b"[" * 6000).decode(),
        base64.urlsafe_b64encode(b'{"before":' * 3000).decode(),
        cursor({"before": "\ud800"}),
        cursor({"before": None}),
        cursor({"before": "x" * 2000}),
    ],
    ids=lambda text: ascii(text)[:40],
)
def test_a_cursor_that_no_page_returned_is_a_400(text: str) -> None:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    assert query_refusal(lambda: span_of({"cursor": text}, since, NOW)) == BAD_PARAMETER


@given(st.dictionaries(st.sampled_from(["from", "to", "limit", "cursor"]), st.text(max_size=30)))
def test_any_parameters_are_a_span_or_a_400(query: dict[str, str]) -> None:
    try:
        span = span_of(query, NOW - timedelta(30), NOW)
    except ApiError as refused:
        assert (refused.status, refused.code) == BAD_PARAMETER
        return
    assert 1 <= span.limit <= LIMIT_MAX


@pytest.mark.parametrize("text", ["2026-02-30", "2026-13-01", "0000-01-01", "2999-12-31", "1969-12-31", "x"])
def test_all_wrong_dates_of_a_body_are_told_by_field(text: str) -> None:
    last = date(2027, 1, 1)
    with pytest.raises(ApiError) as refused:
        days_in({"first": text, "last": text, "other": "2026-06-01"}, last, "first", "other", "last")
    assert (refused.value.status, refused.value.code) == (422, "invalid_field")
    assert [each["field"] for each in refused.value.details] == ["first", "last"]
    assert all(each["reason"].startswith("must ") for each in refused.value.details)
    assert days_in({"first": "2026-06-01"}, last, "first", "last") == [date(2026, 6, 1), None]
