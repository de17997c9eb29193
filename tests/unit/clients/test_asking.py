"""The agents' client: what it sends, what it sends again, and what it raises."""

import json
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from streakline_client import Refused, Reply, Request, Streakline, StreaklineError, Unreachable, over_http

QUESTION = {
    "question_id": "q1",
    "agent_id": "agent",
    "type": "multiple_choice",
    "prompt": "Which?",
    "options": ["a", "b"],
    "audience": [],
    "category": "general",
    "required_responses": 2,
    "current_responses": 0,
    "status": "OPEN",
    "created_at": "2026-03-10T06:00:00.000000Z",
    "closes_at": "2026-03-11T06:00:00.000000Z",
    "something_new": True,
}


def ok(body: Any, status: int = 200) -> Reply:
    return Reply(status, json.dumps(body).encode())


def error(status: int, code: str, **headers: str) -> Reply:
    body = {"error": {"code": code, "message": "no", "details": [{"field": "prompt", "reason": "is long"}]}}
    return Reply(
        status, json.dumps(body).encode(), {key.replace("_", "-"): value for key, value in headers.items()}
    )


class Script:
    """A transport that gives the replies it was given, and notes the requests."""

    def __init__(self, *replies: Reply | Exception) -> None:
        self.replies, self.requests, self.slept = list(replies), list[Request](), list[float]()

    def __call__(self, request: Request) -> Reply:
        self.requests.append(request)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def client(self) -> Streakline:
        return Streakline("https://x.test", "token", transport=self, sleep=self.slept.append)


def test_a_question_is_asked_with_its_attributes_and_a_key() -> None:
    script = Script(ok(QUESTION, 201))
    closes = datetime(2026, 3, 11, 7, tzinfo=UTC)
    asked = script.client().ask(
        "Which?", options=["a", "b"], required_responses=2, closes_at=closes, category="c"
    )
    sent = script.requests[0]
    assert (sent.method, sent.path) == ("POST", "/v1/questions")
    assert sent.headers["Authorization"] == "Bearer token"
    body = json.loads(sent.body or b"")
    assert len(body.pop("idempotency_key")) == 36
    assert body == {
        "type": "multiple_choice",
        "prompt": "Which?",
        "options": ["a", "b"],
        "required_responses": 2,
        "category": "c",
        "closes_at": "2026-03-11T07:00:00+00:00",
    }
    assert asked.options == ("a", "b")
    assert asked.created_at == datetime(2026, 3, 10, 6, tzinfo=UTC)
    assert not asked.is_done
    assert not asked.duplicate


def test_the_same_key_goes_with_every_attempt() -> None:
    script = Script(Unreachable("lost"), error(503, "unavailable"), ok(QUESTION))
    script.client().ask("Which?")
    keys = {json.loads(each.body or b"")["idempotency_key"] for each in script.requests}
    assert (len(script.requests), len(keys)) == (3, 1)


def test_it_waits_as_long_as_it_is_told_but_not_for_ever() -> None:
    script = Script(
        error(429, "rate_limited", retry_after="7"), error(503, "x", retry_after="9999"), ok(QUESTION)
    )
    assert script.client().question("q1").question_id == "q1"
    assert script.slept == [7.0, 20.0]


def test_it_gives_up_after_five_attempts_with_the_last_reason() -> None:
    script = Script(*[error(503, "unavailable")] * 5)
    with pytest.raises(Refused) as told:
        script.client().question("q1")
    assert (told.value.status, told.value.code, len(script.requests)) == (503, "unavailable", 5)
    script = Script(*[Unreachable("lost")] * 5)
    with pytest.raises(Unreachable):
        script.client().question("q1")
    assert len(script.slept) == 4


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422])
def test_a_refusal_is_raised_at_once_with_its_code_and_details(status: int) -> None:
    script = Script(error(status, "some_code"))
    with pytest.raises(Refused) as told:
        script.client().ask("Which?")
    assert (told.value.status, told.value.code, told.value.message) == (status, "some_code", "no")
    assert told.value.details == [{"field": "prompt", "reason": "is long"}]
    assert script.slept == []


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(403, b'{"message": "Forbidden"}'), "Forbidden"),
        (Reply(500, b"<html>"), "no reason given"),
        (Reply(502, b"[1]"), "no reason given"),
    ],
)
def test_a_refusal_by_something_in_between_is_one_too(reply: Reply, message: str) -> None:
    with pytest.raises(Refused, match=message):
        Script(reply).client().question("q1")


