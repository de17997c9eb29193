"""What the questions' API refuses, or takes from somebody else: other people's things, bad input, scripts, haste."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

import ingest.questions.questions_api
from adapters.platform.limits import SharedCounters
from adapters.platform.redis_cache import RedisCache
from ingest.web.rate_limit import RateLimit
from tests.support.engine import Engine
from tests.support.questions.stack import (
    answer,
    as_agent,
    ask,
    call,
    get,
    prepared,
    requests,
    responses_of,
    set_clock,
)

NOBODY = "6f0b1c9e-0000-4000-8000-000000000000"  # the same in every process that collects the tests


@pytest.fixture(autouse=True, scope="module")
def settings(engine: Engine) -> Iterator[None]:
    with prepared(engine):
        yield


def test_what_is_another_s_is_refused() -> None:
    question = ask()
    path = f"/v1/questions/{question['question_id']}/responses"
    body = {"idempotency_key": "k", "type": "text", "prompt": "?", "required_responses": 1}
    own_hash = call("GET", "/v1/stats/me", sub="p").body["fingerprint"]
    refused = [
        call("POST", "/v1/questions", body),
        as_agent("GET", "/v1/agents/agent/questions", agent="rival"),
        call("GET", "/v1/agents/person/questions"),
        as_agent("GET", path, agent="rival"),
        call("GET", path, sub="agent"),
        call("POST", path, {"selected_option": 0, "fingerprint": "somebody else"}),
        call("GET", f"/v1/stats/{own_hash}", sub="other"),
        as_agent("GET", f"/v1/stats/{own_hash}", agent="agent"),
    ]
    assert [(each.status, each.code) for each in refused] == [(403, "forbidden")] * len(refused)
    assert get(question)["current_responses"] == 0
    assert call("POST", path, {"selected_option": 0, "user_id": "other"}).status == 422
    for method, route in (
        ("POST", "/v1/subscriptions"),
        ("GET", "/v1/questions"),
        ("GET", path),
        ("POST", path),
        ("GET", "/v1/stats"),
    ):
        assert call(method, route, {}, sub="").status == 401
    assert call("GET", path, sub="root", groups="streakline/admin").status == 200
    assert call("GET", f"/v1/stats/{own_hash}", sub="p").status == 200
    assert call("GET", f"/v1/stats/{'0' * 32}", sub="root", groups="streakline/admin").status == 404


def test_a_question_for_an_audience_exists_for_nobody_else() -> None:
    question = ask(audience=["nurses"])
    path = f"/v1/questions/{question['question_id']}"
    for groups in ("", "streakline/audience/pilots", "streakline/audience/", "streakline/audience", "nurses"):
        assert call("GET", path, sub="p", groups=groups).status == 404
        assert answer(question, "p", groups).status == 404
    assert as_agent("GET", path, agent="another").status == 404
    relayed = {"selected_option": 0, "fingerprint": "d"}
    assert as_agent("POST", f"{path}/responses", relayed, agent="another").status == 404
    assert responses_of(question["question_id"]) == []
    assert as_agent("GET", path).status == 200
    assert as_agent("POST", f"{path}/responses", relayed).status == 201
    assert call("GET", path, sub="p", groups="streakline/audience/nurses").status == 200
    assert answer(question, "p", "[streakline/audience/a streakline/audience/nurses]").status == 201


def test_an_agent_relays_answers_of_people_without_an_account() -> None:
    question = ask()
    path = f"/v1/questions/{question['question_id']}/responses"
    raw = "device-7f3a-raw-identifier"
    assert as_agent("POST", path, {"selected_option": 1, "fingerprint": raw}).status == 201
    assert as_agent("POST", path, {"selected_option": 1, "fingerprint": raw}).code == "already_answered"
    assert as_agent("POST", path, {"selected_option": 1, "fingerprint": "another"}).status == 201
    # A person whose sub is a device's identifier is somebody else all the same.
    assert answer(question, raw).status == 201
    stored = responses_of(question["question_id"])
    assert sorted(each["is_signed_in"]["BOOL"] for each in stored) == [False, False, True]
    assert raw not in json.dumps(stored)
    seen = as_agent("GET", path).body["responses"]
    assert len({each["response_id"] for each in seen}) == 3
    for each in stored:
        assert each["fingerprint_hash"]["S"] not in json.dumps(seen)
    assert raw not in json.dumps(seen)


SCRIPT = "</script><script>alert(document.cookie)</script><img src=x onerror=alert(1)>"


def test_a_script_is_kept_as_text_and_served_as_json() -> None:
    question = ask(prompt=SCRIPT, options=[SCRIPT, "b"])
    text = ask(type="text", options=None, prompt="?")
    assert answer(text, "p", selected_option=None).status == 422
    path = f"/v1/questions/{text['question_id']}/responses"
    assert call("POST", path, {"answer": SCRIPT}, sub="p").status == 201
    replies = [
        call("GET", f"/v1/questions/{question['question_id']}"),
        call("GET", "/v1/questions"),
        as_agent("GET", path),
    ]
    for reply in [*replies, call("GET", f"/v1/questions/{SCRIPT}")]:
        assert reply.headers["Content-Type"] == "application/json"
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert replies[0].body["prompt"] == replies[0].body["options"][0] == SCRIPT
    assert replies[2].body["responses"][0]["answer"] == SCRIPT


@pytest.mark.parametrize(
    ("method", "path", "query", "status"),
    [
        ("GET", "/v1/questions", {"status": "open"}, 400),
        ("GET", "/v1/questions", {"limit": 101}, 400),
        ("GET", "/v1/questions", {"limit": "x"}, 400),
        ("GET", "/v1/questions", {"cursor": "x"}, 400),
        ("GET", "/v1/questions", {"cursor": "eyJiZWZvcmUiOiBbIjAiLCAiMCJdfQ=="}, 400),
        ("GET", "/v1/questions", {"audience": "A"}, 400),
        ("GET", "/v1/questions", {"audience": ",".join("abcdefghijk")}, 400),
        ("GET", "/v1/questions/nothing", {}, 404),
        ("GET", f"/v1/questions/{NOBODY}/responses", {}, 404),
        ("GET", f"/v1/questions/{NOBODY}/responses", {"wait": 21}, 400),
        ("GET", f"/v1/questions/{NOBODY}/responses", {"wait": "-1"}, 400),
        ("GET", f"/v1/questions/{NOBODY}/responses", {"after": "x"}, 400),
        ("POST", f"/v1/questions/{NOBODY}/responses", {}, 404),
        ("GET", "/v1/stats/somebody", {}, 404),
        ("GET", "/v1/stats", {"limit": 0}, 400),
        ("GET", "/v1/agents/a%20b/questions", {}, 400),
    ],
)
def test_bad_input_is_refused_by_name(method: str, path: str, query: dict[str, Any], status: int) -> None:
    reply = as_agent(method, path, {"selected_option": 0}, **query)
    assert (reply.status, bool(reply.body["error"]["message"])) == (status, True)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"selected_option": 2}, "selected_option"),
        ({"selected_option": 1.5}, "selected_option"),
        ({"timezone": "Nowhere"}, "timezone"),
        ({"timezone": "+19:00"}, "timezone"),
    ],
)
def test_a_wrong_answer_names_its_field(changes: dict[str, Any], field: str) -> None:
    reply = answer(ask(), "p", **changes)
    assert (reply.status, reply.body["error"]["details"][0]["field"]) == (422, field)


@pytest.mark.parametrize("has_redis", [False, True])
def test_a_person_s_answers_a_minute_are_limited(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, redis_url: str, has_redis: bool
) -> None:
    counters = SharedCounters(lambda: engine.client("dynamodb"), "Limits")
    limit = RateLimit(counters, "answers", 3, step=20, redis=RedisCache(redis_url if has_redis else ""))
    parts = ingest.questions.questions_api._parts()
    limited = replace(parts, answers=replace(parts.answers, own_limit=limit))
    monkeypatch.setattr(ingest.questions.questions_api, "_parts", lambda: limited)
    # In the past: a question of the future would be the newest of other tests' lists.
    set_clock(monkeypatch, datetime.now(UTC).replace(second=30) - timedelta(minutes=1))
    question, hasty = ask(), f"hasty-{uuid4()}"
    replies = [answer(question, hasty) for _ in range(5)]
    assert [each.status for each in replies] == [201, 409, 409, 429, 429]
    assert replies[-1].headers["Retry-After"] == "30"
    with requests() as seen:
        assert answer(question, hasty).code == "rate_limited"
    assert seen.operations == []
    assert answer(question, "calm").status == 201
