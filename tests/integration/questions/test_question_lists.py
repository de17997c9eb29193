"""Lists of questions in pages, answers after a cursor, and waiting for the next one."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import ingest.questions.polls_api
from adapters.platform.aws import client
from adapters.platform.limits import OwnerSemaphore
from adapters.questions.question_store import QuestionStore
from ingest.questions.polls_api import LEASE_SECONDS, POLLS_MAX, poll_key
from ingest.web.caller import Caller
from processors.questions.expire_questions import expire
from rules.questions.questions import QuestionStatus
from tests.support.counting_client import Counting
from tests.support.engine import Engine
from tests.support.questions.stack import accept, answer, as_agent, ask, call, prepared, requests, set_clock


@pytest.fixture(autouse=True, scope="module")
def settings(engine: Engine) -> Iterator[None]:
    with prepared(engine):
        yield


def listed(**query: Any) -> list[str]:
    """The whole list, page after page: other tests' questions are in it, some under a clock that is ahead."""
    found: list[str] = []
    page = call("GET", "/v1/questions", limit=100, **query).body
    while True:
        found += [each["question_id"] for each in page["questions"]]
        if page["cursor"] is None:
            return found
        page = call("GET", "/v1/questions", limit=100, cursor=page["cursor"], **query).body


def test_lists_are_newest_first_for_an_audience_in_pages() -> None:
    tag = f"t{uuid.uuid4().hex[:8]}"
    group = f"streakline/audience/{tag}"
    mine = [ask(audience=[tag, "x"])["question_id"] for _ in range(5)]
    everybody = ask()["question_id"]
    other = ask(audience=["elsewhere"])["question_id"]
    whole = listed(audience=tag, groups=group)
    assert [each for each in whole if each in {everybody, *mine}] == [everybody, *mine[::-1]]
    assert other not in whole
    found: list[str] = []
    page = call("GET", "/v1/questions", audience=tag, limit=2, groups=group)
    while len(found) < len(whole) - 1:
        assert len(page.body["questions"]) == 2
        found += [each["question_id"] for each in page.body["questions"]]
        page = call("GET", "/v1/questions", audience=tag, limit=2, groups=group, cursor=page.body["cursor"])
    assert found == whole[: len(found)]
    for groups, sees in (
        ("", False),
        (group, False),
        ("streakline/admin", True),
        ("streakline/agents", True),
    ):
        assert (other in listed(sub="agent", groups=groups)) is sees


def test_answers_come_in_the_order_of_their_numbers_after_a_cursor() -> None:
    question = ask()
    path = f"/v1/questions/{question['question_id']}/responses"
    assert as_agent("GET", path).body | {"required_responses": 5} == {
        "question_id": question["question_id"],
        "status": "OPEN",
        "current_responses": 0,
        "required_responses": 5,
        "responses": [],
        "cursor": "0",
        "done": False,
    }
    for number in range(5):
        answer(question, f"p{number}", selected_option=number % 2)
    seen = as_agent("GET", path, limit=3).body
    assert [(each["number"], each["selected_option"]) for each in seen["responses"]] == [
        (1, 0),
        (2, 1),
        (3, 0),
    ]
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
    assert (seen.operations.count("PutItem"), seen.operations.count("DeleteItem")) == (1, 1)
    assert seen.operations.count("GetItem") <= 5  # One of them is the answer's own.
    assert seen.operations.count("Query") == 1


def test_an_agent_has_so_many_polls_waiting_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    question, agent, now = ask(), f"agent-{uuid.uuid4()}", datetime.now(UTC)
    places = OwnerSemaphore(client("dynamodb"), "Limits", POLLS_MAX, LEASE_SECONDS)
    with ExitStack() as waiting:
        held = [waiting.enter_context(places.held(poll_key(agent), now)) for _ in range(POLLS_MAX + 2)]
        assert held == [True] * POLLS_MAX + [False] * 2
        with places.held(poll_key("another"), now) as is_held:
            assert is_held
        with places.held(poll_key(agent), now + timedelta(seconds=LEASE_SECONDS)) as is_held:
            assert is_held, "the process that held it is gone"
    with places.held(poll_key(agent), now) as is_held:
        assert is_held
    path = f"/v1/questions/{question['question_id']}/responses"
    with ExitStack() as waiting:
        for _ in range(POLLS_MAX):
            waiting.enter_context(places.held(poll_key("agent"), now))
        refused = as_agent("GET", path, wait=20)
        assert (refused.status, refused.code) == (429, "too_many_polls")
        assert int(refused.headers["Retry-After"]) > 0
        assert as_agent("GET", path).status == 200, "who does not wait needs no place"
        answer(question, "p")
        assert len(as_agent("GET", path, wait=20).body["responses"]) == 1