def test_an_answer_that_is_no_json_is_an_error_of_its_own() -> None:
    with pytest.raises(StreaklineError, match="without a JSON object"):
        Script(Reply(200, b"<html>")).client().question("q1")


def page(first: int, last: int, done: bool = False) -> Reply:
    rows = [
        {"response_id": f"r{n}", "number": n, "selected_option": 0, "created_at": QUESTION["created_at"]}
        for n in range(first, last + 1)
    ]
    return ok({"responses": rows, "cursor": str(last), "done": done, "status": "OPEN"})


def test_answers_come_once_each_until_the_question_is_done() -> None:
    script = Script(page(1, 2), page(3, 2), page(3, 3), page(4, 4, done=True))
    answers = list(script.client().answers("q1", wait=5))
    assert [each.number for each in answers] == [1, 2, 3, 4]
    assert [each.question_id for each in answers] == ["q1"] * 4
    assert [each.path.partition("?")[2] for each in script.requests] == [
        "wait=5",
        "wait=5&after=2",
        "wait=5&after=2",
        "wait=5&after=3",
    ]
    assert script.requests[0].timeout == 15.0
    assert len(script.slept) == 1, "an empty page that came at once is followed by a pause"


def test_without_waiting_it_stops_where_there_is_no_more() -> None:
    script = Script(page(1, 2), page(3, 2))
    assert len(list(script.client().answers("q1", wait=0))) == 2


@pytest.mark.parametrize(("wait", "asked"), [(0.5, 1), (1.5, 1), (20.5, 20)])
def test_a_wait_is_asked_for_in_whole_seconds_and_never_becomes_zero(wait: float, asked: int) -> None:
    script = Script(page(1, 0), page(1, 1, done=True))
    assert len(list(script.client().answers("q1", wait=wait))) == 1
    assert script.requests[0].path.endswith(f"?wait={asked}")


def test_it_stops_when_its_time_is_over() -> None:
    script = Script(page(1, 1))
    assert len(list(script.client().answers("q1", timeout=0))) == 1


def test_ids_cannot_leave_their_place_in_a_path() -> None:
    script = Script(ok(QUESTION))
    script.client().question("../agents/x?y")
    assert script.requests[0].path == "/v1/questions/..%2Fagents%2Fx%3Fy"


def test_a_moment_without_a_zone_and_a_second_moment_are_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        Script().client().ask("Which?", closes_at=datetime(2026, 3, 11))  # noqa: DTZ001 (that is the point)
    with pytest.raises(ValueError, match="closes_in or closes_at"):
        Script().client().ask("Which?", closes_in=60, closes_at="2026-03-11T07:00:00Z")
    script = Script(ok(QUESTION))
    script.client().ask("Which?", closes_in=timedelta(hours=1))
    assert json.loads(script.requests[0].body or b"")["closes_at"].endswith("+00:00")


class Door(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status = int(self.path.rpartition("/")[2])
        self.send_response(status)
        self.send_header("Location", "http://127.0.0.1:9/stolen")
        self.send_header("Retry-After", "3")
        self.end_headers()
        self.wfile.write(self.headers["Authorization"].encode())

    def log_message(self, *_: Any) -> None:
        pass


def test_over_http_any_status_is_a_reply_and_no_redirect_is_followed() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    send = over_http(f"http://127.0.0.1:{server.server_port}/base/")
    for status in (200, 404, 503, 302):
        reply = send(Request("GET", f"/{status}", {"Authorization": "Bearer t"}))
        assert (reply.status, reply.body, reply.headers["retry-after"]) == (status, b"Bearer t", "3")
    server.shutdown()
    server.server_close()
    with pytest.raises(Unreachable, match="GET /200"):
        send(Request("GET", "/200?secret=1", {}, timeout=1))
    with pytest.raises(ValueError, match="https"):
        over_http("file:///etc/passwd")
