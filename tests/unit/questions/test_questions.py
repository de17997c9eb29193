"""What an agent can ask, what a question shows, and which answers it takes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.platform.items import decode_item, encode_item
from ingest.questions.question_schemas import ANSWER, QUESTION
from ingest.web.caller import ApiError, caller_of
from ingest.web.validate import first_problem
from rules.days import stamp
from rules.engagement.events import FUTURE_MAX, InputRefused
from rules.questions.questions import (
    ANSWERABLE,
    KEPT,
    OPEN_DEFAULT,
    OPEN_MAX,
    STORED_WITHIN,
    QuestionStatus,
    QuestionType,
    check_answer,
    check_open,
    from_item,
    is_done,
    is_in_audience,
    is_listed,
    new_question,
    question_ids,
    shown_status,
    statuses_to_read,
    to_item,
)
from tests.support.examples import examples
from tests.support.questions.asking import BODY, asked, refusal

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("stored", ANSWERABLE)
@pytest.mark.parametrize(
    ("count", "when", "status"),
    [
        (0, timedelta(), QuestionStatus.OPEN),
        (1, timedelta(), QuestionStatus.PARTIAL),
        (4, timedelta(hours=24) - SECOND, QuestionStatus.PARTIAL),
        (4, timedelta(hours=24), QuestionStatus.EXPIRED),
        (0, timedelta(days=400), QuestionStatus.EXPIRED),
    ],
)
def test_what_shows_follows_from_counter_and_clock(
    count: int, when: timedelta, status: QuestionStatus, stored: QuestionStatus
) -> None:
    assert shown_status(replace(asked(), current_responses=count, status=stored), NOW + when) is status


def test_a_closed_question_never_becomes_expired() -> None:
    closed = replace(asked(), current_responses=5, status=QuestionStatus.CLOSED, closed_at=stamp(NOW))
    assert shown_status(closed, NOW + timedelta(days=400)) is QuestionStatus.CLOSED
    assert refusal(check_open, closed, NOW) == ("question_closed", "question")


def test_an_item_that_its_time_to_live_has_left_behind_is_expired() -> None:
    left = replace(asked(), closes_at=stamp(NOW + SECOND), expires_at=int(NOW.timestamp()))
    assert shown_status(left, NOW) is QuestionStatus.EXPIRED
    assert refusal(check_open, left, NOW) == ("question_expired", "question")


@pytest.mark.parametrize(
    ("after", "done"), [(timedelta(), False), (STORED_WITHIN - SECOND, False), (STORED_WITHIN, True)]
)
def test_a_question_is_done_when_answers_under_way_have_been_stored(after: timedelta, done: bool) -> None:
    question = asked()
    now = NOW + OPEN_DEFAULT + after
    assert (shown_status(question, now), is_done(question, now)) == (QuestionStatus.EXPIRED, done)
    assert is_done(replace(question, status=QuestionStatus.CLOSED), NOW)
    assert not is_done(question, NOW)


def test_open_is_asked_for_what_can_be_answered() -> None:
    assert {each for each in QuestionStatus if is_listed(each, QuestionStatus.OPEN)} == set(ANSWERABLE)
    for status in set(QuestionStatus) - {QuestionStatus.OPEN}:
        assert [each for each in QuestionStatus if is_listed(each, status)] == [status]
    assert {each: set(statuses_to_read(each)) - {each} for each in QuestionStatus} == {
        QuestionStatus.OPEN: {QuestionStatus.PARTIAL},
        QuestionStatus.PARTIAL: {QuestionStatus.OPEN},
        QuestionStatus.EXPIRED: {QuestionStatus.OPEN, QuestionStatus.PARTIAL},
        QuestionStatus.CLOSED: set(),
    }


@given(st.sets(st.sampled_from("abcd")), st.sets(st.sampled_from("abcd")))
def test_an_audience_is_one_common_tag_or_everybody(audience: set[str], tags: set[str]) -> None:
    assert is_in_audience(sorted(audience), sorted(tags)) is (not audience or bool(audience & tags))


@given(
    st.integers(-3, 14),
    st.lists(st.text("xyz", min_size=1, max_size=4), min_size=2, max_size=10, unique=True),
)
@settings(max_examples=examples(50))
def test_an_option_is_one_of_those_there_are(index: int, options: list[str]) -> None:
    question = asked(options=options)
    if 0 <= index < len(options):
        check_answer(question, {"selected_option": index})
    else:
        assert refusal(check_answer, question, {"selected_option": index}) == (
            "invalid_field",
            "selected_option",
        )


@pytest.mark.parametrize(
    ("kind", "body", "field"),
    [
        ("multiple_choice", {}, "selected_option"),
        ("multiple_choice", {"answer": "a"}, "answer"),
        ("multiple_choice", {"answer": "a", "selected_option": 0}, "answer"),
        ("text", {}, "answer"),
        ("text", {"selected_option": 0}, "selected_option"),
        ("text", {"answer": " \n\u2003"}, "answer"),
    ],
)
def test_an_answer_is_of_the_question_s_kind(kind: str, body: dict[str, Any], field: str) -> None:
    question = asked(type=kind, options=["a", "b"] if kind == "multiple_choice" else None)
    assert refusal(check_answer, question, body) == ("invalid_field", field)


def test_a_text_answers_a_text_question() -> None:
    check_answer(asked(type="text", options=None), {"answer": "yes"})


def test_a_question_is_read_as_it_was_stored() -> None:
    for question in (asked(), asked(type="text", options=None, audience=["b", "a", "b"], category="c")):
        assert from_item(decode_item(encode_item(to_item(question)))) == question
    assert asked(audience=["b", "a", "b"]).audience == ("a", "b")


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


@pytest.mark.parametrize(
    ("closes", "reason"),
    [(NOW - SECOND, "must be in the future"), (NOW + 2 * OPEN_MAX, "must lie at most 30 days ahead")],
)
def test_a_question_that_closes_too_early_is_refused_otherwise_than_one_that_closes_too_late(
    closes: datetime, reason: str
) -> None:
    with pytest.raises(InputRefused, match=reason):
        asked(closes_at=stamp(closes))


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


def test_a_prompt_without_a_letter_is_refused() -> None:
    with pytest.raises(InputRefused, match="prompt is blank"):
        new_question(QUESTION["example"] | {"prompt": " \n"}, "id", "agent", "", NOW)


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
