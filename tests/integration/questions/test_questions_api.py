"""Questions through the real handler on a real engine: asked, answered, closed, expired, and at what cost."""

import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import ingest.questions.questions_api
from adapters.platform.aws import client
from adapters.questions.question_store import READ_AGAIN, READ_MAX
from rules.days import stamp
from tests.support.engine import Engine
from tests.support.questions.stack import (
    answer,
    as_agent,
    ask,
    at_once,
    call,
    get,
    prepared,
    question_body,
    requests,
    responses_of,
    set_clock,
)

HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True, scope="module")
def settings(engine: Engine) -> Iterator[None]:
    with prepared(engine):
        yield


def test_a_question_goes_from_open_by_partial_to_closed() -> None:
    question = ask(required_responses=2, audience=["b", "a"])
    assert (question["status"], question["current_responses"], question["audience"]) == (
        "OPEN",
        0,
        ["a", "b"],
    )
    mine = "[streakline/audience/c streakline/audience/a]"
    first = answer(question, "p1", mine, response_time_ms=2_000, timezone="Asia/Tokyo")
    assert first.status == 201
    assert {name: first.body[name] for name in ("number", "status", "points", "points_for", "timezone")} == {
        "number": 1,
        "status": "PARTIAL",
        "points": 15,
        "points_for": {"answer": 10, "confidence": 3, "timing": 2},
        "timezone": "Asia/Tokyo",
    }
    assert get(question)["status"] == "PARTIAL"
    place = {"TableName": "Questions", "Key": {"question_id": {"S": question["question_id"]}}}
    assert client("dynamodb").get_item(**place)["Item"]["status"] == {"S": "PARTIAL"}
    assert answer(question, "p2", mine, selected_option=1).body["status"] == "CLOSED"
    closed = get(question)
    assert (closed["status"], closed["current_responses"]) == ("CLOSED", 2)
    assert closed["closed_at"] > closed["created_at"]
    refused = answer(question, "p3", mine)
    assert (refused.status, refused.code) == (409, "question_closed")
    assert answer(question, "p2", mine).code == "already_answered"


@pytest.mark.parametrize("is_still_there", [True, False])
def test_a_question_asked_anew_under_its_key_is_another_one(*, is_still_there: bool) -> None:
    """90 days after the first one has closed. Who answered that one answers this one too, each once."""
    body = question_body()
    first = as_agent("POST", "/v1/questions", body).body
    assert answer(first, "ann").status == 201
    place = {"TableName": "Questions", "Key": {"question_id": {"S": first["question_id"]}}}
    stored = client("dynamodb").get_item(**place)["Item"]
    assert stored["idempotency_key"]["S"] == body["idempotency_key"]
    if is_still_there:
        client("dynamodb").put_item(TableName="Questions", Item=stored | {"expires_at": {"N": "1"}})
    else:
        client("dynamodb").delete_item(**place)
    asked = at_once([lambda: as_agent("POST", "/v1/questions", body)] * 5)
    assert sorted(each.status for each in asked) == [200] * 4 + [201]
    (again,) = {each.body["question_id"] for each in asked}
    assert again != first["question_id"]
    assert answer({"question_id": again}, "ann").status == 201
    assert answer({"question_id": again}, "ann").code == "already_answered"
    assert as_agent("POST", "/v1/questions", body).body["question_id"] == again


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


def test_an_answer_is_two_requests_and_a_list_is_few() -> None:
    question = ask()
    with requests() as seen:
        assert answer(question, "p", timezone="UTC").status == 201
    assert seen.operations == ["GetItem", "TransactWriteItems"]
    with requests() as seen:
        assert answer(question, "zoneless").status == 201
    assert seen.operations == ["GetItem", "BatchGetItem", "TransactWriteItems"]
    with requests() as seen:
        assert answer(question, "p", timezone="UTC").code == "already_answered"
    assert seen.operations == ["GetItem", "TransactWriteItems"]
    for query in ({}, {"audience": "a,b"}, {"status": "CLOSED"}, {"status": "EXPIRED"}, {"limit": 1}):
        with requests() as seen:
            assert call("GET", "/v1/questions", **query).status == 200
        partitions = 2 if query.get("status") == "EXPIRED" else 1
        assert seen.operations.count("Query") <= partitions * (1 + READ_MAX // 20)
        assert seen.operations.count("BatchGetItem") <= 1 + READ_MAX // READ_AGAIN
    with requests() as seen:
        assert as_agent("GET", "/v1/agents/agent/questions").status == 200
    assert seen.operations == ["Query", "BatchGetItem"]
    with requests() as seen:
        assert answer(question, "p", selected_option=2).status == 422
    assert seen.operations == ["GetItem"]


def test_asking_again_with_the_same_body_gives_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    closes = stamp(datetime.now(UTC) + HOUR)
    body = {
        "idempotency_key": str(uuid.uuid4()),
        "type": "text",
        "prompt": "Why?",
        "required_responses": 1,
        "closes_at": closes,
    }
    asking = ingest.questions.questions_api._parts().creator
    replies = at_once([lambda: asking.create(body, "agent", datetime.now(UTC))] * 12)
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


def test_stats_of_somebody_new_are_empty_and_the_board_is_open_to_all() -> None:
    mine = call("GET", "/v1/stats/me", sub=f"new-{uuid.uuid4()}").body
    assert (mine["total_points"], mine["total_answers"], mine["streak_days"], mine["badges"]) == (0, 0, 0, [])
    assert call("GET", "/v1/stats").status == 200


def test_a_user_s_own_answers_are_newest_first_in_pages_and_nobody_else_s() -> None:
    me, asked = f"u-{uuid.uuid4()}", [ask(category=f"c{n}") for n in range(5)]
    for question in asked:
        answer(question, me, selected_option=1)
        answer(question, "somebody-else")
    path = f"/v1/users/{me}/answers"
    first = call("GET", path, sub=me, limit=3).body
    rest = call("GET", path, sub=me, limit=3, cursor=first["cursor"]).body
    shown = first["answers"] + rest["answers"]
    assert [each["question_id"] for each in shown] == [each["question_id"] for each in asked[::-1]]
    assert rest["cursor"] is None
    assert {(each["selected_option"], each["points"]) for each in shown} == {(1, 13)}
    assert [each["category"] for each in shown] == ["c4", "c3", "c2", "c1", "c0"]
    assert call("GET", path, sub="somebody-else").status == 403
    assert call("GET", path, sub="root", groups="streakline/admin").body["answers"] == shown
    assert call("GET", path, sub=me, to="2026-01-01").body["answers"] == []
    assert call("GET", path, sub=me, limit=101).status == 400
    assert call("GET", f"/v1/users/u-{uuid.uuid4()}/answers", sub=me).status == 403
    assert call("GET", path, sub=me).headers["Cache-Control"] == "no-store"
