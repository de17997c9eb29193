"""Responses -> stats and events on a real engine: exactly once, whatever comes twice, dies or races."""

import contextlib
import itertools
import json
import random
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

import ingest.engagement.events_api
import ingest.engagement.users_api
import ingest.questions.questions_api
from adapters import clock
from adapters.platform.aws import client
from adapters.platform.batches import put_all
from adapters.platform.items import item, plain
from adapters.questions.answer_counts import RESPONSES_MAX
from adapters.questions.user_stats_store import stats_from
from ingest.web.caller import Caller
from processors import answers, engagement
from rules.days import stamp
from rules.questions.answer_stats import Stats, fold
from rules.questions.questions import QuestionKind
from rules.questions.responses import Response, from_item, to_item
from tests.support.engine import Engine
from tests.support.questions_stack import (
    CONTEXT,
    answer,
    ask,
    at_once,
    call,
    deliver,
    events_of,
    prepared,
    records,
    requests,
    responses_of,
)
from tests.support.template import ROOT

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True, scope="module")
def settings(engine: Engine) -> Iterator[None]:
    with prepared(engine):
        yield


def some(person: str, count: int, user_id: str | None = None, **changes: Any) -> list[Response]:
    """A person's answers to as many questions, an hour apart."""
    return [
        Response(
            **{
                "question_id": str(uuid.uuid4()),
                "fingerprint_hash": person,
                "agent_id": "agent",
                "kind": QuestionKind.CHOICE,
                "category": f"c{number % 6}",
                "number": 1,
                "points": 13,
                "created_at": stamp(NOW + timedelta(hours=number)),
                "activity_date": (NOW + timedelta(hours=number)).date(),
                "zone": "UTC",
                "user_id": user_id,
                "option_index": 0,
                **changes,
            }
        )
        for number in range(count)
    ]


def somebody() -> str:
    return uuid.uuid4().hex


def store(responses: list[Response]) -> list[dict[str, Any]]:
    """Put responses, and return the stream's records."""
    images = [item(to_item(each)) for each in responses]
    put_all(client("dynamodb"), "Responses", images)
    return records(images)


def live(person: str) -> Stats:
    found = client("dynamodb").get_item(
        TableName="UserStats", Key={"fingerprint_hash": {"S": person}}, ConsistentRead=True
    )
    return stats_from(plain(found["Item"])).stats if "Item" in found else Stats()


def keys_of(user_id: str) -> Counter[str]:
    return Counter(each["client_key"] for each in events_of(user_id))


def test_from_the_answer_to_streak_and_balance(monkeypatch: pytest.MonkeyPatch) -> None:
    user = f"u-{uuid.uuid4()}"
    question = ask(category="news")
    receipt = answer(question, user, response_time_ms=3_000, timezone="Asia/Tokyo").body
    batch = records(responses_of(question["question_id"]))
    assert deliver(batch) == []
    mine = call("GET", "/v1/stats/me", sub=user).body
    assert (mine["total_points"], mine["answers"], mine["streak_days"]) == (15, 1, 1)
    assert mine["answers_by_category"] == {"news": 1}
    assert mine["badges"] == [
        {"badge": "first_answer", "title": "First answer", "earned_on": receipt["activity_date"]}
    ]
    (event,) = events_of(user)
    assert event["client_key"] == f"answer:{question['question_id']}"
    assert (event["event_type"], event["source"]) == ("QUESTION_ANSWERED", "questions")
    assert (event["occurred_at"], event["activity_date"]) == (receipt["created_at"], receipt["activity_date"])
    image = item(event)
    wrapped = {"eventName": "INSERT", "dynamodb": {"NewImage": image, "SequenceNumber": "1"}}
    assert engagement.handler({"Records": [wrapped]}, CONTEXT) == {"batchItemFailures": []}
    profile = engagement._parts()[0].accounts.profiles([user])[user]
    assert (profile.total_points, profile.streak.length if profile.streak else 0) == (10, 1)


def test_a_batch_delivered_again_changes_nothing() -> None:
    person, user = somebody(), f"u-{uuid.uuid4()}"
    responses = some(person, 5, user)
    batch = store(responses)
    for again in (batch[:2], batch, batch[::-1], [*batch, *batch]):
        assert deliver(again) == []
    assert live(person) == fold(responses)
    assert keys_of(user) == {f"answer:{each.question_id}": 1 for each in responses}


def test_one_person_s_batch_is_two_requests_whatever_its_size() -> None:
    person = somebody()
    batch = store(some(person, RESPONSES_MAX, f"u-{person}", timezone="UTC"))
    with requests() as seen:
        assert deliver(batch) == []
    assert seen.operations == ["BatchGetItem", "TransactWriteItems"]
    assert live(person).answers == RESPONSES_MAX


def test_more_than_a_transaction_holds_is_counted_in_several() -> None:
    person = somebody()
    responses = some(person, RESPONSES_MAX * 2 + 1, f"u-{person}")
    assert deliver(store(responses)) == []
    assert live(person) == fold(responses)
    assert len(events_of(f"u-{person}")) == len(responses)


