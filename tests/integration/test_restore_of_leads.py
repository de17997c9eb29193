"""The tables of leads are lost, and filled again from the lake: features, memory (rule 21)."""

import json
import random
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from adapters.leads.lead_event_store import LeadEventStore, StoreOutcome
from adapters.platform.item_tables import ItemTable
from adapters.platform.items import decode_item
from adapters.platform.objects import FolderObjects
from adapters.privacy.tombstones import NO_ERASURES
from analytics.curation.curate import curate
from analytics.lake.arrow import arrow_schema
from analytics.lake.curated_files import parquet_bytes
from analytics.lake.layout import Partition
from analytics.leads.restore import LeadEventsRestorer, event_rows
from analytics.restore.restorer import RestoreReport
from analytics.restore.user_rows import LakeBefore
from processors.leads.lead_events import note_at_roots
from rules.days import unstamp
from rules.lake.entities import ENTITIES, Entity, row_of
from rules.lake.table_items import APART
from rules.leads.lake_entities import LEAD_EVENTS
from rules.leads.lead_events import SORT_KEY, from_item
from rules.privacy.tombstones import Tombstone, lead_subject
from rules.smoke_names import smoke_name
from tests.support.dying import Dying, Killed
from tests.support.effort import effort
from tests.support.engine import Engine, running
from tests.support.lead_processors import Leads
from tests.support.raw_lake import put_raw
from tests.support.restore_drill import keys_of

TABLES = ("Event", "Memory", "Feature", "GroupEvents", "IdempotencyKeys")
WHICH = ("a", "b", "c", "d")
SEEDS = range(effort(1, soak=40))


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running() as started:
        yield started


class Gone:
    """Knows one lead that was erased."""

    def __init__(self, lead: str, lifted_at: str = "") -> None:
        self.subject, self.tombstone = lead_subject(lead), Tombstone("2026-01-01", "e", lifted_at)

    def of(self, subject: str) -> Tombstone | None:
        return self.tombstone if subject == self.subject else None

    def forbids(self, subject: str, happened_at: str) -> bool:
        return subject == self.subject and self.tombstone.forbids(happened_at)


