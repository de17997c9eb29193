"""Questions through the real handler on a real engine: asking, answering, reading, waiting, refusals."""

import json
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import ingest.questions.questions_api
from adapters.engagement.engagement_cache import EngagementCache
from adapters.platform.aws import client
from ingest.web.caller import ApiError, Caller
from ingest.web.rate_limit import RateLimit
from rules.days import stamp
from tests.support.engine import Engine
from tests.support.questions_stack import (
    CONTEXT,
    answer,
    as_agent,
    ask,
    at_once,
    call,
    prepared,
    requests,
    responses_of,
)
from tests.support.template import ROOT

HOUR = timedelta(hours=1)
NOBODY = "6f0b1c9e-0000-4000-8000-000000000000"  # the same in every process that collects the tests


@pytest.fixture(autouse=True, scope="module")
def settings(engine: Engine) -> Iterator[None]:
    with prepared(engine):
        yield


def get(question: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = call("GET", f"/v1/questions/{question['question_id']}").body
    return body


def accept(question: dict[str, Any], person: str) -> Any:
    """Answer below the router, which serves one request at a time: the receipt, or the refusal."""
    body = {"option_index": 0, "confidence": 3}
    try:
        return ingest.questions.questions_api._parts().answers.answer(
            question["question_id"], body, Caller(person, is_admin=False)
        )
    except ApiError as error:
        return error


def outcomes(replies: list[Any]) -> Counter[str]:
    return Counter(each.code if isinstance(each, ApiError) else each["status"] for each in replies)


def set_clock(monkeypatch: pytest.MonkeyPatch, now: datetime) -> None:
    monkeypatch.setattr("adapters.clock.now", lambda: now)


def test_a_question_goes_from_open_by_partial_to_closed() -> None:
    question = ask(required_responses=2, audience=["b", "a"])
    assert (question["status"], question["answers_count"], question["audience"]) == ("OPEN", 0, ["a", "b"])
    first = answer(question, "p1", response_time_ms=2_000, timezone="Asia/Tokyo")
    assert first.status == 201
    assert {name: first.body[name] for name in ("number", "status", "points", "points_for", "timezone")} == {
        "number": 1,
        "status": "PARTIAL",
        "points": 15,
        "points_for": {"answer": 10, "confidence": 3, "timing": 2},
        "timezone": "Asia/Tokyo",
    }
    assert get(question)["status"] == "PARTIAL"
    assert answer(question, "p2", option_index=1).body["status"] == "CLOSED"
    closed = get(question)
    assert (closed["status"], closed["answers_count"]) == ("CLOSED", 2)
    assert closed["closed_at"] > closed["created_at"]
    refused = answer(question, "p3")
    assert (refused.status, refused.code) == (409, "question_closed")
    assert answer(question, "p2").code == "already_answered"


def test_64_people_at_once_on_a_question_for_5() -> None:
    question = ask()
    replies = at_once([lambda n=n: accept(question, f"crowd{n}") for n in range(64)])  # type: ignore[misc]
    assert outcomes(replies) == {"PARTIAL": 4, "CLOSED": 1, "question_closed": 59}
    assert sorted(each["number"] for each in replies if isinstance(each, dict)) == [1, 2, 3, 4, 5]
    assert {each.status for each in replies if isinstance(each, ApiError)} == {409}
    assert (get(question)["answers_count"], get(question)["status"]) == (5, "CLOSED")
    assert len(responses_of(question["question_id"])) == 5


def test_all_at_once_on_a_question_that_wants_them_all() -> None:
    question = ask(required_responses=16)
    replies = at_once([lambda n=n: accept(question, f"all{n}") for n in range(16)])  # type: ignore[misc]
    assert outcomes(replies) == {"PARTIAL": 15, "CLOSED": 1}
    assert sorted(each["number"] for each in replies) == list(range(1, 17))
    assert (get(question)["answers_count"], get(question)["status"]) == (16, "CLOSED")
    assert len(responses_of(question["question_id"])) == 16


@pytest.mark.parametrize("required", [1, 5])
def test_one_person_20_times_at_once_is_one_answer(required: int) -> None:
    question = ask(required_responses=required)
    replies = at_once([lambda: accept(question, "eager")] * 20)
    assert outcomes(replies) == {"CLOSED" if required == 1 else "PARTIAL": 1, "already_answered": 19}
    assert get(question)["answers_count"] == 1
    mine = next(each["response_id"] for each in replies if isinstance(each, dict))
    assert {each.details["response_id"] for each in replies if isinstance(each, ApiError)} == {mine}


@pytest.mark.parametrize("attribute", ["closes_at", "expires_at"])
def test_an_expired_question_that_is_still_there_answers_as_expired(attribute: str) -> None:
    question, past = ask(), datetime.now(UTC) - HOUR
    value = {"S": stamp(past)} if attribute == "closes_at" else {"N": str(int(past.timestamp()))}
    client("dynamodb").update_item(
        TableName="Questions",
        Key={"question_id": {"S": question["question_id"]}},
        UpdateExpression=f"SET {attribute} = :past",
        ExpressionAttributeValues={":past": value},
    )
    refused = answer(question, "late")
    assert (refused.status, refused.code) == (409, "question_expired")
    assert get(question)["status"] == "EXPIRED"
    assert question["question_id"] not in {
        each["question_id"] for each in call("GET", "/v1/questions").body["questions"]
    }
    expired = call("GET", "/v1/questions", status="EXPIRED").body["questions"]
    assert question["question_id"] in {each["question_id"] for each in expired}
    assert responses_of(question["question_id"]) == []


def test_the_moment_of_closing_is_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    closes = datetime.now(UTC) + HOUR
    question = ask(closes_at=stamp(closes))
    set_clock(monkeypatch, closes - timedelta(microseconds=1))
    assert answer(question, "just").status == 201
    set_clock(monkeypatch, closes)
    assert answer(question, "late").code == "question_expired"
    assert answer(question, "just").code == "already_answered"


def test_an_answer_is_two_requests_and_a_list_is_one() -> None:
    question = ask()
    with requests() as seen:
        assert answer(question, "p").status == 201
    assert seen.operations == ["GetItem", "TransactWriteItems"]
    with requests() as seen:
        assert answer(question, "p").code == "already_answered"
    assert seen.operations == ["GetItem", "TransactWriteItems"]
    for query in ({}, {"audience": "a,b"}, {"status": "CLOSED"}, {"status": "EXPIRED"}, {"limit": 1}):
        with requests() as seen:
            assert call("GET", "/v1/questions", **query).status == 200
        assert seen.operations == ["Query"]
    with requests() as seen:
        assert as_agent("GET", "/v1/agents/agent/questions").status == 200
    assert seen.operations == ["Query"]
    with requests() as seen:
        assert answer(question, "p", option_index=2).status == 422
    assert seen.operations == ["GetItem"]


def test_asking_again_with_the_same_body_gives_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    closes = stamp(datetime.now(UTC) + HOUR)
    body = {
        "idempotency_key": str(uuid.uuid4()),
        "kind": "text",
        "prompt": "Why?",
        "required_responses": 1,
        "closes_at": closes,
    }
    agent, questions = (
        Caller("agent", is_admin=False, is_agent=True),
        ingest.questions.questions_api._parts().questions,
    )
    replies = at_once([lambda: questions.create(body, agent, datetime.now(UTC))] * 12)
    assert Counter(status for status, _ in replies) == {201: 1, 200: 11}
    assert len({view["question_id"] for _, view in replies}) == 1
    assert Counter(view.get("duplicate") for _, view in replies) == {None: 1, True: 11}
    other = as_agent("POST", "/v1/questions", body | {"prompt": "Who?"})
    assert (other.status, other.code) == (409, "conflict")
    assert as_agent("POST", "/v1/questions", body, agent="another").status == 201
    set_clock(monkeypatch, datetime.now(UTC) + 2 * HOUR)
    late = as_agent("POST", "/v1/questions", body)
    assert (late.status, late.body["status"], late.body["duplicate"]) == (200, "EXPIRED", True)
    assert as_agent("POST", "/v1/questions", body | {"prompt": "Who?"}).status == 422


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


def test_what_is_another_s_is_refused() -> None:
    question = ask()
    path = f"/v1/questions/{question['question_id']}/responses"
    body = {"idempotency_key": "k", "kind": "text", "prompt": "?", "required_responses": 1}
    own_hash = call("GET", "/v1/stats/me", sub="p").body["fingerprint"]
    refused = [
        call("POST", "/v1/questions", body),
        as_agent("GET", "/v1/agents/agent/questions", agent="rival"),
        call("GET", "/v1/agents/person/questions"),
        as_agent("GET", path, agent="rival"),
        call("GET", path, sub="agent"),
        call("POST", path, {"option_index": 0, "fingerprint": "somebody else"}),
        call("GET", f"/v1/stats/{own_hash}", sub="other"),
        as_agent("GET", f"/v1/stats/{own_hash}", agent="agent"),
    ]
    assert [(each.status, each.code) for each in refused] == [(403, "forbidden")] * len(refused)
    assert get(question)["answers_count"] == 0
    assert call("POST", path, {"option_index": 0, "user_id": "other"}).status == 422
    for method, route in (
        ("POST", "/v1/subscriptions"),
        ("GET", "/v1/questions"),
        ("GET", path),
        ("POST", path),
        ("GET", "/v1/stats"),
    ):
        assert call(method, route, {}, sub="").status == 401
    assert call("GET", path, sub="root", groups="streakline/admin").status == 200
    assert call("GET", f"/v1/stats/{own_hash}", sub="p").status == 200
    assert call("GET", f"/v1/stats/{'0' * 32}", sub="root", groups="streakline/admin").status == 404


def test_an_agent_relays_answers_of_people_without_an_account() -> None:
    question = ask()
    path = f"/v1/questions/{question['question_id']}/responses"
    raw = "device-7f3a-raw-identifier"
    assert as_agent("POST", path, {"option_index": 1, "fingerprint": raw}).status == 201
    assert as_agent("POST", path, {"option_index": 1, "fingerprint": raw}).code == "already_answered"
    assert as_agent("POST", path, {"option_index": 1, "fingerprint": "another"}).status == 201
    # A person whose sub is a device's identifier is somebody else all the same.
    assert answer(question, raw).status == 201
    stored = responses_of(question["question_id"])
    assert sorted("user_id" in each for each in stored) == [False, False, True]
    assert raw not in json.dumps([each for each in stored if "user_id" not in each])
    seen = as_agent("GET", path).body["responses"]
    assert len({each["response_id"] for each in seen}) == 3
    for each in stored:
        assert each["fingerprint_hash"]["S"] not in json.dumps(seen)
    assert raw not in json.dumps(seen)


SCRIPT = "</script><script>alert(document.cookie)</script><img src=x onerror=alert(1)>"


def test_a_script_is_kept_as_text_and_served_as_json() -> None:
    question = ask(prompt=SCRIPT, options=[SCRIPT, "b"])
    text = ask(kind="text", options=None, prompt="?")
    assert answer(text, "p", option_index=None).status == 422
    path = f"/v1/questions/{text['question_id']}/responses"
    assert call("POST", path, {"text": SCRIPT}, sub="p").status == 201
    replies = [
        call("GET", f"/v1/questions/{question['question_id']}"),
        call("GET", "/v1/questions"),
        as_agent("GET", path),
    ]
    for reply in [*replies, call("GET", f"/v1/questions/{SCRIPT}")]:
        assert reply.headers["Content-Type"] == "application/json"
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert replies[0].body["prompt"] == replies[0].body["options"][0] == SCRIPT
    assert replies[2].body["responses"][0]["text"] == SCRIPT


@pytest.mark.parametrize(
    ("method", "path", "query", "status"),
    [
        ("GET", "/v1/questions", {"status": "open"}, 400),
        ("GET", "/v1/questions", {"limit": 101}, 400),
        ("GET", "/v1/questions", {"limit": "x"}, 400),
        ("GET", "/v1/questions", {"cursor": "x"}, 400),
        ("GET", "/v1/questions", {"cursor": "eyJiZWZvcmUiOiBbIjAiLCAiMCJdfQ=="}, 400),
        ("GET", "/v1/questions", {"audience": "A"}, 400),
        ("GET", "/v1/questions", {"audience": ",".join("abcdefghijk")}, 400),
        ("GET", "/v1/questions/nothing", {}, 404),
        ("GET", f"/v1/questions/{NOBODY}", {}, 404),
        ("GET", f"/v1/questions/{NOBODY}/responses", {}, 404),
        ("GET", f"/v1/questions/{NOBODY}/responses", {"wait": 21}, 400),
        ("GET", f"/v1/questions/{NOBODY}/responses", {"wait": "-1"}, 400),
        ("GET", f"/v1/questions/{NOBODY}/responses", {"after": "x"}, 400),
        ("POST", f"/v1/questions/{NOBODY}/responses", {}, 404),
        ("GET", "/v1/stats/somebody", {}, 404),
        ("GET", "/v1/stats", {"limit": 0}, 400),
        ("GET", "/v1/agents/a%2Fb/questions", {}, 400),
    ],
)
def test_bad_input_is_refused_by_name(method: str, path: str, query: dict[str, Any], status: int) -> None:
    reply = as_agent(method, path, {"option_index": 0}, **query)
    assert (reply.status, bool(reply.body["error"]["message"])) == (status, True)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"option_index": 2}, "option_index"),
        ({"option_index": -1}, "option_index"),
        ({"option_index": 1.5}, "option_index"),
        ({"text": "a"}, "text"),
        ({"confidence": 6}, "confidence"),
        ({"timezone": "Nowhere"}, "timezone"),
        ({"timezone": "+19:00"}, "timezone"),
        ({"response_time_ms": -1}, "response_time_ms"),
    ],
)
def test_a_wrong_answer_names_its_field(changes: dict[str, Any], field: str) -> None:
    reply = answer(ask(), "p", **changes)
    assert (reply.status, reply.body["error"]["details"][0]["field"]) == (422, field)


