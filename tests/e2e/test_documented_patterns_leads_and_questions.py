"""The access patterns of the leads' and the questions' documents, each asked of DynamoDB as it is written there.

Each test is a row of a document's table: its operation, its index, its key condition, and the attributes that
the document names. Where a row cannot hold as it is written, the test says why and shows what does instead.
"""

import json
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.conditions import Attr, Key
from botocore.exceptions import ClientError

from local.api import Api
from local.cloud.patience import drain_leads
from local.stack import Stack
from rules.days import stamp_of_key
from rules.questions.notifications import INTERVALS, LISTENER_SHARDS, listener_partition
from tests.e2e.test_questions import settled
from tests.support.stack_tables import Items, Table, has, query

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")
OCCURRED = datetime.now(UTC).replace(hour=14, minute=0, second=0, microsecond=0) - timedelta(days=10)


# The leads' document: tables event, memory and feature.


def lead_event(number: int, event_type: str, at: datetime, email: str, **data: Any) -> dict[str, Any]:
    return {
        "external_event_id": f"g-{number}",
        "event_type": event_type,
        "occurred_at": at.isoformat().replace("+00:00", "Z"),
        "identities": {"email": email},
        "data": data,
    }


@pytest.fixture(scope="module")
def shopper(stack: Stack) -> tuple[str, str]:
    """A lead with a purchase over HTTP, and a message and two campaigns over SQS; (organization, lead)."""
    organization = f"org{time.time_ns()}"
    email = f"{organization}@example.com"
    product = {"product_id": "whey_1kg", "quantity": 2}
    order = {"order_id": "7", "amount": "11.77", "currency": "USD", "products": [product]}
    bought = lead_event(1, "purchase_completed", OCCURRED, email, **order)
    later = OCCURRED + timedelta(days=1)
    rest = [
        lead_event(2, "message_received", later, email, text="thanks", sentiment=0.5),
        lead_event(3, "campaign_sent", OCCURRED, email, campaign_id="spring"),
        lead_event(4, "campaign_sent", OCCURRED + timedelta(days=5), email, campaign_id="summer"),
    ]
    source = {"organization_id": organization, "source": "generic"}
    api = Api(stack)
    status, told = api.call("POST", "/v1/leads/events", {**source, "payload": bought})
    assert status == 202, told
    for payload in rest:
        stack.client("sqs").send_message(
            QueueUrl=stack.outputs["LeadIngestionUrl"],
            MessageBody=json.dumps({**source, "payload": payload}),
        )
    drain_leads(stack)
    path = f"/v1/leads?organization_id={organization}&integration=generic&external_event_id=g-1"
    return organization, str(api.get(path)["lead_id"])


def test_event_by_lead_in_a_range_of_time(table: Table, shopper: tuple[str, str]) -> None:
    """Bounds are as the document writes times, in whole seconds."""
    of, lead = table("Event"), Key("lead_organization_id").eq(shopper[1])
    everything = query(of, lead)
    assert [each["external_event_id"] for each in everything[:2]] != []
    assert len(everything) == 4
    place = Key("occurred_at#id")

    def between(since: str, until: str) -> set[str]:
        return {each["external_event_id"] for each in query(of, lead & place.between(since, until))}

    before = f"{OCCURRED - timedelta(seconds=1):%Y-%m-%dT%H:%M:%S}Z"
    exactly, day_later = (f"{OCCURRED + timedelta(days=days):%Y-%m-%dT%H:%M:%S}Z" for days in (0, 1))
    assert between(before, day_later) == between(exactly, day_later) == {"g-1", "g-3"}
    assert between(exactly, f"{day_later}~") == {"g-1", "g-2", "g-3"}
    (bought,) = [each for each in everything if each["external_event_id"] == "g-1"]
    occurred_at, _, identifier = bought["occurred_at#id"].partition("#")
    assert (occurred_at, len(identifier)) == (exactly, 36)
    assert stamp_of_key(occurred_at) == bought["occurred_at"]
    texts = ("source_type", "source", "event_type", "object_id", "object_id_ref", "payload", "raw_payload")
    has(bought, **dict.fromkeys((*texts, "external_event_id", "received_at"), str))
    assert bought["event_type"] == "purchase_completed"


