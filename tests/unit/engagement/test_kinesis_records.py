"""Whatever bytes a Kinesis record holds, each event in it has exactly one outcome."""

import base64
import contextlib
import gzip
import io
import json
import time
import tracemalloc
import zlib
from functools import partial
from typing import Any

import aws_kinesis_agg
import pytest
from aws_kinesis_agg.aggregator import RecordAggregator
from hypothesis import given
from hypothesis import strategies as st

from ingest.engagement.aggregate import BAD_RECORDS_MAX, RECORDS_MAX
from ingest.engagement.events_stream import (
    BAD_PIECES_MAX,
    EVENTS_MAX,
    UNZIPPED_BYTES_MAX,
    RecordPart,
    _parts_of,
    parts_of,
)
from rules.json_values import BadValue, check_strict
from tests.support.kinesis_records import (
    EVENT,
    OF_A_PERSON,
    SECRET,
    as_bytes,
    odd_aggregate,
    record,
    redriven,
    wrapped,
)


def aggregated(*parts: bytes) -> bytes:
    aggregator = RecordAggregator()
    for number, part in enumerate(parts):
        aggregator.add_user_record(f"key{number}", part)
    _, _, data = aggregator.clear_and_get().get_contents()
    return bytes(data)


def parts(data: bytes, number: str = "1") -> list[RecordPart]:
    return list(_parts_of(record(data, number)))


def bodies(data: bytes) -> list[Any]:
    return [part.body for part in parts(data)]


def test_a_plain_record_is_one_event() -> None:
    (part,) = parts_of(record(as_bytes(EVENT), "49"))
    assert part == RecordPart({"event": EVENT, "sequence_number": "49"}, EVENT)


def test_a_plain_record_may_hold_several_events() -> None:
    assert bodies(as_bytes({"events": [EVENT, {"idempotency_key": "l"}, 7]})) == [
        EVENT,
        {"idempotency_key": "l"},
        7,
    ]


def test_an_event_whose_events_are_no_list_is_one_event() -> None:
    assert bodies(as_bytes({"events": {"a": 1}})) == [{"events": {"a": 1}}]


def test_an_aggregated_record_is_its_user_records_in_order() -> None:
    events = [{**EVENT, "idempotency_key": str(number)} for number in range(5)]
    data = aggregated(*map(as_bytes, events[:2]), as_bytes({"events": events[2:4]}), as_bytes(events[4]))
    assert [part.body for part in parts(data, "7")] == events
    assert {part.sequence_number for part in parts(data, "7")} == {"7"}


def test_garbage_among_aggregated_records_spoils_none_of_its_neighbours() -> None:
    assert bodies(aggregated(as_bytes(EVENT), b"\xff\xfe{", as_bytes({"a": 1}))) == [EVENT, None, {"a": 1}]


def test_one_that_is_nested_too_deep_spoils_none_of_its_neighbours() -> None:
    assert bodies(aggregated(as_bytes(EVENT), b"[" * 100_000, as_bytes(EVENT))) == [EVENT, None, EVENT]


