"""Many people, or one of them many times, answer a question at the same moment."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from ingest.web.caller import ApiError
from tests.support.engine import Engine
from tests.support.questions_stack import (
    accept,
    ask,
    at_once,
    get,
    prepared,
    responses_of,
)


@pytest.fixture(autouse=True, scope="module")
def settings(engine: Engine) -> Iterator[None]:
    with prepared(engine):
        yield


def outcomes(replies: list[Any]) -> Counter[str]:
    return Counter(each.code if isinstance(each, ApiError) else each["status"] for each in replies)


def test_64_people_at_once_on_a_question_for_5() -> None:
    question = ask()
    replies = at_once([lambda n=n: accept(question, f"crowd{n}") for n in range(64)])  # type: ignore[misc]
    assert outcomes(replies) == {"PARTIAL": 4, "CLOSED": 1, "question_closed": 59}
    assert sorted(each["number"] for each in replies if isinstance(each, dict)) == [1, 2, 3, 4, 5]
    assert {each.status for each in replies if isinstance(each, ApiError)} == {409}
    assert (get(question)["current_responses"], get(question)["status"]) == (5, "CLOSED")
    assert len(responses_of(question["question_id"])) == 5


def test_all_at_once_on_a_question_that_wants_them_all() -> None:
    question = ask(required_responses=16)
    replies = at_once([lambda n=n: accept(question, f"all{n}") for n in range(16)])  # type: ignore[misc]
    assert outcomes(replies) == {"PARTIAL": 15, "CLOSED": 1}
    assert sorted(each["number"] for each in replies) == list(range(1, 17))
    assert (get(question)["current_responses"], get(question)["status"]) == (16, "CLOSED")
    assert len(responses_of(question["question_id"])) == 16


@pytest.mark.parametrize("required", [1, 5])
def test_one_person_20_times_at_once_is_one_answer(required: int) -> None:
    question = ask(required_responses=required)
    replies = at_once([lambda: accept(question, "eager")] * 20)
    assert outcomes(replies) == {"CLOSED" if required == 1 else "PARTIAL": 1, "already_answered": 19}
    assert get(question)["current_responses"] == 1
    mine = next(each["response_id"] for each in replies if isinstance(each, dict))
    assert {each.details["response_id"] for each in replies if isinstance(each, ApiError)} == {mine}
