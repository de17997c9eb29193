"""Lists of questions in pages, answers after a cursor, and waiting for the next one."""

import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

import ingest.questions.questions_api
from ingest.web.caller import Caller
from tests.support.engine import Engine
from tests.support.questions_stack import (
    accept,
    answer,
    as_agent,
    ask,
    call,
    prepared,
    requests,
)


@pytest.fixture(autouse=True, scope="module")
def settings(engine: Engine) -> Iterator[None]:
    with prepared(engine):
        yield


def test_lists_are_newest_first_for_an_audience_in_pages() -> None:
    tag = f"t{uuid.uuid4().hex[:8]}"
    mine = [ask(audience=[tag, "x"])["question_id"] for _ in range(5)]
    everybody = ask()["question_id"]
    other = ask(audience=["elsewhere"])["question_id"]
    listed = [
        each["question_id"]
        for each in call("GET", "/v1/questions", audience=tag, limit=100).body["questions"]
    ]
    assert listed[:6] == [everybody, *mine[::-1]]
    assert other not in listed
    found: list[str] = []
    page = call("GET", "/v1/questions", audience=tag, limit=2)
    while len(found) < 6:
        assert len(page.body["questions"]) == 2
        found += [each["question_id"] for each in page.body["questions"]]
        page = call("GET", "/v1/questions", audience=tag, limit=2, cursor=page.body["cursor"])
    assert found == listed[:6]
    assert other in {each["question_id"] for each in call("GET", "/v1/questions").body["questions"]}


def test_an_agent_s_own_list_ends() -> None:
    agent = f"agent-{uuid.uuid4()}"
    ids = [ask(agent=agent)["question_id"] for _ in range(4)]
    first = as_agent("GET", f"/v1/agents/{agent}/questions", agent=agent, limit=3).body
    rest = as_agent("GET", f"/v1/agents/{agent}/questions", agent=agent, limit=3, cursor=first["cursor"]).body
    assert [each["question_id"] for each in first["questions"] + rest["questions"]] == ids[::-1]
    assert rest["cursor"] is None
    assert (
        as_agent("GET", f"/v1/agents/{agent}/questions", agent=agent, status="CLOSED").body["questions"] == []
    )


def test_answers_come_in_the_order_of_their_numbers_after_a_cursor() -> None:
    question = ask()
    path = f"/v1/questions/{question['question_id']}/responses"
    assert as_agent("GET", path).body | {"required_responses": 5} == {
        "question_id": question["question_id"],
        "status": "OPEN",
        "answers_count": 0,
        "required_responses": 5,
        "responses": [],
        "cursor": "0",
        "done": False,
    }
    for number in range(5):
        answer(question, f"p{number}", option_index=number % 2)
    seen = as_agent("GET", path, limit=3).body
    assert [(each["number"], each["option_index"]) for each in seen["responses"]] == [(1, 0), (2, 1), (3, 0)]
    assert (seen["cursor"], seen["done"]) == ("3", False)
    rest = as_agent("GET", path, after=seen["cursor"]).body
    assert [each["number"] for each in rest["responses"]] == [4, 5]
    assert (rest["cursor"], rest["done"], rest["status"]) == ("5", True, "CLOSED")
    with requests() as reads:
        assert as_agent("GET", path, after=5, wait=20).body["done"] is True
    assert reads.operations == ["GetItem"]


def test_a_poll_ends_with_the_first_new_answer() -> None:
    question = ask()
    path = f"/v1/questions/{question['question_id']}/responses"
    answer(question, "early")
    later = threading.Timer(0.4, accept, (question, "later"))
    later.start()
    with requests() as seen:
        reply = as_agent("GET", path, after=1, wait=20).body
    later.join()
    assert [each["number"] for each in reply["responses"]] == [2]
    assert seen.operations.count("GetItem") <= 5  # One of them is the answer's own.
    assert seen.operations.count("Query") == 1


def test_a_poll_is_patient_no_longer_than_asked_and_gentle(monkeypatch: pytest.MonkeyPatch) -> None:
    question, elapsed = ask(), [0.0]
    polls = ingest.questions.questions_api._parts().polls

    def pause(seconds: float) -> None:
        elapsed[0] += seconds

    patient = replace(polls, pause=pause, elapsed=lambda: elapsed[0])
    with requests() as seen:
        found = patient.newer(question["question_id"], {"wait": "20"}, Caller("agent", False, is_agent=True))
    assert found["responses"] == []
    assert 18 < elapsed[0] <= 20
    assert len(seen.operations) <= 24
