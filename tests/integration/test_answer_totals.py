"""Stats rebuilt from the stored answers, and the leaderboard over them."""

import itertools
import json
import random
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from adapters.platform.aws import client
from adapters.platform.items import encode_item
from processors.questions import answers
from rules.days import stamp
from rules.questions.answer_stats import Stats, fold_responses
from tests.support.answer_stream import NOW, deliver, live, records, some, somebody, store
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


@pytest.fixture(autouse=True, scope="module")
def settings(engine: Engine) -> Iterator[None]:
    with prepared(engine):
        yield


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
        assert before[person] == fold_responses(each for each in history if each.fingerprint_hash == person)
        assert answers.rebuild(person) == before[person] == live(person)


def test_a_rebuild_mends_stats_and_counts_what_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    person = somebody()
    responses = some(person, 6)
    batch = store(responses)
    deliver(batch[:4])
    with pytest.raises(answers.StatsBusy):
        answers.rebuild(person)
    client("dynamodb").update_item(
        TableName="UserStats",
        Key={"fingerprint_hash": {"S": person}},
        UpdateExpression="SET days = :none, total_points = :wrong",
        ExpressionAttributeValues={":none": {"S": ""}, ":wrong": {"N": "9999"}},
    )
    later = datetime.now(UTC) + timedelta(minutes=1)
    monkeypatch.setattr("adapters.clock.now", lambda: later)
    expected = fold_responses(responses)
    assert answers.handler({"streakline_rebuild": [person]}, CONTEXT) == {
        "rebuilt": {person: expected.total_points}
    }
    assert live(person) == expected
    assert deliver(batch) == []
    assert live(person) == expected


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


def test_nobody_without_points_is_on_the_leaderboard() -> None:
    person = somebody()
    assert answers.rebuild(person) == Stats()
    found = client("dynamodb").get_item(TableName="UserStats", Key={"fingerprint_hash": {"S": person}})
    assert "_leaderboard" not in found.get("Item", {})