def test_what_is_kept_of_an_aggregated_record_can_be_put_into_the_failure_queue() -> None:
    for part in parts(aggregated(as_bytes({"a": 1}), b"garbage")):
        assert json.loads(json.dumps(part.record)) == part.record


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00", b"not json", b"{", b"\xff\xfe\xfd", b"[" * 100_000, b" \n", b"[]", b'{"events": []}'],
)
def test_garbage_is_one_record_that_is_not_json(data: bytes) -> None:
    (part,) = parts(data)
    assert part.body is None
    assert part.fault
    assert part.record == {"data": base64.b64encode(data).decode(), "sequence_number": "1"}


@pytest.mark.parametrize("cut", [1, 5, 16, 17, 40])
def test_a_truncated_aggregate_is_one_record_that_is_not_json(cut: int) -> None:
    assert bodies(aggregated(as_bytes(EVENT), as_bytes(EVENT))[:-cut]) == [None]


def test_an_aggregate_with_a_flipped_byte_is_one_record_that_is_not_json() -> None:
    data = bytearray(aggregated(as_bytes(EVENT)))
    data[20] ^= 1
    assert bodies(bytes(data)) == [None]


def test_a_right_digest_over_no_protobuf_is_one_record_that_is_not_json() -> None:
    assert bodies(wrapped(b"\xff\xff\xff\xff")) == [None]


UNLISTED = "has a key that its aggregated record does not list"


@pytest.mark.parametrize(
    ("odd", "more"),
    [
        ({"partition_key_index": 2}, {}),
        ({"partition_key_index": 2**63}, {}),
        ({"partition_key_index": 2**64 - 1}, {}),
        ({"partition_key_index": None}, {}),
        ({"explicit_hash_key_index": 0}, {}),
        ({"explicit_hash_key_index": 1}, {"hash_keys": ("7",)}),
        ({"explicit_hash_key_index": 2**64 - 1}, {"hash_keys": ("7",)}),
        ({"partition_key_index": 9, "tags": SECRET}, {}),
    ],
)
def test_a_user_record_whose_key_is_not_listed_is_kept_alone_and_no_log_has_anything_of_it(
    odd: dict[str, Any],
    more: dict[str, Any],
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(0)
    first, bad, last = parts_of(record(odd_aggregate({}, odd, {"partition_key_index": 1}, **more)))
    assert [first.body, last.body] == [json.loads(OF_A_PERSON)] * 2
    assert (bad.fault, bad.position) == (UNLISTED, "user record 2 of 3")
    (again,) = parts_of(redriven(bad.record))
    assert again.body == json.loads(OF_A_PERSON), "a redrive sends it by itself"
    assert (*capfd.readouterr(), caplog.text) == ("", "", "")


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (wrapped(b"\x0a\x01p"), "is aggregated, and holds no user record"),
        (odd_aggregate({}, more=b"\x1a\x05\x08"), "is aggregated, and damaged"),
        (odd_aggregate({}, more=b"\x1a" + b"\xff" * 10), "is aggregated, and damaged"),
        (odd_aggregate({}, more=b"\x1b"), "is aggregated, and damaged"),
        (odd_aggregate({})[:-1] + b"\x00", "is aggregated, and damaged"),
        (aws_kinesis_agg.MAGIC, "is aggregated, and damaged"),
        (aws_kinesis_agg.MAGIC + bytes(16), "is aggregated, and damaged"),
    ],
)
def test_an_aggregate_that_cannot_be_read_is_kept_whole_with_its_reason(
    data: bytes, fault: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (part,) = parts_of(record(data))
    assert (part.body, part.fault) == (None, fault)
    assert part.record == {"data": base64.b64encode(data).decode(), "sequence_number": "1"}
    assert (*capfd.readouterr(),) == ("", "")


def test_one_within_another_is_kept_and_a_redrive_reads_it() -> None:
    first, nested = parts_of(record(odd_aggregate({}, {"data": odd_aggregate({}, {})})))
    assert (first.fault, nested.fault) == ("", "is aggregated within another record")
    assert [each.body for each in parts_of(redriven(nested.record))] == [json.loads(OF_A_PERSON)] * 2


@pytest.mark.parametrize("odd", [{"data": b""}, {"partition_key_index": 9}], ids=["empty", "unlisted"])
def test_an_aggregate_of_thousands_that_cannot_be_taken_is_a_hundred_and_a_rest(odd: dict[str, Any]) -> None:
    data, kept, taken = odd_aggregate(*[odd] * 250, {}), 0, 0
    while data:
        found = [*parts_of(record(data))]
        assert len(found) <= BAD_RECORDS_MAX + 1
        rest = [part for part in found if part.fault == "is the rest of an aggregated record"]
        taken += sum(not part.fault for part in found)
        kept += sum(part.fault in (UNLISTED, "is empty") for part in found)
        data = base64.b64decode(redriven(rest[0].record)["kinesis"]["data"]) if rest else b""
    assert (kept, taken) == (250, 1)


def test_of_more_than_ten_thousand_user_records_a_redrive_takes_the_rest() -> None:
    *taken, rest = parts_of(record(odd_aggregate(*[{"data": b"7"}] * (RECORDS_MAX + 2))))
    assert (len(taken), {part.body for part in taken}) == (RECORDS_MAX, {7})
    assert [part.body for part in parts_of(redriven(rest.record))] == [7, 7]


def test_no_record_vanishes_without_an_outcome() -> None:
    assert bodies(as_bytes({"events": []})) == [None]


indexes = st.none() | st.integers(0, 3) | st.sampled_from([2**31, 2**32, 2**63, 2**64 - 1])
user_record_fields = st.fixed_dictionaries(
    {
        "partition_key_index": indexes,
        "explicit_hash_key_index": indexes,
        "data": st.none() | st.sampled_from([OF_A_PERSON, b"", b"{", bytes(aws_kinesis_agg.MAGIC)]),
    },
    optional={"tags": st.text(max_size=3)},
)
tables = st.lists(st.text(st.characters(codec="utf-8"), max_size=3), max_size=3).map(tuple)


@given(st.lists(user_record_fields, min_size=1, max_size=8), tables, tables)
def test_each_good_user_record_is_taken_and_each_other_is_kept(
    records: list[dict[str, Any]], keys: tuple[str, ...], hash_keys: tuple[str, ...]
) -> None:
    found = [*parts_of(record(odd_aggregate(*records, keys=keys, hash_keys=hash_keys)))]
    for each, part in zip(records, found, strict=True):
        key, hash_key = each["partition_key_index"], each["explicit_hash_key_index"]
        is_listed = key in range(len(keys)) and hash_key in (None, *range(len(hash_keys)))
        assert (not part.fault) == (is_listed and each["data"] == OF_A_PERSON)
        assert base64.b64decode(redriven(part.record)["kinesis"]["data"]) == (each["data"] or b"")


@given(st.lists(user_record_fields, max_size=4), st.data())
def test_an_aggregate_of_odd_bytes_ends_nothing(records: list[dict[str, Any]], draw: st.DataObject) -> None:
    """A byte is changed, added or cut off, and the digest is right again."""
    message = odd_aggregate(*records)[len(aws_kinesis_agg.MAGIC) : -aws_kinesis_agg.DIGEST_SIZE]
    place = draw.draw(st.integers(0, len(message)))
    end = draw.draw(st.integers(place, len(message)))
    changed = message[:place] + draw.draw(st.binary(max_size=3)) + message[end:]
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(errors):
        found = [*parts_of(record(wrapped(changed)))]
    assert found
    assert json.dumps([part.record for part in found])
    assert not errors.getvalue()


@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_have_an_outcome(data: bytes, magic: bool) -> None:
    found = parts(wrapped(data) if magic else data)
    assert found
    assert all(part.sequence_number == "1" for part in found)


scalars = st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"), max_size=5)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(values, min_size=1, max_size=6))
def test_aggregated_and_plain_records_hold_the_same(several: list[Any]) -> None:
    assert bodies(aggregated(*map(as_bytes, several))) == [
        body for each in several for body in bodies(as_bytes(each))
    ]


def zipped(plain: bytes) -> bytes:
    return gzip.compress(plain, mtime=0)


def keyed(number: int, **more: Any) -> dict[str, Any]:
    return {**EVENT, "idempotency_key": str(number), **more}


A, B, C = map(as_bytes, map(keyed, range(3)))
THREE = [keyed(number) for number in range(3)]
PRETTY = b"\n".join(json.dumps(each, indent=2).encode() for each in THREE)


@pytest.mark.parametrize(
    "data",
    [
        A + b"\n" + B + b"\n" + C,
        A + b"\r\n" + B + b"\r\n\r\n" + C + b"\r\n",
        A + B + C,
        A + b" \t" + B + b"\n" + C,
        A + b",\n" + B + b",\n" + C + b",",
        b"\x1e" + A + b"\n\x1e" + B + b"\n\x1e" + C,
        b"[" + A + b"," + B + b"," + C + b"]",
        b"[" + A + b"]\n" + b"[" + B + b"," + C + b"]",
        A + b"\n" + b'{"events": [' + B + b"," + C + b"]}",
        PRETTY,
        b"\xef\xbb\xbf" + A + b"\n\xef\xbb\xbf" + B + b"\n" + C,
        (A + b"\n" + B + b"\n" + C).decode().encode("utf-16"),
        zipped(A + b"\n" + B + b"\n" + C),
        zipped(b"[" + A + b"," + B + b"," + C + b"]"),
        zipped(A) + zipped(B) + zipped(C),
        zipped(A + b"\n" + B[:10]) + zipped(B[10:]) + zipped(b"") + zipped(C) + bytes(9),
    ],
    ids=lambda data: str(data)[:24],
)
def test_each_of_several_events_in_a_record_is_taken(data: bytes) -> None:
    assert bodies(data) == THREE
    assert bodies(aggregated(data, A)) == [*THREE, THREE[0]]


@pytest.mark.parametrize(
    ("data", "bad", "place"),
    [
        (A + b"\n" + b'{"idempotency_key": "1", \n' + C, b'{"idempotency_key": "1", ', "event 2 of 3"),
        (A + b"\n" + b'{"idempotency_key": "1\n' + C, b'{"idempotency_key": "1', "event 2 of 3"),
        (A + b"\ngarbage\n" + C, b"garbage", "event 2 of 3"),
        (A + b'{"a":}' + C, b'{"a":}', "event 2 of 3"),
        (A + b'{"a" "}{"}' + C, None, "event 2 of 4"),
        (b"{\n" + A + b"\n" + C, b"{", "event 1 of 3"),
        (A + b"\n" + C + b"\n" + B[:20], B[:20], "event 3 of 3"),
        (A + b"\n" + C + b"\n\x00\x01\xff", b"\x01\xff", "event 3 of 3"),
        (A + b"}" + C, b"}", "event 2 of 3"),
        (b"[" + A + b",\n" + C + b"," + B[:30], B[:30], "event 3 of 3"),
        (b"[" + A + b', {"a" 1}, ' + C + b"]", b'{"a" 1}', "event 2 of 3"),
        (b"[" + A + b', {"a": tru}\n, ' + C + b"]", b'{"a": tru}', "event 2 of 3"),
        (zipped(A + b"\ngarbage\n" + C), b"garbage", "event 2 of 3"),
        (zipped(A) + zipped(C) + zipped(B)[:-5], zipped(B)[:-5], "event 3 of 3"),
        (zipped(A) + zipped(C) + b"\x1f\x8bgarbage", b"\x1f\x8bgarbage", "event 3 of 3"),
    ],
    ids=lambda each: str(each)[:24],
)
def test_what_is_no_json_among_events_is_kept_alone_and_says_its_place(
    data: bytes, bad: bytes | None, place: str
) -> None:
    found = parts(data, "7")
    wrong = [part for part in found if part.fault]
    assert wrong[0].position == place
    if bad is not None:
        (part,) = wrong
        assert part.record == {"data": base64.b64encode(bad).decode(), "sequence_number": "7"}
        assert base64.b64decode(part.record["data"]) == bad
    assert THREE[2] in [part.body for part in found]
    inner = [part for part in parts(aggregated(C, data)) if part.fault]
    assert [part.position for part in inner] == [f"user record 2 of 2, {part.position}" for part in wrong]


def test_what_is_deep_or_not_utf_8_among_events_is_an_event_that_is_refused_by_name() -> None:
    deep = b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}"
    for odd in (deep, b'{"a": "\xff"}', b'{"a": "\\ud83d"}', b'{"a": 1e400}', b'{"a": NaN}'):
        for data in (A + b"\n" + odd + b"\n" + C, A + odd + C, b"[" + A + b"," + odd + b"," + C + b"]"):
            first, wrong, last = parts(data)
            assert (first.body, last.body) == (THREE[0], THREE[2])
            assert (wrong.fault, wrong.position) == ("", "event 2 of 3")
            with pytest.raises(BadValue) as bad:
                check_strict(wrong.body)
            assert bad.value.field.startswith("a")
            (again,) = parts(base64.b64decode(redriven(wrong.record)["kinesis"]["data"]))
            with pytest.raises(BadValue):
                check_strict(again.body)


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


