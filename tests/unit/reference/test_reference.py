"""The reference has all of the document, its links lead somewhere, and its commands can be pasted."""

import json
import re
import subprocess
from datetime import UTC, datetime
from functools import cache
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pytest

from infra.api_reference import reference, type_words, valid_sample
from ingest.engagement.event_body import EVENT
from ingest.openapi import TAG_PATTERNS, TAGS, document, tag_of
from ingest.page import handler
from ingest.web.validate import first_problem
from tests.support.gateway import CONTEXT
from tests.support.plain_page import plain_page

DOCUMENT = document()
PLACES: dict[str, dict[str, Any]] = {
    "alone": {"stylesheet": "../app/docs.css?v=1"},
    "within the site": {"script": "docs.js", "is_within_site": True},
}
OPERATIONS = [
    (method, path, each) for path, methods in DOCUMENT["paths"].items() for method, each in methods.items()
]
VOID = {"meta", "link", "input", "!doctype"}
BASH = "curl() { printf '%s\\0' \"$@\"; printf '\\n'; }; STREAKLINE_URL=http://here; STREAKLINE_TOKEN=t;"


class Nesting(HTMLParser):
    """Reads a page: elements that are not closed in order, ids, links."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.wrong, self.ids, self.links = list[str](), list[str](), list[str](), list[str]()
        self.tags, self.forms = set[str](), set[tuple[str | None, str | None]]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        self.wrong += [f"{tag} {name}" for name in given if name.startswith("on") or name == "style"]
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [given["href"] or ""] if "href" in given else []
        if tag == "form":
            self.forms.add((given.get("data-method"), given.get("data-path")))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open.pop() != tag:
            self.wrong.append(tag)


def read(html: str) -> Nesting:
    parser = Nesting()
    parser.feed(html)
    return parser


@cache
def page(place: str = "alone") -> str:
    return reference(DOCUMENT, **PLACES[place])


def commands() -> list[str]:
    return [unescape(each) for each in re.findall(r"<code>(curl .*?)</code>", page(), re.DOTALL)]


def run(command: str) -> list[str]:
    """What a shell gives to curl."""
    done = subprocess.run(["bash", "-c", f"{BASH}{command}"], capture_output=True, text=True, check=True)
    return done.stdout.rstrip("\n").split("\0")[:-1]


@pytest.mark.parametrize("place", PLACES)
def test_it_is_well_formed_and_a_strict_policy_has_nothing_to_refuse(place: str) -> None:
    html = page(place)
    found = read(html)
    assert (found.open, found.wrong) == ([], [])
    assert not found.tags & {"style", "img", "iframe"}
    assert len(re.findall("<script", html)) == len(re.findall(r'<script src="[^"]+" defer></script>', html))
    assert len(set(found.ids)) == len(found.ids)


def test_each_call_has_a_form_that_holds_what_it_needs() -> None:
    assert read(page()).forms == {(method, path) for method, path, _ in OPERATIONS}
    in_site = [
        read(reference(DOCUMENT, script="docs.js", is_within_site=True, tag=tag)).forms for tag in TAGS
    ]
    assert set().union(*in_site) == read(page()).forms
    assert sum(map(len, in_site)) == len(OPERATIONS), "each call is on one page of the site"
    (event,) = re.findall(r'data-path="/v1/events">.*?<textarea[^>]*>(.*?)</textarea>', page(), re.DOTALL)
    assert first_problem(EVENT, json.loads(unescape(event))["events"][0]) is None
    assert 'name="user_id" data-in="path" value="ada" required' in page()


def test_every_link_leads_somewhere() -> None:
    found = read(page())
    inside = {each[1:] for each in found.links if each.startswith("#")}
    assert inside <= set(found.ids), inside - set(found.ids)
    assert {each for each in found.links if not each.startswith("#")} == {
        "../app/docs.css?v=1",
        "openapi.json",
    }


def test_every_operation_is_there() -> None:
    for method, path, operation in OPERATIONS:
        assert f'id="{operation["operationId"]}"' in page()
        assert operation["tags"] == [tag_of(method, path)]
        assert operation["tags"][0] in TAGS


def test_every_tag_has_operations() -> None:
    assert {tag for _, tag in TAG_PATTERNS} == set(TAGS)
    assert {each["tags"][0] for _, _, each in OPERATIONS} == set(TAGS)
    assert [each["name"] for each in DOCUMENT["tags"]] == list(TAGS)
    assert tag_of("delete", "/v1/users/{user_id}") != tag_of("get", "/v1/users/{user_id}")


def test_the_commands_can_be_pasted_into_a_shell() -> None:
    assert len(commands()) == len(OPERATIONS) + 2
    done = run(";\n".join(commands()))
    assert "<" not in "".join(done), "no placeholder that a shell reads as a redirection"


def test_the_first_event_is_one_that_the_service_takes() -> None:
    *_, data = run(commands()[0])
    body = json.loads(data)
    assert first_problem(EVENT, body["events"][0]) is None
    occurred = datetime.fromisoformat(body["events"][0]["occurred_at"])
    assert abs((datetime.now(UTC) - occurred).total_seconds()) < 600, "an old one would be refused"


def test_a_description_is_only_text() -> None:
    evil = '<script>alert(1)</script>" onload="x'
    planted = json.loads(json.dumps(DOCUMENT))
    operation = planted["paths"]["/v1/events"]["post"]
    operation["summary"] = operation["description"] = evil
    operation["requestBody"]["content"] = {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {evil: {"enum": [evil], "pattern": evil, "description": evil}},
            }
        }
    }
    planted["components"]["schemas"][evil] = {"type": "string", "example": evil}
    planted_page = reference(planted, evil)
    found = read(planted_page)
    assert (found.open, found.wrong) == ([], [])
    assert planted_page.count("<script") == 1, "its own"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "text"),
        ({"type": ["string", "null"]}, "text or null"),
        ({"type": "array", "items": {"type": "integer"}}, "list of integer"),
        ({"$ref": "#/components/schemas/Event"}, "Event"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "text or integer"),
        ({"const": "all"}, 'always "all"'),
        ({}, "anything"),
    ],
)
def test_a_type_in_words(schema: dict[str, Any], words: str) -> None:
    assert type_words(schema) == words


def test_an_example_that_the_schema_refuses_is_not_shown() -> None:
    refused = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "string", "pattern": "^[0-9]{9}$"}},
    }
    assert valid_sample(refused, {}) is None


def test_the_page_is_served_below_any_base_path_by_the_same_rules_as_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain_page(monkeypatch)
    event: dict[str, Any] = {"rawPath": "/v1/docs", "headers": {}, "pathParameters": None}
    answered = handler(event, CONTEXT)
    headers = answered["headers"]
    assert (answered["statusCode"], headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    style = re.search(r'href="\.\./app/(docs\.css)\?v=(\w+)"', answered["body"])
    assert style
    assert f'src="../app/docs.js?v={style[2]}"' in answered["body"]
    asked = {"rawPath": "/app/docs.css", "headers": {}, "pathParameters": {"file": style[1]}}
    kept = handler(asked | {"queryStringParameters": {"v": style[2]}}, CONTEXT)
    assert "immutable" in kept["headers"]["Cache-Control"]
    again = handler(event | {"headers": {"If-None-Match": headers["ETag"]}}, CONTEXT)
    assert again["statusCode"] == 304
    packed = handler(event | {"headers": {"Accept-Encoding": "gzip"}}, CONTEXT)
    assert packed["isBase64Encoded"]
    assert len(packed["body"]) < 60_000
