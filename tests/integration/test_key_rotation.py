"""While the key of the fingerprints is rotated, a person still has one answer a question, whoever takes it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from adapters.platform.aws import client
from ingest.web.caller import ApiError
from rules.key_ring import KNOWN_WITHIN
from tests.support.answer_stream import somebody
from tests.support.engine import Engine
from tests.support.key_processes import Operator, Process
from tests.support.questions_stack import ask, at_once, get, prepared, requests, responses_of


@pytest.fixture(autouse=True, scope="module")
def settings(engine: Engine) -> Iterator[None]:
    with prepared(engine):
        yield


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> Operator:
    return Operator(monkeypatch, datetime.now(UTC))


def outcomes(replies: list[Any]) -> Counter[str]:
    return Counter(each.code if isinstance(each, ApiError) else "taken" for each in replies)


def answers(
    processes: Iterable[Process], question: dict[str, Any], people: Iterable[str]
) -> list[Callable[[], Any]]:
    return [partial(process.answer, question, person) for person in people for process in processes]


def test_at_every_step_one_of_many_answers_of_a_person_is_taken(operator: Operator) -> None:
    for processes in operator.steps():
        for required in (1, 5):
            person, question = somebody(), ask(required_responses=required)
            replies = at_once(answers(processes, question, [person]) * 6)
            assert outcomes(replies) == {"taken": 1, "already_answered": 11}
            assert len(responses_of(question["question_id"])) == 1
            assert get(question)["current_responses"] == 1


def test_at_every_step_who_answers_by_two_processes_in_turn_is_refused(operator: Operator) -> None:
    for pair in operator.steps():
        for processes in (pair, pair[::-1]):
            person, question = somebody(), ask(required_responses=5)
            replies = [call() for call in answers(processes, question, [person])]
            assert outcomes(replies[:1]) == {"taken": 1}
            assert replies[1].code == "already_answered"
            assert replies[1].details["response_id"] == replies[0]["response_id"]


def test_a_crowd_through_different_processes_is_counted_by_person(operator: Operator) -> None:
    operator.announce()
    processes, question = (operator.promote(), Process()), ask(required_responses=8)
    people = [somebody() for _ in range(8)]
    replies = at_once(answers(processes, question, people))
    assert outcomes(replies) == {"taken": 8, "already_answered": 8}
    assert sorted(each["number"] for each in replies if isinstance(each, dict)) == list(range(1, 9))
    assert (get(question)["status"], get(question)["current_responses"]) == ("CLOSED", 8)
    assert len(responses_of(question["question_id"])) == 8


def test_a_process_that_is_five_minutes_behind_opens_no_second_answer(operator: Operator) -> None:
    person = somebody()
    for _ in range(2):
        questions = [ask(required_responses=5) for _ in range(4)]
        assert outcomes([Process().answer(questions[0], person)]) == {"taken": 1}
        first = operator.announce()
        operator.wait(KNOWN_WITHIN - timedelta(seconds=1))
        assert outcomes([first.answer(questions[1], person)]) == {"taken": 1}
        assert first.hashes_of(person).upcoming == ()
        behind, newest = operator.promote(), Process()
        operator.wait(KNOWN_WITHIN - timedelta(seconds=1))
        assert behind.hashes_of(person).own != newest.hashes_of(person).own
        assert outcomes([newest.answer(questions[2], person)]) == {"taken": 1}
        assert outcomes([behind.answer(questions[3], person)]) == {"taken": 1}
        for question in questions:
            replies = [each.answer(question, person) for each in (first, behind, newest)]
            assert outcomes(replies) == {"already_answered": 3}
            assert len(responses_of(question["question_id"])) == 1


def test_a_secret_that_cannot_be_read_again_stops_answers_and_old_keys(operator: Operator) -> None:
    process, question = Process(), ask()
    arn = process.parts.answers.fingerprints._keyed._arn
    operator.wait(KNOWN_WITHIN)
    client("secretsmanager").put_secret_value(SecretId=arn, SecretString="{")
    with pytest.raises(ValueError, match="no ring"):
        process.answer(question, "p")
    assert responses_of(question["question_id"]) == []


def test_only_several_keys_cost_a_request_more(operator: Operator) -> None:
    def operations() -> list[str]:
        process, question, person = Process(), ask(required_responses=5), somebody()
        with requests() as seen:
            assert outcomes([process.answer(question, person)]) == {"taken": 1}
        return seen.operations

    as_ever = ["GetItem", "BatchGetItem", "TransactWriteItems"]  # the question, the user's zone
    several = ["GetItem", *["BatchGetItem"] * 2, "TransactWriteItems"]  # and other answers
    assert operations() == as_ever
    operator.announce()
    assert operations() == several
    operator.promote()
    assert operations() == several
    operator.retire()
    assert operations() == as_ever
