"""Leads whose features differ are rebuilt if lake and table hold the same events of them, and else told of."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.leads.feature_requests import FeatureQueue
from adapters.leads.lead_event_store import LeadEventStore
from adapters.platform.items import decode_item, encode_item
from analytics.leads.lead_repair import EVENT_COLUMNS, LeadRepair
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.statements import literal
from rules.days import stamp, unstamp
from rules.lake.entities import row_of
from rules.leads.lake_entities import LEAD_EVENTS
from rules.leads.lead_events import LeadEvent, to_item
from tests.support.engine import Engine
from tests.support.lead_event_strategies import START
from tests.support.lead_processors import Leads

NOW = START + timedelta(days=9)
TIMES = ("occurred_at", "received_at")
NUMBERS = ("amount_minor", "foreign_minor", "sentiment_milli")
COLUMNS = [*EVENT_COLUMNS, "received_at", "unreadable"]


class Desk:
    """A warehouse that has what it was told, and a queue."""

    def __init__(self, engine: Engine, folder: Path, leads: Leads, name: str) -> None:
        self.known: set[str] = set()
        self.leads, self.sqs = leads, engine.client("sqs")
        self.url = self.sqs.create_queue(QueueName=name)["QueueUrl"]
        self.warehouse = DuckWarehouse(folder / "warehouse.duckdb")
        kinds = dict.fromkeys(TIMES, "TIMESTAMP") | dict.fromkeys(NUMBERS, "BIGINT")
        columns = ", ".join(f"{each} {kinds.get(each, 'VARCHAR(2048)')}" for each in COLUMNS)
        self.warehouse.run(
            [
                *("CREATE SCHEMA facts", "CREATE SCHEMA dimensions"),
                f"CREATE TABLE facts.lead_events ({columns})",
                "CREATE TABLE dimensions.leads (lead_organization_id VARCHAR(128), root_id VARCHAR(128))",
            ]
        )

    def load(self, root: str, events: list[LeadEvent]) -> None:
        for leaf in {each.lead_organization_id for each in events} - self.known:
            self.warehouse.run([f"INSERT INTO dimensions.leads VALUES ({literal(leaf)}, {literal(root)})"])
            self.known.add(leaf)
        for each in events:
            row = row_of(LEAD_EVENTS, decode_item(encode_item(to_item(each))), NOW)
            row |= {name: unstamp(row[name]).replace(tzinfo=None) for name in TIMES}
            values = ", ".join(literal(row.get(name)) for name in COLUMNS)
            self.warehouse.run([f"INSERT INTO facts.lead_events VALUES ({values})"])

    def ask(self, lead: str, repair: bool = True) -> str:
        events = LeadEventStore(self.leads.client, "Event")
        made = LeadRepair(self.warehouse, events, FeatureQueue(self.sqs, self.url), repair)
        (told,) = made.ask([{"lead_organization_id": lead, "different": "tenure_days"}], NOW)
        return str(told["outcome"])

    def asked(self) -> list[Any]:
        found = self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10).get("Messages", [])
        return [json.loads(each["Body"])["rebuild"]["leads"] for each in found]


@pytest.fixture
def desk(engine: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Desk]:
    name = f"repair-{abs(hash(request.node.name))}"
    yield Desk(engine, tmp_path, Leads(engine.own_client("dynamodb"), name), name)


def history(desk: Desk, which: str = "ab") -> list[LeadEvent]:
    made = [
        desk.leads.event(
            1, "purchase_completed", START, "a", amount_minor=500, currency="USD", order_id="1", products=[]
        ),
        desk.leads.event(2, "message_received", START - timedelta(days=3), which[-1], sentiment_milli=5),
        desk.leads.event(3, "form_submitted", START - timedelta(days=1), "a"),
    ]
    desk.leads.store(made)
    return made


def test_a_lead_that_differs_is_asked_for_with_all_leaves(desk: Desk) -> None:
    lead = desk.leads.leaf("a")
    desk.load(lead, history(desk))
    assert desk.ask(lead, repair=False) == "a dry run"
    assert desk.asked() == []
    assert desk.ask(lead) == "asked for anew"
    assert desk.asked() == [[lead]]


def test_where_lake_and_table_hold_other_events_nothing_is_asked_for(desk: Desk) -> None:
    lead, made = desk.leads.leaf("a"), history(desk)
    desk.load(lead, made)
    forged = replace(made[0], payload={**made[0].payload, "amount_minor": 99_999})
    desk.leads.client.put_item(TableName="Event", Item=encode_item(to_item(forged)))
    told = "the lake has 1 events that the table lacks, and lacks 1 that the table has"
    assert desk.ask(lead) == told
    assert desk.asked() == []


def test_what_came_in_the_last_two_hours_is_in_flight(desk: Desk) -> None:
    lead, made = desk.leads.leaf("a"), history(desk)
    desk.load(lead, made)
    late = replace(desk.leads.event(5, "form_submitted", NOW, "a"), received_at=stamp(NOW))
    desk.leads.store([late])
    assert desk.ask(lead) == "asked for anew"
