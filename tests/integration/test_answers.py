"""Responses -> stats on a real engine: each answer counts once, however often it comes."""

import json
import uuid
from collections.abc import Iterator

import pytest

from adapters.platform.aws import client
from adapters.platform.items import encode_item
from adapters.questions.user_stats_store import RESPONSES_MAX
from processors import engagement
from processors.questions import answers
from rules.questions.answer_stats import fold_responses
from tests.support.answer_stream import deliver, events_of, live, records, some, somebody, store
from tests.support.engine import Engine
from tests.support.questions_stack import (
    CONTEXT,
    answer,
    ask,
    call,
    prepared,
    requests,
    responses_of,
)
from tests.support.template import ROOT


@pytest.fixture(autouse=True, scope="module")
def settings(engine: Engine) -> Iterator[None]:
    with prepared(engine):
        yield


def test_from_the_answer_to_streak_and_balance(monkeypatch: pytest.MonkeyPatch) -> None:
    user = f"u-{uuid.uuid4()}"
    question = ask(category="news")
    receipt = answer(question, user, response_time_ms=3_000, timezone="Asia/Tokyo").body
    batch = records(responses_of(question["question_id"]))
    assert deliver(batch) == []
    mine = call("GET", "/v1/stats/me", sub=user).body
    assert (mine["total_points"], mine["total_answers"], mine["streak_days"]) == (15, 1, 1)
    assert mine["answers_by_category"] == {"news": 1}
    assert (mine["badges"], mine["created_at"]) == (["first_answer"], receipt["created_at"])
    assert mine["badges_earned"] == [
        {"badge": "first_answer", "title": "First answer", "earned_on": receipt["activity_date"]}
    ]
    (event,) = events_of(user)
    assert (event["event_type"], event["source"]) == ("QUESTION_ANSWERED", "questions")
    assert (event["occurred_at"][:16], event["activity_date"]) == (
        receipt["created_at"][:16],
        receipt["activity_date"],
    )
    image = encode_item(event)
    wrapped = {"eventName": "INSERT", "dynamodb": {"NewImage": image, "SequenceNumber": "1"}}
    assert engagement.handler({"Records": [wrapped]}, CONTEXT) == {"batchItemFailures": []}
    profile = engagement._parts().accounts.profiles([user])[user]
    assert (profile.total_points, profile.streak.length if profile.streak else 0) == (10, 1)


def test_a_batch_delivered_again_changes_nothing() -> None:
    person = somebody()
    responses = some(person, 5)
    batch = store(responses)
    for again in (batch[:2], batch, batch[::-1], [*batch, *batch]):
        assert deliver(again) == []
    assert live(person) == fold_responses(responses)


def test_one_person_s_batch_is_two_requests_whatever_its_size() -> None:
    person = somebody()
    batch = store(some(person, RESPONSES_MAX))
    with requests() as seen:
        assert deliver(batch) == []
    assert seen.operations == ["BatchGetItem", "TransactWriteItems"]
    assert live(person).total_answers == RESPONSES_MAX


def test_more_than_a_transaction_holds_is_counted_in_several() -> None:
    person = somebody()
    responses = some(person, RESPONSES_MAX * 2 + 1)
    assert deliver(store(responses)) == []
    assert live(person) == fold_responses(responses)


def test_an_answer_that_is_gone_is_not_counted() -> None:
    person = somebody()
    responses = some(person, 2)
    batch = store(responses)
    key = encode_item({"question_id": responses[0].question_id, "response_id": person})
    client("dynamodb").delete_item(TableName="Responses", Key=key)
    assert deliver(batch) == []
    assert live(person) == fold_responses(responses[1:])
    assert responses_of(responses[0].question_id) == []


def test_the_sample_event_is_counted() -> None:
    text = (ROOT / "tests" / "events" / "AnswersFunction.json").read_text()
    text = text.replace("0123456789abcdef" * 2, uuid.uuid4().hex)  # others may have counted the sample itself
    batch = json.loads(text)
    image = batch["Records"][0]["dynamodb"]["NewImage"]
    client("dynamodb").put_item(TableName="Responses", Item=image)
    assert answers.handler(batch, CONTEXT) == {"batchItemFailures": []}
    stats = live(image["fingerprint_hash"]["S"])
    assert (stats.total_answers, stats.total_points, stats.newest[1]) == (1, 15, "Europe/Madrid")
