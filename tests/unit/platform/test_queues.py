"""An SQS batch: each message is done, comes again, waits, or is kept with the reason; and what an operator sees of it.

A message whose store is away waits, and is given up by nobody; so does one that there is no time for. What is kept
is always something that a message can hold, and from which a redrive finds all.
"""

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
    LargeRecords,
    PoisonMessage,
    SourceQueue,
    TimeIsUp,
    receive_count,
    wait_seconds,
)
from local.operate.redrive import GIVEN_UP, waiting_message

NOW = datetime(2026, 3, 10, tzinfo=UTC)
SQS_MAX = 262_144


class Aws:
    """SQS and S3, as far as messages need them; notes what is asked."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.hidden: list[dict[str, Any]] = []
        self.objects: dict[str, bytes] = {}
        self.bytes_max = SQS_MAX

    def send_message(self, **message: Any) -> None:
        if len(message["MessageBody"].encode()) >= self.bytes_max:
            raise RuntimeError("too long")
        self.sent.append(message)

    def change_message_visibility(self, **asked: Any) -> None:
        self.hidden.append(asked)

    def put_object(self, Bucket: str, Key: str, Body: bytes, ContentType: str) -> None:  # noqa: N803
        self.objects[f"s3://{Bucket}/{Key}"] = Body


@pytest.fixture
def aws() -> Aws:
    return Aws()


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


def batch(*bodies: str, **more: Any) -> dict[str, Any]:
    return {"Records": [{"messageId": str(at), "body": body} for at, body in enumerate(bodies)], **more}


def handle(message: Any) -> None:
    if message == "bad":
        raise PoisonMessage("it is bad")
    if message == "later":
        raise RuntimeError("the database is away")
    if message.startswith("away"):
        raise Away("no answer")
    if message.startswith("long"):
        raise TimeIsUp("3 of 1000")
    if message.startswith("bug"):
        raise KeyError("x")


def reasons(
    aws: Aws, event: dict[str, Any], *, line: SourceQueue | None = None, **more: Any
) -> dict[str, Any]:
    """Serve a batch; returns what comes again, with reasons."""
    failures, logger = FailureQueue(lambda: aws, "failures"), Logger("test", level="CRITICAL")
    answer = Consumer("leads", failures, logger, line).serve(event, handle, NOW, **more)
    return {each["itemIdentifier"]: each.get("reason") for each in answer["batchItemFailures"]}


def served(aws: Aws, *records: dict[str, Any], clock: Iterator[bool] | None = None, **more: Any) -> set[str]:
    """Serve records of a queue in which messages wait; returns those that come again."""
    line = SourceQueue(lambda: aws, "work", lambda error: isinstance(error, Away))
    is_over = (lambda: next(clock)) if clock else (lambda: False)
    return set(reasons(aws, {"Records": list(records), **more}, line=line, is_over=is_over))


def waits(aws: Aws) -> dict[str, int]:
    return {each["ReceiptHandle"][10:]: each["VisibilityTimeout"] for each in aws.hidden}


def test_neighbours_go_on_whatever_becomes_of_a_message(aws: Aws) -> None:
    assert list(reasons(aws, batch('"good"', '"bad"', '"later"', "{", '"good"'))) == ["2"]
    kept = [json.loads(each["MessageBody"]) for each in aws.sent]
    assert [(each["record"], each["reason"][:18]) for each in kept] == [
        ('"bad"', "it is bad"),
        ("{", "the message is not"),
    ]
    assert {each["consumer"] for each in kept} == {"leads"}


def test_poison_that_cannot_be_kept_comes_again_and_its_neighbours_go_on(aws: Aws) -> None:
    aws.bytes_max = 500
    assert list(reasons(aws, batch('"good"', "{" * 500, '"bad"', '"later"'))) == ["1", "3"]
    assert [json.loads(each["MessageBody"])["record"] for each in aws.sent] == ['"bad"']


def test_what_opens_brackets_without_end_is_poison(aws: Aws) -> None:
    assert reasons(aws, batch("[" * 100_000)) == {}
    assert "not JSON" in json.loads(aws.sent[0]["MessageBody"])["reason"]


def test_a_redrive_says_why_it_failed_again_and_nobody_else_is_told(aws: Aws) -> None:
    bodies = ('"good"', '"bad"', '"later"')
    told = reasons(aws, batch(*bodies, streakline_redrive=True))
    assert told == {"1": "it is bad", "2": "RuntimeError: the database is away"}
    assert aws.sent == []
    assert reasons(aws, batch(*bodies)) == {"2": None}


def test_an_operator_sees_the_reason_and_the_record(aws: Aws) -> None:
    reasons(aws, batch('"bad"'))
    told = waiting_message("leads", "handle", aws.sent[0]["MessageBody"])
    assert (told.reason, told.body["record"]) == ("it is bad", '"bad"')


@pytest.mark.parametrize("text", ['{"organization_id": "acme"}', "{", "[]", '{"reason": "late order"}'])
def test_what_a_queue_has_given_up_is_there_as_it_was_sent(text: str) -> None:
    told = waiting_message("leads", "handle", text)
    assert (told.reason, told.body["record"]) == (GIVEN_UP, text)


def test_of_a_stream_s_records_the_condition_is_the_reason() -> None:
    text = json.dumps({"requestContext": {"condition": "RetryAttemptsExhausted"}, "DDBStreamBatchInfo": {}})
    assert waiting_message("lead-events", "handle", text).reason == "RetryAttemptsExhausted"


# ---- messages that wait


def test_a_message_waits_longer_each_time_and_its_neighbours_do_not(aws: Aws) -> None:
    batch = [record("away1"), record("good"), record("away5", 5), record("bug", 3)]
    assert served(aws, *batch) == {"away1", "away5", "bug"}
    assert waits(aws) == {"away1": 10, "away5": 160}, "a bug takes its queue's own time"
    assert aws.sent == []


def test_before_its_queue_gives_it_up_it_is_sent_anew_and_brings_its_count(aws: Aws) -> None:
    assert served(aws, record("away", RECEIVES_MAX, before="16")) == set()
    (sent,) = aws.sent
    assert (sent["QueueUrl"], sent["MessageBody"], sent["DelaySeconds"]) == ("work", '"away"', 900)
    assert sent["MessageAttributes"] == {"received": {"DataType": "Number", "StringValue": "24"}}


def test_after_two_weeks_it_is_kept_with_its_reason(aws: Aws) -> None:
    assert served(aws, record("away", 4, before=str(ALL_RECEIVES_MAX))) == set()
    (kept,) = aws.sent
    assert kept["QueueUrl"] == "failures"
    assert json.loads(kept["MessageBody"])["reason"] == "waited for two weeks: Away: no answer"
    assert ALL_RECEIVES_MAX * WAIT_SECONDS_MAX > 14 * 24 * 3600


def test_what_there_is_no_time_for_comes_again_at_once_and_the_first_is_always_begun(aws: Aws) -> None:
    batch = [record("good"), record("good2"), record("good3", RECEIVES_MAX), record("good4")]
    assert served(aws, *batch, clock=iter([False, True, True])) == {"good4"}
    assert waits(aws) == {"good4": 0}
    assert [each["DelaySeconds"] for each in aws.sent] == [0], "no attempt was made: none is counted"
    assert served(aws, record("good"), clock=iter([])) == set()


def test_a_message_that_takes_too_long_goes_on_at_once(aws: Aws) -> None:
    assert served(aws, record("long")) == {"long"}
    assert waits(aws) == {"long": 0}


def test_a_redrive_never_waits(aws: Aws) -> None:
    assert served(aws, record("away", 9), streakline_redrive=True) == {"away"}
    assert (aws.sent, aws.hidden) == ([], [])


@pytest.mark.parametrize("text", ["", "-1", "1e9", "x", "9" * 5_000, "\u0663"])
def test_whoever_lies_about_the_count_is_not_believed(text: str) -> None:
    assert receive_count(record("away", 3, before=text)) == 3


@given(st.integers(1, 10**9))
def test_waits_grow_to_a_quarter_of_an_hour(times: int) -> None:
    assert 10 <= wait_seconds(times) <= wait_seconds(times + 1) <= WAIT_SECONDS_MAX


# ---- what is kept of poison


def kept(aws: Aws, record: Any, reason: str = "why") -> Any:
    FailureQueue(lambda: aws, "url", LargeRecords(lambda: aws, "b")).keep(
        "events-stream", [(record, reason)], NOW
    )
    return waiting_message("events-stream", "h", aws.sent[-1]["MessageBody"]).body["record"]


def test_a_small_record_is_in_its_message(aws: Aws) -> None:
    assert kept(aws, {"event": {"a": 1}}) == {"event": {"a": 1}}
    assert aws.objects == {}


@pytest.mark.parametrize("text", ["x" * 900_000, "\u00e4" * 200_000, "\\" * 140_000])
def test_a_record_that_no_message_holds_is_stored_once_and_named(aws: Aws, text: str) -> None:
    record = {"data": text, "sequence_number": "1"}
    named, again = kept(aws, record), kept(aws, record)
    assert named == again
    assert {url: json.loads(data) for url, data in aws.objects.items()} == {named["stored"]: record}


def test_an_image_that_is_in_its_table_is_left_out(aws: Aws) -> None:
    image = {"NewImage": {"a": {"S": "x" * 399_000}}, "Keys": {"k": {"S": "1"}}, "SequenceNumber": "7"}
    record = {"eventSourceARN": "arn", "dynamodb": image}
    assert kept(aws, record) == {
        "eventSourceARN": "arn",
        "dynamodb": {"Keys": {"k": {"S": "1"}}, "SequenceNumber": "7"},
    }


def test_a_long_reason_is_cut(aws: Aws) -> None:
    assert kept(aws, {"a": 1}, "r" * 500_000) == {"a": 1}
