"""An event of an external id is stored once, whoever sends it how often and at the same time."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from adapters.leads.lead_event_store import EventPage, LeadEventStore, StoreOutcome, event_item
from adapters.leads.lead_queue import ITEM_BYTES_MAX, LeadPayloads
from adapters.platform.items import item_bytes
from adapters.platform.tables import Unprocessed
from rules.days import key_of_stamp
from rules.leads.lead_events import LeadEvent, body_hash
from tests.support.engine import Engine
from tests.unit.leads.test_lead_announcements import EVENT


def new_event(**more: Any) -> LeadEvent:
    return replace(
        EVENT, lead_organization_id=f"leaf-{uuid4()}", external_event_id=f"order:{uuid4()}", **more
    )


@pytest.fixture(scope="session")
def lead_store(engine: Engine) -> LeadEventStore:
    return LeadEventStore(engine.own_client("dynamodb"), "Event", "IdempotencyKeys")


@pytest.fixture
def requests(lead_store: LeadEventStore) -> Iterator[list[str]]:
    """The names of the requests that are sent."""
    sent: list[str] = []
    events = lead_store._dynamodb.meta.events
    note = lambda model, **_: sent.append(model.name)  # noqa: E731
    events.register("before-call.dynamodb", note)
    yield sent
    events.unregister("before-call.dynamodb", note)


def test_a_second_time_changes_nothing_and_costs_one_request(
    lead_store: LeadEventStore, requests: list[str]
) -> None:
    event = new_event()
    assert lead_store.put_new(event, "a") is StoreOutcome.STORED
    later = replace(event, received_at="2026-03-11T00:00:00.000000Z", lead_organization_id="leaf-other")
    assert lead_store.put_new(later, "a") is StoreOutcome.DUPLICATE
    assert lead_store.put_new(later, "b") is StoreOutcome.CONFLICT
    assert requests == ["TransactWriteItems"] * 3
    assert list(lead_store.of_leaves([event.lead_organization_id])) == [event]
    assert list(lead_store.of_leaves(["leaf-other"])) == []


def test_a_claim_is_kept_for_good(lead_store: LeadEventStore, engine: Engine) -> None:
    event = new_event()
    lead_store.put_new(event, "a")
    key = {
        "user_id": {"S": f"{event.source}#{event.external_event_id}"},
        "idempotency_key": {"S": "lead-event"},
    }
    claim = engine.client("dynamodb").get_item(TableName="IdempotencyKeys", Key=key)["Item"]
    assert set(claim) == {"user_id", "idempotency_key", "body_hash", "target", "created_at"}
    assert (
        claim["target"]["S"] == f"{event.lead_organization_id}#{key_of_stamp(event.occurred_at)}#{event.id}"
    )


@pytest.mark.parametrize("bodies", [1, 32])
def test_32_at_once(lead_store: LeadEventStore, bodies: int) -> None:
    event, barrier = new_event(), Barrier(32)
    leaves = [f"{event.lead_organization_id}-{number}" for number in range(32)]

    def put(number: int) -> StoreOutcome:
        barrier.wait()
        return lead_store.put_new(
            replace(event, lead_organization_id=leaves[number]), body_hash({"n": number % bodies})
        )

    with ThreadPoolExecutor(32) as threads:
        outcomes = Counter(threads.map(put, range(32)))
    others = StoreOutcome.DUPLICATE if bodies == 1 else StoreOutcome.CONFLICT
    assert outcomes == {StoreOutcome.STORED: 1, others: 31}
    assert len(list(lead_store.of_leaves(leaves))) == 1


class Refusing:
    """Refuses transactions for the given reasons, one a call, then takes them."""

    class exceptions:  # noqa: N801 (as botocore names it)
        class TransactionCanceledException(ClientError):
            pass

    def __init__(self, *codes: str) -> None:
        self.codes = list(codes)
        self.calls = 0

    def transact_write_items(self, **_: Any) -> None:
        self.calls += 1
        if self.codes:
            error = self.exceptions.TransactionCanceledException({}, "TransactWriteItems")
            error.response["CancellationReasons"] = [{"Code": self.codes.pop(0)}, {"Code": "None"}]
            raise error


def test_what_passes_is_tried_again_and_what_does_not_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.platform.tables.pauses", range)
    busy = Refusing("TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded")
    assert LeadEventStore(busy, "e", "c").put_new(EVENT, "a") is StoreOutcome.STORED
    assert busy.calls == 4
    with pytest.raises(Unprocessed):
        LeadEventStore(Refusing(*["TransactionConflict"] * 99), "e", "c").put_new(EVENT, "a")
    with pytest.raises(ClientError):
        LeadEventStore(Refusing("ValidationError"), "e", "c").put_new(EVENT, "a")


def test_an_event_without_a_claim_is_not_written_over(lead_store: LeadEventStore, engine: Engine) -> None:
    event = new_event()
    engine.client("dynamodb").put_item(TableName="Event", Item=event_item(event))
    assert lead_store.put_new(replace(event, payload={}), "a") is StoreOutcome.CONFLICT
    assert list(lead_store.of_leaves([event.lead_organization_id])) == [event]


def test_pages_run_over_all_leaves_newest_first(lead_store: LeadEventStore) -> None:
    leaves = [f"leaf-{uuid4()}" for _ in range(3)]
    for number in range(12):
        at = f"2026-03-10T05:00:{number // 2:02}.000000Z"
        event = replace(new_event(occurred_at=at), lead_organization_id=leaves[number % 3])
        lead_store.put_new(event, "a")
    seen: list[str] = []
    until = "~"
    while rows := lead_store.newest(leaves, EventPage("", "0", until, 5)):
        seen += [row["occurred_at#id"] for row in rows]
        until = seen[-1]
    assert seen == sorted(seen, reverse=True)
    assert len(set(seen)) == 12
    within = lead_store.newest(leaves, EventPage("", "2026-03-10T05:00:01", "2026-03-10T05:00:03", 50))
    assert {row["occurred_at"][17:19] for row in within} == {"01", "02"}


def test_a_raw_payload_stays_while_the_item_is_under_1_kb(engine: Engine) -> None:
    s3 = engine.client("s3")
    payloads = LeadPayloads(lambda: s3, "payloads")
    event = new_event(raw_payload=None)
    small = payloads.with_raw(event, {"é": "x" * 100}, "d")
    assert (small.raw_payload, small.raw_payload_ref) == ('{"é":"' + "x" * 100 + '"}', None)
    room = ITEM_BYTES_MAX - item_bytes(event_item(replace(event, raw_payload="")))
    just = payloads.with_raw(event, "x" * (room - 2), "d")
    assert just.raw_payload and item_bytes(event_item(just)) == ITEM_BYTES_MAX
    moved = payloads.with_raw(event, "x" * (room - 1), "d")
    assert moved.raw_payload is None
    assert moved.raw_payload_ref == f"s3://payloads/leads/{event.id}/d.json"
    assert item_bytes(event_item(moved)) <= ITEM_BYTES_MAX
    kept = s3.get_object(Bucket="payloads", Key=f"leads/{event.id}/d.json")["Body"].read()
    assert kept == b'"' + b"x" * (room - 1) + b'"'
