"""The Kinesis door: whatever bytes a record holds, each event in it has exactly one outcome."""

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import aws_kinesis_agg
import pytest
from aws_kinesis_agg import deaggregator
from aws_kinesis_agg.aggregator import RecordAggregator
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.engagement import events_stream
from ingest.engagement.accept import AcceptResult, AcceptStatus
from ingest.engagement.events_stream import _decode, decode, reason_of

EVENT = {"idempotency_key": "k", "event_type": "CHECK_IN", "user_id": "u"}
CONTEXT = SimpleNamespace(
    function_name="f", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
)


def record(data: bytes, number: str = "1") -> dict[str, Any]:
    return {
        "kinesis": {
            "data": base64.b64encode(data).decode(),
            "sequenceNumber": number,
            "partitionKey": "p",
            "kinesisSchemaVersion": "1.0",
            "approximateArrivalTimestamp": 1.0,
        },
        "eventID": f"shard:{number}",
    }


def aggregated(*parts: bytes) -> bytes:
    aggregator = RecordAggregator()
    for number, part in enumerate(parts):
        aggregator.add_user_record(f"key{number}", part)
    _, _, data = aggregator.clear_and_get().get_contents()
    return bytes(data)


def wrapped(message: bytes) -> bytes:
    import hashlib

    return bytes(aws_kinesis_agg.MAGIC) + message + hashlib.md5(message).digest()


def bodies(data: bytes) -> list[Any]:
    return [body for _, body in _decode(record(data))]


def as_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_a_plain_record_is_one_event() -> None:
    ((kept, body),) = decode(record(as_bytes(EVENT), "49"))
    assert body == EVENT
    assert kept["sequence_number"] == "49"
    assert kept["event"] == EVENT


def test_a_plain_record_may_hold_several_events() -> None:
    assert bodies(as_bytes({"events": [EVENT, {"idempotency_key": "l"}, 7]})) == [
        EVENT,
        {"idempotency_key": "l"},
        7,
    ]


def test_an_event_whose_events_are_no_list_is_one_event() -> None:
    assert bodies(as_bytes({"events": {"a": 1}})) == [{"events": {"a": 1}}]


def test_an_aggregated_record_is_its_user_records_in_order() -> None:
    parts = [{**EVENT, "idempotency_key": str(number)} for number in range(5)]
    data = aggregated(*map(as_bytes, parts[:2]), as_bytes({"events": parts[2:4]}), as_bytes(parts[4]))
    decoded = list(_decode(record(data, "7")))
    assert [body for _, body in decoded] == parts
    assert {kept["sequence_number"] for kept, _ in decoded} == {"7"}


def test_garbage_among_aggregated_records_spoils_none_of_its_neighbours() -> None:
    assert bodies(aggregated(as_bytes(EVENT), b"\xff\xfe{", as_bytes({"a": 1}))) == [EVENT, None, {"a": 1}]


def test_one_that_is_nested_too_deep_spoils_none_of_its_neighbours() -> None:
    assert bodies(aggregated(as_bytes(EVENT), b"[" * 100_000, as_bytes(EVENT))) == [EVENT, None, EVENT]


def test_what_is_kept_of_an_aggregated_record_can_be_put_into_the_failure_queue() -> None:
    for kept, _ in _decode(record(aggregated(as_bytes({"a": 1}), b"garbage"))):
        assert json.loads(json.dumps(kept)) == kept


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"not json", b"{", b"\xff\xfe\xfd", b'"\\ud800"', b"[" * 100_000]
)
def test_garbage_is_one_record_that_is_not_json(data: bytes) -> None:
    decoded = list(_decode(record(data)))
    assert [body for _, body in decoded] == [None]
    assert decoded[0][0] == {"data": base64.b64encode(data).decode(), "sequence_number": "1"}


@pytest.mark.parametrize("cut", [1, 5, 16, 17, 40])
def test_a_truncated_aggregate_is_one_record_that_is_not_json(cut: int) -> None:
    assert bodies(aggregated(as_bytes(EVENT), as_bytes(EVENT))[:-cut]) == [None]


def test_an_aggregate_with_a_flipped_byte_is_one_record_that_is_not_json() -> None:
    data = bytearray(aggregated(as_bytes(EVENT)))
    data[20] ^= 1
    assert bodies(bytes(data)) == [None]


def test_a_right_digest_over_no_protobuf_is_one_record_that_is_not_json() -> None:
    assert bodies(wrapped(b"\xff\xff\xff\xff")) == [None]


def odd_aggregate() -> bytes:
    message = deaggregator.messages_pb2.AggregatedRecord()
    message.partition_key_table.append("p")
    for index in (0, 9):
        part = message.records.add()
        part.partition_key_index, part.data = index, as_bytes(EVENT)
    return bytes(message.SerializeToString())


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (wrapped(odd_aggregate()), 2),
        (wrapped(b"\x0a\x01p"), 1),
        (as_bytes({"events": []}), 1),
    ],
    ids=["bad key index", "empty aggregate", "no events"],
)
def test_no_record_vanishes_without_an_outcome(data: bytes, count: int) -> None:
    assert len(bodies(data)) == count


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_does_not_know_are_not_taken(number: str) -> None:
    assert bodies(b'{"properties": {"a": %s}}' % number.encode()) == [None]


@settings(deadline=None)
@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_have_an_outcome(data: bytes, magic: bool) -> None:
    decoded = list(_decode(record(wrapped(data) if magic else data)))
    assert decoded or magic
    assert all(kept["sequence_number"] == "1" for kept, _ in decoded)


scalars = st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=5)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.lists(values.filter(lambda each: not isinstance(each, dict)), min_size=1, max_size=6))
def test_aggregated_and_plain_records_hold_the_same(parts: list[Any]) -> None:
    plain = [body for part in parts for body in bodies(as_bytes(part))]
    assert bodies(aggregated(*map(as_bytes, parts))) == plain == parts


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
        (None, REJECTED, "the record is not JSON"),
        (EVENT, AcceptResult("k", AcceptStatus.REJECTED), "rejected: None: None"),
    ],
)
def test_what_was_not_taken_has_its_reason(body: Any, result: AcceptResult, reason: str | None) -> None:
    assert reason_of(body, result) == reason


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


def test_a_batch_is_taken_and_what_is_bad_is_kept_with_its_reason(door: Door) -> None:
    assert handle(record(as_bytes(EVENT), "1"), record(b"garbage", "2"), record(as_bytes(EVENT), "3")) == []
    assert door.taken == [EVENT, None, EVENT]
    assert [reason for _, reason in door.kept] == ["the record is not JSON"]


def test_a_batch_of_more_than_a_hundred_events_is_taken_in_parts(door: Door) -> None:
    assert handle(*(record(as_bytes({"events": [EVENT] * 90}), str(number)) for number in range(4))) == []
    assert len(door.taken) == 360


def test_while_a_store_is_down_all_comes_again_from_the_first_record(door: Door) -> None:
    assert handle(record(as_bytes(EVENT), "1"), record(as_bytes({"down": 1}), "2")) == ["1"]
    assert door.kept == []


def test_what_was_done_before_a_store_went_down_does_not_come_again(door: Door) -> None:
    many = [record(as_bytes({"events": [EVENT] * 100}), "1"), record(as_bytes({"down": 1}), "2")]
    assert handle(*many) == ["2"]


def test_a_redriven_record_that_still_is_bad_stays_in_its_queue(door: Door) -> None:
    assert handle(record(b"garbage", "5"), streakline_redrive=True) == ["5"]
    assert door.kept == []
