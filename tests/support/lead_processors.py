"""Leads whose events are in the tables, and the real processors of memory and features over them."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from adapters.leads.feature_store import FeatureStore, Topology
from adapters.leads.lead_event_store import LeadEventStore
from adapters.leads.memory_store import GroupMemory, MemoryStore
from adapters.leads.person_events import GroupEvents, PersonEvents
from adapters.platform.items import encode_item
from adapters.platform.tables import put_all
from processors.leads.features import FeatureProcessor
from processors.leads.lead_events import note_at_roots
from processors.leads.memory import MemoryProcessor
from rules.days import stamp, unstamp
from rules.leads.feature_items import FeatureItem, evaluate_features
from rules.leads.features import FEATURES, Input, shown_value
from rules.leads.lead_events import IDENTITY_TYPES, LeadEvent, announcement, to_item
from rules.leads.memory import campaign_contact, remembered_entries
from rules.leads.series import SERIES_INPUTS, build_state, decode_series, drop_old_dates
from tests.support.lead_event_strategies import PAYLOADS, START, TYPES, lead_event

READS = {"GetItem", "BatchGetItem", "Query", "Scan"}
WRITES = {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"}


class Crash(BaseException):
    """The process dies: nothing catches it."""


class Requests:
    """Counts a botocore client's requests, keeps those that update, and dies at one when told to.

    die_at: before (or, with `after`, behind) which write, counted from 1.
    """

    def __init__(self, client: Any) -> None:
        self.calls: Counter[str] = Counter()
        self.updates: list[dict[str, Any]] = []
        self.die_at, self.after, self.writes = 0, False, 0
        client.meta.events.register("before-parameter-build.dynamodb", self._before)
        client.meta.events.register("after-call.dynamodb", self._after)

    def _before(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        self.calls[model.name] += 1
        self.writes += model.name in WRITES
        if model.name == "UpdateItem":
            self.updates.append(params)
        if model.name in WRITES and self.writes == self.die_at and not self.after:
            raise Crash

    def _after(self, model: Any, **_: Any) -> None:
        if model.name in WRITES and self.writes == self.die_at and self.after:
            raise Crash

    def take(self) -> tuple[int, int]:
        """Return how many reads and writes there were, and start again."""
        told = sum(self.calls[each] for each in READS), sum(self.calls[each] for each in WRITES)
        self.calls.clear()
        self.updates.clear()
        self.writes, self.die_at = 0, 0
        return told


@dataclass
class Leads:
    """name: makes ids that no other test has."""

    client: Any
    name: str
    shards: int = 2
    now: datetime = START + timedelta(minutes=1)
    stored: list[LeadEvent] = field(default_factory=list)
    grace_days: int = 7

    def __post_init__(self) -> None:
        self.features = FeatureStore(self.client, "Feature", self.shards)
        self.memories = MemoryStore(self.client, "Memory")
        self.events = LeadEventStore(self.client, "Event")
        self.rows = GroupEvents(self.client, "GroupEvents")
        self.people = PersonEvents(self.events, self.rows, self.features)
        self.group = GroupMemory(self.memories, self.features, self.people)
        self.topology = Topology(self.client, "Feature", self.features)
        self.memory_processor = MemoryProcessor(self.topology, self.group)
        self.feature_processor = FeatureProcessor(
            self.features, self.topology, self.group, self.people, grace_days=self.grace_days
        )

    def leaf(self, which: str) -> str:
        return f"{self.name}-{which}"

    def event(
        self, number: int, event_type: str, at: datetime, which: str = "a", **payload: Any
    ) -> LeadEvent:
        return lead_event(number, event_type, at, self.leaf(which), **payload)

    def some(self, count: int, seed: int, which: Sequence[str] = ("a",), first: int = 0) -> list[LeadEvent]:
        """Events of all types, over two years."""
        chance, made = random.Random(seed), []
        for number in range(first, first + count):
            event_type = chance.choice(TYPES)
            at = START - timedelta(
                days=chance.choice((0, 1, 3, 5, 29, 40, 89, 91, 200, 400, 700)), seconds=number
            )
            payload = chance.choice(PAYLOADS[event_type])
            made.append(self.event(number, event_type, at, chance.choice(which), **payload))
        return made

    def store(self, events: Iterable[LeadEvent]) -> None:
        listed = list({each.id: each for each in events}.values())
        self.stored += listed
        put_all(self.client, "Event", [encode_item(to_item(each)) for each in listed])
        # What happens to a stored event before a processor hears of it.
        note_at_roots(listed, self.features, self.rows)

    def memory(self, event: LeadEvent) -> None:
        self.memory_processor.handle(message(event), self.now)

    def feature(self, event: LeadEvent) -> None:
        self.feature_processor.handle(message(event), self.now)

    def both(self, event: LeadEvent) -> None:
        self.memory(event)
        self.feature(event)

    def change(self, number: int, *groups: Sequence[str]) -> LeadEvent:
        """A stored leads_merged (one group) or leads_unmerged event; the first of each is its root."""
        listed = [
            {"root": self.leaf(each[0]), "leaves": [self.leaf(leaf) for leaf in each]} for each in groups
        ]
        kind = "leads_merged" if len(groups) == 1 else "leads_unmerged"
        at = START - timedelta(minutes=1)
        made = self.event(10_000 + number, kind, at, groups[0][0], change=number, groups=listed)
        self.store([made])
        return made

    def root(self, which: str = "a") -> FeatureItem:
        found = self.features.get(self.leaf(which))
        assert found
        return found

    def check(self, *which: str) -> None:
        """Assert that a group's features and memory are those computed from its events alone."""
        leaves = [self.leaf(each) for each in which]
        ours = [
            e for e in self.stored if e.lead_organization_id in leaves and e.event_type not in IDENTITY_TYPES
        ]
        assert {each.name: each for each in self.memories.all_of(leaves[0])} == remembered_entries(ours)
        self.check_features(*which)

    def check_features(self, *which: str) -> None:
        """Assert the same of the features alone."""
        leaves = [self.leaf(each) for each in which]
        ours = [
            e for e in self.stored if e.lead_organization_id in leaves and e.event_type not in IDENTITY_TYPES
        ]
        found = self.features.get(leaves[0])
        if not ours:
            assert found is None or not found.features
            return
        assert found and found.inputs is not None
        assert self.features.members(leaves[0], leaves) == set(leaves)
        assert not found.pending
        expected = {}
        contacts = [
            campaign_contact(e)
            for e in remembered_entries(ours).values()
            if e.memory_type == "campaign_contact"
        ]
        for each in FEATURES:
            as_of = unstamp(found.as_of[each.input])
            values = evaluate_features([each], build_state(ours, as_of), contacts, as_of, self.grace_days)
            expected[each.name] = shown_value(each, values[each.name])
        assert found.features == {name: value for name, value in expected.items() if value is not None}
        for input_ in SERIES_INPUTS:
            as_of = unstamp(found.as_of[input_])
            stored = (
                decode_series(found.inputs[input_])
                if input_ in found.inputs
                else build_state([], as_of)[input_]
            )
            built = build_state(ours, as_of)[input_]
            assert drop_old_dates(stored, input_, as_of) == built, input_
        assert (Input.CAMPAIGNS in found.inputs) == bool(contacts)


def message(event: LeadEvent) -> dict[str, Any]:
    return announcement({name: value for name, value in to_item(event).items() if value is not None})


def refresh(leads: Leads, as_of: Any, *which: str) -> None:
    asked = {"as_of": stamp(as_of), "leads": [leads.leaf(each) for each in which]}
    leads.feature_processor.handle({"refresh": asked}, max(leads.now, as_of))
