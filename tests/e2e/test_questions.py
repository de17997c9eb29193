"""Questions through the deployed stack: asked, answered by many at once, closed; points and streaks follow."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import urllib3

from adapters.platform.items import encode_item
from local.api import Api
from local.cloud.patience import drain
from local.stack import Stack

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")
PEOPLE = 12


@pytest.fixture
def agent(stack: Stack, user: str) -> Api:
    return Api(stack, f"agent-{user}", group="streakline/agents")


def asked(agent: Api, key: str, **more: Any) -> dict[str, Any]:
    body = {
        "idempotency_key": key,
        "type": "multiple_choice",
        "prompt": "Which name is clearer?<script>alert(1)</script>",
        "options": ["append", "add"],
        "category": "naming",
        "required_responses": 5,
        **more,
    }
    status, question = agent.call("POST", "/v1/questions", body)
    assert status == 201, question
    found: dict[str, Any] = question
    return found


def answer(person: Api, question: dict[str, Any], **more: Any) -> tuple[int, Any]:
    body = {"selected_option": 1, "confidence": 4, "response_time_ms": 2500, **more}
    return person.call("POST", f"/v1/questions/{question['question_id']}/responses", body)


def settled(stack: Stack, check: Callable[[], Any]) -> Any:
    """Wait for what follows from answers: two streams, one after the other."""
    deadline = time.monotonic() + 60
    while True:
        drain(stack)
        if found := check():
            return found
        assert time.monotonic() < deadline
        time.sleep(0.3)


def test_an_answer_moves_points_streak_and_leaderboard_of_who_gave_it(
    stack: Stack, agent: Api, user: str
) -> None:
    me = Api(stack, user, admin=False)
    question = asked(agent, "k", required_responses=3)
    assert answer(me, question)[0] == 201
    assert answer(me, question)[1]["error"]["code"] == "already_answered"
    profile = settled(stack, lambda: (found := me.get(f"/v1/users/{user}"))["balance"] and found)
    assert (profile["current_streak"], profile["balance"]) == (1, 10)
    stats = settled(stack, lambda: (found := me.get("/v1/stats/me"))["total_answers"] == 1 and found)
    assert stats["total_points"] > 0
    assert stats["answers_by_category"] == {"naming": 1}
    assert stats["badges"]
    earned = [
        each["name"]
        for each in me.get(f"/v1/users/{user}/achievements")["achievements"]
        if each["achieved_at"]
    ]
    assert earned == ["first_answer"]
    assert me.get("/v1/stats?limit=10")["entries"]


def test_only_who_may_does(stack: Stack, agent: Api, user: str) -> None:
    question = asked(agent, "k")
    path = f"/v1/questions/{question['question_id']}/responses"
    person, other = Api(stack, user, admin=False), Api(stack, f"o-{user}", group="streakline/agents")
    assert person.call("POST", "/v1/questions", {})[0] == 403
    assert answer(person, question, fingerprint="somebody-else")[0] == 403
    assert other.call("GET", path)[0] == 403
    assert other.call("GET", f"/v1/agents/agent-{user}/questions")[0] == 403
    assert person.call("GET", path)[0] == 403
    assert len(agent.get(f"/v1/agents/agent-{user}/questions")["questions"]) == 1


@pytest.fixture
def undeleted_questions(stack: Stack) -> Iterator[str]:
    """The table of questions, in which what has expired stays for now, as it may for days on AWS."""
    table, dynamodb = stack.tables["Questions"], stack.client("dynamodb")
    attribute = "expires_at"

    def delete_expired(is_on: bool) -> None:
        dynamodb.update_time_to_live(
            TableName=table, TimeToLiveSpecification={"AttributeName": attribute, "Enabled": is_on}
        )

    delete_expired(False)
    yield table
    delete_expired(True)


def test_a_question_that_has_expired_says_so_before_it_is_deleted(
    stack: Stack, agent: Api, user: str, undeleted_questions: str
) -> None:
    question = asked(agent, "k")
    stack.client("dynamodb").update_item(
        TableName=undeleted_questions,
        Key=encode_item({"question_id": question["question_id"]}),
        UpdateExpression="SET expires_at = :past",
        ExpressionAttributeValues=encode_item({":past": int(time.time()) - 1}),
    )
    status, told = answer(Api(stack, user, admin=False), question)
    assert (status, told["error"]["code"]) == (409, "question_expired")


def test_subscriptions_are_registered_changed_and_removed(stack: Stack, user: str) -> None:
    me, other = Api(stack, user, admin=False), Api(stack, f"o-{user}", admin=False)
    body = {
        "fcm_token": f"token-{user}",
        "min_interval_minutes": 60,
        "timezone": "Europe/Berlin",
        "quiet_hours": {"from": "22:00", "to": "07:00"},
        "streak_reminders": True,
    }
    status, made = me.call("POST", "/v1/subscriptions", body)
    assert status == 201, made
    assert me.call("POST", "/v1/subscriptions", {**body, "min_interval_minutes": 30})[0] == 200
    path = f"/v1/subscriptions/{made['subscription_id']}"
    assert other.call("DELETE", path)[0] in (403, 404)
    assert me.call("DELETE", path)[0] == 204
    assert me.call("DELETE", path)[0] == 404


def test_the_page_and_the_view_of_the_pipeline_are_served(stack: Stack, admin: Api, user: str) -> None:
    pool = urllib3.PoolManager()
    page = pool.request("GET", f"{stack.api_url}/")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "script-src" in page.headers["content-security-policy"]
    assert pool.request("GET", f"{stack.api_url}/app/main.js").status == 200
    assert pool.request("GET", f"{stack.api_url}/app/..%2Fingest%2Fpage.py").status == 404
    view = admin.get("/v1/operations")
    assert abs(datetime.now(UTC) - datetime.fromisoformat(view["at"])) < timedelta(minutes=10)
    assert {each["name"] for each in view["queues"]} >= {"EngagementFailures", "LeadIngestion"}
    assert Api(stack, user, admin=False).call("GET", "/v1/operations")[0] == 403
