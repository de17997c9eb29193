"""What an agent can ask, and who is an agent."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.questions.question_schemas import ANSWER, QUESTION
from ingest.web.caller import ApiError, caller_of
from ingest.web.validate import first_problem
from rules.days import stamp
from rules.engagement.events import FUTURE_MAX
from rules.questions.questions import (
    KEPT,
    OPEN_MAX,
    QuestionStatus,
    QuestionType,
    new_question,
    question_ids,
    shown_status,
)
from tests.support.asking import BODY, asked, refusal
from tests.support.examples import examples

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"options": None}, "options"),
        ({"options": ["a", "a"]}, "options"),
        ({"options": ["Yes", " yes "]}, "options"),
        ({"options": ["a", " "]}, "options.1"),
        ({"type": "text"}, "options"),
        ({"prompt": " "}, "prompt"),
        ({"closes_at": "tomorrow"}, "closes_at"),
        ({"closes_at": stamp(NOW)}, "closes_at"),
        ({"closes_at": stamp(NOW - SECOND)}, "closes_at"),
        ({"closes_at": stamp(NOW + OPEN_MAX + FUTURE_MAX + SECOND)}, "closes_at"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_field(changes: dict[str, Any], field: str) -> None:
    assert refusal(lambda: asked(**changes)) == ("invalid_field", field)


@given(st.timedeltas(timedelta(microseconds=1), OPEN_MAX))
@settings(max_examples=examples(50))
def test_a_question_is_kept_90_days_after_it_closes(ahead: timedelta) -> None:
    question = asked(closes_at=stamp(NOW + ahead))
    assert question.closes_at == stamp(NOW + ahead)
    assert question.expires_at == int((NOW + ahead + KEPT).timestamp())
    assert shown_status(question, NOW) is QuestionStatus.OPEN


def test_the_id_belongs_to_agent_and_key() -> None:
    names = [("a", "k"), ("b", "k"), ("a", "l"), ("ak", "")]
    ids = [each for name in names for each in islice(question_ids(*name), 4)]
    assert len(set(ids)) == 16
    assert asked().question_id == next(question_ids("agent", "k"))


@pytest.mark.parametrize(
    ("schema", "body", "field"),
    [
        (QUESTION, BODY | {"required_responses": 0}, "required_responses"),
        (QUESTION, BODY | {"required_responses": 1001}, "required_responses"),
        (QUESTION, BODY | {"prompt": "x" * 1001}, "prompt"),
        (QUESTION, BODY | {"options": ["a"]}, "options"),
        (QUESTION, BODY | {"options": list("abcdefghijk")}, "options"),
        (QUESTION, BODY | {"audience": ["No"]}, "audience.0"),
        (QUESTION, BODY | {"category": "a b"}, "category"),
        (QUESTION, BODY | {"type": "poll"}, "type"),
        (QUESTION, BODY | {"agent_id": "other"}, "body"),
        (ANSWER, {"confidence": 0}, "confidence"),
        (ANSWER, {"confidence": 6}, "confidence"),
        (ANSWER, {"selected_option": -1}, "selected_option"),
        (ANSWER, {"selected_option": True}, "selected_option"),
        (ANSWER, {"answer": "x" * 2001}, "answer"),
        (ANSWER, {"response_time_ms": -1}, "response_time_ms"),
        (ANSWER, {"user_id": "other"}, "body"),
    ],
)
def test_a_body_s_fault_is_named(schema: Any, body: dict[str, Any], field: str) -> None:
    problem = first_problem(schema, body)
    assert problem is not None
    assert problem[0] == field


def test_examples_are_valid() -> None:
    assert first_problem(QUESTION, QUESTION["example"]) is None
    assert first_problem(ANSWER, ANSWER["example"]) is None
    assert new_question(QUESTION["example"], "id", "agent", "", NOW).type is QuestionType.MULTIPLE_CHOICE


@pytest.mark.parametrize(
    ("groups", "is_agent"),
    [
        ("[streakline/agents]", True),
        ("other,streakline/agents", True),
        ("[my-streakline/agents]", False),
        ("streakline/admin", False),
        ("", False),
    ],
)
def test_an_agent_is_known_by_group(groups: str, is_agent: bool) -> None:
    claims = {"sub": "a", "cognito:groups": groups}
    caller = caller_of({"requestContext": {"authorizer": {"jwt": {"claims": claims}}}})
    assert caller.is_agent is is_agent
    assert caller.is_admin is (groups == "streakline/admin")
    if is_agent or caller.is_admin:
        caller.check_agent()
        return
    with pytest.raises(ApiError) as refused:
        caller.check_agent()
    assert refused.value.status == 403
