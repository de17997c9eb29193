"""Items of features that are not as they were written are named and made anew; those that are right are left alone."""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.leads.feature_requests import FeatureQueue
from adapters.leads.lead_event_store import LeadEventStore
from adapters.platform.items import Item, decode_item, encode_item
from adapters.platform.objects import FolderObjects
from analytics.curation.curate import curate
from analytics.lake.layout import Partition
from analytics.leads.lead_items import GROUPS_DIFFER, NO_CHANGE, LeadItems
from analytics.leads.lead_repair import LeadRepair
from analytics.warehouse.build import build
from analytics.warehouse.ddl import prepare
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.load import Loader
from analytics.warehouse.models import ancestors, models
from rules.lake.entities import row_of
from rules.leads.lake_entities import LEAD_EVENTS, LEAD_FEATURES
from rules.leads.lead_events import to_item
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.lead_event_strategies import START
from tests.support.lead_processors import Leads
from tests.support.raw_lake import ARRIVED

QUALITY = "marts.lead_quality"
ANEW = {"outcome": "asked for anew"}


def warehouse_in(folder: Path, objects: FolderObjects) -> DuckWarehouse:
    return DuckWarehouse(folder / "w.duckdb", str(folder / "lake"), objects)


@dataclass
class Nights:
    """Leads, the lake that their writes come to, and the warehouse's part of a night. prepared: an empty one."""

    leads: Leads
    folder: Path
    prepared: Path
    sqs: Any
    url: str
    now: Any = START + timedelta(hours=4)
    published: dict[str, Item] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)  # ids of events that are in the lake

    def __post_init__(self) -> None:
        self.objects = FolderObjects(self.folder / "lake")
        shutil.copy(self.prepared, self.folder / "w.duckdb")
        self.warehouse = warehouse_in(self.folder, self.objects)

    def stored(self) -> dict[str, Item]:
        found = self.leads.client.scan(TableName="Feature", ConsistentRead=True)["Items"]
        return {name: each for each in found if (name := each[ID]["S"]).startswith(f"{self.leads.name}-")}

    def publish(self) -> None:
        """Bring what was written into lake and warehouse."""
        changed = [each for name, each in self.stored().items() if self.published.get(name) != each]
        self.published = self.stored()
        rows = [(LEAD_FEATURES, row_of(LEAD_FEATURES, decode_item(each), self.now)) for each in changed]
        rows += [
            (LEAD_EVENTS, row_of(LEAD_EVENTS, decode_item(encode_item(to_item(each))), self.now))
            for each in self.leads.stored
            if each.id not in self.told
        ]
        self.told |= {each.id for each in self.leads.stored}
        tasks = {Partition(entity.name, row["dt"], row["hour"]) for entity, row in rows}
        for task in tasks:
            own = [row for entity, row in rows if Partition(entity.name, row["dt"], row["hour"]) == task]
            key = f"raw/{task.entity}/arrived={ARRIVED}/dt={task.dt}/hour={task.hour}/{self.now:%d%H}"
            self.objects.put(key, "\n".join(map(json.dumps, own)).encode())
            curate(self.objects, task)
        known = models()
        Loader(self.warehouse, self.objects, str(self.folder / "lake"), "").load("run", tasks)
        build(self.warehouse, {QUALITY, *(each.name for each in ancestors(known[QUALITY], known))})

    def compared(self, day: str) -> None:
        self.objects.put("state/leads_compared.json", json.dumps({"compared_on": day}).encode())

    def night(self, repair: bool = True) -> dict[str, dict[str, Any]]:
        """Compare all leads, and do what is asked for; returns what was told, by the leads' short names."""
        self.compared("2025-01-01")  # so it is everybody's turn
        events = LeadEventStore(self.leads.client, "Event")
        items = LeadItems(self.objects, self.warehouse, self.leads.features, events)
        asking = LeadRepair(self.warehouse, events, FeatureQueue(self.sqs, self.url), repair, items)
        told = asking.ask([], self.now + timedelta(hours=3))
        self.now += timedelta(days=1)
        asked = self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10).get("Messages", [])
        for each in asked:
            self.leads.feature_processor.handle(json.loads(each["Body"]), self.now)
            self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=each["ReceiptHandle"])
        return {each.pop("lead").rpartition("-")[2]: each for each in told}


