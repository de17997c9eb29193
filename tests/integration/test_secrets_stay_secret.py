"""Secret achievements (rule 15), attacked: whoever does not have one finds its name nowhere.

Every route is asked as the user and as another one, also with what should not be there; every notification, the
export and the page are read, and all that is stored of anybody.
"""

import copy
import json
import zlib
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import ingest
from adapters.book_store import shipped_document
from adapters.platform.aws import client
from adapters.platform.items import decode_item
from tests.integration.test_achievements_told import DAY, FIRST, RULES, WORKOUT, Told, told
from tests.support.exports import Functions, downloaded, made_in_process
from tests.support.gateway import ask, token
from tests.support.memory import forget
from tests.support.moved_site import event

__all__ = ["told"]
NAME, TITLE, TEXT, PICTURE = (
    "hidden_hoard",
    "A hoard for you",
    "You found the hoard.",
    "https://hoard.example/",
)
WORDS = (NAME, "hoard")
SECRET: dict[str, Any] = {
    "all": [{"count": WORKOUT, "at_least": 5}],
    "secret": True,
    "title": TITLE,
    "description": TEXT,
    "image_url": f"{PICTURE}p.png",
    "points": 50,
    "withdrawn": "when_untrue",
}
VALUES = {
    "user_id": "USER",
    "name": NAME,
    "board": "streaks",
    "board_name": NAME,
    "file": "index.html",
    "region": "global",
    "date": "2026-03-02",
    "ids": "USER",
}


@pytest.fixture
def functions() -> Iterator[Functions]:
    with pytest.MonkeyPatch.context() as patch:
        yield made_in_process(patch)
    forget()


@pytest.fixture
def player(told: Told) -> Told:
    """A user of a book with a secret, who has looked at everything, and whose past is settled."""
    book: Any = copy.deepcopy(shipped_document()) | {"achievements": {**RULES, NAME: SECRET}}
    told.listen()
    told.at(FIRST - timedelta(hours=1))
    status, answer = told.api.admin("POST", "/v1/rules", {"book": book})
    assert status == 201, answer
    told.act(4, 2, 3)
    told.shown()
    told.act(60, 59)
    told.shown()
    return told


def leaks(text: str) -> list[str]:
    """The words in a text that tell of the secret, beside those that the asker has said."""
    return [word for word in WORDS if word in text.lower()]


def routes() -> list[tuple[str, str]]:
    document = json.loads((Path(ingest.__file__).parent / "openapi.json").read_text())
    found = []
    for path, methods in document["paths"].items():
        if "get" in methods:
            required = [each for each in methods["get"].get("parameters", ()) if each.get("required")]
            query = "&".join(
                f"{each['name']}={VALUES.get(each['name'], 'x')}"
                for each in required
                if each["in"] == "query"
            )
            found.append((path, query))
    return found


def test_no_route_names_it(player: Told) -> None:
    answered = 0
    for path, query in routes():
        for asker in (player.user, "somebody"):
            asked = path
            for name, value in VALUES.items():
                asked = asked.replace(f"{{{name}}}", value)
            asked = f"{asked}?{query}".replace("USER", player.user).rstrip("?")
            headers = {"authorization": f"Bearer {token(asker)}"}
            answer = ask("GET", asked, headers, b"")
            answered += answer.status == 200
            text = str(answer.body).lower().replace(asked.lower(), "")
            # Who guesses the name of a streak or of a board is told that there is none.
            text = text.replace(NAME, "") if f"/{NAME}" in asked and answer.status >= 400 else text
            assert not leaks(text), (asked, text)
    assert answered > 20


def test_no_answer_to_an_event_names_it(player: Told) -> None:
    body = {"events": [event(WORKOUT, FIRST + 60 * DAY)]}
    headers = {"authorization": f"Bearer {token(player.user)}", "prefer": "wait=1"}
    answer = ask("POST", "/v1/events", headers, json.dumps(body).encode())
    assert answer.status in (200, 202)
    assert not leaks(str(answer.body))
    player.hear()
    assert not leaks(str(player.log()))
    assert len(player.log()) > 1


def test_the_export_does_not_name_it(player: Told, functions: Functions) -> None:
    path = f"/v1/users/{player.user}/export"
    assert player.api.call(player.user, "POST", path)[0] == 202
    with downloaded(player.api.call(player.user, "GET", path)[1]) as archive:
        texts = {name: archive.read(name) for name in archive.namelist()}
    assert "DailyActivity.json" in texts
    found = {
        name: leaks(unpacked(json.loads(text))) for name, text in texts.items() if name.endswith(".json")
    }
    assert not any(found.values()), found


def unpacked(value: Any) -> str:
    """All that somebody reads in a value who tries: also what is compressed, in bytes or in base 64."""
    if isinstance(value, dict):
        return " ".join(f"{name} {unpacked(each)}" for name, each in value.items())
    if isinstance(value, list | tuple | set):
        return " ".join(map(unpacked, value))
    found = str(value)
    raw = [bytes(value)] if isinstance(value, bytes | bytearray) else []
    if isinstance(value, str):
        with suppress(ValueError):
            raw.append(b64decode(value, validate=True))
    for each in raw:
        with suppress(UnicodeDecodeError, zlib.error):
            found += zlib.decompress(each).decode()
    return found


def test_nothing_that_is_stored_of_anybody_names_it(player: Told) -> None:
    dynamodb = client("dynamodb")
    pages = dynamodb.get_paginator("list_tables").paginate()
    tables = {table for page in pages for table in page["TableNames"]} - {"RuleBooks"}
    for table in tables:
        for page in dynamodb.get_paginator("scan").paginate(TableName=table):
            for item in map(decode_item, page["Items"]):
                assert not leaks(unpacked(item)), (table, item)
    assert "DailyActivity" in tables


def test_the_page_does_not_name_it(player: Told) -> None:
    for path in ("/", "/app/index.html", "/v1/docs", "/v1/openapi.json"):
        answer = ask("GET", path, {}, b"")
        assert not leaks(str(answer.body)), path


def test_who_has_it_reads_it_everywhere(player: Told, functions: Functions) -> None:
    """So the tests above look where it would be."""
    player.act(61, 60, 61)
    path = f"/v1/users/{player.user}"
    assert player.api.call(player.user, "GET", f"{path}/balance")[0] == 200  # pays its bonus
    places = [
        str(player.api.call(player.user, "GET", f"{path}/{each}")[1]) for each in ("achievements", "ledger")
    ]
    assert all(map(leaks, [*places, str(player.log())])), places
    player.api.call(player.user, "POST", f"{path}/export")
    with downloaded(player.api.call(player.user, "GET", f"{path}/export")[1]) as archive:
        assert leaks(unpacked(json.loads(archive.read("RewardsLedger.json"))))
    assert not leaks(str(player.api.call(player.user, "GET", "/v1/rules")[1]))