def test_event_by_idempotency_index(table: Table, shopper: tuple[str, str]) -> None:
    """The source is the organization's: two organizations may use one id."""
    condition = Key("source").eq(f"{shopper[0]}/generic") & Key("external_event_id").eq("g-1")
    (found,) = query(table("Event"), condition, IndexName="idempotency-index")
    key = {name: found[name] for name in ("lead_organization_id", "occurred_at#id")}
    assert table("Event").get_item(Key=key)["Item"]["event_type"] == "purchase_completed"


def test_event_by_event_type_index(table: Table, shopper: tuple[str, str]) -> None:
    lead = Key("lead_organization_id").eq(shopper[1])
    condition = lead & Key("event_type#occurred_at").begins_with("campaign_sent#")
    found = query(table("Event"), condition, IndexName="event-type-index")
    days = [f"campaign_sent#{OCCURRED + timedelta(days=each):%Y-%m-%d}" for each in (0, 5)]
    assert [each["event_type#occurred_at"][: len(days[0])] for each in found] == days
    second = f"campaign_sent#{OCCURRED:%Y-%m-%dT%H:%M:%S}Z"
    since = lead & Key("event_type#occurred_at").between(second, f"{second}~")
    assert len(query(table("Event"), since, IndexName="event-type-index")) == 1


def test_memory_get_all_by_type_and_single_item(table: Table, shopper: tuple[str, str]) -> None:
    of, lead = table("Memory"), Key("lead_organization_id").eq(shopper[1])
    names = {each["memory_type#key"] for each in query(of, lead)}
    assert "purchase#product:whey_1kg" in names
    assert len(names) > 1
    by_type = query(of, lead & Key("memory_type#key").begins_with("purchase#"))
    assert {each["memory_type#key"] for each in by_type} == {
        each for each in names if each[:9] == "purchase#"
    }
    key = {"lead_organization_id": shopper[1], "memory_type#key": "purchase#product:whey_1kg"}
    single = of.get_item(Key=key)["Item"]
    texts, numbers = ("value", "source", "created_at", "updated_at"), ("confidence", "expires_at")
    has(single, **dict.fromkeys(texts, str), **dict.fromkeys(numbers, Decimal), source_event_ids=list)
    ttl = of.meta.client.describe_time_to_live(TableName=of.name)["TimeToLiveDescription"]
    assert ttl["AttributeName"] == "expires_at"


def test_memory_upsert(stack: Stack, table: Table, shopper: tuple[str, str]) -> None:
    """A second purchase of the product overwrites its item, which then has the evidence of both."""
    key = {"lead_organization_id": shopper[1], "memory_type#key": "purchase#product:whey_1kg"}
    before = table("Memory").get_item(Key=key)["Item"]
    order = {"order_id": "8", "amount": "1.00", "currency": "USD"}
    again = lead_event(
        5,
        "purchase_completed",
        OCCURRED + timedelta(days=2),
        f"{shopper[0]}@example.com",
        **order,
        products=[{"product_id": "whey_1kg", "quantity": 1}],
    )
    body = {"organization_id": shopper[0], "source": "generic", "payload": again}
    assert Api(stack).call("POST", "/v1/leads/events", body)[0] == 202
    drain_leads(stack)
    after = table("Memory").get_item(Key=key)["Item"]
    assert (len(before["source_event_ids"]), len(after["source_event_ids"])) == (1, 2)
    assert after["created_at"] == before["created_at"]
    assert after["updated_at"] > before["updated_at"]


