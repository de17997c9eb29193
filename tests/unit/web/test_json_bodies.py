"""A request's body is read as JSON, or the caller gets a 400, 413 or 422."""

import base64
import gzip
import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.engagement.points.redemptions import REDEMPTION
from ingest.web.api import json_body
from ingest.web.bodies import BODY_BYTES_MAX
from ingest.web.caller import ApiError
from ingest.web.json_schema import ANY, TEXT, closed_object, list_of
from rules.json_values import NESTING_MAX
from tests.support.http_requests import VALID, json_values, near_events, sent

EVENTS = closed_object({"events": list_of(ANY), "receipt?": TEXT})


def sent_bytes(data: bytes) -> dict[str, Any]:
    return {"body": base64.b64encode(data).decode(), "isBase64Encoded": True}


def refusal(event: dict[str, Any]) -> tuple[int, str]:
    with pytest.raises(ApiError) as refused:
        json_body(event, EVENTS)
    json.dumps([refused.value.message, refused.value.details]).encode()
    return refused.value.status, refused.value.code


EVENTS_TEXT = json.dumps({"events": [VALID]})


@pytest.mark.parametrize(
    "event",
    [
        sent(EVENTS_TEXT),
        sent("\ufeff" + EVENTS_TEXT),
        sent_bytes(EVENTS_TEXT.encode()),
        sent_bytes(b"\xef\xbb\xbf" + EVENTS_TEXT.encode()),
        sent_bytes(EVENTS_TEXT.encode("utf-16")),
    ],
)
def test_a_body_is_read_plain_or_in_base64_without_its_byte_order_mark(event: dict[str, Any]) -> None:
    assert json_body(event, EVENTS) == {"events": [VALID]}


@pytest.mark.parametrize(
    "event",
    [
        *({}, {"body": None}, sent("{"), sent('{"events": ' + "[" * 100_000), sent(EVENTS_TEXT + "x")),
        *map(sent_bytes, (b"\xff\xfe", b"\xed\xa0\x80", b"\x00", b"\x1f\x8b\x08")),
        *({"body": text, "isBase64Encoded": True} for text in ("é", "a", "====", "e30\n")),
    ],
    ids=lambda event: str(event)[:30],
)
def test_what_is_no_json_is_a_400(event: dict[str, Any]) -> None:
    assert refusal(event) == (400, "invalid_json")


WRONG_VALUES = [
    (b'"Well done \\ud83d!"', ""),
    (b"1e400", ""),
    (b'{"a": ["\\udfff"]}', ".a.0"),
    (b'{"\xff": 1}', ""),
]


@pytest.mark.parametrize(("value", "inner"), WRONG_VALUES)
def test_what_json_could_not_hold_is_a_422_that_names_the_field(value: bytes, inner: str) -> None:
    data = b'{"points": 5, "reward_id": %s, "idempotency_key": "k"}' % value
    with pytest.raises(ApiError) as refused:
        json_body(sent_bytes(data), REDEMPTION)
    assert (refused.value.status, refused.value.details[0]["field"]) == (422, f"reward_id{inner}")
    assert refused.value.details[0]["reason"].startswith(("is no ", "has a name that is no "))


def test_what_json_could_not_hold_hides_no_other_fault() -> None:
    data = b'{"points": "5", "reward_id": "\\ud83d", "idempotency_key": 1e400, "zzz": 1}'
    with pytest.raises(ApiError) as refused:
        json_body(sent_bytes(data), REDEMPTION)
    named = [each["field"] for each in refused.value.details]
    assert sorted(named) == ["body", "idempotency_key", "points", "reward_id"]


@pytest.mark.parametrize("value", [value for value, _ in WRONG_VALUES])
def test_of_a_batch_each_part_is_left_to_its_caller(value: bytes) -> None:
    data = b'{"events": [{"a": %s}, %s]}' % (value, json.dumps(VALID).encode())
    assert json_body(sent_bytes(data), EVENTS, batch="events")["events"][1] == VALID
    assert refusal(sent_bytes(data)) == (422, "invalid_field")
    with pytest.raises(ApiError) as refused:
        json_body(sent_bytes(b'{"events": [{}], "receipt": %s}' % value), EVENTS, batch="events")
    assert refused.value.status == 422