def test_eight_consumers_at_once_count_each_answer_once() -> None:
    people = [somebody() for _ in range(3)]
    history = {person: some(person, 12, f"u-{person}") for person in people}
    batch = store([each for responses in history.values() for each in responses])
    parts = answers._parts()[0]

    def consume(seed: int) -> answers.CountedBatch:
        mixed = random.Random(seed).sample(batch, 24)
        return parts.apply(mixed, clock.now())

    outcomes = at_once([lambda seed=seed: consume(seed) for seed in range(8)])  # type: ignore[misc]
    again = {number for each in outcomes for number in each.again}
    assert deliver([each for each in batch if each["dynamodb"]["SequenceNumber"] in again]) == []
    assert deliver(batch) == []
    for person, responses in history.items():
        assert live(person) == fold(responses)
        assert keys_of(f"u-{person}") == {f"answer:{each.question_id}": 1 for each in responses}
    assert sum(each.counted for each in outcomes) <= 36


class Killed(BaseException):
    """The process is dead: no handler may catch this."""


class Dying:
    """A client whose nth call does not happen, or whose answer nobody gets."""

    def __init__(self, real: Any, dies_at: int, how: str) -> None:
        self._real, self._left, self._how = real, dies_at, how
        self.exceptions = real.exceptions

    def __getattr__(self, operation: str) -> Any:
        real = getattr(self._real, operation)

        def run(**arguments: Any) -> Any:
            self._left -= 1
            if self._left:
                return real(**arguments)
            if self._how == "throttled":
                error = {"Error": {"Code": "ProvisionedThroughputExceededException", "Message": "slow down"}}
                raise ClientError(error, operation)  # type: ignore[arg-type]
            if self._how != "dies before":
                with contextlib.suppress(ClientError):  # A refusal is an answer too, and nobody gets it.
                    real(**arguments)
            if self._how == "answer lost":
                raise EndpointConnectionError(endpoint_url="the answer was lost")
            raise Killed

        return run


@pytest.mark.parametrize("how", ["dies before", "dies after", "throttled", "answer lost"])
@pytest.mark.parametrize("has_stats", [False, True])
def test_a_process_that_fails_at_any_call_loses_and_doubles_nothing(
    monkeypatch: pytest.MonkeyPatch, how: str, has_stats: bool
) -> None:
    for dies_at in itertools.count(1):
        person = somebody()
        user = f"u-{person}"
        responses = some(person, 4, user)
        batch = store(responses)
        assert deliver(batch[:1] if has_stats else []) == []
        real = client("dynamodb")
        dying = Dying(real, dies_at, how)
        monkeypatch.setattr(answers, "client", lambda service, dying=dying: dying)
        answers._parts.cache_clear()
        try:
            again = deliver(batch)
        except Killed:
            again = ["all"]
        monkeypatch.setattr(answers, "client", client)
        answers._parts.cache_clear()
        if not again:
            assert dying._left > 0
            break
        assert deliver(batch) == []
        assert live(person) == fold(responses)
        assert keys_of(user) == {f"answer:{each.question_id}": 1 for each in responses}
        marks = [each for one in responses for each in responses_of(one.question_id)]
        assert all("counted_at" in each for each in marks)
    assert dies_at >= 4


def test_poison_is_kept_with_its_reason_and_its_neighbours_go_on(engine: Engine) -> None:
    person = somebody()
    good, bad = some(person, 2), replace(some(person, 1)[0], category="bad")
    batch = store([*good, bad])
    del batch[2]["dynamodb"]["NewImage"]["points"]
    sqs, queue = engine.client("sqs"), engine.queue_url
    sqs.purge_queue(QueueUrl=queue)
    assert deliver(batch) == []
    assert live(person) == fold(good)
    (message,) = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
    body = json.loads(message["Body"])
    assert (body["consumer"], body["reason"]) == ("answers", "MalformedItem: points is missing")
    assert body["record"]["dynamodb"]["Keys"]["question_id"]["S"] == bad.question_id
    assert deliver(batch[2:], streakline_redrive=True) == ["3"]
    assert deliver(records([item(to_item(bad))]), streakline_redrive=True) == []
    assert live(person) == fold([*good, bad])


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
    assert live(other) == fold(theirs)
    found = engine.client("sqs").receive_message(QueueUrl=engine.queue_url)["Messages"]
    assert "a run of dates is cut off" in json.loads(found[0]["Body"])["reason"]


def test_an_answer_whose_event_s_key_the_person_has_used_counts_all_the_same() -> None:
    person, user = somebody(), f"u-{uuid.uuid4()}"
    responses = some(person, 3, user)
    own = {
        "idempotency_key": f"answer:{responses[1].question_id}",
        "event_type": "CHECK_IN",
        "occurred_at": stamp(clock.now()),
    }
    accept = ingest.engagement.events_api._parts()[0]
    assert accept.accept([own], Caller(user, is_admin=False), clock.now())[0].status == "accepted"
    assert deliver(store(responses)) == []
    assert live(person) == fold(responses)
    assert Counter(each["event_type"] for each in events_of(user)) == {
        "CHECK_IN": 1,
        "QUESTION_ANSWERED": 2,
    }