def test_feature_is_a_single_item(table: Table, shopper: tuple[str, str]) -> None:
    (found,) = query(table("Feature"), Key("lead_organization_id").eq(shopper[1]))
    assert found == table("Feature").get_item(Key={"lead_organization_id": shopper[1]})["Item"]
    has(found, features=dict, computed_at=str)
    bought = ("monetary_total", "frequency_purchases_90d", "days_since_last_purchase", "sentiment_avg_30d")
    has(found["features"], **dict.fromkeys((*bought, "recency_days", "campaign_ignored"), Decimal))
    assert found["features"]["has_purchased"] is True
    assert found["features"]["campaign_ignored"] == 1, "one was sent seven dates ago or more, one was not"


# The questions' document: tables Questions, Responses, Subscriptions and UserStats.


@pytest.fixture(scope="module")
def poll(stack: Stack) -> dict[str, Any]:
    """A question with an answer of ann's, who is signed in; agent, question_id and ann's fingerprint."""
    name = f"{time.time_ns()}"
    agent, ann = (
        Api(stack, f"agent-{name}", group="streakline/agents"),
        Api(stack, f"ann-{name}", admin=False),
    )
    body: dict[str, Any] = {"prompt": "Which?", "required_responses": 2, "audience": []}
    made = []
    kinds: list[dict[str, Any]] = [{"type": "multiple_choice", "options": ["a", "b"]}, {"type": "text"}]
    for kind in kinds:
        asked = body | kind | {"idempotency_key": f"{kind['type']}-{name}"}
        status, question = agent.call("POST", "/v1/questions", asked)
        assert status == 201, question
        made.append(question["question_id"])
    given: dict[str, Any] = {"confidence": 4, "response_time_ms": 5200, "timezone": "Europe/Berlin"}
    sayings: list[dict[str, Any]] = [{"selected_option": 1}, {"answer": "because"}]
    for question_id, said in zip(made, sayings, strict=True):
        status, told = ann.call("POST", f"/v1/questions/{question_id}/responses", given | said)
        assert status == 201, told
    settled(stack, lambda: ann.get("/v1/stats/me")["total_answers"] == len(made))
    person = ann.get("/v1/stats/me")["fingerprint"]
    return {"agent": f"agent-{name}", "ann": f"ann-{name}", "ids": made, "person": person, "api": ann}


def test_question_by_id(table: Table, poll: dict[str, Any]) -> None:
    found = table("Questions").get_item(Key={"question_id": poll["ids"][0]})["Item"]
    texts = ("status", "prompt", "type", "agent_id", "idempotency_key", "created_at")
    numbers = ("required_responses", "current_responses", "expires_at")
    has(found, **dict.fromkeys(texts, str), **dict.fromkeys(numbers, Decimal), options=list, audience=list)
    assert (found["type"], found["current_responses"]) == ("multiple_choice", 1)
    assert "closed_at" not in found, "it is open"


def test_open_questions_newest_first(stack: Stack, table: Table, poll: dict[str, Any]) -> None:
    """The index has keys alone, so that answers do not write to it: the questions are read beside it.

    Those with some answers, but not all, are PARTIAL.
    """
    by_status = {"IndexName": "ByStatus", "ScanIndexForward": False, "Limit": 100}
    found = query(table("Questions"), Key("status").eq("PARTIAL"), **by_status)
    assert set(poll["ids"]) <= {each["question_id"] for each in found}
    unanswered = query(table("Questions"), Key("status").eq("OPEN"), **by_status)
    assert not set(poll["ids"]) & {each["question_id"] for each in unanswered}
    times = [each["created_at"] for each in found]
    assert times == sorted(times, reverse=True)
    assert set(found[0]) == {"question_id", "status", "created_at"}
    shown = Api(stack, poll["agent"], group="streakline/agents").get(f"/v1/questions/{poll['ids'][0]}")
    assert shown["status"] == "PARTIAL"


def test_questions_of_an_agent(table: Table, poll: dict[str, Any]) -> None:
    found = query(table("Questions"), Key("agent_id").eq(poll["agent"]), IndexName="ByAgentId")
    assert [each["question_id"] for each in found] == poll["ids"]