def test_a_body_of_more_bytes_than_are_allowed_is_a_413() -> None:
    space = BODY_BYTES_MAX - len(EVENTS_TEXT)
    assert json_body(sent(EVENTS_TEXT + " " * space), EVENTS)
    large = json.dumps({"events": [{"a": "é" * 600_000}]}, ensure_ascii=False)
    for event in (
        sent(EVENTS_TEXT + " " * (space + 1)),
        sent_bytes(b" " * (BODY_BYTES_MAX + 1)),
        sent(large),
    ):
        assert refusal(event) == (413, "too_large")


def compressed(data: bytes, coding: str, **more: Any) -> dict[str, Any]:
    return {**sent_bytes(data), "headers": {"Content-Encoding": coding}, **more}


def raw_deflate(data: bytes) -> bytes:
    return zlib.compress(data, wbits=-zlib.MAX_WBITS)


@pytest.mark.parametrize(
    ("compress", "coding"),
    [
        (gzip.compress, "gzip"),
        (gzip.compress, " GZIP "),
        (gzip.compress, "x-gzip"),
        (zlib.compress, "deflate"),
        (raw_deflate, "deflate"),
        (lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:]), "gzip"),
        (lambda data: gzip.compress(data) + bytes(512), "gzip"),
        (bytes, "identity"),
    ],
)
def test_a_compressed_body_is_read(compress: Any, coding: str) -> None:
    assert json_body(compressed(compress(EVENTS_TEXT.encode()), coding), EVENTS) == {"events": [VALID]}


BOMB = b" " * 50_000_000


@pytest.mark.parametrize(
    ("data", "coding", "status"),
    [
        (gzip.compress(BOMB), "gzip", 413),
        (zlib.compress(BOMB), "deflate", 413),
        (gzip.compress(EVENTS_TEXT.encode())[:-9], "gzip", 400),
        (gzip.compress(EVENTS_TEXT.encode()) + b"x", "gzip", 400),
        (EVENTS_TEXT.encode(), "gzip", 400),
        (zlib.compress(b"[") + zlib.compress(b"]"), "deflate", 400),
        (gzip.compress(b"") * 1_000, "gzip", 400),
        (gzip.compress(BOMB[:600_000]) * 2, "gzip", 413),
        (EVENTS_TEXT.encode(), "br", 415),
        (gzip.compress(gzip.compress(EVENTS_TEXT.encode())), "gzip, gzip", 415),
    ],
    ids=[
        "bomb",
        "deflated bomb",
        "cut off",
        "more behind it",
        "plain",
        "two parts",
        "many members",
        "bomb of two",
        "br",
        "twice",
    ],
)
def test_what_cannot_be_decompressed_or_becomes_too_large_is_refused(
    data: bytes, coding: str, status: int
) -> None:
    assert refusal(compressed(data, coding))[0] == status


def test_a_compressed_body_that_the_gateway_took_for_text_is_refused_in_words() -> None:
    text = gzip.compress(EVENTS_TEXT.encode()).decode(errors="replace")
    with pytest.raises(ApiError, match="application/gzip") as refused:
        json_body({"body": text, "headers": {"content-encoding": "gzip"}}, EVENTS)
    assert refused.value.status == 415


@pytest.mark.parametrize("points", ["5.0", "1e2"])
def test_points_are_whole_numbers(points: str) -> None:
    body = json_body(sent(f'{{"points": {points}, "reward_id": "mug", "idempotency_key": "k"}}'), REDEMPTION)
    assert isinstance(body["points"], int)


near_bodies = st.text(max_size=60) | (json_values | near_events.map(lambda e: {"events": [e]})).map(
    json.dumps
)


@given(near_bodies.map(sent) | st.binary(max_size=60).map(sent_bytes))
def test_any_text_and_any_bytes_are_a_body_or_a_refusal(event: dict[str, Any]) -> None:
    try:
        assert isinstance(json_body(event, EVENTS), dict)
    except ApiError as refused:
        assert refused.status in (400, 413, 422)


@pytest.mark.parametrize("levels", [NESTING_MAX, NESTING_MAX + 1, 500])
def test_nesting_is_taken_up_to_its_limit(levels: int) -> None:
    inner = levels - 4
    event = sent('{"events": [{"properties": {"a": ' + "[" * inner + "]" * inner + "}}]}")
    if levels <= NESTING_MAX:
        assert json_body(event, EVENTS)
    else:
        assert refusal(event) == (422, "invalid_field")
