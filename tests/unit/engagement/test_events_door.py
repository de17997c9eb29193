"""Whatever bytes come to POST /v1/events: what is wrong with one event is told of that one, and its neighbours are stored."""

import base64
import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ingest.engagement import events_api
from ingest.engagement.acceptance import Acceptor
from ingest.engagement.event_body import EVENT
from ingest.web.validate import PROBLEMS_MAX
from tests.support.books import KnownBooks
from tests.support.empty_stores import Stores
from tests.support.http_requests import VALID, called, json_values

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> Stores:
    stores = Stores()
    limit = SimpleNamespace(check=lambda *_: None)
    prover = SimpleNamespace(proof=lambda _: None)
    door: Any = stores
    accept = Acceptor(door, door, door, KnownBooks())
    gauges = SimpleNamespace(note_stored=lambda *_: None)
    parts = SimpleNamespace(acceptor=accept, limit=limit, prover=prover, gauges=gauges)
    monkeypatch.setattr(events_api, "_parts", lambda: parts)
    monkeypatch.setattr("adapters.clock.now", lambda: NOW)
    return stores


def posted(data: bytes) -> tuple[int, Any]:
    event: dict[str, Any] = {"body": base64.b64encode(data).decode(), "isBase64Encoded": True}
    answer = called(events_api.handler, "POST", "/v1/events", **event)
    return answer["statusCode"], json.loads(answer["body"])


def event(key: str, **more: Any) -> bytes:
    return json.dumps({**VALID, "idempotency_key": key, **more}).encode()


def between_neighbours(stores: Stores, bad: bytes) -> tuple[Any, list[str]]:
    """Post an event between two good ones; returns its result, and the keys of what is stored."""
    status, told = posted(b'{"events": [%s, %s, %s]}' % (event("first"), bad, event("last")))
    assert status == 202, told
    assert (told["results"][0]["status"], told["results"][2]["status"]) == ("accepted", "accepted")
    return told["results"][1], [each.idempotency_key for each in stores.stored]


def within(name: str, value: bytes) -> bytes:
    fields = {key: json.dumps(each).encode() for key, each in VALID.items()}
    fields[name] = value
    return b"{" + b", ".join(b'"%s": %s' % (key.encode(), each) for key, each in fields.items()) + b"}"


DEEP = b"[" * 70 + b"]" * 70
VERY_DEEP = b'{"a":' * 500 + b"1" + b"}" * 500
BAD_EVENTS = [
    (within("properties", b'{"note": "Well done \\ud83d"}'), "properties.note"),
    (within("properties", b'{"a": {"b": [{"c": "\\ud83d"}]}}'), "properties.a.b.0.c"),
    (within("properties", b'{"\\ud83d": 1}'), "properties"),
    (within("properties", b'{"note": "caf\xe9"}'), "properties.note"),
    (within("properties", b'{"a": 1e400}'), "properties.a"),
    (within("properties", b'{"a": %s}' % (b"9" * 5_000)), "properties.a"),
    (within("properties", b'{"a": NaN}'), "properties.a"),
    (within("idempotency_key", b'"k\\ud83d"'), "idempotency_key"),
    (within("user_id", b'"\\ud83d"'), "user_id"),
    (within("occurred_at", b'"2026-06-01T12:00:00Z\\ud83d"'), "occurred_at"),
    (within("timezone", b'"\\ud83d"'), "timezone"),
    (within("source", b"NaN"), "source"),
    (within("\\ud83d", b"1"), "body"),
    (b"7", "body"),
    (b'"\\ud83d"', "body"),
    (b"[]", "body"),
    (within("properties", b'{"a": %s}' % DEEP), "properties.a." + ".".join("0" * 62)),
]


@pytest.mark.parametrize(("bad", "field"), BAD_EVENTS, ids=lambda each: str(each)[-50:])
def test_a_bad_value_refuses_its_event_by_field_and_its_neighbours_are_stored(
    bad: bytes, field: str, stores: Stores
) -> None:
    result, kept = between_neighbours(stores, bad)
    assert (result["status"], result["error"]["code"]) == ("rejected", "invalid_field")
    assert result["error"]["field"] == field
    assert not any(word in result["error"]["message"] for word in ("codec", "surrogates", "Error"))
    assert kept == ["first", "last"]