@pytest.mark.parametrize(
    "plain",
    [b" " * (UNZIPPED_BYTES_MAX + 1), (A + b"\n") * 200_000, b"[" * 200_000_000],
    ids=["blanks", "lines", "deep"],
)
def test_what_unzips_to_too_much_is_kept_as_it_is_and_takes_no_memory(plain: bytes) -> None:
    data = zipped(plain)
    del plain
    tracemalloc.start()
    (part,) = parts(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert part.fault == f"is over {UNZIPPED_BYTES_MAX} bytes when it is unzipped"
    assert part.record["data"] == base64.b64encode(data).decode()
    assert peak < 4 * UNZIPPED_BYTES_MAX


def test_a_record_of_too_many_events_is_kept_whole() -> None:
    for data in (b"[" + b"1," * EVENTS_MAX + b"1]", b"{}\n" * (EVENTS_MAX + 1), b"{}" * (EVENTS_MAX + 1)):
        (part,) = parts(data)
        assert (part.fault, part.record["data"]) == (
            f"holds more than {EVENTS_MAX} events",
            base64.b64encode(data).decode(),
        )
    assert len(parts(b"{}" * EVENTS_MAX)) == EVENTS_MAX


def test_a_text_full_of_what_is_no_json_is_read_in_time() -> None:
    for line in (b'{"a": [', b'{"a": "', b"{" * 500, b'{"a": }'):
        data = A + b"\n" + (line + b"\n") * (900_000 // len(line))
        found = parts(data)
        assert found[0].body == THREE[0]
        assert len(found) <= BAD_PIECES_MAX + 2
        kept = b"".join(base64.b64decode(part.record["data"]) for part in found[1:])
        assert b"".join(kept.split()) == b"".join(data.removeprefix(A).split()), "nothing is lost"


def test_after_a_hundred_bad_pieces_the_rest_waits_as_one_and_redrives_go_on_with_it() -> None:
    data = b"\n".join([b"garbage\n" + as_bytes(keyed(number)) for number in range(250)])
    taken: list[Any] = []
    while data:
        found = parts(data)
        taken += [part.body for part in found if not part.fault]
        data = base64.b64decode(found[-1].record["data"]) if found[-1].fault else b""
    assert taken == [keyed(number) for number in range(250)]


FIRST, SECOND, THIRD = ({**EVENT, "idempotency_key": each} for each in "abc")
LINES = as_bytes(FIRST) + b"\n" + as_bytes(SECOND)
BASE64 = base64.b64encode(LINES)
zipped = partial(gzip.compress, mtime=0)  # the same in each process: names of tests


@pytest.mark.parametrize(
    "data",
    [
        zipped(zipped(LINES)),
        zlib.compress(LINES),
        zlib.compress(LINES, level=9),
        zlib.compress(LINES, level=0),
        zlib.compress(as_bytes(FIRST)) + zlib.compress(as_bytes(SECOND)),
        BASE64,
        base64.encodebytes(LINES),
        BASE64.rstrip(b"="),
        base64.urlsafe_b64encode(zipped(LINES)),
        base64.b64encode(BASE64),
        zipped(base64.b64encode(zlib.compress(LINES))),
        as_bytes([[FIRST], [SECOND]]),
        as_bytes([{"events": [FIRST]}, [[SECOND]]]),
        as_bytes({"events": [{"events": [FIRST, SECOND]}]}),
        as_bytes(json.dumps([FIRST, SECOND])),
        as_bytes([json.dumps(FIRST), json.dumps(SECOND)]),
        as_bytes(json.dumps(FIRST)) + b"\r\n" + as_bytes(json.dumps(SECOND)),
    ],
)
def test_what_a_producer_has_wrapped_twice_is_unwrapped(data: bytes) -> None:
    assert bodies(data) == [FIRST, SECOND]
    assert bodies(aggregated(data, as_bytes(THIRD))) == [FIRST, SECOND, THIRD]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (zipped(zipped(LINES)[:-9]), "is gzip that was cut off"),
        (zlib.compress(LINES)[:-5], "is zlib that was cut off"),
        (zlib.compress(LINES)[:-4] + b"abcd", "is damaged zlib"),
        (zipped(zlib.compress(b" " * (UNZIPPED_BYTES_MAX + 1))), "is over"),
        (base64.b64encode(b"no json at all"), "is not JSON"),
        (b"abcd", "is not JSON"),
        (b"A" * 5, "is not JSON"),
    ],
)
def test_what_cannot_be_unwrapped_is_kept_as_it_came(data: bytes, reason: str) -> None:
    (part,) = parts(data)
    assert part.fault.startswith(reason)
    assert base64.b64decode(part.record["data"]) == data


def test_a_bad_event_in_a_list_within_a_list_is_kept_alone() -> None:
    found = parts(as_bytes([[FIRST, 7], [], [json.dumps(SECOND), "no json {"]]))
    assert [part.body for part in found] == [FIRST, 7, None, SECOND, "no json {"]
    assert (found[2].fault, found[2].position) == ("holds no event", "event 3 of 5")


@pytest.mark.parametrize(
    "data",
    [
        b"A" + b" " * 1_000_000 + b"!",
        b"A" * 1_000_000 + b"!",
        b"[" + b"[]," * 300_000 + b"[]]",
        b"[" * 1_000_000,
        b'{"a":' * 200_000,
        b"[{" * 500_000,
        base64.b64encode(b"A" * 700_000),
        as_bytes([json.dumps([json.dumps([7] * 9)] * 9)] * 5_000),
    ],
    ids=lambda data: str(data[:9]),
)
def test_a_large_record_that_holds_nothing_costs_little(data: bytes) -> None:
    began = time.process_time()
    assert len(parts(data)) == 1
    assert time.process_time() - began < 5