@pytest.mark.parametrize("has_redis", [False, True])
def test_a_person_s_answers_a_minute_are_limited(
    monkeypatch: pytest.MonkeyPatch, redis_url: str, has_redis: bool
) -> None:
    limit = RateLimit(EngagementCache(redis_url if has_redis else ""), 3)
    parts = ingest.questions.questions_api._parts()
    limited = replace(parts, answers=replace(parts.answers, limit=limit))
    monkeypatch.setattr(ingest.questions.questions_api, "_parts", lambda: limited)
    set_clock(monkeypatch, datetime.now(UTC).replace(second=30))
    question = ask()
    replies = [answer(question, "hasty") for _ in range(5)]
    assert [each.status for each in replies] == [201, 409, 409, 429, 429]
    assert replies[-1].headers["Retry-After"] == "30"
    with requests() as seen:
        assert answer(question, "hasty").code == "rate_limited"
    assert seen.operations == []
    assert answer(question, "calm").status == 201


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


def test_stats_of_somebody_new_are_empty_and_the_board_is_open_to_all() -> None:
    mine = call("GET", "/v1/stats/me", sub=f"new-{uuid.uuid4()}").body
    assert (mine["total_points"], mine["answers"], mine["streak_days"], mine["badges"]) == (0, 0, 0, [])
    assert call("GET", "/v1/stats").status == 200


def test_the_sample_event_asks_a_question() -> None:
    event = json.loads((ROOT / "tests" / "events" / "QuestionsApiFunction.json").read_text())
    assert ingest.questions.questions_api.handler(event, CONTEXT)["statusCode"] == 201