@pytest.mark.parametrize(
    ("said", "fields"),
    [
        (
            {"idempotency_key": b'""', "event_type": b"7", "occurred_at": b'"x"', "zzz": b"1"},
            {"idempotency_key", "event_type", "occurred_at", "body"},
        ),
        ({"occurred_at": b'"2026-02-30T00:00:00Z"', "properties": b"[]"}, {"occurred_at", "properties"}),
        ({"properties": b'{"a": 1e400}', "user_id": b'"\\ud83d"'}, {"properties.a", "user_id"}),
        (
            {"properties": b'"\\udc00"', "source": b"5", "timezone": b"[]"},
            {"properties", "source", "timezone"},
        ),
        ({"event_type": b"1e400", "occurred_at": b"null"}, {"event_type", "occurred_at"}),
    ],
)
def test_all_faulty_fields_of_an_event_are_named_the_first_one_in_the_message(
    said: dict[str, bytes], fields: set[str], stores: Stores
) -> None:
    whole = {name: json.dumps(each).encode() for name, each in VALID.items()} | said
    body = b"{%s}" % b", ".join(b'"%s": %s' % (name.encode(), each) for name, each in whole.items())
    result, kept = between_neighbours(stores, body)
    error = result["error"]
    assert {each["field"] for each in error["details"]} == fields
    assert error["message"] == "{field} {reason}".format(**error["details"][0])
    assert error["field"] == error["details"][0]["field"]
    assert kept == ["first", "last"]


@pytest.mark.parametrize("value", [b"1e400", b'"\\ud83d"', b"1"])
@pytest.mark.parametrize("name", [b"x%d", b"\\ud83d%d"])
def test_an_event_of_a_thousand_faulty_fields_is_told_some_of_them(
    name: bytes, value: bytes, stores: Stores
) -> None:
    body = b"{%s}" % b", ".join(b'"%s": %s' % (name % number, value) for number in range(1000))
    result, kept = between_neighbours(stores, body)
    named = [each["field"] for each in result["error"]["details"]]
    assert len(set(named)) == len(named) <= PROBLEMS_MAX
    assert kept == ["first", "last"]


def test_an_event_that_is_nested_without_measure_is_refused_alone(stores: Stores) -> None:
    result, kept = between_neighbours(stores, within("properties", VERY_DEEP))
    assert result["error"]["field"].startswith("properties.a.a.")
    assert "nested deeper than 64 levels" in result["error"]["message"]
    assert kept == ["first", "last"]


def test_a_byte_order_mark_and_line_ends_within_a_text_are_taken(stores: Stores) -> None:
    status, told = posted(b"\xef\xbb\xbf" + b'{"events": [%s]}' % within("properties", b'{"a": "x\ny\tz"}'))
    assert (status, told["accepted"]) == (202, 1)
    assert json.loads(stores.stored[0].properties) == {"a": "x\ny\tz"}


def test_of_equal_names_the_last_one_stays(stores: Stores) -> None:
    assert posted(b'{"events": [{"idempotency_key": "x", %s]}' % event("k")[1:])[0] == 202
    assert [each.idempotency_key for each in stores.stored] == ["k"]


odd_json = st.recursive(
    json_values.map(lambda each: json.dumps(each).encode())
    | st.sampled_from(
        [b'"\\ud83d"', b'"\xff\xfe"', b"1e999", b"NaN", b"9" * 400, b'"\\u0000"', b'"\n"', b"-0.0"]
    ),
    lambda inner: (
        st.builds(lambda each: b"[%s]" % each, inner)
        | st.builds(
            lambda name, each: b'{"%s": %s}' % (name, each),
            st.sampled_from([b"a", b"\\udfff", b"\xff"]),
            inner,
        )
    ),
    max_leaves=4,
)
odd_events = odd_json | st.builds(
    within, st.sampled_from([*EVENT["properties"], "points", "\\ud83d"]), odd_json
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(odd_events)
@example(b'{"events": []}')
def test_whatever_an_event_holds_its_neighbours_are_stored(stores: Stores, bad: bytes) -> None:
    stores.stored.clear()
    result, kept = between_neighbours(stores, bad)
    assert result["status"] in ("accepted", "rejected", "conflict", "duplicate")
    assert ("error" in result) == (result["status"] in ("rejected", "conflict"))
    assert {"first", "last"} <= set(kept)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=40), st.integers(0, 200))
def test_whatever_bytes_come_the_answer_is_none_of_a_broken_server(
    stores: Stores, data: bytes, at: int
) -> None:
    whole = b'{"events": [%s, %s]}' % (event("first"), event("last"))
    for body in (data, whole[:at] + data + whole[at:]):
        status, told = posted(body)
        assert status in (202, 400, 403, 413, 422)
        assert status == 202 or told["error"]["message"]
