"""Whatever bytes a Kinesis record holds, each event in it has exactly one outcome."""

import base64
import gzip
import json
from typing import Any

import aws_kinesis_agg
import pytest
from aws_kinesis_agg.deaggregator import messages_pb2
from hypothesis import given
from hypothesis import strategies as st

from ingest.engagement.events_stream import EVENTS_MAX, UNLISTED, UNZIPPED_BYTES_MAX, RecordPart, parts_of
from rules.json_values import BadValue, check_strict
from tests.support.kinesis_records import EVENT, aggregated, as_bytes, record, redriven, wrapped


def parts(data: bytes, number: str = "1") -> list[RecordPart]:
    return list(parts_of(record(data, number)))


def bodies(data: bytes) -> list[Any]:
    return [part.body for part in parts(data)]


def zipped(plain: bytes) -> bytes:
    return gzip.compress(plain, mtime=0)  # the same in each process: names of tests


THREE = [{**EVENT, "idempotency_key": str(number)} for number in range(3)]
A, B, C = map(as_bytes, THREE)


def test_a_plain_record_is_one_event() -> None:
    (part,) = parts_of(record(as_bytes(EVENT), "49"))
    assert part == RecordPart({"event": EVENT, "sequence_number": "49"}, EVENT)


@pytest.mark.parametrize(
    "data",
    [
        A + b"\r\n" + B + b"\r\n\r\n" + C + b"\r\n",
        A + B + C,
        A + b",\n" + B + b",\n" + C + b",",
        b"[" + A + b"]\n" + b"[" + B + b"," + C + b"]",
        A + b"\n" + b'{"events": [' + B + b"," + C + b"]}",
        b"\n".join(json.dumps(each, indent=2).encode() for each in THREE),
        b"\xef\xbb\xbf" + A + b"\n" + B + b"\n" + C,
        (A + b"\n" + B + b"\n" + C).decode().encode("utf-16"),
        zipped(A + b"\n" + B[:10]) + zipped(B[10:]) + zipped(b"") + zipped(C) + bytes(9),
    ],
    ids=lambda data: str(data[:22]),
)
def test_each_of_several_events_in_a_record_is_taken(data: bytes) -> None:
    assert bodies(data) == THREE
    found = parts(aggregated(data, A), "7")
    assert [part.body for part in found] == [*THREE, THREE[0]]
    assert {part.sequence_number for part in found} == {"7"}


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\x00", b"not json", b"{", b"\xff\xfe\xfd", b"[" * 100_000, b'{"a":' * 200_000, b" \n"),
        *(b"[]", b'{"events": []}', zipped(A)[:-5], zipped(A)[:-4] + b"abcd", b"\x1f\x8bgarbage"),
        zipped(b" " * (UNZIPPED_BYTES_MAX + 1)),
        b"{}\n" * (EVENTS_MAX + 1),
        aws_kinesis_agg.MAGIC,
        *(aggregated(A, B)[:-cut] for cut in (1, 16, 40)),
        wrapped(b""),
        wrapped(b"\xff\xff\xff\xff"),
    ],
    ids=lambda data: str(data[:22]),
)
def test_what_cannot_be_read_is_kept_whole_with_a_reason_and_no_log_has_it(
    data: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    (part,) = parts(data)
    assert part.body is None
    assert part.fault
    assert part.record == {"data": base64.b64encode(data).decode(), "sequence_number": "1"}
    assert (*capfd.readouterr(),) == ("", "")


@pytest.mark.parametrize(
    ("data", "bad", "place"),
    [
        (A + b"\n" + b'{"idempotency_key": "1", \n' + C, b'{"idempotency_key": "1", ', "event 2 of 3"),
        (A + b"\n" + b'{"idempotency_key": "1\n' + C, b'{"idempotency_key": "1', "event 2 of 3"),
        (A + b"\ngarbage\n" + C, b"garbage", "event 2 of 3"),
        (C + b"\n\x01\xff", b"\x01\xff", "event 2 of 2"),
        (A + b'{"a":}' + C, b'{"a":}', "event 2 of 3"),
        (zipped(A + b"\ngarbage\n" + C), b"garbage", "event 2 of 3"),
    ],
    ids=lambda each: str(each)[:24],
)
def test_a_line_that_is_no_json_is_kept_alone_and_says_its_place(data: bytes, bad: bytes, place: str) -> None:
    (wrong,) = (part for part in parts(data, "7") if part.fault)
    assert wrong.position == place
    assert wrong.record == {"data": base64.b64encode(bad).decode(), "sequence_number": "7"}
    assert THREE[2] in bodies(data)
    (inner,) = (part for part in parts(aggregated(C, data)) if part.fault)
    assert inner.position == f"user record 2 of 2, {place}"


def test_what_is_deep_or_not_utf_8_among_events_is_an_event_that_is_refused_by_name() -> None:
    deep = b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}"
    for odd in (deep, b'{"a": "\xff"}', b'{"a": "\\ud83d"}', b'{"a": 1e400}', b'{"a": NaN}'):
        first, wrong, last = parts(A + b"\n" + odd + b"\n" + C)
        assert (first.body, last.body) == (THREE[0], THREE[2])
        (again,) = parts(base64.b64decode(redriven(wrong.record)["kinesis"]["data"]))
        for each in (wrong, again):
            with pytest.raises(BadValue) as bad:
                check_strict(each.body)
            assert bad.value.field.startswith("a")


def test_one_aggregate_within_another_is_kept_and_a_redrive_reads_it() -> None:
    first, nested = parts(aggregated(A, aggregated(B, C)))
    assert (first.fault, nested.fault) == ("", "is aggregated within another record")
    assert [each.body for each in parts_of(redriven(nested.record))] == THREE[1:]


@pytest.mark.parametrize("odd", [{"partition_key_index": 2}, {"explicit_hash_key_index": 0}])
def test_a_user_record_whose_key_is_not_listed_is_kept_alone_and_no_log_has_it(
    odd: dict[str, int], capfd: pytest.CaptureFixture[str]
) -> None:
    message = messages_pb2.AggregatedRecord(partition_key_table=["ann@example.com"])
    for number, data in enumerate((A, B, C)):
        message.records.add(data=data, **({"partition_key_index": 0} | (odd if number == 1 else {})))
    first, bad, last = parts(wrapped(message.SerializeToString()))
    assert [first.body, last.body] == [THREE[0], THREE[2]]
    assert (bad.fault, bad.position) == (UNLISTED, "user record 2 of 3")
    assert [each.body for each in parts_of(redriven(bad.record))] == [THREE[1]]
    assert (*capfd.readouterr(),) == ("", "")


@given(
    st.lists(st.sampled_from([A, B, C, b"garbage", b"{", b'{"a": "\xff"}', b"[1, 2]", b"\x1f"]), max_size=8)
)
def test_a_redrive_sends_what_was_kept_and_nothing_else(lines: list[bytes]) -> None:
    found = parts(b"\n".join(lines))
    taken = [line for line in lines if line in (A, B, C)]
    assert [as_bytes(part.body) for part in found if part.body in THREE] == taken
    for part in found:
        again = parts(base64.b64decode(redriven(part.record)["kinesis"]["data"]))
        if part.fault:
            assert all(each.body not in THREE for each in again)
        else:
            assert [each.body for each in again] == [part.body]


@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_have_an_outcome(data: bytes, magic: bool) -> None:
    found = parts(wrapped(data) if magic else data)
    assert found
    assert json.dumps([part.record for part in found])
