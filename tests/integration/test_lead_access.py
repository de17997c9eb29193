"""Whose token reaches which leads, through the real handler: another organization's are as if not there."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl
from uuid import uuid4

import pytest

from adapters.leads.lead_event_store import LeadEventStore
from ingest.leads import leads_api
from rules.leads.lead_events import Group
from tests.integration.test_lead_event_store import new_event
from tests.integration.test_lead_views import get, put_event
from tests.support.engine import Engine
from tests.support.http_requests import called
from tests.support.lead_processors import Leads
from tests.support.lead_requests import context

ACME, OTHER = "streakline/leads/acme", "streakline/leads/other streakline/leads streakline/leads/ac"


@pytest.mark.parametrize("what", ["events", "memory", "features"])
def test_another_organization_s_lead_is_as_unknown_as_one_that_is_not_there(
    what: str, served: Engine
) -> None:
    lead, root = str(uuid4()), str(uuid4())
    put_event(served, lead)
    put_event(served, root)
    Leads(served.own_client("dynamodb"), "").topology.set(1, [Group(root, (root, lead))])
    unknown = get(f"{uuid4()}/{what}", scope=OTHER)
    assert unknown[0] == 404
    for known in (lead, root):
        assert get(f"{known}/{what}", scope=ACME)[0] == 200
        assert get(f"{known}/{what}", scope=OTHER) == unknown


def test_another_organization_s_event_is_not_found(served: Engine) -> None:
    event = replace(new_event(), source="acme/shop")
    LeadEventStore(served.client("dynamodb"), "Event", "IdempotencyKeys").put_new(event, "a")
    wanted = f"organization_id=acme&integration=shop&external_event_id={event.external_event_id}"
    assert find(wanted, ACME) == (200, {"lead_id": event.lead_organization_id})
    assert find(wanted, OTHER) == find(wanted.replace("order:", "none:"), ACME)


def find(query: str, scope: str) -> tuple[int, Any]:
    more: dict[str, Any] = {
        "requestContext": context("GET", "/v1/leads", scope),
        "queryStringParameters": dict(parse_qsl(query)),
    }
    answer = called(leads_api.handler, "GET", "/v1/leads", **more)
    return answer["statusCode"], json.loads(answer["body"])


def test_a_caller_undoes_changes_of_its_own_organizations_alone(served: Engine) -> None:
    number = str(uuid4().int % 10**15 + 1)
    change = replace(new_event(), source="acme/identity", external_event_id=number)
    LeadEventStore(served.client("dynamodb"), "Event", "IdempotencyKeys").put_new(change, "a")
    sqs = served.client("sqs")
    sqs.purge_queue(QueueUrl=served.queue_url)

    def undo(scope: str, **more: str) -> int:
        path = f"/v1/leads/changes/{number}/reversal"
        event: dict[str, Any] = {"body": json.dumps({"reason": "two people", **more})}
        event["requestContext"] = context("POST", path, scope)
        return int(called(leads_api.handler, "POST", path, **event)["statusCode"])

    assert undo(OTHER) == undo(OTHER, organization_id="acme") == 404
    assert undo(ACME, organization_id="other") == 404
    assert "Messages" not in sqs.receive_message(QueueUrl=served.queue_url)
    assert undo(f"{OTHER} {ACME}") == 202
    (message,) = sqs.receive_message(QueueUrl=served.queue_url)["Messages"]
    assert json.loads(message["Body"])["organization_id"] == "acme"
