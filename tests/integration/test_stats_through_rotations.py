"""What a person sees of their answers while keys come and go."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.answer_stream import deliver, records
from tests.support.engine import Engine
from tests.support.key_processes import Operator, Process
from tests.support.questions_stack import answer, ask, call, prepared, responses_of


@pytest.fixture(autouse=True, scope="module")
def settings(engine: Engine) -> Iterator[None]:
    with prepared(engine):
        yield


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> Operator:
    return Operator(monkeypatch, datetime.now(UTC))


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
