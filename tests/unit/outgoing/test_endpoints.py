"""What an endpoint hears of, and when it is asked again."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.outgoing.notices import (
    BACKOFF_MAX,
    BUS,
    RETRY_DELAYS,
    RETRY_WINDOW,
    Endpoint,
    Filters,
    Notice,
    NoticeType,
    backoff_after,
    is_given_up,
    next_attempt,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def endpoint(*types: str, **filters: Any) -> Endpoint:
    by_type: Filters = {"streak.extended": filters} if filters else {}
    return Endpoint("e1", "acme", "https://hooks.example.com/", frozenset(types), by_type)


def extended(**data: Any) -> Notice:
    return Notice(NoticeType.STREAK_EXTENDED, data)


OF_ACME = {"organization_id": "acme", "agent_id": "bot"}


def test_without_types_an_endpoint_hears_of_everything() -> None:
    everything = replace(endpoint(), agents=frozenset({"bot"}))
    assert all(everything.wants(Notice(each, OF_ACME)) for each in NoticeType)
    one = endpoint("points.changed")
    assert {each for each in NoticeType if one.wants(Notice(each, OF_ACME))} == {
        NoticeType.POINTS_CHANGED,
        NoticeType.TEST,
    }


@pytest.mark.parametrize("asked", [(), ("lead.updated", "question.closed")])
def test_no_organization_hears_of_another_one_s_leads_or_of_questions_of_agents_that_are_not_its_own(
    asked: tuple[str, ...],
) -> None:
    lead = Notice(NoticeType.LEAD_UPDATED, {"organization_id": "acme"})
    question = Notice(NoticeType.QUESTION_CLOSED, {"agent_id": "bot"})
    acme = replace(endpoint(*asked), agents=frozenset({"bot"}))
    assert acme.wants(lead)
    assert acme.wants(question)
    globex = replace(acme, organization_id="globex", agents=frozenset({"robot"}))
    assert not globex.wants(lead)
    assert not globex.wants(question)
    assert not endpoint(*asked).wants(question), "no agent was named"
    bus = Endpoint(BUS, "", "apps")
    assert bus.wants(lead)
    assert bus.wants(question)


@pytest.mark.parametrize(
    ("values", "found", "fits"),
    [
        ([7, 30], 7, True),
        ([7, 30], 8, False),
        ([{"at_least": 30}], 30, True),
        ([{"at_least": 30}], 29, False),
        ([7, {"at_least": 30}], 31, True),
        ([7], None, False),
        ([{"at_least": 0}], None, False),
        ([{"at_least": 0}], True, False),
        (["missed"], "missed", True),
        ([1], True, False),
        ([True], True, True),
    ],
)
def test_a_filter_names_values(values: list[Any], found: Any, fits: bool) -> None:
    assert endpoint(current_streak=values).wants(extended(current_streak=found)) == fits


def test_a_filter_is_for_its_type_alone_and_all_its_fields_must_fit() -> None:
    one = endpoint(current_streak=[7], **{"from": [6]})
    assert one.wants(Notice(NoticeType.POINTS_CHANGED, {}))
    assert one.wants(extended(current_streak=7, **{"from": 6}))
    assert not one.wants(extended(current_streak=7, **{"from": 5}))


@given(st.integers(1, 10_000))
def test_waits_grow_and_never_end(failures: int) -> None:
    assert timedelta() < next_attempt(failures, NOW) - NOW <= RETRY_DELAYS[-1]
    assert next_attempt(failures, NOW) <= next_attempt(failures + 1, NOW)
    assert timedelta() < backoff_after(failures) <= backoff_after(failures + 1) <= BACKOFF_MAX


def test_after_three_days_of_silence_there_is_one_more_attempt() -> None:
    assert timedelta(days=3) + RETRY_DELAYS[-1] + BACKOFF_MAX < RETRY_WINDOW
    assert not is_given_up(NOW, NOW + timedelta(days=3, hours=1))
    assert is_given_up(NOW, NOW + RETRY_WINDOW)