def test_responses_of_a_question(table: Table, poll: dict[str, Any]) -> None:
    """Anonymous: nothing in it leads to who is signed in. A response's id is the person's hash."""
    ((chosen,), (said,)) = (query(table("Responses"), Key("question_id").eq(each)) for each in poll["ids"])
    for each in (chosen, said):
        has(each, response_id=str, fingerprint_hash=str, created_at=str)
        has(each, confidence=Decimal, response_time_ms=Decimal)
        assert poll["ann"] not in str(each)
    assert (chosen["selected_option"], said["answer"]) == (1, "because")


def test_recent_answers_of_a_person(table: Table, poll: dict[str, Any]) -> None:
    condition = Key("fingerprint_hash").eq(poll["person"])
    found = query(table("Responses"), condition, IndexName="ByFingerprint", ScanIndexForward=False)
    assert [each["question_id"] for each in found] == poll["ids"][::-1]


def test_whether_a_person_has_answered(table: Table, poll: dict[str, Any]) -> None:
    found = query(
        table("Responses"),
        Key("fingerprint_hash").eq(poll["person"]),
        IndexName="ByFingerprint",
        FilterExpression=Attr("question_id").eq(poll["ids"][0]),
    )
    assert len(found) == 1
    again = poll["api"].call("POST", f"/v1/questions/{poll['ids'][0]}/responses", {"selected_option": 0})
    assert (again[0], again[1]["error"]["code"]) == (409, "already_answered")


def test_who_may_be_notified(table: Table, poll: dict[str, Any]) -> None:
    """A key of DynamoDB's indexes is a text, a number or bytes, so no index has `active = true` as its key.

    ByLastNotified is sparse, as the document wants it. `active` is a text there, one for each interval that
    people choose and each shard, so that the threshold is that of the interval: everybody who is found is due.
    """
    body = {"fcm_token": f"token-{poll['ann']}", "min_interval_minutes": 60}
    status, made = poll["api"].call("POST", "/v1/subscriptions", body)
    assert status == 201, made
    of, threshold = table("Subscriptions"), datetime.now(UTC).isoformat()
    with pytest.raises(ClientError, match="Validation"):
        query(of, Key("active").eq(True) & Key("last_notified_at").lt(threshold), IndexName="ByLastNotified")
    due: Items = []
    for minutes in INTERVALS:
        until = f"{datetime.now(UTC) - timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%S}"
        for shard in range(LISTENER_SHARDS):
            eligible = Key("active").eq(listener_partition(minutes, "*", shard)) & Key("last_notified_at").lt(
                until
            )
            due += query(of, eligible, IndexName="ByLastNotified")
    (own,) = [each for each in due if each["subscription_id"] == made["subscription_id"]]
    has(
        own, fcm_token=str, min_interval_minutes=Decimal, last_notified_at=str, created_at=str, updated_at=str
    )
    poll["api"].call("DELETE", f"/v1/subscriptions/{made['subscription_id']}")


def test_stats_of_a_person(table: Table, poll: dict[str, Any]) -> None:
    found = table("UserStats").get_item(Key={"fingerprint_hash": poll["person"]})["Item"]
    has(found, streak_last_date=str, badges=list, answers_by_category=dict, created_at=str, updated_at=str)
    numbers = {name: found[name] for name in ("total_points", "total_answers", "streak_days")}
    assert numbers == {"total_points": 30, "total_answers": 2, "streak_days": 1}
    assert poll["ann"] not in str(found)


def test_the_leaderboard(table: Table, poll: dict[str, Any]) -> None:
    """A small deployment, such as the laptop's, has one partition. Larger ones have `_leaderboard#1` too, and more."""
    board = query(
        table("UserStats"),
        Key("_leaderboard").eq("_leaderboard"),
        IndexName="ByTotalPoints",
        ScanIndexForward=False,
    )
    points = [each["total_points"] for each in board]
    assert points == sorted(points, reverse=True)
    assert poll["person"] in {each["fingerprint_hash"] for each in board}
