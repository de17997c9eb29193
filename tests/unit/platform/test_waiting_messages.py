"""A message whose store is away waits, and is given up by nobody; so does one that there is no time for."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.logs import Logger
from adapters.platform.queues import (
    ALL_RECEIVES_MAX,
    RECEIVES_MAX,
    WAIT_SECONDS_MAX,
    Consumer,
    FailureQueue,
    SourceQueue,
    TimeIsUp,
    receive_count,
    wait_seconds,
)

NOW = datetime(2026, 3, 10, tzinfo=UTC)


class Sqs:
    """Notes what is asked of it."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.hidden: list[dict[str, Any]] = []

    def send_message(self, **message: Any) -> None:
        self.sent.append(message)

    def change_message_visibility(self, **asked: Any) -> None:
        self.hidden.append(asked)


class Away(Exception):
    """The store is."""


def record(name: str, count: int = 1, before: str | None = None) -> dict[str, Any]:
    told = {} if before is None else {"received": {"stringValue": before, "dataType": "Number"}}
    return {
        "messageId": name,
        "receiptHandle": f"handle of {name}",
        "body": json.dumps(name),
        "attributes": {"ApproximateReceiveCount": str(count)},
        "messageAttributes": told,
    }


def handle(message: str) -> None:
    if message.startswith("away"):
        raise Away("no answer")
    if message.startswith("long"):
        raise TimeIsUp("3 of 1000")
    if message.startswith("bug"):
        raise KeyError("x")


def served(sqs: Sqs, *records: dict[str, Any], clock: Iterator[bool] | None = None, **more: Any) -> set[str]:
    line = SourceQueue(lambda: sqs, "work", lambda error: isinstance(error, Away))
    consumer = Consumer(
        "leads", FailureQueue(lambda: sqs, "failures"), Logger("test", level="CRITICAL"), line
    )
    is_over = (lambda: next(clock)) if clock else (lambda: False)
    answer = consumer.serve({"Records": list(records), **more}, handle, NOW, is_over)
    return {each["itemIdentifier"] for each in answer["batchItemFailures"]}


def waits(sqs: Sqs) -> dict[str, int]:
    return {each["ReceiptHandle"][10:]: each["VisibilityTimeout"] for each in sqs.hidden}


def test_a_message_waits_longer_each_time_and_its_neighbours_do_not() -> None:
    sqs = Sqs()
    batch = [record("away1"), record("good"), record("away5", 5), record("bug", 3)]
    assert served(sqs, *batch) == {"away1", "away5", "bug"}
    assert waits(sqs) == {"away1": 10, "away5": 160}, "a bug takes its queue's own time"
    assert sqs.sent == []


def test_before_its_queue_gives_it_up_it_is_sent_anew_and_brings_its_count() -> None:
    sqs = Sqs()
    assert served(sqs, record("away", RECEIVES_MAX, before="16")) == set()
    (sent,) = sqs.sent
    assert (sent["QueueUrl"], sent["MessageBody"], sent["DelaySeconds"]) == ("work", '"away"', 900)
    assert sent["MessageAttributes"] == {"received": {"DataType": "Number", "StringValue": "24"}}


def test_after_two_weeks_it_is_kept_with_its_reason() -> None:
    sqs = Sqs()
    assert served(sqs, record("away", 4, before=str(ALL_RECEIVES_MAX))) == set()
    (kept,) = sqs.sent
    assert kept["QueueUrl"] == "failures"
    assert json.loads(kept["MessageBody"])["reason"] == "waited for two weeks: Away: no answer"
    assert ALL_RECEIVES_MAX * WAIT_SECONDS_MAX > 14 * 24 * 3600


def test_what_there_is_no_time_for_comes_again_at_once_and_the_first_is_always_begun() -> None:
    sqs = Sqs()
    batch = [record("good"), record("good2"), record("good3", RECEIVES_MAX), record("good4")]
    assert served(sqs, *batch, clock=iter([False, True, True])) == {"good4"}
    assert waits(sqs) == {"good4": 0}
    assert [each["DelaySeconds"] for each in sqs.sent] == [0], "no attempt was made: none is counted"
    assert served(Sqs(), record("good"), clock=iter([])) == set()


def test_a_message_that_takes_too_long_goes_on_at_once() -> None:
    sqs = Sqs()
    assert served(sqs, record("long")) == {"long"}
    assert waits(sqs) == {"long": 0}


def test_a_redrive_never_waits() -> None:
    sqs = Sqs()
    assert served(sqs, record("away", 9), streakline_redrive=True) == {"away"}
    assert (sqs.sent, sqs.hidden) == ([], [])


@pytest.mark.parametrize("text", ["", "-1", "1e9", "x", "9" * 5_000, "\u0663"])
def test_whoever_lies_about_the_count_is_not_believed(text: str) -> None:
    assert receive_count(record("away", 3, before=text)) == 3


@given(st.integers(1, 10**9))
def test_waits_grow_to_a_quarter_of_an_hour(times: int) -> None:
    assert 10 <= wait_seconds(times) <= wait_seconds(times + 1) <= WAIT_SECONDS_MAX
