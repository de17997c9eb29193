"""A JSON Schema check names the field that is wrong and says why."""

import json
import time
from typing import Any

import pytest
from hypothesis import given

from ingest.engagement import event_body
from ingest.engagement.points.redemptions import REDEMPTION
from ingest.engagement.points.spending import FREEZE
from ingest.engagement.preferences import PAUSE
from ingest.web.api import json_body
from ingest.web.caller import ApiError
from ingest.web.json_schema import closed_object
from ingest.web.validate import PROBLEMS_MAX, all_problems, first_problem
from tests.support.http_requests import VALID, json_values, near_events, sent


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
    problem = first_problem(event_body.EVENT, {**VALID, **change})
    assert problem is not None
    assert problem[0] == field
    assert problem[1]


@pytest.mark.parametrize("field", sorted(VALID))
def test_a_missing_field_is_named(field: str) -> None:
    rest = {name: value for name, value in VALID.items() if name != field}
    assert first_problem(event_body.EVENT, rest) == (field, "is missing")


def test_an_unknown_field_is_named() -> None:
    problem = first_problem(event_body.EVENT, {**VALID, "points": 1000})
    assert problem is not None
    assert "points" in problem[1]
    valid = {**VALID, "properties": {"a": [1]}, "user_id": "a.b@c:d", "source": "x"}
    assert first_problem(event_body.EVENT, valid) is None


@given(json_values | near_events)
def test_anything_is_valid_or_told_with_field_and_reason(value: Any) -> None:
    for schema in (event_body.EVENT, REDEMPTION, FREEZE, PAUSE):
        problem = first_problem(schema, value)
        assert problem is None or (all(problem) and len(problem[1]) <= 300)


THING = closed_object(
    {
        "name": {"type": "string", "pattern": "^[a-z]+$"},
        "number": {"type": "integer", "minimum": 0},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "inner?": closed_object({"x": {"type": "integer"}, "y": {"type": "string"}}),
        "listed?": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 2}},
        "either?": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    },
)


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["kind", "name", "number"]),
        ({"name": "A", "number": -1, "kind": "c"}, ["kind", "name", "number"]),
        ({"name": "A", "number": "1"}, ["kind", "name", "number"]),
        ({"name": "a", "number": 1, "kind": "a", "inner": {"x": "1"}}, ["inner.x", "inner.y"]),
        ({"name": "a", "number": 1, "kind": "a", "inner": 5, "listed": ["aaa", "a", 7]}, ["inner", "listed.0", "listed.2"]),
        ({"name": "a", "number": 1, "kind": "a", "listed": ["aaa"] * 6}, ["listed"]),
        ({"name": "a", "number": 1, "kind": "a", "either": None}, ["either"]),
        ({"name": "a", "number": True, "kind": "a", "more": 1}, ["body", "number"]),
        ([], ["body"]),
    ],
)  # fmt: skip
def test_every_field_at_fault_is_named_the_first_one_first(body: Any, fields: list[str]) -> None:
    found = all_problems(THING, body)
    assert found[0] == first_problem(THING, body)
    named = {field for field, reason in found if reason}
    assert named >= set(fields) - {"listed"}, found
    assert len(found) == len(named)
    with pytest.raises(ApiError) as refused:
        json_body(sent(json.dumps(body)), THING)
    assert refused.value.status == 422
    assert refused.value.details == [{"field": field, "reason": reason} for field, reason in found]
    number = f"{len(found)} faults: " if len(found) > 1 else ""
    assert str(refused.value) == number + "; ".join(map(" ".join, found))


def test_a_body_with_many_faults_is_refused_quickly_and_in_few_words() -> None:
    schema = closed_object({"all?": {"type": "array", "items": {"type": "integer"}}})
    began = time.process_time()
    assert len(all_problems(schema, {"all": ["x"] * 100_000})) == PROBLEMS_MAX
    assert len(all_problems(schema, {"all": [*[1] * 100_000, "x"]})) >= 1
    assert time.process_time() - began < 2


@given(json_values)
def test_what_is_right_has_no_problems_and_what_is_wrong_has_some(body: Any) -> None:
    assert bool(all_problems(THING, body)) is (first_problem(THING, body) is not None)
