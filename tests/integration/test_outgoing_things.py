"""Outgoing webhooks of leads, through the real handlers; and who hears of them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from standardwebhooks import Webhook

import processors.outgoing.notifications as telling
from adapters import settings
from adapters.leads.feature_store import FeatureStore, Topology
from adapters.leads.lead_event_store import LeadEventStore
from adapters.outgoing.lane_store import LaneStore
from adapters.outgoing.outbox_store import LANE, LANE_SHARDS, LOG
from adapters.privacy.erasers import Clients
from adapters.privacy.stores import ErasureSettings, all_stores
from rules.leads.feature_items import Change
from rules.leads.lead_events import Group
from rules.privacy.erasures import Person
from tests.integration.test_endpoints_api import CONTEXT, Desk, desk, there
from tests.integration.test_lead_event_store import new_event
from tests.support.hook_receiver import Receiver

__all__ = ["desk", "there"]
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
AT = "2026-03-10T12:00:00.000000Z"


@pytest.fixture
def told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk whose functions hear of leads, too."""
    monkeypatch.setattr("adapters.outgoing.endpoint_store.FRESH_SECONDS", -1.0)
    for table, keys in (
        ("RuleBooks", ("book", "version")),
        ("Event", ("lead_organization_id", "occurred_at#id")),
        ("Feature", ("lead_organization_id",)),
    ):
        for each in desk.dynamodb.scan(TableName=table)["Items"]:
            desk.dynamodb.delete_item(TableName=table, Key={name: each[name] for name in keys})
    return desk


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
    clients = Clients(told.dynamodb, lambda: None, lambda: None)
    found = all_stores(clients, settings.read_settings(ErasureSettings), NOW)["Notifications"]
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
