"""Polls: every answer is returned once and in order, and a poll ends when no more can come."""

import random
from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.openapi import ROUTES
from ingest.questions.polls_api import is_waiting, poll_view
from rules.days import unstamp
from rules.questions.questions import STORED_WITHIN, Question, QuestionStatus
from tests.support.examples import examples
from tests.support.questions.answers import answer
from tests.support.questions.asking import NOW, asked

SMALL = settings(max_examples=examples(60))


def answered(count: int, status: QuestionStatus) -> Question:
    return replace(asked(), current_responses=count, required_responses=count, status=status)


@SMALL
@given(st.integers(0, 12), st.integers(1, 5), st.integers(0, 3), st.randoms(use_true_random=False))
def test_page_after_page_gives_each_answer_once_in_order(
    count: int, limit: int, after: int, chance: random.Random
) -> None:
    question = answered(count, QuestionStatus.CLOSED)
    stored = [replace(answer(number), number=number) for number in range(1, count + 1)]
    chance.shuffle(stored)
    cursor, got = after, list[int]()
    for _ in range(20):
        page = poll_view(question, stored, cursor, limit, NOW)
        assert len(page["responses"]) <= limit
        got += [each["number"] for each in page["responses"]]
        cursor = int(page["cursor"])
        if page["done"]:
            break
    else:
        raise AssertionError("it never ends")
    assert got == list(range(after + 1, count + 1))
    assert cursor == max(after, count)


@SMALL
@given(st.integers(0, 3), st.integers(0, 4), st.integers(-120, 120), st.sampled_from(("OPEN", "CLOSED")))
def test_a_poll_waits_until_there_is_something_or_nothing_can_come(
    count: int, after: int, seconds: int, status: str
) -> None:
    question = answered(count, QuestionStatus(status))
    now = unstamp(question.closes_at) + timedelta(seconds=seconds)
    can_come = status == "OPEN" and timedelta(seconds=seconds) < STORED_WITHIN
    assert is_waiting(question, after, now) == (count <= after and can_come)
    assert poll_view(question, [], after, 10, now)["done"] == (count <= after and not can_come)


def test_a_poll_takes_no_room_from_those_who_answer() -> None:
    """Polls wait in a function of their own: however many wait, answers have executions left."""
    functions = {route.name: route.api for route in ROUTES}
    assert functions["GetResponses"] != functions["PostResponse"]
    assert [name for name, each in functions.items() if each == functions["GetResponses"]] == ["GetResponses"]
