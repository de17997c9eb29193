"""Outgoing webhooks of leads and closed questions, through the real handlers; and who hears of them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from standardwebhooks import Webhook

import processors.outgoing.notifications as telling
import processors.questions.notify as notify
from adapters import settings
from adapters.leads.feature_store import FeatureStore, Topology
from adapters.leads.lead_event_store import LeadEventStore
from adapters.outgoing.lane_store import LaneStore
from adapters.outgoing.outbox_store import LANE, LANE_SHARDS, LOG
from adapters.platform.items import encode_item
from adapters.privacy.stores import Clients, PrivacyTables, online_stores
from rules.leads.feature_items import Change
from rules.leads.lead_events import Group
from rules.privacy.erasures import Person
from rules.questions.questions import Question, QuestionStatus, QuestionType
from rules.questions.questions import to_item as question_to_item
from tests.integration.test_endpoints_api import CONTEXT, Desk, desk, there
from tests.integration.test_lead_event_store import new_event
from tests.support.hook_receiver import Receiver

__all__ = ["desk", "there"]
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
AT = "2026-03-10T12:00:00.000000Z"


@pytest.fixture
def told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk whose functions hear of leads and questions, too."""
    monkeypatch.setattr(notify._parts, "client", desk.services.__getitem__)
    monkeypatch.setattr("adapters.outgoing.endpoint_store.FRESH_SECONDS", -1.0)
    notify._parts.cache_clear()
    for table, keys in (
        ("RuleBooks", ("book", "version")),
        ("Event", ("lead_organization_id", "occurred_at#id")),
        ("Feature", ("lead_organization_id",)),
    ):
        for each in desk.dynamodb.scan(TableName=table)["Items"]:
            desk.dynamodb.delete_item(TableName=table, Key={name: each[name] for name in keys})
    yield desk
    notify._parts.cache_clear()


def heard(made: Any, there: Receiver) -> list[dict[str, Any]]:
    found = [Webhook(made["secret"]).verify(body, headers) for headers, body in there.received]
    there.received.clear()
    return found


def handed(handler: Any, *images: Any) -> None:
    """Hand records on, each of them twice, as streams do."""
    records = [
        {"eventName": "MODIFY", "dynamodb": {"NewImage": image, "SequenceNumber": str(place)}}
        for place, image in enumerate(images)
        for _ in range(2)
    ]
    assert handler({"Records": records}, CONTEXT) == {"batchItemFailures": []}


class Leads:
    """Two leads of acme: their events, features, and which of them are one."""

    def __init__(self, desk: Desk) -> None:
        self.dynamodb = desk.dynamodb
        self.features = FeatureStore(self.dynamodb, "Feature")
        events = LeadEventStore(self.dynamodb, "Event", "IdempotencyKeys")
        for lead in ("7", "9"):
            event = replace(new_event(root_id=lead), lead_organization_id=lead, organization_id="acme")
            events.put_new(event, "hash")

    def compute(self, lead: str, **features: Any) -> Any:
        read = self.features.home(lead, lead)
        self.features.write(read, Change(features, {}, {}, AT, None))
        return self.image(lead)

    def merge(self, absorbed: str, into: str) -> Any:
        Topology(self.dynamodb, "Feature", self.features).set(1, [Group(into, (into, absorbed))])
        return self.image(absorbed)

    def image(self, lead: str) -> Any:
        key = {"lead_organization_id": {"S": lead}}
        return self.dynamodb.get_item(TableName="Feature", Key=key, ConsistentRead=True)["Item"]


def test_the_endpoint_of_a_lead_s_organization_hears_of_it_and_no_other(told: Desk, there: Receiver) -> None:
    own = told.register(there, types=["lead.updated"])
    told.register(there, organization_id="globex", types=["lead.updated"])
    leads = Leads(told)
    first = leads.compute("7", orders_total=1)
    handed(telling.handler, first, leads.compute("7", orders_total=2), leads.compute("9", orders_total=1))
    found = heard(own, there)
    assert {each["type"] for each in found} == {"lead.updated"}
    by_lead = {lead: [each["data"] for each in found if each["data"]["lead_id"] == lead] for lead in "79"}
    assert [(each["number"], each["features"]) for each in by_lead["7"]] == [
        (1, {"orders_total": 1}),
        (2, {"orders_total": 2}),
    ]
    assert [each["number"] for each in by_lead["9"]] == [1]
    handed(telling.handler, leads.merge("9", "7"), leads.image("7"), first)
    (merged,) = heard(own, there)
    assert (merged["data"]["lead_id"], merged["data"]["merged_into"]) == ("9", "7")
    assert merged["data"]["features"] == {}, "the root has them"


def test_an_erased_lead_is_not_told_of_any_more(told: Desk, there: Receiver) -> None:
    told.register(there, types=["lead.updated"])
    leads = Leads(told)
    image = leads.compute("7", orders_total=1)
    for each in told.dynamodb.scan(TableName="Event")["Items"]:
        key = {name: each[name] for name in ("lead_organization_id", "occurred_at#id")}
        told.dynamodb.delete_item(TableName="Event", Key=key)
    handed(telling.handler, image)
    assert there.received == []
    assert told.dynamodb.scan(TableName="Notifications")["Items"] == []


