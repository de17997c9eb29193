"""CPU of a purchase's features, as the processor computes them, compared with pandas over the lead's events.

A data team would first write a DataFrame of the lead's events, masks and sums, for every event that arrives.
Ours reads the state beside the features, adds the event, evaluates the features that it affects, and writes
the state again.
Network and tables are left out on both sides. Requests an event are counted on an engine.
"""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd  # type: ignore[import-untyped]

from adapters.leads.feature_store import CountedEvents, FeatureRepair, FeatureStore
from adapters.leads.groups import GroupEvents, Topology
from adapters.leads.lead_event_store import LeadEventStore
from adapters.leads.memory_store import GroupMemory, MemoryStore
from adapters.leads.persons import PersonEvents
from adapters.platform.items import encode_item
from bench.figure import Figure
from processors.leads.features import FeatureProcessor
from rules.days import stamp
from rules.leads.feature_items import DECLARED, DIGEST, FeatureItem
from rules.leads.features import BY_NAME, shown_value
from rules.leads.lead_events import LeadEvent, announcement, to_item
from rules.leads.series import SERIES, build_state, contributions, encode_series
from tests.support.dynamodb_engine import running

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
SIZES = (5, 50, 500)
BUDGET = 0.1
READS = ("GetItem", "BatchGetItem", "Query")


def run() -> Iterator[Figure]:
    """Yield CPU compared with pandas, by the lead's number of events; then requests an event."""
    for size in SIZES:
        events = [_event(number, NOW - timedelta(hours=17 * (size - number))) for number in range(size + 1)]
        ours, theirs = _ours(events), _pandas(events)
        assert ours() == theirs(), "both compute the same"
        mine, pandas = _cpu(ours, 400), _cpu(theirs, 20)
        detail = f"{1e6 * mine:.0f} against {1e6 * pandas:.0f} us"
        yield Figure(f"Features of a purchase, lead of {size} events", mine / pandas, "<=", BUDGET, detail)
    yield from _requests()


def _cpu(compute: Callable[[], object], times: int) -> float:
    """Return the CPU seconds of one computation, the best of three rounds."""
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        for _ in range(times):
            compute()
        best = min(best, (time.process_time() - started) / times)
    return best


def _ours(events: list[LeadEvent]) -> Callable[[], dict[str, Any]]:
    """Return the processor's own decision about the last event, from the item as it was before."""
    processor = FeatureProcessor(*[None] * 6)  # type: ignore[arg-type]  # an event that is in order asks no store
    before, event = build_state(events[:-1], NOW), events[-1]
    inputs = {DECLARED: DIGEST} | {str(each): encode_series(before[each]) for each in SERIES}

    def compute() -> dict[str, Any]:
        # An item of its own, as for each event: what has been read of its state is kept in it.
        read = FeatureItem("lead", 7, {}, {}, stamp(NOW), inputs, NOW.date().isoformat())
        change = processor._change(read, event, contributions(event), NOW)
        assert change is not None
        return dict(change.features)

    return compute


def _pandas(events: list[LeadEvent]) -> Callable[[], dict[str, Any]]:
    """Return the same features, from the rows of all events."""
    rows = [(each.event_type, each.occurred_at, each.payload["amount_minor"]) for each in events]

    def compute() -> dict[str, Any]:
        frame = pd.DataFrame(rows, columns=["event_type", "occurred_at", "amount"])
        day = pd.to_datetime(frame["occurred_at"], format="%Y-%m-%dT%H:%M:%S.%fZ").dt.normalize()
        age = (pd.Timestamp(NOW.date()) - day).dt.days
        placed = frame["event_type"] == "purchase_completed"
        signed = frame["amount"].where(placed, -frame["amount"])
        values: dict[str, Any] = {"monetary_total": int(signed.sum())}
        for days in (30, 90, 365):
            values[f"monetary_{days}d"] = int(signed[age < days].sum())
            values[f"frequency_purchases_{days}d"] = int(placed[age < days].sum())
        orders = int(placed.sum())
        values["average_order_value"] = (2 * values["monetary_total"] + orders) // (2 * orders)
        values["days_since_last_purchase"] = int(age[placed].min())
        values["tenure_days"] = int(age[placed].max())
        values["has_purchased"] = bool(placed.any())
        values["recency_days"] = int(age[placed].min())
        return {name: shown_value(BY_NAME[name], value) for name, value in values.items()}

    return compute


def _event(number: int, at: datetime) -> LeadEvent:
    lead = "lead"
    payload = {"order_id": str(number), "amount_minor": 1000 + number, "currency": "USD"}
    names = ("org", lead, lead, "org/shop", "ecommerce", f"order:{number}", "purchase_completed")
    return LeadEvent(*names, stamp(at), stamp(at), payload)


def _requests() -> Iterator[Figure]:
    """Yield reads and writes for an event that comes in order, for a lead that has a state."""
    events = [_event(number, NOW + timedelta(seconds=number)) for number in range(21)]
    with running() as engine:
        dynamodb, calls = engine.client("dynamodb"), list[str]()
        store, rows = FeatureStore(dynamodb, "Feature", 4), GroupEvents(dynamodb, "GroupEvents")
        stored = PersonEvents(LeadEventStore(dynamodb, "Event"), rows, store)
        memory = GroupMemory(MemoryStore(dynamodb, "Memory"), store, stored)
        topology, counted = Topology(dynamodb, "Feature", store), CountedEvents(dynamodb, "IdempotencyKeys")
        mending = FeatureRepair(dynamodb, "Feature", store)
        processor = FeatureProcessor(store, topology, memory, stored, counted, mending)
        put = engine.client("dynamodb").put_item
        for place, event in enumerate(events):
            shape = {name: each for name, each in to_item(event).items() if each is not None}
            put(TableName="Event", Item=encode_item(shape))
            if place == 1:
                dynamodb.meta.events.register(
                    "before-call.dynamodb", lambda model, **_: calls.append(model.name)
                )
            processor.handle(announcement(shape), NOW + timedelta(minutes=1))
        arrived = len(events) - 1
        reads = sum(each in READS for each in calls)
        writes = sum(each == "UpdateItem" for each in calls)
    yield Figure("  DynamoDB reads a purchase", reads / arrived, "<=", 3, f"{reads} for {arrived} events")
    yield Figure("  DynamoDB writes a purchase", writes / arrived, "<=", 2, f"{writes} for {arrived} events")
