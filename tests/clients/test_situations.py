"""What both clients do in which situation, as client/situations.json tells it; the TypeScript client's tests walk it, too."""

import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from streakline_client import Queueing, RefusedEvent, Streakline, StreaklineError, Trouble

from tests.support.full_disks import full_disk
from tests.support.template import ROOT

SITUATIONS: list[Any] = json.loads((ROOT / "client" / "situations.json").read_text())["situations"]
NOTHING: dict[str, Any] = {
    name: [] for name in ("sent", "kept", "refused", "troubles", "unkept", "warnings", "taken")
}


@dataclass
class Seen:
    """What the service was sent: token, events, what stood beside them; and the keys that it took."""

    tokens: list[str] = field(default_factory=list)
    events: list[list[Any]] = field(default_factory=list)
    beside: list[list[str]] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)


@contextmanager
def service(told: Any) -> Iterator[tuple[str, Seen]]:
    """A service that answers as a situation tells."""
    seen, answers = Seen(), list(told.get("answers", []))

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.answer(told["profile"])

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            events = body.pop("events")
            seen.tokens.append(self.headers["authorization"].removeprefix("Bearer "))
            seen.events.append(events)
            seen.beside.append(list(body))
            spoilt = [each["event_type"] for each in events if each["event_type"] in told.get("spoils", {})]
            usual: Any = {"status": 202, "results": ["accepted"] * len(events)}
            if self.headers["prefer"] and "body" in told.get("profile", {}) and not told.get("late"):
                usual |= {"status": 200, "more": {"profile": told["profile"]["body"]}}
            answer = answers.pop(0) if answers else told["spoils"][spoilt[0]] if spoilt else usual
            results = [] if answer == "gone" else answer.get("results", [])
            seen.taken |= {
                event["idempotency_key"]
                for event, each in zip(events, results, strict=False)
                if each == "accepted"
            }
            self.answer(answer)

        def answer(self, answer: Any) -> None:
            if answer == "gone":
                self.close_connection = True
                return
            body = answer.get("body")
            if "results" in answer:
                body = {"results": [result(each) for each in answer["results"]], **answer.get("more", {})}
            today = datetime.now(UTC).date().isoformat()
            text = answer.get("text", json.dumps(body).replace('"today"', f'"{today}"')).encode()
            self.send_response(answer["status"])
            for name, value in answer.get("headers", {}).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(text) + (9 if answer.get("cut") else 0)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def result(told: Any) -> dict[str, Any]:
    if isinstance(told, str):
        return {"status": told}
    status, code, name = told
    return {"status": status, "error": {"code": code, "field": name, "message": ""}}


def turns(tokens: list[Any]) -> Callable[[], Any]:
    """A function `token`, which returns the next of these each time."""
    left = list(tokens)

    def following() -> Any:
        found = left.pop(0) if len(left) > 1 else left[0]
        if found == "!":
            raise RuntimeError("signed out")
        return found

    return following


@pytest.fixture
def in_zone() -> Iterator[Callable[[str], None]]:
    """Move this machine to another zone."""
    before = os.environ.get("TZ")

    def move(zone: str | None) -> None:
        if zone is None:
            os.environ.pop("TZ", None)
        else:
            os.environ["TZ"] = zone
        time.tzset()

    yield move
    move(before)


def matches(texts: list[str], patterns: list[str]) -> None:
    assert len(texts) == len(patterns), (texts, patterns)
    for text, pattern in zip(texts, patterns, strict=True):
        assert re.search(pattern, text, re.DOTALL), (text, pattern)


def zone_of(event: Any) -> str | None:
    zone: str | None = event.get("timezone")
    return "offset" if zone and event["occurred_at"].endswith(zone) else zone


@pytest.mark.parametrize("told", [pytest.param(each, id=each["name"]) for each in SITUATIONS])
def test_a_situation(
    told: Any, tmp_path: Path, in_zone: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    wanted = NOTHING | told["expected"]
    in_zone(told.get("zone", "UTC"))
    refused, troubles, unkept = list[RefusedEvent](), list[Trouble](), list[str]()
    callbacks: dict[str, Any] = {
        "on_refused": refused.append,
        "on_trouble": troubles.append,
        "on_unkept": lambda event: unkept.append(event["idempotency_key"]),
    }
    if told.get("silent"):
        callbacks = {}
    queue = Queueing(path=tmp_path / "queue.db", is_sending=False, **callbacks)
    token: Any = turns(told["tokens"]) if "tokens" in told else "t"
    caplog.set_level(logging.WARNING, "streakline_client")
    with service(told) as (url, seen), full_disk() if told.get("storage") == "none" else nullcontext():
        me = Streakline(url, token, user="ann", queue=queue, sleep=lambda _: None)
        keys = [me.track(each) for each in told.get("events", ["A"])]
        for _ in range(told.get("flushes", 1)):
            me.flush()
        kept = [keys.index(each["idempotency_key"]) for each in me.waiting()]
        sent = [[keys.index(each["idempotency_key"]) for each in events] for events in seen.events]
        shown: Any = None
        if "raised" in wanted:
            with pytest.raises(StreaklineError, match=wanted["raised"]):
                me.profile()
        elif "profile" in wanted:
            shown = me.profile()
        me.close()
    assert (sent, kept) == (wanted["sent"], wanted["kept"])
    assert {keys[number] for number in wanted["taken"]} <= seen.taken
    given_back = [[keys.index(each.event["idempotency_key"]), each.code, each.field] for each in refused]
    assert given_back == wanted["refused"]
    assert [keys.index(key) for key in unkept] == wanted["unkept"]
    patterns = [f"^{kind}: .*{reason}" for kind, reason in wanted["troubles"]]
    matches([f"{each.kind}: {each.reason}" for each in troubles], patterns)
    matches([each.getMessage() for each in caplog.records], wanted["warnings"])
    for events, zones in zip(seen.events, wanted.get("zones", []), strict="zones" in wanted):
        for event, zone in zip(events, zones, strict=True):
            assert zone_of(event) in (zone.split("|") if zone else [None])
    assert seen.tokens == wanted.get("tokens", seen.tokens)
    assert seen.beside == wanted.get("beside", seen.beside)
    if shown:
        assert {name: shown[name] for name in wanted["profile"]} == wanted["profile"]