def test_an_answer_without_a_zone_is_dated_in_the_one_that_the_user_has_set() -> None:
    user, person = f"u-{uuid.uuid4()}", somebody()
    ingest.engagement.users_api._parts().preferences.set_timezone(user, "Asia/Tokyo", NOW)
    (response,) = some(person, 1, user, created_at="2026-06-01T20:00:00.000000Z")
    deliver(store([response]))
    assert [(each["activity_date"], each["zone"]) for each in events_of(user)] == [
        ("2026-06-02", "Asia/Tokyo")
    ]
    assert live(person).days.keys() == {date(2026, 6, 1)}


def test_an_answer_that_is_gone_is_not_counted() -> None:
    person, user = somebody(), f"u-{uuid.uuid4()}"
    responses = some(person, 2, user)
    batch = store(responses)
    key = item({"question_id": responses[0].question_id, "response_id": person})
    client("dynamodb").delete_item(TableName="Responses", Key=key)
    assert deliver(batch) == []
    assert live(person) == fold(responses[1:])
    assert len(events_of(user)) == 1
    assert responses_of(responses[0].question_id) == []


def test_random_answers_through_the_processor_equal_the_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(11)
    people = [somebody() for _ in range(20)]
    questions = [str(uuid.uuid4()) for _ in range(30)]
    pairs = chance.sample(list(itertools.product(people, questions)), 300)
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
    stream = [*batch, *chance.sample(batch, 60)]
    chance.shuffle(stream)
    for first in range(0, len(stream), 90):
        assert deliver(stream[first : first + 90]) == []
    before = {person: live(person) for person in people}
    later = datetime.now(UTC) + timedelta(minutes=1)
    monkeypatch.setattr("adapters.clock.now", lambda: later)
    for person in people:
        assert before[person] == fold(each for each in history if each.fingerprint_hash == person)
        assert answers.rebuild(person) == before[person] == live(person)


def test_a_rebuild_mends_stats_and_counts_what_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    person, user = somebody(), f"u-{uuid.uuid4()}"
    responses = some(person, 6, user)
    batch = store(responses)
    deliver(batch[:4])
    with pytest.raises(answers.Busy):
        answers.rebuild(person)
    client("dynamodb").update_item(
        TableName="UserStats",
        Key={"fingerprint_hash": {"S": person}},
        UpdateExpression="SET days = :none, total_points = :wrong",
        ExpressionAttributeValues={":none": {"S": ""}, ":wrong": {"N": "9999"}},
    )
    later = datetime.now(UTC) + timedelta(minutes=1)
    monkeypatch.setattr("adapters.clock.now", lambda: later)
    expected = fold(responses)
    assert answers.handler({"streakline_rebuild": [person]}, CONTEXT) == {
        "rebuilt": {person: expected.total_points}
    }
    assert live(person) == expected
    assert deliver(batch) == []
    assert live(person) == expected
    assert len(events_of(user)) == 6


def test_the_leaderboard_merges_the_shards_and_ties_share_a_rank() -> None:
    points = [100_001, 100_003, 100_002, 100_002, 100_000]
    people = [somebody() for _ in points]
    for person, score in zip(people, points, strict=True):
        stored = {
            "fingerprint_hash": person,
            "leaderboard": f"answers#{int(person, 16) % 2}",
            "total_points": score,
        }
        client("dynamodb").put_item(TableName="UserStats", Item=item(stored | {"answers": 1}))
    with requests() as seen:
        rows = call("GET", "/v1/stats", limit=4).body["entries"]
    assert seen.operations == ["Query", "Query"]
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
    assert from_item(plain(responses_of(question["question_id"])[0])).user_id == "leader"


def test_the_sample_event_is_counted() -> None:
    text = (ROOT / "tests" / "events" / "AnswersFunction.json").read_text()
    user = f"sample-{uuid.uuid4()}"  # others may have counted the sample itself
    text = text.replace('"sample"', f'"{user}"').replace("0123456789abcdef" * 2, uuid.uuid4().hex)
    batch = json.loads(text)
    image = batch["Records"][0]["dynamodb"]["NewImage"]
    client("dynamodb").put_item(TableName="Responses", Item=image)
    assert answers.handler(batch, CONTEXT) == {"batchItemFailures": []}
    stats = live(image["fingerprint_hash"]["S"])
    assert (stats.answers, stats.total_points, stats.newest[1]) == (1, 15, "Europe/Madrid")
    assert len(events_of(user)) == 1


def test_nobody_without_points_is_on_the_leaderboard() -> None:
    person = somebody()
    assert answers.rebuild(person) == Stats()
    found = client("dynamodb").get_item(TableName="UserStats", Key={"fingerprint_hash": {"S": person}})
    assert "leaderboard" not in found.get("Item", {})
