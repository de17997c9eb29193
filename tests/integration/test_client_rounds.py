"""The agents' client against the real handlers: ask, answer, read, be refused."""

import threading
import time
from collections.abc import Iterator
from datetime import date, timedelta
from uuid import uuid4

import pytest
from streakline_client import Answer, Queueing, Refused, Reply, Request, Streakline

from tests.support.api_stack import stack
from tests.support.engine import Engine
from tests.support.gateway import ask, token
from tests.support.pipeline import Pipeline


def in_process(request: Request) -> Reply:
    """A request of the client as an event for the real handler."""
    answered = ask(request.method, request.path, request.headers, request.body or b"")
    return Reply(
        answered.status, answered.body, {name.lower(): each for name, each in answered.headers.items()}
    )


def client(user: str, *groups: str) -> Streakline:
    return Streakline("", token(user, *groups), transport=in_process)


@pytest.fixture
def api(engine: Engine, lone_redis_url: str) -> Iterator[Engine]:
    with stack(engine, lone_redis_url):
        yield engine


@pytest.fixture
def agent(api: Engine) -> Streakline:
    return client("agent-1", "streakline/agents")


def answer(user: str, question_id: str, **body: object) -> None:
    """As the page does it; the client is the agents' and answers nothing."""
    client(user)._calls.call("POST", f"/v1/questions/{question_id}/responses", body={"confidence": 4, **body})


def test_a_question_is_asked_once_however_often(agent: Streakline) -> None:
    first = agent.ask("Which?", options=["a", "b"], required_responses=2, idempotency_key="once")
    again = agent.ask("Which?", options=["a", "b"], required_responses=2, idempotency_key="once")
    assert (first.duplicate, again.duplicate) == (False, True)
    assert again.question_id == first.question_id
    assert (first.status, first.type, first.options, first.is_done) == (
        "OPEN",
        "multiple_choice",
        ("a", "b"),
        False,
    )
    with pytest.raises(Refused) as told:
        agent.ask("Another?", idempotency_key="once")
    assert (told.value.status, told.value.code) == (409, "conflict")
    assert first.question_id in {each.question_id for each in agent.questions("agent-1", limit=1)}


def test_answers_arrive_while_the_agent_waits_and_end_with_the_question(agent: Streakline) -> None:
    asked = agent.ask("Why?", required_responses=2)
    answer("ada", asked.question_id, answer="because")
    got: list[Answer] = []
    waiting = threading.Thread(target=lambda: got.extend(agent.answers(asked.question_id, wait=20)))
    waiting.start()
    while not got and waiting.is_alive():
        time.sleep(0.02)
    began = time.monotonic()
    answer("bob", asked.question_id, answer="therefore")
    waiting.join()
    assert [each.answer for each in got] == ["because", "therefore"]
    assert time.monotonic() - began < 15, "the poll ends when the answer is there, not when its time is over"
    assert got[0].confidence == 4
    assert agent.question(asked.question_id).status == "CLOSED"


def test_what_is_not_ones_own_is_refused(agent: Streakline) -> None:
    asked = agent.ask("Whose?")
    for other in (client("agent-2", "streakline/agents"), client("ada")):
        with pytest.raises(Refused) as told:
            list(other.answers(asked.question_id, wait=0))
        assert (told.value.status, told.value.code) == (403, "forbidden")
    with pytest.raises(Refused, match="403"):
        client("ada").ask("May I?")
    with pytest.raises(Refused, match="404"):
        agent.question("00000000-0000-0000-0000-000000000000")
    with pytest.raises(Refused) as told:
        agent.ask("Which?", options=["same", "same"])
    assert told.value.status == 422
    assert told.value.details[0]["field"] == "options"


def test_an_answerers_stats_follow(agent: Streakline, api: Engine) -> None:
    pipeline = Pipeline(api)
    asked = agent.ask("How?", category="craft")
    answer("carol", asked.question_id, answer="so")
    while pipeline.step():
        pass
    stats = client("carol").stats()
    assert (stats.total_answers, stats.streak_days, stats.answers_by_category) == (1, 1, {"craft": 1})
    assert stats.total_points > 0
    assert stats.badges == ("first_answer",)
    told = client("root", "streakline/admin")._calls.call("GET", "/v1/operations")
    engagement = next(each for each in told["consumers"] if each["name"] == "engagement")
    assert 0 <= engagement["behind_seconds"] < 30
    assert told["unknown"].keys() <= {"lake", "nightly"}


def test_a_person_protects_a_streak_and_sets_zone_and_name(api: Engine) -> None:
    user = f"protector-{uuid4().hex[:8]}"
    me = Streakline("", token(user), user=user, transport=in_process, queue=Queueing(is_sending=False))
    freeze = me.take_freeze()
    assert (freeze["points"], freeze["freeze"]) == (0, "freeze_granted")
    assert me.take_freeze(key="k")["entry_id"] == me.take_freeze(key="k")["entry_id"]
    with pytest.raises(Refused) as refused:
        me.take_freeze()
    assert refused.value.code == "insufficient_balance"
    today = date.fromisoformat(me.profile()["as_of"])
    span = {"first": str(today), "last": str(today + timedelta(days=2))}
    assert me.pause(today, today + timedelta(days=2))["pauses"] == [span]
    assert me.pause(span["first"], span["last"])["pauses"] == [span], "the same pause again is one"
    assert me.set_timezone("europe/berlin")["timezone"] == "Europe/Berlin"
    with pytest.raises(Refused, match="timezone"):
        me.set_timezone("Europe/Nowhere")
    assert me.set_alias("Ann B")["shown_as"] == "Ann B"
    shown = me.profile()
    assert (shown["timezone"], shown["alias"], shown["pauses"]) == ("Europe/Berlin", "Ann B", [span])
    assert shown["freezes_available"] == 2
    assert me.set_alias(None)["alias"] is None
    assert {each["title"] for each in me.achievements()["achievements"]} >= {"First answer"}
    me.close()