ID = "lead_organization_id"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    prepare(warehouse_in(folder, FolderObjects(folder / "lake")))
    return folder / "w.duckdb"


@pytest.fixture
def nights(
    engine: Engine, tmp_path: Path, prepared: Path, request: pytest.FixtureRequest
) -> Iterator[Nights]:
    name, sqs = f"items{abs(hash(request.node.name))}", engine.client("sqs")
    leads = Leads(engine.own_client("dynamodb"), name)
    events = leads.some(30, 5, "abef")
    leads.store(events)
    for each in (*events, leads.change(1, "ef")):
        leads.feature(each)
    made = Nights(leads, tmp_path, prepared, sqs, sqs.create_queue(QueueName=name)["QueueUrl"])
    with made.warehouse.kept_open():
        made.publish()
        yield made


def put(nights: Nights, which: str, **changes: Any) -> None:
    """Write a root's item by hand, past its stream."""
    whole = nights.published[nights.leads.leaf(which)] | changes
    nights.leads.client.put_item(TableName="Feature", Item=whole)


def number_of(nights: Nights, which: str) -> int:
    return int(nights.published[nights.leads.leaf(which)]["version"]["N"])


def lose(nights: Nights, which: str) -> None:
    key = {ID: {"S": nights.leads.leaf(which)}}
    nights.leads.client.delete_item(TableName="Feature", Key=key)


Damage = Callable[[Nights, str], None]
# Of several leads in one night, each in another way: what is done to whom, and what is named of that.
DAMAGE: list[dict[str, tuple[Damage, list[str]]]] = [
    {
        "e": (lose, ["item"]),
        "a": (lambda all_, lead: put(all_, lead, version={"N": str(number_of(all_, lead) - 9)}), ["version"]),
        "b": (lambda all_, lead: put(all_, lead, version={"BOOL": True}), ["item"]),
    },
    {
        # A stranger is its leaf.
        "e": (lambda all_, lead: put(all_, lead, pending={"L": [{"S": all_.leads.leaf("b")}]}), ["pending"]),
        "a": (lambda all_, lead: put(all_, lead, active_on={"S": "2020-01-01"}), ["active_on"]),
    },
    {
        "e": (
            lambda all_, lead: put(all_, lead, inputs=all_.published[all_.leads.leaf("a")]["inputs"]),
            ["inputs"],
        ),
        "b": (
            lambda all_, lead: put(
                all_,
                lead,
                features={
                    "M": all_.published[all_.leads.leaf(lead)]["features"]["M"]
                    | {"recency_days": {"N": "77"}}
                },
            ),
            ["recency_days"],
        ),
    },
]
GROUP = {"a": "a", "b": "b", "e": "ef"}


def test_an_item_that_nobody_wrote_so_is_named_and_made_anew(nights: Nights) -> None:
    def others() -> dict[str, Item]:
        return {name: each for name, each in nights.stored().items() if name[-1] not in damage}

    assert nights.night() == {}
    for damage in DAMAGE:
        for lead, (change, _) in damage.items():
            change(nights, lead)
        right, named = others(), {lead: {"features": names} for lead, (_, names) in damage.items()}
        dry = nights.night(repair=False)
        assert dry == {lead: each | {"outcome": "a dry run"} for lead, each in named.items()}
        assert nights.night() == {lead: each | ANEW for lead, each in named.items()}
        assert others() == right
        for lead in damage:
            nights.leads.check_features(*GROUP[lead])
            assert int(nights.stored()[nights.leads.leaf(lead)]["version"]["N"]) > number_of(nights, lead)
        nights.publish()
        assert nights.night() == {}, damage


def test_whose_leaf_a_lead_is_does_not_follow_from_events_and_is_left_alone(nights: Nights) -> None:
    lose(nights, "f")
    put(nights, "a", merged_into={"S": nights.leads.leaf("b")})
    put(nights, "b", merged_into={"S": nights.leads.leaf("e")}, version={"N": "5"})
    before = nights.stored()
    found = nights.night()
    assert found["b"] == {"features": ["version", "merged_into"], "outcome": GROUPS_DIFFER}
    assert found["f"] == {"features": ["item"], "outcome": GROUPS_DIFFER}
    assert found["a"] == {"features": ["merged_into"], "outcome": GROUPS_DIFFER}
    assert nights.stored() == before


