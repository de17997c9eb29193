"""Responses -> stats on a real engine: each answer counts once, whatever comes again, dies, races or is poison."""

import itertools
import json
import random
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from adapters import clock
from adapters.platform.aws import client
from adapters.platform.items import encode_item
from adapters.questions.user_stats_store import RESPONSES_MAX
from processors import engagement
from processors.batches import BatchResult
from processors.questions import answers
from rules.days import stamp
from rules.questions.answer_stats import fold_responses
from rules.questions.responses import to_item
from tests.support.dying import FAILURES, Dying
from tests.support.engine import Engine
from tests.support.questions.answer_stream import (
    NOW,
    deliver,
    deliver_by,
    events_of,
    live,
    records,
    some,
    somebody,
    store,
)
from tests.support.questions.stack import (
    CONTEXT,
    answer,
    ask,
    at_once,
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


def test_random_answers_through_the_processor_equal_those_from_scratch() -> None:
    chance = random.Random(11)
    people, questions = [somebody() for _ in range(6)], [str(uuid.uuid4()) for _ in range(20)]
    pairs = chance.sample(list(itertools.product(people, questions)), 90)
    history = [
        replace(
            some(person, 1)[0],
            question_id=question,
            category=chance.choice("abcdef"),
            points=chance.choice((10, 12, 13, 15)),
            created_at=stamp(NOW + timedelta(hours=place)),
            activity_date=(NOW + timedelta(hours=place)).date(),
        )
        for place, (person, question) in enumerate(pairs)
    ]
    batch = store(history)
    stream = [*batch, *chance.sample(batch, 20)]
    chance.shuffle(stream)
    for first in range(0, len(stream), 40):
        assert deliver(stream[first : first + 40]) == []
    for person in people:
        assert live(person) == fold_responses(each for each in history if each.fingerprint_hash == person)


def test_the_leaderboard_merges_the_shards_and_ties_share_a_rank() -> None:
    points = [100_001, 100_003, 100_002, 100_002, 100_000]
    people = [somebody() for _ in points]
    for person, score in zip(people, points, strict=True):
        stored = {
            "fingerprint_hash": person,
            "_leaderboard": ("_leaderboard", "_leaderboard#1")[int(person, 16) % 2],
            "total_points": score,
        }
        client("dynamodb").put_item(TableName="UserStats", Item=encode_item(stored | {"total_answers": 1}))
    with requests() as seen:
        rows = call("GET", "/v1/stats", limit=4).body["entries"]
    assert [each for each in seen.operations if each != "UpdateItem"] == ["Query", "Query"]  # a lease is one
    assert [(each["rank"], each["points"]) for each in rows] == [
        (1, 100_003),
        (2, 100_002),
        (2, 100_002),
        (4, 100_001),
    ]
    assert not any(each["is_me"] for each in rows)
    assert not any(person in json.dumps(rows) for person in people)
    for person in people:
        client("dynamodb").delete_item(TableName="UserStats", Key={"fingerprint_hash": {"S": person}})


def test_i_find_myself_on_the_leaderboard() -> None:
    question = ask()
    answer(question, "leader")
    deliver(records(responses_of(question["question_id"])))
    rows = call("GET", "/v1/stats", sub="leader", limit=100).body["entries"]
    mine = call("GET", "/v1/stats/me", sub="leader").body
    assert [each["alias"] for each in rows if each["is_me"]] == [mine["alias"]]


def test_eight_consumers_at_once_count_each_answer_once() -> None:
    people = [somebody() for _ in range(3)]
    history = {person: some(person, 12) for person in people}
    batch = store([each for responses in history.values() for each in responses])
    parts = answers._parts()

    def consume(seed: int) -> BatchResult:
        mixed = random.Random(seed).sample(batch, 24)
        return parts.apply(mixed, clock.now())

    outcomes = at_once([lambda seed=seed: consume(seed) for seed in range(8)])  # type: ignore[misc]
    again = {number for each in outcomes for number in each.again}
    assert deliver([each for each in batch if each["dynamodb"]["SequenceNumber"] in again]) == []
    assert deliver(batch) == []
    for person, responses in history.items():
        assert live(person) == fold_responses(responses)
    assert sum(each.counts["counted"] for each in outcomes) <= 36


@pytest.mark.parametrize(("how", "has_stats"), [*((how, True) for how in FAILURES), ("dies after", False)])
def test_a_process_that_fails_at_any_call_loses_and_doubles_nothing(
    monkeypatch: pytest.MonkeyPatch, how: str, has_stats: bool
) -> None:
    for dies_at in itertools.count(1):
        person = somebody()
        responses = some(person, 4)
        batch = store(responses)
        assert deliver(batch[:1] if has_stats else []) == []
        real = client("dynamodb")
        dying = Dying(real, dies_at, how)
        if not deliver_by(dying, batch, monkeypatch):
            assert dying._left > 0
            break
        assert deliver(batch) == []
        assert live(person) == fold_responses(responses)
        marks = [each for one in responses for each in responses_of(one.question_id)]
        assert all("counted_at" in each for each in marks)
    assert dies_at >= 3


def test_poison_is_kept_with_its_reason_and_its_neighbours_go_on(engine: Engine) -> None:
    person = somebody()
    good, bad = some(person, 2), replace(some(person, 1)[0], category="bad")
    batch = store([*good, bad])
    del batch[2]["dynamodb"]["NewImage"]["points"]
    sqs, queue = engine.client("sqs"), engine.queue_url
    sqs.purge_queue(QueueUrl=queue)
    assert deliver(batch) == []
    assert live(person) == fold_responses(good)
    (message,) = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
    body = json.loads(message["Body"])
    assert (body["consumer"], body["reason"]) == ("answers", "MalformedItem: points is missing")
    assert body["record"]["dynamodb"]["Keys"]["question_id"]["S"] == bad.question_id
    assert deliver(batch[2:], streakline_redrive=True) == ["3"]
    assert deliver(records([encode_item(to_item(bad))]), streakline_redrive=True) == []
    assert live(person) == fold_responses([*good, bad])


def test_stats_that_cannot_be_read_are_their_person_s_trouble_alone_until_rebuilt(engine: Engine) -> None:
    hurt, other = somebody(), somebody()
    before, after, theirs = some(hurt, 2), some(hurt, 1), some(other, 1)
    deliver(store(before))
    client("dynamodb").update_item(
        TableName="UserStats",
        Key={"fingerprint_hash": {"S": hurt}},
        UpdateExpression="SET days = :cut",
        ExpressionAttributeValues={":cut": {"S": "739000:0"}},
    )
    engine.client("sqs").purge_queue(QueueUrl=engine.queue_url)
    assert deliver(store([*after, *theirs])) == []
    assert live(other) == fold_responses(theirs)
    found = engine.client("sqs").receive_message(QueueUrl=engine.queue_url)["Messages"]
    assert "a run of dates is cut off" in json.loads(found[0]["Body"])["reason"]
