"""Many people answer at once: exactly the wanted answers are taken. The rate is printed.

`make soak`: a thousand on one question, and two hundred on each of twenty.
"""

import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import ingest.questions.questions_api
from adapters.platform.aws import Unavailable
from adapters.platform.tables import Unprocessed
from ingest.web.caller import ApiError, Caller
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.questions.stack import accept, ask, at_once, get, prepared, responses_of

AT_ONCE = 64
TRIES_MAX = 20


@pytest.fixture(autouse=True, scope="module")
def settings(engine: Engine) -> Iterator[None]:
    with prepared(engine):
        yield


def answered(question: dict[str, Any], person: str) -> str:
    """Answer as a phone does: whoever is told to try again tries again. Returns the number, or the refusal."""
    answers = ingest.questions.questions_api._parts().answers
    for _ in range(TRIES_MAX):
        try:
            body = {"selected_option": 0, "confidence": 3}
            receipt = answers.answer(question["question_id"], body, Caller(person, is_admin=False))
        except (*Unavailable, Unprocessed):
            continue
        except ApiError as error:
            return error.code
        return str(receipt["number"])
    return "gave up"


def told(calls: list[tuple[dict[str, Any], str]]) -> tuple[list[str], float]:
    """What came of all calls, begun at once, and how many a second were taken."""
    begun = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcome = list(pool.map(lambda call: answered(*call), calls))
    taken = sum(each.isdigit() for each in outcome)
    return outcome, taken / (time.monotonic() - begun)


def check(question: dict[str, Any], outcome: list[str], wanted: int) -> None:
    stored = responses_of(question["question_id"])
    assert sorted(int(each) for each in outcome if each.isdigit()) == list(range(1, wanted + 1))
    assert sorted(int(each["number"]["N"]) for each in stored) == list(range(1, wanted + 1))
    assert (get(question)["current_responses"], get(question)["status"]) == (wanted, "CLOSED")


def test_many_answers_at_once_on_one_question(capsys: pytest.CaptureFixture[str]) -> None:
    people = effort(60, soak=1000)
    question = ask(required_responses=people)
    outcome, rate = told([(question, f"p-{uuid.uuid4()}") for _ in range(people)])
    check(question, outcome, people)
    with capsys.disabled():
        print(f"\n{people} answers at once on one question: {rate:.0f} a second")


def test_many_answers_at_once_on_each_of_many_questions(capsys: pytest.CaptureFixture[str]) -> None:
    """Each question wants three quarters of them: the other people are refused, and nobody else."""
    people, asked = effort(24, soak=200), effort(4, soak=20)
    wanted = people * 3 // 4
    questions = [ask(required_responses=wanted) for _ in range(asked)]
    calls = [(question, f"p-{uuid.uuid4()}") for _ in range(people) for question in questions]
    outcome, rate = told(calls)
    for place, question in enumerate(questions):
        own = outcome[place::asked]
        check(question, own, wanted)
        assert [each for each in own if not each.isdigit()] == ["question_closed"] * (people - wanted)
    with capsys.disabled():
        print(f"\n{people} answers at once on each of {asked} questions: {rate:.0f} a second")


@pytest.mark.parametrize("required", [1, 5])
def test_one_person_20_times_at_once_is_one_answer(required: int) -> None:
    question = ask(required_responses=required)
    replies = at_once([lambda: accept(question, "eager")] * 20)
    assert Counter(each.code if isinstance(each, ApiError) else each["status"] for each in replies) == {
        "CLOSED" if required == 1 else "PARTIAL": 1,
        "already_answered": 19,
    }
    assert get(question)["current_responses"] == 1
    mine = next(each["response_id"] for each in replies if isinstance(each, dict))
    assert {each.details["response_id"] for each in replies if isinstance(each, ApiError)} == {mine}