# Whose leaf a lead is was changed by hand, and published: the item and its row in the lake are the same. Of several
# leads in one night.
REGROUPED: list[dict[str, Callable[[Nights], dict[str, Any]]]] = [
    {
        # A leaf is another's, one is as an older change left it, and a root was moved by a change that never was.
        "f": lambda all_: {"merged_into": {"S": all_.leads.leaf("b")}},
        "d": lambda all_: {"merged_into": {"S": all_.leads.leaf("a")}, "topology": {"N": "2"}},
        "e": lambda _: {"topology": {"N": "999"}},
    },
    {
        # A root is somebody's leaf, and a leaf is its own root.
        "a": lambda all_: {"merged_into": {"S": all_.leads.leaf("b")}},
        "f": lambda _: {"merged_into": None},
    },
]


def test_a_group_that_no_change_of_identity_made_is_named_and_left_alone(nights: Nights) -> None:
    for number, group in ((2, "ad"), (3, "bd")):
        nights.leads.both(nights.leads.change(number, group))
    nights.publish()
    assert nights.night() == {}
    for changes in REGROUPED[: effort(1, soak=2)]:
        right = {lead: nights.published[nights.leads.leaf(lead)] for lead in changes}
        for lead, change in changes.items():
            put_next(nights, lead, right[lead] | change(nights))
        nights.publish()
        before = nights.stored()
        assert nights.night() == {
            lead: {"features": ["merged_into"], "outcome": NO_CHANGE} for lead in changes
        }
        assert nights.stored() == before
        for lead, each in right.items():
            put_next(nights, lead, each)


def put_next(nights: Nights, which: str, item: dict[str, Any]) -> None:
    """Write a lead's item as its next version, without what is None."""
    raised = item | {"version": {"N": str(number_of(nights, which) + 1)}}
    new = {name: each for name, each in raised.items() if each is not None}
    nights.leads.client.put_item(TableName="Feature", Item=new)


def test_a_change_that_comes_later_than_what_it_made_is_in_flight(nights: Nights) -> None:
    nights.now += timedelta(days=3)
    nights.leads.both(nights.leads.change(2, "ad"))
    change = nights.leads.stored.pop()
    nights.publish()
    nights.now -= timedelta(hours=2)  # of the hours until the night
    assert nights.night() == {}
    assert nights.night() == {
        each: {"features": ["merged_into"], "outcome": NO_CHANGE} for each in ("a", "d")
    }
    nights.leads.stored.append(change)
    nights.publish()
    assert nights.night() == {}


def test_a_change_that_is_too_old_for_the_lake_is_no_reason_to_name_anybody(nights: Nights) -> None:
    nights.leads.both(nights.leads.change(2, "ad"))
    nights.publish()
    for number in (1, 2):
        nights.warehouse.run([f"DELETE FROM lake.lead_events WHERE change_number = {number}"])
        nights.warehouse.run(["CHECKPOINT"])
        assert nights.night() == {}


def test_what_is_newer_than_the_lake_is_in_flight(nights: Nights) -> None:
    nights.leads.both(event := nights.leads.event(77, "form_submitted", START, "a"))
    nights.leads.store([event])
    nights.leads.both(event)
    assert nights.night() == {}


def test_each_lead_has_its_turn_within_four_weeks(nights: Nights) -> None:
    nights.night()
    nights.objects.delete(["state/leads_compared.json"])  # as in a deployment that has compared none yet
    lose(nights, "e")
    events = LeadEventStore(nights.leads.client, "Event")
    items = LeadItems(nights.objects, nights.warehouse, nights.leads.features, events)
    named = []
    for day in (1, *range(4, 29, 4)):  # a night makes good those before it that were left out
        now = START.replace(month=2, day=1) + timedelta(days=day)
        named += [each.lead for each in items.wrong_items(now)]
        items.note_compared(now)
    assert named == [nights.leads.leaf("e")]
