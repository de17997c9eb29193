"""The Kinesis function accepts a batch of records, and keeps each bad one with its reason."""

import gzip
from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from ingest.engagement import events_stream
from ingest.engagement.acceptance import Acceptor, AcceptResult, AcceptStatus
from ingest.engagement.events_stream import RecordPart, reason_of
from tests.support.books import KnownBooks
from tests.support.empty_stores import Stores
from tests.support.http_requests import VALID
from tests.support.kinesis_records import EVENT, as_bytes, record, redriven

CONTEXT = SimpleNamespace(
    function_name="f", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
)


REJECTED = AcceptResult(
    "k", AcceptStatus.REJECTED, error={"code": "invalid_field", "message": "user_id is missing"}
)


@pytest.mark.parametrize(
    ("body", "result", "reason"),
    [
        (EVENT, AcceptResult("k", AcceptStatus.ACCEPTED), None),
        (EVENT, AcceptResult("k", AcceptStatus.DUPLICATE), None),
        (EVENT, REJECTED, "rejected: invalid_field: user_id is missing"),
        (
            EVENT,
            AcceptResult("k", AcceptStatus.CONFLICT, error={"code": "conflict", "message": "used"}),
            "conflict: conflict: used",
        ),
        (EVENT, AcceptResult("k", AcceptStatus.REJECTED), "rejected: None: None"),
    ],
)
def test_what_was_not_taken_has_its_reason(body: Any, result: AcceptResult, reason: str | None) -> None:
    assert reason_of(RecordPart({}, body), result) == reason


class Door:
    """An acceptor and a failure queue that note what they get."""

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.kept: list[tuple[Any, str]] = []

    def accept(
        self, sent: Sequence[Any], caller: Any, now: datetime, default_source: str = ""
    ) -> list[AcceptResult]:
        assert len(sent) <= events_stream.BATCH_MAX
        self.taken += sent
        unavailable = {"code": "unavailable", "message": "try again"}
        return [
            REJECTED
            if not isinstance(body, dict)
            else AcceptResult("k", AcceptStatus.REJECTED, error=unavailable)
            if body.get("down")
            else AcceptResult("k", AcceptStatus.ACCEPTED)
            for body in sent
        ]

    def keep(self, consumer: str, failures: Sequence[tuple[Any, str]], now: datetime) -> None:
        assert now.tzinfo is UTC
        self.kept += failures


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Door:
    door = Door()
    monkeypatch.setattr(events_stream, "_parts", lambda: (door, door))
    return door


def handle(*records: dict[str, Any], **more: Any) -> list[str]:
    answer = events_stream.handler({"Records": list(records), **more}, CONTEXT)
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def test_a_batch_of_more_than_a_hundred_events_is_taken_in_parts(door: Door) -> None:
    assert handle(*(record(as_bytes({"events": [EVENT] * 90}), str(number)) for number in range(4))) == []
    assert len(door.taken) == 360


def test_what_was_done_before_a_store_went_down_does_not_come_again(door: Door) -> None:
    many = [record(as_bytes({"events": [EVENT] * 100}), "1"), record(as_bytes(EVENT), "2")]
    assert handle(*many, record(as_bytes({"down": 1}), "3")) == ["2"], "all of the batch come again"
    assert door.kept == []


def test_of_240_events_in_a_record_the_bad_one_alone_is_kept_and_all_others_are_taken(door: Door) -> None:
    events: list[Any] = [
        {**EVENT, "idempotency_key": str(n), "properties": {"text": "x" * 1_000}} for n in range(240)
    ]
    events[7] = "bad"
    assert handle(record(as_bytes({"events": events}))) == []
    assert len(door.taken) == 240
    assert door.kept == [
        (
            {"event": "bad", "sequence_number": "1"},
            "event 8 of 240: rejected: invalid_field: user_id is missing",
        )
    ]


def test_a_redrive_of_a_record_with_one_bad_event_takes_the_others_in_every_part(door: Door) -> None:
    events: list[Any] = ["bad", *[EVENT] * 239]
    assert handle(record(as_bytes({"events": events})), streakline_redrive=True) == []
    assert len(door.taken) == 240
    assert [kept for kept, _ in door.kept] == [{"event": "bad", "sequence_number": "1"}]
    assert handle(record(as_bytes("bad")), streakline_redrive=True) == ["1"]


def test_of_json_lines_a_bad_one_is_kept_with_its_place_and_its_redrive_sends_it_alone(door: Door) -> None:
    lines = b"\n".join([as_bytes(EVENT), as_bytes("bad"), b'{"a": ', as_bytes(EVENT)])
    assert handle(record(lines, "4")) == []
    assert door.taken == [EVENT, "bad", None, EVENT]
    assert [reason for _, reason in door.kept] == [
        "event 2 of 4: rejected: invalid_field: user_id is missing",
        "event 3 of 4 is not JSON: expecting value, line 1 column 7",
    ]
    for kept, _ in door.kept:
        again = redriven(kept)
        assert handle(again, streakline_redrive=True) == ["4"], "it stays in its queue"
    assert door.taken[4:] == ["bad", None]
    assert len(door.kept) == 2


def test_an_event_that_a_later_book_knows_is_taken_by_its_redrive(monkeypatch: pytest.MonkeyPatch) -> None:
    stores: Any = Stores()
    queue = Door()
    accept = Acceptor(stores, stores, stores, KnownBooks())
    monkeypatch.setattr(events_stream, "_parts", lambda: (accept, queue))
    event = {**VALID, "user_id": "u"}
    unknown = {**event, "idempotency_key": "l", "event_type": "NEW_TYPE"}
    lines = gzip.compress(as_bytes(event) + as_bytes(unknown) + as_bytes({**event, "idempotency_key": "m"}))
    assert handle(record(lines, "4")) == []
    assert [each.idempotency_key for each in stores.stored] == ["k", "m"]
    ((kept, reason),) = queue.kept
    assert reason.startswith("event 2 of 3: rejected: unknown_type: ")
    kept["event"]["event_type"] = "CHECK_IN"  # as if a book with the type had been published
    again = redriven(kept)
    assert handle(again, streakline_redrive=True) == []
    assert [each.idempotency_key for each in stores.stored] == ["k", "m", "l"]
