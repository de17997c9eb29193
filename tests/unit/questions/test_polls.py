"""Polls and answers: every answer is returned once and in order, and a poll ends when no more can come."""

import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.openapi import ROUTES
from ingest.questions.polls_api import (
    POLL_SECONDS_MAX,
    POLL_SECONDS_MIN,
    has_newer,
    is_waiting,
    next_pause,
    page_of,
)
from rules.days import EPOCH, Moment, date_of, stamp, unstamp
from rules.engagement.events import InputRefused
from rules.key_ring import PersonHashes
from rules.questions.questions import STORED_WITHIN, Question, QuestionStatus, QuestionType
from rules.questions.responses import Response, new_response, points_for
from tests.support.asking import NOW, asked
from tests.support.books import KnownBooks
from tests.support.engagement_strategies import instants, zones
from tests.support.examples import examples

BOOKS = KnownBooks().books()
SMALL = settings(max_examples=examples(60))
bodies = st.fixed_dictionaries(
    {},
    optional={
        "answer": st.text(max_size=5),
        "selected_option": st.integers(0, 3),
        "confidence": st.integers(1, 5),
        "response_time_ms": st.integers(0, 700_000),
        "timezone": zones,
    },
)


def answered(question: Question, number: int, **changes: Any) -> Response:
    made = new_response(question, {"answer": str(number)}, PersonHashes(f"person-{number}"), BOOKS, NOW)
    return replace(made, number=number, **changes)


def closed(count: int) -> Question:
    return replace(asked(), current_responses=count, required_responses=count, status=QuestionStatus.CLOSED)


@SMALL
@given(st.integers(0, 12), st.integers(1, 5), st.integers(0, 3), st.randoms(use_true_random=False))
def test_page_after_page_gives_each_answer_once_in_order(
    count: int, limit: int, after: int, chance: random.Random
) -> None:
    question = closed(count)
    stored = [answered(question, number) for number in range(1, count + 1)]
    chance.shuffle(stored)
    cursor, got = after, list[int]()
    for _ in range(20):
        page = page_of(question, stored, cursor, limit, NOW)
        assert len(page.responses) <= limit
        got += [each.number for each in page.responses]
        cursor = page.cursor
        if page.is_last:
            break
    else:
        raise AssertionError("it never ends")
    assert got == list(range(after + 1, count + 1))
    assert cursor == max(after, count)


@SMALL
@given(st.integers(0, 3), st.integers(0, 4), st.integers(-120, 120), st.booleans())
def test_a_poll_waits_until_there_is_something_or_nothing_can_come(
    count: int, after: int, seconds: int, is_closed: bool
) -> None:
    question = replace(
        asked(), current_responses=count, status=QuestionStatus.CLOSED if is_closed else QuestionStatus.OPEN
    )
    now = unstamp(question.closes_at) + timedelta(seconds=seconds)
    can_come = not is_closed and timedelta(seconds=seconds) < STORED_WITHIN
    assert is_waiting(question, after, now) == (count <= after and can_come)
    assert has_newer(question, after) == (count > after)
    if count > after:
        assert not page_of(question, [], after, 10, now).is_last
    else:
        assert page_of(question, [], after, 10, now).is_last == (not can_come)


@given(st.integers(0, 40))
def test_pauses_grow_to_their_longest_and_no_further(looks: int) -> None:
    pause = POLL_SECONDS_MIN
    for _ in range(looks):
        assert pause <= next_pause(pause) <= POLL_SECONDS_MAX
        pause = next_pause(pause)
    assert looks < 5 or pause == POLL_SECONDS_MAX


@SMALL
@given(bodies, instants, st.booleans(), st.sampled_from(QuestionType))
def test_a_response_says_what_was_answered_by_whom_and_on_which_date(
    body: dict[str, Any], now: Any, is_signed_in: bool, kind: QuestionType
) -> None:
    question = replace(asked(), type=kind)
    made = new_response(question, body, PersonHashes("hash", is_signed_in=is_signed_in), BOOKS, now)
    for name in ("answer", "selected_option", "confidence", "response_time_ms", "timezone"):
        assert getattr(made, name) == body.get(name)
    assert (made.key, made.is_signed_in, made.type) == (
        (question.question_id, "hash"),
        is_signed_in,
        kind,
    )
    assert (made.agent_id, made.category) == (question.agent_id, question.category)
    assert (made.activity_date, made.zone) == date_of(Moment(now, None), body.get("timezone"), None)
    earned = points_for(BOOKS.at(now).book.answers, body.get("confidence"), body.get("response_time_ms"))
    assert (made.points, made.day_points_max) == (sum(earned.values()), 150)
    assert (made.created_at, made.number) == (stamp(now), 0)


def test_an_answer_in_no_zone_is_refused() -> None:
    with pytest.raises(InputRefused, match="timezone") as refused:
        new_response(asked(), {"answer": "a", "timezone": "Mars/Base"}, PersonHashes("hash"), BOOKS, EPOCH)
    assert refused.value.field == "timezone"


def test_a_poll_takes_no_room_from_those_who_answer() -> None:
    """Polls wait in a function of their own: however many wait, answers have executions left."""
    functions = {route.name: route.api for route in ROUTES}
    assert functions["GetResponses"] != functions["PostResponse"]
    assert [name for name, each in functions.items() if each == functions["GetResponses"]] == ["GetResponses"]
