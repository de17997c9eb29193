"""`Prefer: wait=2`: an event's answer has what came of it."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from adapters import clock
from ingest.engagement import events_api
from tests.support.api_stack import stack
from tests.support.engine import Engine
from tests.support.gateway import Answered, ask, token
from tests.support.pipeline import Pipeline
from tests.support.site import PRODUCERS

pytestmark = pytest.mark.xdist_group("answer at once")
WAIT = {"prefer": "wait=2"}
LESSON = "LESSON_COMPLETED"


@pytest.fixture(scope="module")
def idle(engine: Engine, lone_redis_url: str) -> Iterator[Pipeline]:
    """The API, and consumers that work when they are told."""
    with stack(engine, lone_redis_url):
        yield Pipeline(engine)


@pytest.fixture
def api(idle: Pipeline) -> Iterator[Pipeline]:
    with idle.running():
        yield idle


def event(user: str, event_type: str = LESSON, ago: timedelta = timedelta(0), **more: Any) -> dict[str, Any]:
    occurred_at = (datetime.now(UTC) - ago).isoformat()
    return {
        "idempotency_key": str(uuid4()),
        "event_type": event_type,
        "user_id": user,
        "occurred_at": occurred_at,
    } | more


def send(
    sender: str, events: list[dict[str, Any]], headers: dict[str, str], *groups: str
) -> tuple[Answered, Any]:
    authorized = {"authorization": f"Bearer {token(sender, *groups)}", **headers}
    answered = ask("POST", "/v1/events", authorized, json.dumps({"events": events}).encode())
    return answered, json.loads(answered.body)


def profile(user: str) -> Any:
    answered = ask("GET", f"/v1/users/{user}", {"authorization": f"Bearer {token(user)}"}, b"")
    return json.loads(answered.body)


def name() -> str:
    return f"waits-{uuid4()}"


def test_the_answer_has_points_date_and_profile(api: Pipeline) -> None:
    user = name()
    begun = time.monotonic()
    answered, body = send(user, [event(user), event(user, "NO_SUCH_TYPE"), event(user)], WAIT)
    assert time.monotonic() - begun < 5
    assert answered.status == 200
    assert answered.headers["Preference-Applied"] == "wait=2"
    today = datetime.now(UTC).date().isoformat()
    first, refused, second = body["results"]
    assert (first["points"], second["points"]) == (10, 10)
    assert {first["activity_date"], second["activity_date"]} == {today}
    assert refused["status"] == "rejected"
    assert "points" not in refused
    assert (body["accepted"], body["rejected"]) == (2, 1)
    assert body["profile"] == profile(user)
    assert body["profile"]["total_bestie_points"] == 20
    assert body["new_achievements"] == []
    assert body["profile"]["level"]["name"] == "starter"
    assert body["new_level"] is None, "everybody begins there"


def test_a_level_is_new_once(api: Pipeline) -> None:
    user = name()
    sent = [event(user, ago=timedelta(days=days)) for days in range(3) for _ in range(3)]
    assert send(user, sent, WAIT)[1]["profile"]["total_bestie_points"] == 90
    last = event(user)
    for _ in range(2):  # the second time it is a duplicate, and the answer is the same
        answered, body = send(user, [last], WAIT)
        assert answered.status == 200
        assert body["profile"]["total_bestie_points"] == 100
        assert body["new_level"]["name"] == "bronze"
    assert send(user, [event(user)], WAIT)[1]["new_level"] is None
    reached = send(user, [last], WAIT)[1]
    assert reached["new_level"]["name"] == "bronze", "whatever came after it"
    assert reached["profile"]["total_bestie_points"] == 110


def test_an_achievement_is_new_by_the_event_that_made_it_true(api: Pipeline) -> None:
    user = name()
    first, second = (send("server", [event(user, "QUESTION_ANSWERED")], WAIT, PRODUCERS)[1] for _ in range(2))
    assert [each["name"] for each in first["new_achievements"]] == ["first_answer"]
    assert first["new_achievements"][0]["achieved"]
    assert second["new_achievements"] == []
    late = [event(user, "QUESTION_ANSWERED", timedelta(hours=30)) for _ in range(8)]
    answered, body = send("server", late, WAIT, PRODUCERS)
    assert answered.status == 200
    assert [each["name"] for each in body["new_achievements"]] == ["answers_10"], "late ones count, too"


def test_a_late_event_may_join_two_runs_of_a_streak(api: Pipeline) -> None:
    """The achievement is dated at today's event, by which the seventh date was reached; it is new by the late one."""
    user = name()
    dates = [event(user, "QUESTION_ANSWERED", timedelta(days=days)) for days in (6, 5, 4, 3, 1, 0)]
    answered, body = send("server", dates, WAIT, PRODUCERS)
    assert (answered.status, [each["name"] for each in body["new_achievements"]]) == (200, ["first_answer"])
    late = [event(user, "QUESTION_ANSWERED", timedelta(days=2))]
    for _ in range(2):
        answered, body = send("server", late, WAIT, PRODUCERS)
        assert (answered.status, [each["name"] for each in body["new_achievements"]]) == (200, ["streak_7"])
    again = [event(user, "QUESTION_ANSWERED", timedelta(days=2))]
    assert send("server", again, WAIT, PRODUCERS)[1]["new_achievements"] == []


def test_without_the_header_nobody_waits(api: Pipeline) -> None:
    user = name()
    for headers in ({}, {"prefer": "wait=0"}, {"prefer": "respond-async"}):
        answered, body = send(user, [event(user)], headers)
        assert answered.status == 202
        assert "Preference-Applied" not in answered.headers
        assert set(body) == {"accepted", "duplicates", "rejected", "results"}


def test_events_of_several_users_are_not_waited_for(api: Pipeline) -> None:
    begun = time.monotonic()
    answered, body = send("server", [event(name()), event(name())], WAIT, PRODUCERS)
    assert time.monotonic() - begun < 1
    assert (answered.status, body["accepted"]) == (202, 2)


def test_what_is_not_applied_in_time_is_answered_as_ever(idle: Pipeline) -> None:
    user = name()
    begun = time.monotonic()
    sent = [event(user)]
    answered, body = send(user, sent, WAIT)
    assert 1.9 < time.monotonic() - begun < 5
    assert (answered.status, body["accepted"]) == (202, 1)
    idle.step()
    answered, body = send(user, sent, WAIT)
    assert (answered.status, body["duplicates"]) == (200, 1)
    assert body["profile"]["total_bestie_points"] == 10


def test_who_waits_all_the_time_is_answered_without_waiting(
    idle: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that waits keeps a process of the function to itself, and these are few."""
    monkeypatch.setattr(events_api, "WAITS_PER_MINUTE", 2)
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now)  # all in one minute
    events_api._parts.cache_clear()
    user, waits = name(), {"prefer": "wait=1"}
    for is_waited_for in (True, True, False, False):
        begun = time.monotonic()
        answered, body = send(user, [event(user)], waits)
        assert (answered.status, body["accepted"]) == (202, 1)
        assert (time.monotonic() - begun > 0.9) is is_waited_for
    begun = time.monotonic()
    send(name(), [event(name())], waits)
    assert send("server", [event(user)], waits, PRODUCERS)[0].status == 202
    assert time.monotonic() - begun > 0.9, "others wait as ever, and servers as often as they like"
    events_api._parts.cache_clear()


def test_a_refused_batch_is_refused_at_once(idle: Pipeline) -> None:
    begun = time.monotonic()
    answered, _ = send(name(), [event("somebody-else")], WAIT)
    assert answered.status == 403
    assert time.monotonic() - begun < 1