def test_what_waits_of_an_erased_lead_is_not_sent_and_nothing_of_it_is_kept(
    told: Desk, there: Receiver
) -> None:
    own = told.register(there, types=["lead.updated"])
    there.answer = lambda _: 503
    leads = Leads(told)
    handed(telling.handler, leads.compute("7", orders_total=1), leads.compute("9", orders_total=1))
    assert there.received
    there.received.clear()
    clients = Clients(told.dynamodb, lambda: None, lambda: None, None)
    found = online_stores(clients, settings.read_settings(PrivacyTables), NOW)["Notifications"]
    person = Person("digest", organization="acme", leads=("7",))
    assert {each["place"]["S"] for each in found.find(person)} == {
        "state",
        f"{LOG}{1:015}",
        f"{LANE}{own['endpoint_id']}",
    }
    found.remove(found.find(person))
    there.answer = lambda _: 200
    for lane in filter(
        None,
        (LaneStore(told.dynamodb, "Notifications").get(f"lead/{lead}", own["endpoint_id"]) for lead in "79"),
    ):
        LaneStore(told.dynamodb, "Notifications").wait(lane, NOW - timedelta(days=9))
    for share in range(LANE_SHARDS):
        told.deliver({"endpoint_id": own["endpoint_id"], "share": share})
    assert {each["data"]["lead_id"] for each in heard(own, there)} == {"9"}
    assert found.find(person) == []


def test_where_nobody_is_told_of_leads_nothing_is_read_or_written_for_them(
    told: Desk, there: Receiver
) -> None:
    told.register(there, types=["points.changed"])
    image = Leads(told).compute("7", orders_total=1)
    handed(telling.handler, image)
    assert told.dynamodb.scan(TableName="Notifications")["Items"] == []


def question(status: QuestionStatus, number: int = 1) -> Any:
    asked = Question(
        *(f"{number:026}", "bot", QuestionType.TEXT, "Which?", (), (), "taste", 1, 1, status),
        *(
            AT,
            "2026-03-11T12:00:00.000000Z",
            2**40,
            "hash",
            "key",
            AT if status is QuestionStatus.CLOSED else None,
        ),
    )
    return encode_item(question_to_item(asked))


def test_whoever_named_the_agent_hears_of_its_closed_questions_once(told: Desk, there: Receiver) -> None:
    own = told.register(there, agents=["bot"])
    told.register(there, types=["question.closed", "streak.extended"])
    told.register(there, types=["question.closed"], agents=["robot"])
    handed(notify.handler, question(QuestionStatus.OPEN, 1), question(QuestionStatus.CLOSED, 1))
    handed(notify.handler, question(QuestionStatus.EXPIRED, 2), question(QuestionStatus.CLOSED, 1))
    found = heard(own, there)
    assert [(each["type"], each["data"]["question_id"][-1], each["data"]["status"]) for each in found] == [
        ("question.closed", "1", "CLOSED"),
        ("question.closed", "2", "EXPIRED"),
    ]
    for each in told.dynamodb.scan(TableName="Notifications")["Items"]:
        assert "expires_at" in each or each["place"]["S"] == "worker", (
            "what is told of questions is forgotten"
        )


def test_what_nobody_was_woken_for_goes_with_the_next_minute_s_schedule(told: Desk, there: Receiver) -> None:
    own = told.register(there, agents=["bot"])
    told.services["lambda"] = SimpleNamespace(invoke=lambda **_: None)  # the invocation is lost
    handed(notify.handler, question(QuestionStatus.CLOSED))
    handed(telling.handler, Leads(told).compute("7", orders_total=1))
    assert there.received == []
    told.services["lambda"] = told
    telling.handler({}, CONTEXT)
    assert {each["type"] for each in heard(own, there)} == {"lead.updated", "question.closed"}


def test_where_webhooks_are_off_a_closed_question_costs_no_read(
    told: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTGOING_WEBHOOKS", "false")
    del told.services["dynamodb"]
    notify._parts.cache_clear()
    handed(notify.handler, question(QuestionStatus.CLOSED))


def test_what_was_told_of_a_question_is_sent_again(told: Desk, there: Receiver) -> None:
    own = told.register(there, agents=["bot"])
    handed(notify.handler, question(QuestionStatus.CLOSED))
    (first,) = heard(own, there)
    asked = {"endpoint_id": own["endpoint_id"], "question_id": first["data"]["question_id"]}
    again: dict[str, Any] = {
        "Records": [{"messageId": "m", "body": json.dumps(asked)}],
        "streakline_redrive": True,
    }
    assert told.deliver(again) == {"batchItemFailures": []}
    assert heard(own, there) == [first]
    other = told.register(there, agents=["robot"])
    again["Records"][0]["body"] = json.dumps({**asked, "endpoint_id": other["endpoint_id"]})
    assert told.deliver(again) == {"batchItemFailures": []}
    assert there.received == [], "a replay shows nobody what is not its own"
