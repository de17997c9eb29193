"""Responses -> stats and events exactly once, whatever dies, races or is poison."""

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from adapters import clock
from adapters.platform.aws import client
from adapters.platform.items import encode_item
from processors.batches import BatchResult
from processors.questions import answers
from rules.questions.answer_stats import fold_responses
from rules.questions.responses import to_item
from tests.support.answer_stream import deliver, deliver_by, live, records, some, somebody, store
from tests.support.dying import FAILURES, Dying
from tests.support.engine import Engine
from tests.support.questions_stack import (
    at_once,
    prepared,
    responses_of,
)


@pytest.fixture(autouse=True, scope="module")
def settings(engine: Engine) -> Iterator[None]:
    with prepared(engine):
        yield


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


@pytest.mark.parametrize("how", FAILURES)
@pytest.mark.parametrize("has_stats", [False, True])
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
