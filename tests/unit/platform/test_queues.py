"""An SQS batch: each message is done, comes again, or is kept with the reason; and what an operator sees of it."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.logs import Logger
from adapters.platform.queues import Consumer, FailureQueue, PoisonMessage
from local.operate.redrive import GIVEN_UP, waiting_message

NOW = datetime(2026, 3, 10, tzinfo=UTC)


class Sqs:
    """Takes messages."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.bytes_max = 1_000_000

    def send_message(self, **message: Any) -> None:
        if len(message["MessageBody"]) > self.bytes_max:
            raise RuntimeError("too long")
        self.sent.append(message)


def batch(*bodies: str, **more: Any) -> dict[str, Any]:
    return {"Records": [{"messageId": str(at), "body": body} for at, body in enumerate(bodies)], **more}


def handle(message: Any) -> None:
    if message == "bad":
        raise PoisonMessage("it is bad")
    if message == "later":
        raise RuntimeError("the database is away")


@pytest.fixture
def sqs() -> Sqs:
    return Sqs()


def consumer(sqs: Sqs) -> Consumer:
    return Consumer("leads", FailureQueue(lambda: sqs, "url"), Logger("test", level="CRITICAL"))


def served(sqs: Sqs, event: dict[str, Any]) -> list[str]:
    answer = consumer(sqs).serve(event, handle, NOW)
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def test_neighbours_go_on_whatever_becomes_of_a_message(sqs: Sqs) -> None:
    assert served(sqs, batch('"good"', '"bad"', '"later"', "{", '"good"')) == ["2"]
    kept = [json.loads(each["MessageBody"]) for each in sqs.sent]
    assert [(each["record"], each["reason"][:18]) for each in kept] == [
        ('"bad"', "it is bad"),
        ("{", "the message is not"),
    ]
    assert {each["consumer"] for each in kept} == {"leads"}


def test_poison_that_cannot_be_kept_comes_again_and_its_neighbours_go_on(sqs: Sqs) -> None:
    sqs.bytes_max = 500
    assert served(sqs, batch('"good"', "{" * 500, '"bad"', '"later"')) == ["1", "3"]
    assert [json.loads(each["MessageBody"])["record"] for each in sqs.sent] == ['"bad"']


def test_what_opens_brackets_without_end_is_poison(sqs: Sqs) -> None:
    assert served(sqs, batch("[" * 100_000)) == []
    assert "not JSON" in json.loads(sqs.sent[0]["MessageBody"])["reason"]


def reasons(sqs: Sqs, event: dict[str, Any]) -> dict[str, Any]:
    answer = consumer(sqs).serve(event, handle, NOW)
    return {each["itemIdentifier"]: each.get("reason") for each in answer["batchItemFailures"]}


def test_a_redrive_says_why_it_failed_again_and_nobody_else_is_told(sqs: Sqs) -> None:
    bodies = ('"good"', '"bad"', '"later"')
    told = reasons(sqs, batch(*bodies, streakline_redrive=True))
    assert told == {"1": "it is bad", "2": "RuntimeError: the database is away"}
    assert sqs.sent == []
    assert reasons(sqs, batch(*bodies)) == {"2": None}


def test_an_operator_sees_the_reason_and_the_record(sqs: Sqs) -> None:
    served(sqs, batch('"bad"'))
    told = waiting_message("leads", "handle", sqs.sent[0]["MessageBody"])
    assert (told.reason, told.body["record"]) == ("it is bad", '"bad"')


@pytest.mark.parametrize("text", ['{"organization_id": "acme"}', "{", "[]", '{"reason": "late order"}'])
def test_what_a_queue_has_given_up_is_there_as_it_was_sent(text: str) -> None:
    told = waiting_message("leads", "handle", text)
    assert (told.reason, told.body["record"]) == (GIVEN_UP, text)


def test_of_a_stream_s_records_the_condition_is_the_reason() -> None:
    text = json.dumps({"requestContext": {"condition": "RetryAttemptsExhausted"}, "DDBStreamBatchInfo": {}})
    assert waiting_message("lead-events", "handle", text).reason == "RetryAttemptsExhausted"
