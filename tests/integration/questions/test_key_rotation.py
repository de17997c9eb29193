"""While the key of the fingerprints is rotated, a person has one answer a question, and sees all of theirs."""

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from adapters.platform.aws import client
from ingest.web.caller import ApiError
from rules.key_ring import KNOWN_WITHIN
from tests.support.engine import Engine
from tests.support.questions.answer_stream import deliver, records, somebody
from tests.support.questions.key_processes import Operator, Process
from tests.support.questions.stack import answer, ask, at_once, call, get, prepared, requests, responses_of


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
            replies = at_once(answers(processes, question, [person]) * 3)
            assert outcomes(replies) == {"taken": 1, "already_answered": 5}
            assert len({each.details["response_id"] for each in replies if isinstance(each, ApiError)}) == 1
            assert len(responses_of(question["question_id"])) == 1
            assert get(question)["current_responses"] == 1


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


def counted(question: dict[str, Any]) -> None:
    assert deliver(records(responses_of(question["question_id"]))) == []


def shown(user: str) -> dict[str, Any]:
    body: dict[str, Any] = call("GET", "/v1/stats/me", sub=user).body
    return body


def test_a_person_sees_the_same_through_three_keys_and_after_their_end(operator: Operator) -> None:
    user, asked = f"u-{uuid.uuid4()}", [ask(required_responses=5) for _ in range(3)]
    steps = [lambda: None, operator.rotate, operator.rotate]
    for number, (question, step) in enumerate(zip(asked, steps, strict=True), 1):
        step()
        if number > 1:
            operator.wait(timedelta(minutes=6))
            assert shown(user)["total_answers"] == number - 1, "before the next answer, too"
            entries = call("GET", "/v1/stats", sub=user, limit=100).body["entries"]
            mine = [each["alias"] for each in entries if each["is_me"]]
            assert mine == [shown(user)["alias"]] or (not mine and len(entries) == 100)
        assert answer(question, user).status == 201
        counted(question)
        assert shown(user)["total_answers"] == number
    for end in (operator.retire, operator.retire):
        mine = pages(user)
        assert [each["question_id"] for each in mine] == [each["question_id"] for each in asked[::-1]]
        end()
        operator.wait(timedelta(minutes=6))
    assert len(pages(user)) == 3
    assert shown(user)["total_answers"] == 3
    assert call("GET", f"/v1/stats/{shown(user)['fingerprint']}", sub=user).status == 200


def pages(user: str) -> list[dict[str, Any]]:
    """All of a user's answers, one a page."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        body = call("GET", f"/v1/users/{user}/answers", sub=user, limit=1, **cursor, **SINCE).body
        found += body["answers"]
        if not body["cursor"]:
            return found
        cursor = {"cursor": body["cursor"]}


SINCE = {"from": "2020-01-01T00:00:00Z"}


def test_a_process_behind_shows_what_has_moved(operator: Operator) -> None:
    user, asked = f"u-{uuid.uuid4()}", [ask(required_responses=5) for _ in range(2)]
    answer(asked[0], user)
    counted(asked[0])
    behind = operator.rotate()
    Process().answer(asked[1], user)
    counted(asked[1])
    person = behind.hashes_of(user)
    assert behind.parts.stats.store.of(person.own, person.older).stats.total_answers == 2
    assert len(behind.parts.own_answers._hashes(user)) == 2
