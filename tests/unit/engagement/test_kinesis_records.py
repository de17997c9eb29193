"""Whatever bytes a Kinesis record holds, each event in it has exactly one outcome."""

import base64
import json
from typing import Any

import aws_kinesis_agg
import pytest
from aws_kinesis_agg import deaggregator
from aws_kinesis_agg.aggregator import RecordAggregator
from hypothesis import given
from hypothesis import strategies as st

from ingest.engagement.events_stream import _decode, decode
from tests.support.kinesis_records import EVENT, as_bytes, record


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


@pytest.mark.parametrize("data", [b"", b"\x00", b"not json", b"{", b"\xff\xfe\xfd", b"[" * 100_000])
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


@given(st.lists(values.filter(lambda each: not isinstance(each, dict)), min_size=1, max_size=6))
def test_aggregated_and_plain_records_hold_the_same(parts: list[Any]) -> None:
    plain = [body for part in parts for body in bodies(as_bytes(part))]
    assert bodies(aggregated(*map(as_bytes, parts))) == plain == parts
