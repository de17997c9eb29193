"""A stream's batch: each record is done, comes again, or is kept with the reason, whatever becomes of its neighbours."""

import json
from collections.abc import Sequence
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from adapters.logs import Logger
from adapters.platform.queues import PoisonMessage, SourceQueue
from processors import batches
from processors.batches import BatchResult, Record, queue_consumer, stream_consumer

QUIET = Logger("test", level="CRITICAL")
CONTEXT = SimpleNamespace(
    function_name="test",
    memory_limit_in_mb=1024,
    invoked_function_arn="arn",
    aws_request_id="1",
    get_remaining_time_in_millis=lambda: 60_000,
)
AWAY = EndpointConnectionError(endpoint_url="https://sqs")
Pairs = Sequence[tuple[Record, str]]


class Sqs:
    """Takes messages. is_away: none."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.is_away = False

    def send_message(self, **message: Any) -> None:
        if self.is_away:
            raise AWAY
        self.sent.append(message | json.loads(message["MessageBody"]))


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Sqs:
    made = Sqs()
    monkeypatch.setattr(batches, "process_client", lambda _: made)
    monkeypatch.setenv("FAILURE_QUEUE_URL", "https://failures")
    return made


def record(number: int, text: str) -> Record:
    return {"dynamodb": {"SequenceNumber": str(number), "NewImage": {"text": {"S": text}}}}


def text_of(each: Record) -> str | None:
    found = str(each["dynamodb"]["NewImage"]["text"]["S"])
    return None if found == "nothing" else f"{found[0]}{found[1:]}"  # "" raises IndexError


class Consumer:
    """Consumes records whose first letter says of whom they are; the whole text says what happens."""

    def __init__(self) -> None:
        self.tried: list[list[str]] = []

    def consume(self, records: list[Record], _now: datetime) -> BatchResult:
        result, by_key = BatchResult(), dict[str, list[tuple[Record, str]]]()
        for each, text in result.read(records, text_of):
            by_key.setdefault(text[:1], []).append((each, text))

        def act(pairs: Pairs) -> None:
            texts = [text for _, text in pairs]
            self.tried.append(texts)
            if any(text.endswith("bad") for text in texts):
                raise RuntimeError("it is bad")
            if any(text.endswith("later") for text in texts):
                raise AWAY
            result.counts["done"] += len(texts)

        for pairs in by_key.values():
            result.attempt(pairs, act, QUIET)
        return result


def served(*texts: str, **more: Any) -> tuple[Consumer, dict[str, str]]:
    """Serve records, numbered from 0; returns what comes again, with reasons."""
    consumer = Consumer()
    handler = stream_consumer("texts", QUIET)(consumer.consume)
    answer = handler({"Records": [record(*each) for each in enumerate(texts)], **more}, CONTEXT)
    return consumer, {each["itemIdentifier"]: each.get("reason", "") for each in answer["batchItemFailures"]}


def test_whatever_becomes_of_a_record_its_neighbours_go_on(sqs: Sqs) -> None:
    consumer, again = served("a1", "b1", "nothing", "", "a-bad", "c-later", "a2", "b2")
    assert again == {"5": ""}
    assert [(each["record"]["dynamodb"]["SequenceNumber"], each["reason"]) for each in sqs.sent] == [
        ("3", "IndexError: string index out of range"),
        ("4", "RuntimeError: it is bad"),
    ]
    assert {each["consumer"] for each in sqs.sent} == {"texts"}
    # Of one key in order, and one by one only after an error.
    assert consumer.tried == [["a1", "a-bad", "a2"], ["a1"], ["a-bad"], ["a2"], ["b1", "b2"], ["c-later"]]


def test_only_a_record_that_fails_alone_is_logged_as_poison(caplog: pytest.LogCaptureFixture) -> None:
    def refuse_two(pairs: Pairs) -> None:
        if len(pairs) > 1 or pairs[0][1] == "bad":
            raise RuntimeError

    result, pairs = BatchResult(), [(record(number, text), text) for number, text in enumerate(("a", "bad"))]
    result.attempt(pairs, refuse_two, Logger("test-batches"))
    assert [each.getMessage() for each in caplog.records] == ["each alone", "poison"]
    assert [kept for kept, _ in result.poison] == [record(1, "bad")]


@pytest.mark.parametrize(
    "odd", [{}, {"NewImage": {}}, {"NewImage": {"text": {"N": "1"}}}, {"NewImage": {"text": None}}, None]
)
def test_what_is_no_record_of_the_consumer_s_is_poison_with_its_reason(sqs: Sqs, odd: Any) -> None:
    result = BatchResult()
    assert result.read([{"dynamodb": odd}, record(1, "a")], text_of) == [(record(1, "a"), "a")]
    [(kept, reason)] = result.poison
    assert kept == {"dynamodb": odd}
    assert reason.startswith(("KeyError", "TypeError"))


def test_a_store_that_is_away_while_records_are_read_is_no_fault_of_theirs(sqs: Sqs) -> None:
    def away(_: Record) -> str:
        raise AWAY

    with pytest.raises(EndpointConnectionError):
        BatchResult().read([record(1, "a")], away)


def test_a_redrive_says_why_it_failed_again_and_keeps_nothing_twice(sqs: Sqs) -> None:
    _, again = served("a1", "b-bad", "c-later", streakline_redrive=True)
    assert again == {"1": "RuntimeError: it is bad", "2": ""}
    assert sqs.sent == []


def test_poison_that_cannot_be_kept_makes_the_batch_come_again(sqs: Sqs) -> None:
    sqs.is_away = True
    assert served("a1", "b-later")[1] == {"1": ""}
    with pytest.raises(EndpointConnectionError):
        served("a1", "b-bad")


def test_events_without_records_are_another_function_s(sqs: Sqs) -> None:
    handler = stream_consumer("texts", QUIET, lambda event, _: {"asked": event["ask"]})(Consumer().consume)
    assert handler({"ask": 1}, CONTEXT) == {"asked": 1}
    assert handler({"Records": []}, CONTEXT) == {"batchItemFailures": []}


def test_records_of_kinesis_come_again_by_their_own_numbers(sqs: Sqs) -> None:
    records: list[Record] = [{"kinesis": {"sequenceNumber": "9", "data": "?"}}]

    def refuse(_pairs: Pairs) -> None:
        raise AWAY

    def consume(given: list[Record], _now: datetime) -> BatchResult:
        result = BatchResult()
        result.attempt(result.read(given, lambda each: str(each["kinesis"]["data"])), refuse, QUIET)
        return result

    answer = stream_consumer("bytes", QUIET)(consume)({"Records": records}, CONTEXT)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "9"}]}


def test_a_queue_s_messages_are_done_wait_or_are_kept(sqs: Sqs) -> None:
    waiting: list[str] = []

    def consume(message: Any, _now: datetime) -> None:
        if message == "bad":
            raise PoisonMessage("it is bad")
        if message == "later":
            raise AWAY

    def change_message_visibility(**asked: Any) -> None:
        waiting.append(asked["ReceiptHandle"])

    queue = SimpleNamespace(change_message_visibility=change_message_visibility)
    line = SourceQueue(lambda: queue, "https://queue", lambda error: error is AWAY)
    records = [
        {"messageId": str(at), "receiptHandle": f"h{at}", "body": json.dumps(text)}
        for at, text in enumerate(("good", "bad", "later"))
    ]
    for handler in (
        queue_consumer("messages", QUIET)(consume),
        queue_consumer("messages", QUIET, lambda: line)(consume),
    ):
        assert handler({"Records": records}, CONTEXT) == {"batchItemFailures": [{"itemIdentifier": "2"}]}
    assert [each["reason"] for each in sqs.sent] == ["it is bad"] * 2
    assert waiting == ["h2"]
