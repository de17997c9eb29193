"""A request's body is read as JSON, or the caller gets a 400, 413 or 422."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.engagement import event_body
from ingest.engagement.points.redemptions import REDEMPTION
from ingest.web.api import BODY_BYTES_MAX, json_body
from ingest.web.caller import ApiError
from ingest.web.json_schema import Schema
from rules.json_values import NESTING_MAX
from tests.support.http_requests import VALID, json_values, near_events, sent


def sent_bytes(data: bytes) -> dict[str, Any]:
    return {"body": base64.b64encode(data).decode(), "isBase64Encoded": True}


def refusal(event: dict[str, Any], schema: Schema = event_body.EVENTS) -> tuple[int, str]:
    with pytest.raises(ApiError) as refused:
        json_body(event, schema)
    json.dumps([refused.value.message, refused.value.details]).encode()
    return refused.value.status, refused.value.code


EVENTS_TEXT = json.dumps({"events": [VALID]})
MALFORMED = (400, "invalid_json")


def test_a_body_is_read_plain_or_in_base64() -> None:
    assert json_body(sent(EVENTS_TEXT), event_body.EVENTS) == {"events": [VALID]}
    assert json_body(sent_bytes(EVENTS_TEXT.encode()), event_body.EVENTS) == {"events": [VALID]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "events",
        '{"events": [{"a": NotANumber}]}',
        '{"events": [{"a": "\\ud8"}]}',
        '{"events": ' + "[" * 100_000,
        "\ufeff\ufeff{}",
        EVENTS_TEXT + "x",
    ],
    ids=lambda text: text[:30],
)
def test_what_is_no_json_is_a_400(text: str) -> None:
    assert refusal(sent(text)) == MALFORMED


def test_a_request_without_a_body_is_a_400() -> None:
    assert refusal({}) == MALFORMED
    assert refusal({"body": None}) == MALFORMED


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\xed\xa0\x80", b"\x00", b"\x1f\x8b\x08"])
def test_bytes_that_are_no_text_are_a_400(data: bytes) -> None:
    assert refusal(sent_bytes(data)) == MALFORMED


def test_a_byte_order_mark_is_left_out() -> None:
    for data in (b"\xef\xbb\xbf" + EVENTS_TEXT.encode(), EVENTS_TEXT.encode("utf-16")):
        assert json_body(sent_bytes(data), event_body.EVENTS) == {"events": [VALID]}
    assert json_body(sent("\ufeff" + EVENTS_TEXT), event_body.EVENTS) == {"events": [VALID]}


WRONG_VALUES = [
    (b'"\\ud800"', ""),
    (b'"Well done \\ud83d!"', ""),
    (b'"\xe9"', ""),
    (b'"\xed\xa0\xbd"', ""),
    (b"NaN", ""),
    (b"-Infinity", ""),
    (b"1e400", ""),
    (b"9" * 309, ""),
    (b"-" + b"9" * 5_000, ""),
    (b'{"a": ["\\udfff"]}', ".a.0"),
    (b'{"a": {"\\ud83d": 1}}', ".a"),
    (b'{"\xff": 1}', ""),
]


@pytest.mark.parametrize(("value", "inner"), WRONG_VALUES, ids=lambda each: str(each)[:20])
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


@pytest.mark.parametrize(("value", "_"), WRONG_VALUES, ids=lambda each: str(each)[:20])
def test_of_a_batch_each_part_is_left_to_its_caller(value: bytes, _: str) -> None:
    data = b'{"events": [{"a": %s}, %s]}' % (value, json.dumps(VALID).encode())
    assert json_body(sent_bytes(data), event_body.EVENTS, batch="events")["events"][1] == VALID
    assert refusal(sent_bytes(data)) == (422, "invalid_field")
    outer = b'{"events": [{}], "receipt": %s}' % value
    with pytest.raises(ApiError) as refused:
        json_body(sent_bytes(outer), event_body.EVENTS, batch="events")
    assert refused.value.status == 422


@pytest.mark.parametrize("text", ["é", "a", "====", "e30\n"])
def test_what_is_no_base64_is_a_400(text: str) -> None:
    assert refusal({"body": text, "isBase64Encoded": True}) == MALFORMED


def test_a_body_that_is_too_large_is_a_413() -> None:
    space = BODY_BYTES_MAX - len(EVENTS_TEXT)
    assert json_body(sent(EVENTS_TEXT + " " * space), event_body.EVENTS)
    assert refusal(sent(EVENTS_TEXT + " " * (space + 1))) == (413, "too_large")
    assert refusal(sent_bytes(b" " * (BODY_BYTES_MAX + 1))) == (413, "too_large")


def test_a_body_is_measured_in_bytes() -> None:
    text = json.dumps({"events": [{"a": "é" * 600_000}]}, ensure_ascii=False)
    assert refusal(sent(text)) == (413, "too_large")


def test_a_body_of_another_shape_is_a_422_that_names_the_field() -> None:
    with pytest.raises(ApiError) as refused:
        json_body(sent('{"events": [], "x": 1}'), event_body.EVENTS)
    assert (refused.value.status, refused.value.code) == (422, "invalid_field")
    with pytest.raises(ApiError) as refused:
        json_body(sent('{"points": 0, "reward_id": "mug", "idempotency_key": "k"}'), REDEMPTION)
    assert refused.value.details[0]["field"] == "points"


@pytest.mark.parametrize("points", ["5.0", "1e2"])
def test_points_are_whole_numbers_or_refused(points: str) -> None:
    text = f'{{"points": {points}, "reward_id": "mug", "idempotency_key": "k"}}'
    try:
        body = json_body(sent(text), REDEMPTION)
    except ApiError as refused:
        assert refused.status == 422
        return
    assert isinstance(body["points"], int)


@given(
    st.text(max_size=60)
    | json_values.map(json.dumps)
    | near_events.map(lambda e: json.dumps({"events": [e]}))
)
def test_any_text_is_a_body_or_a_refusal(text: str) -> None:
    try:
        assert isinstance(json_body(sent(text), event_body.EVENTS), dict)
    except ApiError as refused:
        assert refused.status in (400, 413, 422)


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_are_a_body_or_a_refusal(data: bytes, encoded: bool) -> None:
    event = sent_bytes(data) if encoded else {"body": data.decode("latin-1"), "isBase64Encoded": True}
    try:
        json_body(event, event_body.EVENTS)
    except ApiError as refused:
        assert refused.status in (400, 413, 422)


def test_nesting_is_taken_up_to_its_limit() -> None:
    for levels, taken in ((NESTING_MAX, True), (NESTING_MAX + 1, False), (500, False), (5_000, False)):
        inner = levels - 4
        nested = "[" * inner + "]" * inner
        event = sent('{"events": [{"properties": {"a": ' + nested + "}}]}")
        if taken:
            assert json_body(event, event_body.EVENTS)
        else:
            assert refusal(event) == (422, "invalid_field")
