"""Answers in the table, their stream, and what the processor has counted of them, also through several keys."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.platform.aws import client
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import put_all, query_all
from adapters.questions.stats_items import stats_from
from processors.questions import answers
from rules.days import stamp
from rules.questions.answer_stats import Stats, fold_responses
from rules.questions.responses import Response, to_item
from tests.support.dying import Dying, Killed
from tests.support.questions.answers import answer
from tests.support.questions.stack import CONTEXT, responses_of

STREAM = "arn:aws:dynamodb:us-east-1:000000000000:table/Responses/stream/1"


def records(images: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Stream records of responses, as they were when they were put."""
    return [
        {
            "eventName": "INSERT",
            "eventSourceARN": STREAM,
            "dynamodb": {
                "Keys": {name: image[name] for name in ("question_id", "response_id") if name in image},
                "NewImage": {name: value for name, value in image.items() if name != "counted_at"},
                "SequenceNumber": str(number),
            },
        }
        for number, image in enumerate(images, 1)
    ]


def deliver(batch: list[dict[str, Any]], **more: Any) -> list[str]:
    """Hand records to the processor; returns what it reports as failed."""
    answered = answers.handler({"Records": batch, **more}, CONTEXT)
    return [each["itemIdentifier"] for each in answered["batchItemFailures"]]


def deliver_by(dying: Dying, batch: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Hand records to a processor whose client dies; returns what is to come again: ["all"] if it was killed."""
    with monkeypatch.context() as patched:
        patched.setattr(answers._parts, "client", lambda _: dying)
        answers._parts.cache_clear()
        try:
            return deliver(batch)
        except Killed:
            return ["all"]
        finally:
            answers._parts.cache_clear()


def events_of(user_id: str) -> list[dict[str, Any]]:
    found = client("dynamodb").query(
        TableName="BPEvents",
        KeyConditionExpression="user_id = :u",
        ExpressionAttributeValues={":u": {"S": user_id}},
        ConsistentRead=True,
    )
    return [decode_item(each) for each in found["Items"]]


NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def some(person: str, count: int, **changes: Any) -> list[Response]:
    """A person's answers to as many questions, an hour apart."""
    return [
        replace(
            answer(number, points=13, category=f"c{number % 6}"),
            **{
                "question_id": str(uuid.uuid4()),
                "fingerprint_hash": person,
                "created_at": stamp(NOW + timedelta(hours=number)),
                "activity_date": (NOW + timedelta(hours=number)).date(),
                **changes,
            },
        )
        for number in range(count)
    ]


def somebody() -> str:
    return uuid.uuid4().hex


def store(responses: list[Response]) -> list[dict[str, Any]]:
    """Put responses, and return the stream's records."""
    images = [encode_item(to_item(each)) for each in responses]
    put_all(client("dynamodb"), "Responses", images)
    return records(images)


def live(person: str) -> Stats:
    found = client("dynamodb").get_item(
        TableName="UserStats", Key={"fingerprint_hash": {"S": person}}, ConsistentRead=True
    )
    return stats_from(decode_item(found["Item"])) if "Item" in found else Stats()


def a_person(count: int) -> tuple[str, ...]:
    """A person's hashes, newest first."""
    return tuple(somebody() for _ in range(count))


def answered(hashes: Sequence[str], place: int, count: int, **changes: Any) -> list[Response]:
    """A person's answers through a process whose newest key is that of hashes[place]."""
    found = some(hashes[place], count, older_hashes=tuple(hashes[place + 1 :]), **changes)
    return [replace(each, upcoming_hashes=tuple(hashes[place - 1 : place])) for each in found]


def stored(person: str) -> dict[str, Any]:
    found = client("dynamodb").get_item(
        TableName="UserStats", Key=encode_item({"fingerprint_hash": person}), ConsistentRead=True
    )
    return decode_item(found.get("Item", {}))


def on_the_board(hashes: Sequence[str]) -> list[str]:
    rows = [
        row["fingerprint_hash"]["S"]
        for partition in ("_leaderboard", "_leaderboard#1")
        for row in query_all(
            client("dynamodb"),
            TableName="UserStats",
            IndexName="ByTotalPoints",
            KeyConditionExpression="#board = :partition",
            ExpressionAttributeNames={"#board": "_leaderboard"},
            ExpressionAttributeValues=encode_item({":partition": partition}),
        )
    ]
    return [each for each in rows if each in hashes]


def check(hashes: Sequence[str], history: list[Response]) -> None:
    """Stats are under one hash, from all answers."""
    homes = [each for each in hashes if "days" in stored(each)]
    assert len(homes) == 1
    assert live(homes[0]) == fold_responses(history)
    assert on_the_board(hashes) == homes
    marks = [each for one in history for each in responses_of(one.question_id)]
    assert all("counted_at" in each for each in marks)
