"""Every stored event is announced, or comes again, or is kept with its reason; in as few calls as SNS allows."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from botocore.exceptions import EndpointConnectionError

from adapters.leads.identity_store import IdentityChange
from adapters.leads.lead_event_store import event_item
from adapters.platform import publishing
from adapters.platform.publishing import PublishFailures, Topic, TopicMessage
from adapters.platform.queues import FailureQueue
from adapters.privacy.tombstones import NO_ERASURES
from ingest.leads.lead_consumer import MOVES_MAX, change_events
from processors.batches import ConsumerSettings
from processors.leads import lead_events
from processors.leads.lead_events import announce
from rules.leads.lead_events import Group, LeadEvent, from_item, groups_of

CONTEXT = SimpleNamespace(
    function_name="f", memory_limit_in_mb=128, invoked_function_arn="arn", aws_request_id="1"
)


class Sns:
    """Takes what it is sent, but refuses the bodies it was told to, as often as it was told to."""

    def __init__(self, refusals: dict[str, int] | None = None, faulty: str = "", dead_calls: int = 0) -> None:
        self.calls: list[list[str]] = []
        self.taken: list[dict[str, Any]] = []
        self.refusals, self.faulty, self.dead_calls = refusals or {}, faulty, dead_calls

    def publish_batch(self, **request: Any) -> dict[str, Any]:
        entries = request["PublishBatchRequestEntries"]
        self.calls.append([each["Message"] for each in entries])
        if len(self.calls) <= self.dead_calls:
            raise EndpointConnectionError(endpoint_url="http://sns")
        failed = []
        for each in entries:
            body = each["Message"]
            if body == self.faulty:
                failed.append({"Id": each["Id"], "Code": "InvalidParameter", "SenderFault": True})
            elif self.refusals.get(body, 0) > 0:
                self.refusals[body] -= 1
                failed.append({"Id": each["Id"], "Code": "InternalError", "SenderFault": False})
            else:
                self.taken.append(each)
        return {"Successful": [], "Failed": failed}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "pauses", range)


def messages(*bodies: str) -> list[TopicMessage]:
    return [TopicMessage(body, {"event_type": "t"}) for body in bodies]


def test_only_what_was_refused_is_sent_again() -> None:
    sns = Sns({"b": 2, "d": 1})
    assert Topic(sns, "t").publish(messages("a", "b", "c", "d")) == PublishFailures()
    assert sns.calls == [["a", "b", "c", "d"], ["b", "d"], ["b"]]
    assert sorted(each["Message"] for each in sns.taken) == ["a", "b", "c", "d"]


def test_a_fault_of_the_message_is_told_apart_from_one_that_passes() -> None:
    sns = Sns({"b": 99}, faulty="c")
    refused = Topic(sns, "t").publish(messages("a", "b", "c"))
    assert (refused.again, list(refused.faulty)) == ([1], [2])
    assert "InvalidParameter" in refused.faulty[2]
    assert len(sns.calls) == publishing.ATTEMPTS_MAX


def test_a_call_that_fails_does_not_keep_the_others_back(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(publishing.logger, "warning", lambda _, extra: told.append(extra["error"]))
    sns = Sns(dead_calls=1)
    refused = Topic(sns, "t").publish(messages(*(str(number) for number in range(25))))
    assert refused.again == list(range(10))
    assert len(sns.taken) == 15
    assert told == ["EndpointConnectionError"]


EVENT = LeadEvent(
    organization_id="acme",
    lead_organization_id="leaf",
    root_id="root",
    source="acme/shop",
    source_type="ecommerce",
    external_event_id="order:1",
    event_type="purchase_completed",
    occurred_at="2026-03-10T05:00:00.000000Z",
    received_at="2026-03-10T05:00:01.000000Z",
    payload={"order_id": "1", "amount_minor": 1177, "currency": "USD"},
    raw_payload='{"secret": "words"}',
)


def record(number: int, image: Any = None, name: str = "INSERT") -> dict[str, Any]:
    held = event_item(EVENT) if image is None else image
    return {"eventName": name, "dynamodb": {"NewImage": held, "SequenceNumber": f"{number}"}}


def test_an_announcement_is_the_event_without_anybody_s_words() -> None:
    sns, noted = Sns(), list[list[LeadEvent]]()
    outcome = announce([record(1)], Topic(sns, "t"), noted.append)
    assert (outcome.counts["announced"], outcome.again, outcome.poison) == (1, [], [])
    assert noted == [[EVENT]]
    (sent,) = sns.taken
    assert {name: each["StringValue"] for name, each in sent["MessageAttributes"].items()} == {
        "event_type": "purchase_completed",
        "organization_id": "acme",
    }
    told = json.loads(sent["Message"])
    assert "raw_payload" not in told
    read = from_item(told)
    assert (read.id, read.payload) == (EVENT.id, EVENT.payload)


class Failures(FailureQueue):
    """The real one, but for the queue."""

    def __init__(self) -> None:
        super().__init__(lambda: None, "")
        self.kept: list[tuple[Any, str]] = []

    def keep(self, consumer: str, failures: Sequence[tuple[Any, str]], now: Any) -> None:
        assert consumer == "lead-events"
        self.kept += failures


def handled(
    monkeypatch: pytest.MonkeyPatch, sns: Sns, records: list[Any], **more: Any
) -> tuple[list[str], Failures]:
    failures = Failures()
    monkeypatch.setattr(lead_events, "_parts", lambda: (Topic(sns, "t"), len, NO_ERASURES))
    monkeypatch.setattr(ConsumerSettings, "failures", lambda: failures)
    answer = lead_events.handler({"Records": records, **more}, CONTEXT)
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]], failures


BAD: list[Any] = [
    {"event_type": {"S": "purchase_completed"}},
    {**event_item(EVENT), "payload": {"S": "no json"}},
    {**event_item(EVENT), "payload": {"S": "[1]"}},
    {**event_item(EVENT), "payload": {"S": "[" * 100_000}},
    {**event_item(EVENT), "occurred_at": {"S": "yesterday"}},
    {**event_item(EVENT), "occurred_at": {"S": "0001-01-01T00:00:00+01:00"}},
    {**event_item(EVENT), "event_type": {"N": "1"}},
    {"event_type": {}},
    7,
]


@pytest.mark.parametrize("image", BAD)
def test_what_is_no_event_is_kept_and_its_neighbours_go_on(
    image: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sns, records = Sns(), [record(1), record(2, image), record(3)]
    again, failures = handled(monkeypatch, sns, records)
    assert (again, len(sns.taken)) == ([], 2)
    assert [kept["dynamodb"]["SequenceNumber"] for kept, _ in failures.kept] == ["2"]
    assert all(reason for _, reason in failures.kept)
    again, failures = handled(monkeypatch, Sns(), records, streakline_redrive=True)
    assert (again, failures.kept) == (["2"], [])


def test_only_what_is_new_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    sns = Sns()
    removed = {"eventName": "REMOVE", "dynamodb": {"SequenceNumber": "2"}}
    assert handled(monkeypatch, sns, [record(1, name="MODIFY"), removed, record(3)])[0] == []
    assert len(sns.taken) == 1


def test_while_the_topic_is_down_each_record_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    again, failures = handled(monkeypatch, Sns(dead_calls=1), [record(1), record(2)])
    assert (again, failures.kept) == (["1", "2"], [])


NOW = datetime(2026, 3, 10, tzinfo=UTC)
COLUMN_BYTES = 65_535  # of a text in the warehouse


def change(*groups: Group, kind: str = "merged") -> IdentityChange:
    return IdentityChange(7, "acme", kind, NOW, groups, {"by": "ann"})


def test_a_change_of_thousands_of_leaves_is_told_in_parts_that_everybody_takes() -> None:
    leaves = tuple(str(UUID(int=number)) for number in range(3 * MOVES_MAX))
    events = list(change_events(change(Group(leaves[0], leaves)), NOW))
    assert [each.external_event_id for each in events] == ["7", "7/2", "7/3"]
    assert len({each.id for each in events}) == 3
    assert max(len(json.dumps(each.payload)) for each in events) < COLUMN_BYTES / 2
    told = [groups_of(each) for each in events]
    assert {number for number, _ in told} == {7}
    assert {leaf for _, groups in told for group in groups for leaf in group.leaves} == set(leaves)
    assert {group.root for _, groups in told for group in groups} == {leaves[0]}


def test_a_small_change_is_one_event_that_tells_it_as_it_is() -> None:
    parted = change(Group("a", ("a",)), Group("b", ("b", "c")), kind="unmerged")
    (event,) = change_events(parted, NOW)
    assert groups_of(event) == (7, parted.groups)
    assert (event.event_type, event.payload["by"]) == ("leads_unmerged", "ann")
