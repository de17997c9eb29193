"""A JSON Schema check names the field that is wrong and says why."""

from typing import Any

import pytest
from hypothesis import given

from ingest.engagement import engagement_schemas, event_schemas
from ingest.web.validate import first_problem
from tests.support.http_requests import VALID, json_values, near_events


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"idempotency_key": None}, "idempotency_key"),
        ({"idempotency_key": ""}, "idempotency_key"),
        ({"idempotency_key": "k" * 129}, "idempotency_key"),
        ({"idempotency_key": "k\n"}, "idempotency_key"),
        ({"idempotency_key": "é"}, "idempotency_key"),
        ({"event_type": "NO TYPE"}, "event_type"),
        ({"event_type": ["CHECK_IN"]}, "event_type"),
        ({"occurred_at": 5}, "occurred_at"),
        ({"occurred_at": "x" * 41}, "occurred_at"),
        ({"timezone": 7}, "timezone"),
        ({"timezone": "z" * 257}, "timezone"),
        ({"source": ""}, "source"),
        ({"user_id": "../v"}, "user_id"),
        ({"user_id": "u\n"}, "user_id"),
        ({"user_id": ""}, "user_id"),
        ({"properties": []}, "properties"),
        ({"properties": None}, "properties"),
    ],
)
def test_an_invalid_field_is_named(change: dict[str, Any], field: str) -> None:
    problem = first_problem(event_schemas.EVENT, {**VALID, **change})
    assert problem is not None
    assert problem[0] == field
    assert problem[1]


@pytest.mark.parametrize("field", sorted(VALID))
def test_a_missing_field_is_named(field: str) -> None:
    rest = {name: value for name, value in VALID.items() if name != field}
    assert first_problem(event_schemas.EVENT, rest) == (field, "is missing")


def test_an_unknown_field_is_named() -> None:
    problem = first_problem(event_schemas.EVENT, {**VALID, "points": 1000})
    assert problem is not None
    assert "points" in problem[1]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "body"),
        ("text", "body"),
        (None, "body"),
        ({}, "events"),
        ({"events": {}}, "events"),
        ({"events": []}, "events"),
        ({"events": [{}] * 101}, "events"),
        ({"events": [{}, 7]}, "events.1"),
    ],
)
def test_a_wrong_shape_is_told_by_its_place(body: Any, field: str) -> None:
    problem = first_problem(event_schemas.EVENTS, body)
    assert problem is not None
    assert problem[0] == field


def test_what_is_valid_has_no_problem() -> None:
    assert first_problem(event_schemas.EVENT, VALID) is None
    assert (
        first_problem(
            event_schemas.EVENT, {**VALID, "properties": {"a": [1]}, "user_id": "a.b@c:d", "source": "x"}
        )
        is None
    )
    assert first_problem(event_schemas.EVENTS, {"events": [{}] * 100}) is None


@given(json_values | near_events)
def test_anything_is_valid_or_told_with_field_and_reason(value: Any) -> None:
    for schema in (
        event_schemas.EVENT,
        event_schemas.EVENTS,
        engagement_schemas.REDEMPTION,
        engagement_schemas.FREEZE,
        engagement_schemas.PAUSE,
    ):
        problem = first_problem(schema, value)
        assert problem is None or (all(problem) and len(problem[1]) <= 300)
