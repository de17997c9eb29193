"""Limits that hold without Redis, whoever answers: through the real handlers on a real engine."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from adapters.engagement.event_store import PastPage
from adapters.platform.limits import SharedCounters
from ingest.engagement.user_services import HISTORIES_PER_MINUTE, PAST_PER_MINUTE, SERVER_USERS, services
from ingest.openapi import ROUTES
from ingest.web.caller import ApiError
from ingest.web.rate_limit import CHEAP_STEP, RateLimit
from tests.support.engine import Engine
from tests.support.gateway import GROUP_AGENTS, ask, token
from tests.support.memory import forget
from tests.support.site import ADMIN, FULFILMENT, Site, site

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
NUMBERS = count()
PROCESSES, LIMIT = 100, 1200


@pytest.fixture(scope="module")
def api(engine: Engine) -> Iterator[Site]:
    few = {"COMMANDS_PER_MINUTE": "4", "READS_PER_MINUTE": "100", "RATE_LIMIT_PER_MINUTE": "50"}
    with site(engine, **few, OPEN_QUESTIONS_MAX="3", SUBSCRIPTIONS_MAX="2") as prepared:
        yield prepared


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> str:
    # A window of one minute must not end while the test runs, however slow the machine is.
    now = datetime.now(UTC)
    monkeypatch.setattr("adapters.clock.now", lambda: now)
    return f"l{time.time_ns()}-{next(NUMBERS)}"


def test_100_processes_at_once_pass_the_limit_by_less_than_a_step_each(engine: Engine) -> None:
    """Each has its own memory, as processes have; they share the table."""
    dynamodb = engine.client("dynamodb")
    counters = SharedCounters(lambda: dynamodb, "Limits")
    user = f"l{time.time_ns()}"

    def process(_: int) -> int:
        limit, passed = RateLimit(counters, "events", LIMIT, step=CHEAP_STEP), 0
        for _ in range(40):
            try:
                limit.check(user, 1, NOW)
            except ApiError:
                continue
            passed += 1
        return passed

    with ThreadPoolExecutor(PROCESSES) as pool:
        passed = sum(pool.map(process, range(PROCESSES)))
    assert LIMIT <= passed <= LIMIT + PROCESSES * (CHEAP_STEP - 1)


def statuses(api: Site, user: str, times: int, method: str, path: str, body: Any, *groups: str) -> list[int]:
    made = [body(n) if callable(body) else body for n in range(times)]
    headers = {"authorization": f"Bearer {token(user, *groups)}"}
    sent = [b"" if each is None else json.dumps(each).encode() for each in made]
    return [ask(method, path, headers, each).status for each in sent]


def test_events_and_commands_are_limited_for_each_user(api: Site, user: str) -> None:
    now = datetime.now(UTC).isoformat()

    def events(n: int) -> Any:
        sent = [  # from the third request on duplicates, which count, too
            {"idempotency_key": f"{n % 2}-{m}", "event_type": "CHECK_IN", "occurred_at": now}
            for m in range(10)
        ]
        return {"events": sent}

    assert statuses(api, user, 7, "POST", "/v1/events", events) == [202] * 5 + [429] * 2
    zones = statuses(api, user, 6, "PUT", f"/v1/users/{user}/timezone", {"timezone": "Asia/Tokyo"})
    assert zones == [200] * 4 + [429] * 2
    for path, body in (
        ("redemptions", {"points": 1, "reward_id": "x", "idempotency_key": "k"}),
        ("freezes", {}),
        ("pauses", {"first": "2030-01-01", "last": "2030-01-02"}),
    ):
        assert statuses(api, user, 1, "POST", f"/v1/users/{user}/{path}", body) == [429]


def test_a_shop_s_server_is_limited_for_each_user_it_acts_for_and_in_all(api: Site, user: str) -> None:
    shop, hold = f"{user}-shop", "0" * 8 + "-0000" * 3 + "-" + "0" * 12
    ship = "redemptions/20260601T120000000000Z/fulfilled"
    for number, group in enumerate((FULFILMENT, f"{FULFILMENT}/acme")):
        for path in (f"holds/{hold}/capture", ship)[number:]:
            for buyer in ("a", "b"):
                buyer_path = f"/v1/users/{user}-{number}{buyer}{path[:1]}/{path}"
                told = statuses(api, f"{shop}{number}", 6, "POST", buyer_path, {}, group)
                assert told == [403 if number else 404] * 4 + [429] * 2, (group, path)
    own = f"/v1/users/{user}-0ah/timezone"
    assert statuses(api, f"{user}-0ah", 1, "PUT", own, {"timezone": "Asia/Tokyo"}) == [200], (
        "of the user's own"
    )
    many = [
        status
        for number in range(4 * SERVER_USERS)
        for status in statuses(api, shop, 1, "POST", f"/v1/users/{user}-{number}/{ship}", {}, FULFILMENT)
    ]
    assert set(many) == {404}, "as many as the users may have of a hundred of them"
    refused = statuses(api, shop, 20, "POST", f"/v1/users/{user}-x/{ship}", {}, FULFILMENT)
    assert refused[-1] == 429
    assert statuses(api, "op", 6, "POST", f"/v1/users/{user}-0ah/{ship}", {}, ADMIN) == [404] * 6


def test_reads_of_the_past_are_limited_for_each_caller_and_those_of_histories(
    engine: Engine, user: str
) -> None:
    class Lake:
        def newest(self, *_: Any) -> PastPage:
            return PastPage([], "")

    with site(engine, EVENT_HOT_DAYS="30") as api:
        lake: Any = Lake()
        services().histories = replace(services().histories, past=lake)
        past, own = f"/v1/users/{user}/events?from=1970-01-01", f"/v1/users/{user}"
        assert statuses(api, user, 12, "GET", past, None) == [200] * PAST_PER_MINUTE + [429] * 2
        assert statuses(api, user, 1, "GET", f"{own}/events", None) == [200], "what is in the table"
        assert statuses(api, "op", 12, "GET", past, None, ADMIN) == [200] * 12
        as_of = f"{own}/balance?as_of={datetime.now(UTC).date()}T00:00:00Z"
        several = [path for _ in range(HISTORIES_PER_MINUTE) for path in (as_of, f"{own}/achievements")]
        told = [status for path in several for status in statuses(api, user, 1, "GET", path, None)]
        assert told == [200] * HISTORIES_PER_MINUTE + [429] * HISTORIES_PER_MINUTE
        assert statuses(api, user, 2, "GET", f"{own}/friends/board", None) == [429] * 2, "fifty profiles each"
        assert statuses(api, user, 1, "GET", f"{own}/balance", None) == [200]


def reads() -> list[tuple[str, str]]:
    """Every route that reads something of somebody who is signed in."""
    named = {
        "user_id": "{user}",
        "agent_id": "{user}",
        "board": "points",
        "board_name": "weekly",
        "friend_id": "somebody",
        "name": "x",
        "fingerprint": "me",
        "lead_id": "l" * 26,
        "erasure_id": "0" * 32,
        "what_if_id": "0" * 32,
        "entry_id": "e",
        "question_id": "q" * 26,
    }
    return [
        (each.api, each.path.format(**named))
        for each in ROUTES
        if each.method == "get" and not each.is_open and "/v1/leads" not in each.path
    ]


@pytest.mark.parametrize("api_name", sorted({name for name, _ in reads()}))
def test_reads_are_limited_for_each_caller_whatever_they_read(api: Site, user: str, api_name: str) -> None:
    paths = [path.format(user=user) for name, path in reads() if name == api_name]
    for _ in range(120 // len(paths) + 1):
        for path in paths:
            api.call(user, "GET", path)
    for path in paths:
        assert statuses(api, user, 1, "GET", path, None) == [429], path
    others = {name: path for name, path in reads() if name != api_name}
    for path in others.values():  # another function's process learns it by its twentieth request
        told = statuses(api, user, 20, "GET", path.format(user=user), None)
        assert told[-1] == 429, path
    assert statuses(api, f"{user}-other", 1, "GET", f"/v1/users/{user}-other", None) == [200]
    assert api.call(user, "GET", f"/v1/users/{user}", None, ADMIN)[0] == 200
    zone = statuses(api, user, 1, "PUT", f"/v1/users/{user}/timezone", {"timezone": "Asia/Tokyo"})
    assert zone == [200], "writes have their own limit"


def question(n: int) -> dict[str, Any]:
    return {"idempotency_key": f"q{n}", "type": "text", "prompt": "?", "required_responses": 1}


def test_questions_are_limited_by_caller_and_by_how_many_are_open(api: Site, user: str) -> None:
    headers = {"authorization": f"Bearer {token(user, GROUP_AGENTS)}"}

    def post(n: int) -> Any:
        told = ask("POST", "/v1/questions", headers, json.dumps(question(n)).encode())
        return told.status, json.loads(told.body)

    made = [post(n) for n in range(3)]
    assert [status for status, _ in made] == [201] * 3
    status, refused = post(3)
    assert (status, refused["error"]["code"]) == (409, "open_questions_max")
    assert post(4)[0] == 429


def test_a_question_that_is_answered_makes_room_for_the_next(api: Site, user: str) -> None:
    agent = f"{user}-agent"
    ids = [
        api.call(agent, "POST", "/v1/questions", question(n), GROUP_AGENTS)[1]["question_id"]
        for n in range(3)
    ]
    answered = api.call(user, "POST", f"/v1/questions/{ids[1]}/responses", {"answer": "yes", "confidence": 3})
    assert answered[0] == 201
    assert api.call(agent, "POST", "/v1/questions", question(3), GROUP_AGENTS)[0] == 201


def test_only_the_agent_who_asked_relays_answers_and_so_many_a_minute(api: Site, user: str) -> None:
    asker, other = f"{user}-asker", f"{user}-other"
    asked = api.call(
        asker, "POST", "/v1/questions", {**question(0), "required_responses": 1000}, GROUP_AGENTS
    )[1]
    path = f"/v1/questions/{asked['question_id']}/responses"
    body = {"answer": "yes", "confidence": 3, "fingerprint": "device-0"}
    status, told = api.call(other, "POST", path, body, GROUP_AGENTS)
    assert (status, told["error"]["code"]) == (403, "forbidden")
    relayed = statuses(
        api, asker, 53, "POST", path, lambda n: {**body, "fingerprint": f"device-{n}"}, GROUP_AGENTS
    )
    assert relayed == [201] * 50 + [429] * 3


def test_subscriptions_are_limited_by_caller_and_by_owner(api: Site, user: str) -> None:
    def phone(n: int) -> dict[str, Any]:
        return {"fcm_token": f"{user}-{n}"}

    assert statuses(api, user, 2, "POST", "/v1/subscriptions", phone) == [201, 201]
    status, told = api.call(user, "POST", "/v1/subscriptions", phone(2))
    assert (status, told["error"]["code"]) == (409, "subscriptions_max")
    assert api.call(user, "POST", "/v1/subscriptions", phone(1))[0] == 200
    assert api.call(user, "POST", "/v1/subscriptions", phone(1))[0] == 429


def test_a_phone_that_is_removed_makes_room_for_the_next(api: Site, user: str) -> None:
    made = [api.call(user, "POST", "/v1/subscriptions", {"fcm_token": f"{user}-{n}"})[1] for n in range(2)]
    assert api.call(user, "DELETE", f"/v1/subscriptions/{made[0]['subscription_id']}")[0] == 204
    assert api.call(user, "POST", "/v1/subscriptions", {"fcm_token": f"{user}-9"})[0] == 201


def test_exports_are_limited_for_each_caller_by_the_day(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [datetime.now(UTC).replace(hour=1)]
    monkeypatch.setattr("adapters.clock.now", lambda: clock[0])
    ann, bob = f"ann{time.time_ns()}", f"bob{time.time_ns()}"
    path = f"/v1/users/{ann}/export"
    with site(engine, EXPORTS_PER_DAY="7") as api:
        assert statuses(api, ann, 20, "POST", path, None) == [202] * 7 + [429] * 13
        assert statuses(api, bob, 1, "POST", f"/v1/users/{bob}/export", None) == [202]
        told = ask("POST", path, {"authorization": f"Bearer {token(ann)}"})
        assert 3600 < int(told.headers["Retry-After"]) <= 86_400
        assert statuses(api, f"op{ann}", 8, "POST", path, None, ADMIN) == [202] * 8
        forget()  # another process counts on from what the table says
        assert statuses(api, ann, 1, "POST", path, None) == [429]
        kept = engine.client("dynamodb").scan(TableName="Limits")["Items"]
        # A counter that outlives two minutes names nobody.
        assert all(
            int(each["expires_at"]["N"]) <= clock[0].timestamp() + 120 for each in kept if ann in str(each)
        )
        clock[0] += timedelta(days=1)
        assert statuses(api, ann, 1, "POST", path, None) == [202]
