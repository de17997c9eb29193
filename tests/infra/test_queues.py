"""Queues: of work, of what failed, and what is announced to them."""

import pytest

from tests.support.declared import FAILURES, QUEUE_MAPPINGS, QUEUES, WORK, logical_ids, properties, statements
from tests.support.template import resources

SUBSCRIPTIONS = resources("AWS::SNS::Subscription")


@pytest.mark.parametrize("name", QUEUES)
def test_a_queue_is_encrypted_and_waits_two_weeks(name: str) -> None:
    assert properties(name)["SqsManagedSseEnabled"] is True
    assert properties(name)["MessageRetentionPeriod"] == 14 * 24 * 3600


# Its queue is in a nested stack.
OF_REGIONS = {"ReceiverMapping"}


@pytest.mark.parametrize("name", sorted(set(QUEUE_MAPPINGS) - OF_REGIONS))
def test_a_queue_s_consumer_reports_partial_failures_and_what_fails_for_good_is_kept(name: str) -> None:
    mapping = properties(name)
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    (function,), (queue,) = logical_ids(mapping["FunctionName"]), logical_ids(mapping["EventSourceArn"])
    dead = properties(queue)["RedrivePolicy"]
    assert logical_ids(dead["deadLetterTargetArn"]) <= FAILURES
    assert dead["maxReceiveCount"] >= 5
    (failures,) = logical_ids(dead["deadLetterTargetArn"])
    assert properties(function)["Environment"]["Variables"]["FAILURE_QUEUE_URL"] == {"Ref": failures}
    condition, visibility, _ = properties(queue)["VisibilityTimeout"]["Fn::If"]
    assert condition == "OnAws"
    assert visibility >= 6 * properties(function)["Timeout"]  # AWS's advice
    own = [each["Action"] for each, _ in statements(function) if queue in logical_ids(each["Resource"])]
    # A consumer may ask for the next page of what it has begun, or let a message wait.
    more = (["sqs:SendMessage"], ["sqs:ChangeMessageVisibility", "sqs:SendMessage"])
    assert [actions for actions in own if actions not in more] == [
        ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
    ]


def test_every_queue_of_work_has_a_consumer() -> None:
    # Those who ship rewards bring a worker of their own.
    assert {
        name
        for each in set(QUEUE_MAPPINGS) - OF_REGIONS
        for name in logical_ids(properties(each)["EventSourceArn"])
    } == WORK - {"Shipments"}


def test_what_a_worker_cannot_ship_is_kept() -> None:
    dead = properties("Shipments")["RedrivePolicy"]
    assert logical_ids(dead["deadLetterTargetArn"]) == {"ShipmentFailures"}
    assert dead["maxReceiveCount"] >= 5


@pytest.mark.parametrize("name", SUBSCRIPTIONS)
def test_a_queue_gets_the_message_itself_of_the_types_that_it_asks_for(name: str) -> None:
    subscription = properties(name)
    assert subscription["RawMessageDelivery"] is True
    assert subscription["FilterPolicyScope"] == "MessageAttributes"
    assert subscription["FilterPolicy"]["event_type"]


def test_live_events_of_leads_do_not_wait_behind_the_morning_round_or_a_rebuild() -> None:
    asking = [
        each["Properties"]
        for each in resources("AWS::Serverless::Function").values()
        if "FEATURE_QUEUE_URL" in each["Properties"].get("Environment", {}).get("Variables", {})
    ]
    queues = set().union(
        *(logical_ids(each["Environment"]["Variables"]["FEATURE_QUEUE_URL"]) for each in asking)
    )
    announced = set().union(*(logical_ids(each["Properties"]["Endpoint"]) for each in SUBSCRIPTIONS.values()))
    assert len(asking) == 2
    assert queues == {"FeatureRefresh"}
    assert queues.isdisjoint(announced)
    assert properties("FeatureRefreshMapping")["BatchSize"] == 1, "its messages are of 50 leads"
