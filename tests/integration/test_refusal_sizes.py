"""However large a request is, its refusal is small: AWS answers 5xx in place of what is over 6 MB."""

import json
import re
from typing import Any

import pytest

from ingest.openapi import ROUTES
from ingest.web.bodies import BODY_BYTES_MAX
from ingest.web.caller import DETAILS_MAX
from tests.integration.test_rules_api import api, book, event, publish
from tests.support.effort import effort
from tests.support.gateway import ask, token
from tests.support.site import ADMIN, Site

__all__ = ["api"]  # the fixture of a site that forgets its versions
REFUSAL_BYTES_MAX = 1_500_000
# In an answer each is six characters, \\u0001 or \\u00e9, and twelve, for one to four bytes of a request.
SIGNS = ("\x01", "\u00e9", "\U0001f600")
SIZE = BODY_BYTES_MAX - 60_000


def long_text(sign: str) -> str:
    return sign * (SIZE // len(sign.encode()))


def raw(body: Any) -> bytes:
    """JSON with as few bytes as a parser takes: control characters as they are."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).replace("\\u0001", "\x01").encode()


def nested(key: str) -> list[Any]:
    values: list[Any] = [[{key: 1}], [key], {key: {}}]
    return values[: effort(1, soak=3)]


def hostile(fields: dict[str, Any], sign: str) -> list[Any]:
    """Bodies with a long key, a long text in each field, a key within a field, and many keys."""
    key, number = long_text(sign), SIZE // 20
    return [
        {key: 1},
        {name: key[: len(key) // len(fields)] for name in fields},
        *({name: within} for name in fields for within in nested(key)),
        {f"{sign}{each}": 1 for each in range(number)},
        [0] * effort(20_000, soak=SIZE // 2),
        key,
    ]


# The gateway of these tests has no other functions; all read bodies and write errors by the same code. What
# events, books and answers refuse they say in words of their own.
ELSEWHERE = ("/v1/leads", "/v1/hooks", "/v1/webhook-endpoints")
OWN_WORDS = ("PostEvents", "PostRules", "PostResponse", "PutAlias")
WITH_BODIES = [
    each
    for each in ROUTES
    if each.body and not each.path.startswith(ELSEWHERE) and (effort(0, soak=1) or each.name in OWN_WORDS)
]


@pytest.mark.parametrize("route", WITH_BODIES, ids=lambda each: each.name)
def test_no_door_answers_more_than_a_function_may(api: Site, route: Any) -> None:
    path = re.sub(r"\{[a-z_]+\}", "u", route.path)
    sent = 0
    for sign in SIGNS[: effort(1, soak=len(SIGNS))]:  # the first one grows most
        for body in hostile(route.body["properties"], sign):
            text = raw(body)
            assert len(text) <= BODY_BYTES_MAX
            told = ask(route.method.upper(), path, {"authorization": f"Bearer {token('u', ADMIN)}"}, text)
            assert told.status < 500, (route.key, told.body[:300])
            assert len(told.body) <= REFUSAL_BYTES_MAX, (
                route.key,
                told.status,
                len(told.body),
                told.body[:300],
            )
            sent += told.status >= 400
    assert sent > 0, route.key


def long_keys(sign: str, number: int) -> Any:
    return {"event_types": {sign * number: {f"a{each}": 1 for each in range(1_000)}}}


BOOKS = {
    "floats": {"event_types": {"READ": {"points": 5, "properties": {"enum": [5.0] * 50_000}}}},
    "overlaps": {
        "boosts": [{"since": "2026-01-01T00:00:00Z", "until": "2027-01-01T00:00:00Z", "factor": 2}] * 100
    },
    "unknown keys": {f"k{each}": 1 for each in range(20_000)},
    "a long key with many faults": long_keys("\x01", 40_000),
    "a long key of emoji": long_keys("\U0001f600", 60_000),
}


@pytest.mark.parametrize("faulty", BOOKS.values(), ids=BOOKS)
def test_a_refusal_of_a_book_names_the_first_faults_and_says_how_many_there_are(
    api: Site, faulty: Any
) -> None:
    document = {**book(), **faulty}
    body = raw({"book": document, "effective": "now"})
    told = ask("POST", "/v1/rules", {"authorization": f"Bearer {token('u', ADMIN)}"}, body)
    assert (told.status, len(told.body) < REFUSAL_BYTES_MAX) == (422, True)
    error = json.loads(told.body)["error"]
    number = re.match(r"(\d+) faults", error["message"])
    assert number
    assert int(number[1]) > DETAILS_MAX == len(error["details"])
    assert all(each["field"] and each["reason"] for each in error["details"])


@pytest.mark.parametrize("sign", SIGNS, ids=ascii)
def test_a_sender_s_own_names_do_not_make_the_answer_large(api: Site, user: str, sign: str) -> None:
    """A contract refuses a value, and the sender has named the field."""
    contract = {"points": 5, "properties": {"additionalProperties": False}}
    assert publish(api, book(READ=contract))[0] == 201
    for number in (1, 100):
        key = sign * (SIZE // len(sign.encode()) // number - 300)
        events = [event("READ", properties={key: "x"}) for _ in range(number)]
        headers = {"authorization": f"Bearer {token(user)}"}
        told = ask("POST", "/v1/events", headers, raw({"events": events}))
        assert (told.status, len(told.body) < REFUSAL_BYTES_MAX) == (202, True), len(told.body)
        assert json.loads(told.body)["rejected"] == number
