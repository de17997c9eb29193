"""People with a hash for each key, their answers, and where their stats are."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from adapters.platform.aws import client
from adapters.platform.items import decode_item, encode_item
from adapters.platform.tables import query_all
from rules.questions.answer_stats import fold_responses
from rules.questions.responses import Response
from tests.support.answer_stream import live, some, somebody
from tests.support.questions_stack import responses_of


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