def test_a_poll_is_patient_no_longer_than_asked_and_gentle(monkeypatch: pytest.MonkeyPatch) -> None:
    question, elapsed = ask(), [0.0]
    polls = ingest.questions.polls_api._parts()

    def pause(seconds: float) -> None:
        elapsed[0] += seconds

    patient = replace(polls, pause=pause, elapsed=lambda: elapsed[0])
    with requests() as seen:
        found = patient.newer(question["question_id"], {"wait": "20"}, Caller("agent", False, is_agent=True))
    assert found["responses"] == []
    assert 18 < elapsed[0] <= 20
    assert len(seen.operations) <= 24


def test_a_short_list_reads_about_as_many_items_as_it_has() -> None:
    for _ in range(20):
        ask()
    table = Counting(client("dynamodb"))
    page = QuestionStore(table, "Questions").of_status(QuestionStatus.OPEN, {}, 1, lambda _: True)
    assert len(page.questions) == 1
    assert table.calls == {"query": 2, "batch_get_item": 1}
    assert table.read <= 5  # two keys of each status, and one question


def test_a_question_that_is_answered_between_two_pages_is_listed_once() -> None:
    agent = f"agent-{uuid.uuid4()}"
    asked = [ask(agent=agent, required_responses=2) for _ in range(6)]
    first = as_agent("GET", "/v1/questions", limit=3).body
    for each in asked:
        answer(each, "early")
    second = as_agent("GET", "/v1/questions", limit=3, cursor=first["cursor"]).body
    found = [each["question_id"] for page in (first, second) for each in page["questions"]]
    assert found == [each["question_id"] for each in asked[::-1]]


@pytest.mark.parametrize("answers", [0, 1])
def test_an_expired_question_leaves_the_list_of_open_ones(
    monkeypatch: pytest.MonkeyPatch, answers: int
) -> None:
    now = datetime.now(UTC)
    short = ask(closes_at=(now + timedelta(hours=1)).isoformat())["question_id"]
    long = ask(closes_at=(now + timedelta(hours=2)).isoformat())["question_id"]
    for number in range(answers):
        answer({"question_id": short}, f"p{number}")
    store = QuestionStore(client("dynamodb"), "Questions")
    mine = {short, long}

    def stored_open() -> set[str]:
        page = store.of_status(QuestionStatus.OPEN, {}, 2, lambda each: each.question_id in mine)
        return {each.question_id for each in page.questions}

    set_clock(monkeypatch, now + timedelta(hours=1))
    assert short not in listed(status="OPEN")
    assert short in listed(status="EXPIRED")
    expire(store, now + timedelta(hours=1))  # questions of other tests may be due
    assert short in stored_open(), "an answer may be on its way"
    assert expire(store, now + timedelta(hours=1, seconds=31)) >= 1
    assert expire(store, now + timedelta(hours=1, seconds=31)) == 0
    assert short not in stored_open()
    assert long in stored_open()
    assert long in listed(status="OPEN")
    assert short in listed(status="EXPIRED")
    assert answer({"question_id": short}, "late").code == "question_expired"


def test_a_list_has_every_question_once_in_pages() -> None:
    agent = f"agent-{uuid.uuid4()}"
    asked = [ask(agent=agent)["question_id"] for _ in range(7)]
    for path, who in (("/v1/questions", {}), (f"/v1/agents/{agent}/questions", {"agent": agent})):
        found: list[str] = []
        cursor: dict[str, str] = {}
        while cursor is not None:
            page = as_agent("GET", path, limit=3, **who, **cursor).body
            found += [each["question_id"] for each in page["questions"] if each["agent_id"] == agent]
            cursor = {"cursor": page["cursor"]} if page["cursor"] else None  # type: ignore[assignment]  # the end
        assert found == asked[::-1]