class Lost:
    """Tables, the lake that was made of them, and what brings them back."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.dynamodb, self.objects = engine.client("dynamodb"), FolderObjects(folder)
        self.lose()

    def items(self, table: str) -> list[Any]:
        pages = self.dynamodb.get_paginator("scan").paginate(TableName=table)
        return sorted(
            (each for page in pages for each in page["Items"]), key=partial(json.dumps, sort_keys=True)
        )

    def lose(self, *tables: str) -> None:
        for table in tables or TABLES:
            for each in self.items(table):
                key = {name: each[name] for name in keys_of(table)}
                self.dynamodb.delete_item(TableName=table, Key=key)

    def publish(self, table: str, entity: Entity) -> None:
        arrived, places = datetime.now(UTC), defaultdict[Partition, list[Any]](list)
        for each in self.items(table):
            row = row_of(entity, decode_item(each), arrived)
            places[Partition(entity.name, row["dt"], row["hour"])].append(row)
        for place, rows in places.items():
            put_raw(self.objects, uuid.uuid4().hex, rows, place)
            curate(self.objects, place)

    def restore(
        self, client: Any = None, erased: Any = NO_ERASURES, until: datetime | None = None, **more: Any
    ) -> RestoreReport:
        now, told = datetime.now(UTC), RestoreReport()
        lake = LakeBefore(self.objects, until or now + timedelta(days=1), now)
        tables = {
            name: ItemTable(client or self.dynamodb, name, keys_of(name))
            for name in ("Event", "IdempotencyKeys")
        }
        LeadEventsRestorer(lake, tables, erased, **more).run(told)
        return told


@pytest.fixture
def lost(engine: Engine, tmp_path: Path) -> Lost:
    return Lost(engine, tmp_path)


def town(lost: Lost, seed: int) -> Leads:
    """Leads with two years of events, two of them merged, others merged and parted; all in the lake."""
    leads, chance = Leads(lost.dynamodb, f"town{seed}-{uuid.uuid4().hex[:6]}"), random.Random(seed)
    events = leads.some(24, seed, WHICH)
    leads.store(events[:15])
    changes = [leads.change(1, ("a", "b")), leads.change(2, ("c", "d")), leads.change(3, ("c",), ("d",))]
    leads.store(events[15:])
    for each in sorted([*events, *changes], key=lambda _: chance.random()):
        note_at_roots([each], leads.features, leads.rows)
        leads.both(each)
    leads.check("a", "b")
    lost.publish("Event", LEAD_EVENTS)
    return leads


def announced(lost: Lost, leads: Leads, chance: random.Random) -> None:
    """What the stream of the table Event leads to, in any order, some of it twice."""
    events = [from_item(decode_item(each)) for each in lost.items("Event")]
    for each in sorted([*events, *events[::3]], key=lambda _: chance.random()):
        note_at_roots([each], leads.features, leads.rows)
        leads.both(each)


def shown(leads: Leads) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for which in WHICH:
        lead = leads.features.get(leads.leaf(which))
        found[which] = lead and (lead.features, lead.merged_into), leads.memories.all_of(leads.leaf(which))
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_leads_come_back_with_features_memory_and_who_is_one_with_whom(lost: Lost, seed: int) -> None:
    leads = town(lost, seed)
    before, events = shown(leads), lost.items("Event")
    lost.lose()
    told = lost.restore()
    assert (told.others["lead_events"], told.changes["Event"], told.lacks) == (len(events), len(events), [])
    assert lost.items("Event") == events
    announced(lost, leads, random.Random(seed))
    for which in (("a", "b"), ("c",), ("d",)):
        leads.check(*which)
    assert shown(leads) == before
    assert not lost.restore().changes.total()


def test_what_is_there_stays_and_killed_anywhere_it_goes_on(lost: Lost) -> None:
    town(lost, 5)
    lost.lose("IdempotencyKeys", "Memory", "Feature", "GroupEvents")
    (first, *_), whole = lost.items("Event"), lost.items("Event")
    words = first | {"raw_payload": {"S": "{}"}}
    lost.dynamodb.put_item(TableName="Event", Item=words)
    lost.restore()
    assert words in lost.items("Event")
    claims = lost.items("IdempotencyKeys")
    for at in range(1, 40, effort(25, soak=1)):
        lost.lose()
        with suppress(Killed):
            lost.restore(client=Dying(lost.dynamodb, at, ("dies before", "dies after")[at % 2]))
        lost.restore()
        assert (lost.items("Event"), lost.items("IdempotencyKeys")) == (whole, claims)


def test_an_old_event_stays_a_duplicate_and_an_order_that_was_known_is_kept_as_a_conflict(lost: Lost) -> None:
    leads = town(lost, 6)
    lost.lose()
    lost.restore()
    store = LeadEventStore(lost.dynamodb, "Event", "IdempotencyKeys")
    for each in leads.stored[:10]:
        assert store.put_new(each, "whatever it was") is StoreOutcome.DUPLICATE
    new = leads.event(77_777, "page_viewed", leads.now, "a")
    assert store.put_new(new, "h") is StoreOutcome.STORED
    assert store.put_new(new, "other") is StoreOutcome.CONFLICT


def test_an_erased_lead_does_not_come_back_and_who_came_anew_has_no_past(lost: Lost) -> None:
    leads = town(lost, 7)
    gone = leads.leaf("d")
    lost.lose()
    told = lost.restore(erased=Gone(gone))
    assert told.others["erased_lead_events"] > 0
    assert gone not in repr(lost.items("Event"))
    assert lost.items("Event")
    lost.lose()
    lifted = sorted(each.occurred_at for each in leads.stored if each.lead_organization_id == gone)[3]
    lost.restore(erased=Gone(gone, lifted))
    left = [from_item(decode_item(each)) for each in lost.items("Event")]
    theirs = [each.occurred_at for each in left if each.lead_organization_id == gone]
    assert theirs
    assert min(theirs) >= lifted


def test_before_an_instant(lost: Lost) -> None:
    leads = town(lost, 8)
    lost.lose()
    until = sorted(unstamp(each.received_at) for each in leads.stored)[15].replace(microsecond=0)
    lost.restore(until=until)
    wanted = {each.sort_key for each in leads.stored if unstamp(each.received_at) < until}
    assert {decode_item(each)[SORT_KEY] for each in lost.items("Event")} == wanted
    lost.lose()
    lost.restore(keep=("Event",))
    assert lost.items("Event") == []


def test_what_a_smoke_test_has_made_does_not_come_back(tmp_path: Path) -> None:
    """It was deleted after the test, without tombstones, and the lake keeps its rows."""
    objects, at = FolderObjects(tmp_path), datetime(2026, 3, 1, 5, tzinfo=UTC)
    smoke = smoke_name(7)
    names = (smoke, f"{smoke}-kinesis", "smoke-free", "ann")
    rows: dict[str, Any] = {
        "ledger": [{"account_id": name, "created_at": at, "seq": 0} for name in names],
        "events": [{"user_id": name, "event_id": "e", "created_at": at, "version": "0"} for name in names],
        "streaks": [{"user_id": name, "updated_at": at, "version": 1, "pauses": ""} for name in names],
        "table_items": [
            {
                "user_id": name,
                "store": store,
                "place": f'["{name}"]',
                "version": "1",
                "changed_at": at,
                "item": '{"x": 1}',
            }
            for name in names
            for store in ("Rewards", *APART)
        ],
        "lead_events": [
            {"organization_id": name, "source": "s", "external_event_id": name, "received_at": at}
            for name in names
        ],
    }
    for entity, listed in rows.items():
        table = pa.Table.from_pylist(listed, arrow_schema(ENTITIES[entity]))
        objects.put(f"curated/{entity}/dt=2026-03-01/day.parquet", parquet_bytes(table))
    lake = LakeBefore(objects, at + timedelta(days=1), at + timedelta(days=1))
    assert [(each.user_id, len(each.events), list(each.items)) for each in lake.users()] == [
        ("ann", 1, ["Rewards"]),
        ("smoke-free", 1, ["Rewards"]),
    ]
    others = {"ann", "smoke-free"}
    assert {row["organization_id"] for row in event_rows(lake)} == others
