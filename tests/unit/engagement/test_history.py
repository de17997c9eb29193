"""A user's history is asked for a span of time, and a ledger entry by its id."""

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.engagement.history import Histories, created_at_of
from ingest.web.caller import ApiError
from ingest.web.validate import first_problem
from rules.days import stamp, unstamp
from rules.engagement.ledger import entry_id
from tests.support.http_requests import BAD_PARAMETER, cursor

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


class Tables:
    """Reads that refuse, as DynamoDB does, a BETWEEN whose ends are swapped."""

    def __init__(self) -> None:
        self.ledger = self

    def newest(self, _: str, since: str, until: str, limit: int, now: datetime) -> list[Any]:
        assert since <= until, "ValidationException: BETWEEN"
        return []

    def page(self, _: str, since: str, until: str, limit: int) -> list[Any]:
        assert since <= until, "ValidationException: BETWEEN"
        return []

    def newest_days(self, _: str, first: date, last: date, limit: int) -> list[Any]:
        assert first <= last, "ValidationException: BETWEEN"
        return []


SWAPPED = [
    {"from": "2026-06-02", "to": "2026-05-01"},
    {"from": "2026-06-02T00:00:00Z", "to": "2026-06-01T00:00:00Z"},
    {"from": "2500-01-01"},
    {"to": "1970-01-01"},
    {"from": "0500-01-01T00:00:00Z"},
    {"cursor": cursor({"before": "0"})},
    {"cursor": cursor({"before": "2026-05-01"}), "from": "2026-05-01"},
]


@pytest.mark.parametrize("query", SWAPPED, ids=str)
@pytest.mark.parametrize("what", ["events", "activity", "ledger"])
def test_a_span_that_ends_before_it_begins_is_empty_or_refused(what: str, query: dict[str, str]) -> None:
    tables: Any = Tables()
    histories = Histories(tables, tables)
    try:
        if what == "activity":
            histories.activity("u", query)
        else:
            histories.events("u", query, NOW) if what == "events" else histories.ledger("u", query)
    except ApiError as refused:
        assert (refused.status, refused.code) in (BAD_PARAMETER, (422, "invalid_field"))


@given(st.datetimes(datetime(1990, 1, 1), datetime(2035, 12, 31), timezones=st.just(UTC)))  # noqa: DTZ001
def test_an_entry_s_place_and_its_id_are_each_other_s(moment: datetime) -> None:
    there = stamp(moment)
    assert created_at_of(entry_id(there)) == there
    assert first_problem({"type": "string", "pattern": "^[0-9]{8}T[0-9]{12}Z$"}, entry_id(there)) is None
    assert unstamp(there) == moment
