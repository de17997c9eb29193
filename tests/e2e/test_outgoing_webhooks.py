"""Outgoing webhooks of the deployed laptop cloud: they arrive, signed, in order, of users, leads and questions."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from standardwebhooks import Webhook

from local.api import Api
from local.stack import Stack
from tests.e2e.conftest import event, printed
from tests.e2e.test_survival import know_at_once
from tests.support.hook_receiver import Receiver, receiver
from tests.support.lead_orders import bought, send

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")
SECONDS_MAX = 180
OF_WEBHOOKS = ("Notification", "Notify", "WebhookDelivery")  # they hear of endpoints within 20 seconds


class Customer:
    """A customer's system: it verifies what it is sent by the standard's own library."""

    def __init__(self, admin: Api, there: Receiver, **more: Any) -> None:
        body = {"url": f"http://127.0.0.1:{there.port}/hook", **more}
        status, self.made = admin.call("POST", "/v1/webhook-endpoints", body)
        assert status == 201, self.made
        self.admin, self.there, self.id = admin, there, self.made["endpoint_id"]

    def heard(self, kind: str, **about: Any) -> list[Any]:
        """What it was sent of a type and of somebody, by the order of arrival; each id once."""
        webhook, found = Webhook(self.made["secret"]), dict[str, Any]()
        for headers, body in list(self.there.received):
            content = webhook.verify(body, headers)
            if content["type"] == kind and about.items() <= content["data"].items():
                found.setdefault(headers["webhook-id"], content["data"])
        return list(found.values())

    def hears(self, kind: str, **about: Any) -> list[Any]:
        found: list[Any] = until(lambda: self.heard(kind, **about))
        return found

    def end(self) -> None:
        assert self.admin.call("DELETE", f"/v1/webhook-endpoints/{self.id}")[0] == 200


def found_lead(admin: Api, organization: str) -> Any:
    path = f"/v1/leads?organization_id={organization}&integration=ecommerce&external_event_id=order:c-1"
    return admin.call("GET", path)[1].get("lead_id")


def until(check: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + SECONDS_MAX
    while not (found := check()):
        assert time.monotonic() < deadline, "it does not arrive"
        time.sleep(0.2)
    return found


@pytest.fixture
def customer(stack: Stack, admin: Api, organization: str, user: str) -> Iterator[Customer]:
    with receiver() as there:
        made = Customer(admin, there, organization_id=organization, agents=[f"agent-{user}"])
        know_at_once(stack, *OF_WEBHOOKS)
        yield made
        made.end()


def test_what_happens_is_told_of_users_leads_and_questions(
    stack: Stack,
    admin: Api,
    customer: Customer,
    user: str,
    organization: str,
    post: Callable[..., Any],
) -> None:
    now = datetime.now(UTC)
    for number, days in enumerate((1, 0, 2), start=1):
        post(event(user, f"k{days}", (now - timedelta(days=days)).isoformat()))
        until(lambda number=number: len(customer.heard("points.changed", user_id=user)) == number)  # type: ignore[misc]
    extended = customer.heard("streak.extended", user_id=user)
    assert [each["current_streak"] for each in extended] == [1, 2, 3]
    profile = customer.heard("points.changed", user_id=user)[-1]["profile"]
    assert profile.items() - {("lapses_at", profile["lapses_at"])} <= admin.get(f"/v1/users/{user}").items()

    agent, person = Api(stack, f"agent-{user}", group="streakline/agents"), Api(stack, user, admin=False)
    asked = {"idempotency_key": "q", "type": "text", "prompt": "Why?", "required_responses": 1}
    question = agent.call("POST", "/v1/questions", asked)[1]["question_id"]
    answer = {"answer": "because", "confidence": 4, "response_time_ms": 2500}
    assert person.call("POST", f"/v1/questions/{question}/responses", answer)[0] == 201
    (closed,) = customer.hears("question.closed", question_id=question)
    assert (closed["status"], closed["agent_id"]) == ("CLOSED", f"agent-{user}")
    (earned, *_) = customer.hears("achievement.earned", user_id=user)
    assert earned["achievements"][earned["achievement"]] == earned["achieved_at"]

    yesterday = now.date() - timedelta(days=1)  # it is bought at noon, which may not have come today
    send(stack, organization, bought(yesterday, "11.77"))
    lead = until(partial(found_lead, admin, organization))
    (*_, updated) = customer.hears("lead.updated", lead_id=lead)
    assert updated["organization_id"] == organization
    assert updated["features"]["has_purchased"]

    before = len(customer.there.received)
    printed("webhook", "replay", "--endpoint", customer.id, "--user", user)
    until(lambda: len(customer.there.received) >= before + 7)
    assert [each["current_streak"] for each in customer.heard("streak.extended", user_id=user)] == [1, 2, 3]
