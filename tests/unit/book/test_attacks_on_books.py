"""Attacks on what is published: whatever `checked` takes must be safe to judge events by."""

import copy
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from adapters.book import shipped_document
from ingest.book_document import book_of_document
from ingest.web.validate import first_problem
from rules.book.contracts import MATCHED_MAX, PATTERN_MAX
from rules.book.document import BookRefused
from rules.book.succession import check_senders

Json = dict[str, Any]
JUDGE = """
import sys
from tests.unit.book.test_attacks_on_books import judged, of_property
for pattern, text in zip(sys.argv[1::2], sys.argv[2::2]):
    judged(of_property(pattern=pattern), {"pages": text})
"""


def with_contract(contract: Json, kind: str = "READ") -> Json:
    document = copy.deepcopy(shipped_document())
    document["event_types"][kind] = {"points": 1, "properties": contract}
    return document


def of_property(**said: Any) -> Json:
    return {"properties": {"pages": said}}


def judged(contract: Json, properties: Json) -> None:
    """Publish a contract, and judge an event by it, unless it is refused."""
    try:
        book = book_of_document(with_contract(contract))
    except BookRefused:
        return
    first_problem({"type": "object", **(book.event_types["READ"].properties or {})}, properties)


@contextmanager
def listening() -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/secret", asked
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("keyword", ["enum", "description"])
def test_a_contract_never_makes_a_function_fetch_an_address(keyword: str) -> None:
    with listening() as (url, asked):
        value: Any = {"$ref": url}
        judged(of_property(**{keyword: [value] if keyword == "enum" else value}), {"pages": 1})
        assert asked == []


@pytest.mark.parametrize(
    "contract",
    [
        of_property(type=[5]),
        of_property(type=[[]]),
        of_property(type={"string": 1}),
        of_property(pattern="^[$]5$"),
        of_property(description={"$ref": "#/nowhere"}),
        {"required": ["pages", "pages"]},
    ],
    ids=json.dumps,
)
def test_a_contract_that_is_published_can_judge_events(contract: Json) -> None:
    judged(contract, {"pages": 1})


def test_no_pattern_takes_for_ever() -> None:
    """Anybody sends such a text; a function has 15 seconds, and a text may have 65,536 letters."""
    short, long = "a" * 40 + "!", "a" * 2000
    attacks = ("^(a+b?)+$", short, "^((a+))+$", short, "^(a|a)*$", short, "^.*.*.*.*.*.*x$", long)
    worker = subprocess.Popen([sys.executable, "-c", JUDGE, *attacks])
    try:
        assert worker.wait(timeout=60) == 0
    finally:
        worker.kill()
        worker.wait()


@pytest.mark.parametrize(
    "contract",
    [of_property(type=5), of_property(type=None), of_property(pattern="a{99999999999}")],
    ids=json.dumps,
)
def test_a_contract_that_is_none_is_refused_and_crashes_nothing(contract: Json) -> None:
    with pytest.raises(BookRefused):
        book_of_document(with_contract(contract))


@pytest.mark.parametrize(
    ("least", "most"), [("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems")]
)
def test_a_contract_that_no_value_satisfies_is_refused(least: str, most: str) -> None:
    with pytest.raises(BookRefused, match=rf"{least} is above {most}: no value satisfies both"):
        book_of_document(with_contract(of_property(**{least: 5, most: 4})))
    book_of_document(with_contract(of_property(**{least: 5, most: 5})))
    if least == "minimum":
        book_of_document(with_contract(of_property(minimum=-1.5, maximum=-1.5)))


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        (of_property(type=["string", "null"]), of_property(enum=[None]), "text"),
        (of_property(enum=[1]), of_property(enum=[True]), 1),
        (of_property(enum=[0, 1]), of_property(enum=[False, True]), 1),
        (of_property(enum=["a"]), of_property(enum=["a"], maxLength=0, type="null"), "a"),
    ],
    ids=str,
)
def test_what_an_old_contract_takes_a_new_one_takes(old: Json, new: Json, value: Any) -> None:
    before = book_of_document(with_contract(old))
    assert first_problem(old, {"pages": value}) is None
    with suppress(BookRefused):
        check_senders(before, book_of_document(with_contract(new)))
        assert first_problem(new, {"pages": value}) is None


def test_a_contract_is_small_because_each_event_is_held_against_it() -> None:
    with pytest.raises(BookRefused, match="bytes as JSON"):
        book_of_document(with_contract(of_property(enum=list(range(25_000)))))
    book_of_document(with_contract(of_property(pattern="a" * PATTERN_MAX, maxLength=MATCHED_MAX)))


def test_all_that_is_wrong_with_a_book_is_told_at_once() -> None:
    document = copy.deepcopy(shipped_document())
    document["event_types"] |= {"a b": {}, "X": {"points": -1}, "Y.z": {"points": "1", "cap": 5}}
    document["rewards"] = {"mug": {"price": 5, "title": 7}, "cup": {"price_points": 0, "brand": "b"}}
    document["streaks"]["S"] = {"per": "year"}
    document["foo"] = 1
    with pytest.raises(BookRefused) as refused:
        book_of_document(document)
    assert {".".join(map(str, each.path)) for each in refused.value.faults} >= {
        *("event_types.a b", "event_types.a b.points", "event_types.X.points", "foo", "streaks.S"),
        *("event_types.Y.z.points", "event_types.Y.z.cap", "rewards.mug.price", "rewards.mug.price_points"),
        *("rewards.mug.brand", "rewards.mug.title", "rewards.cup.price_points", "streaks.S.per"),
    }
    assert len(set(refused.value.faults)) == len(refused.value.faults)
