"""Consumers of streams: nothing is lost, and what fails for good is kept."""

import json
from typing import Any

import pytest

from local.cloud.streams import matches
from tests.support.declared import (
    FUNCTIONS,
    MAPPINGS,
    QUEUE_MAPPINGS,
    QUEUES,
    TABLES,
    listed,
    logical_ids,
    properties,
    statements,
)
from tests.support.template import resources, template

# What a region sends to the other one waits while that is away: as long as its stream keeps it.
OF_REGIONS = {"SenderMapping"}


def test_a_standby_consumes_nothing() -> None:
    standby = {"Fn::Not": [{"Fn::Equals": [{"Ref": "Role"}, "standby"]}]}
    assert template()["Conditions"]["Consumes"] == {"Fn::And": [{"Condition": "OnAws"}, standby]}
    for name in resources("AWS::Scheduler::Schedule"):
        assert properties(name)["State"] == {"Fn::If": ["IsStandby", "DISABLED", "ENABLED"]}


def test_there_are_stream_consumers() -> None:
    assert len(MAPPINGS) >= 12
    assert len(QUEUE_MAPPINGS) >= 3
    assert not any("Events" in each["Properties"] for each in FUNCTIONS.values()), (
        "mappings are resources of their own, so that every one of them is seen here"
    )


@pytest.mark.parametrize("name", MAPPINGS)
def test_a_consumer_reports_partial_failures_bisects_gives_up_and_keeps_what_failed(name: str) -> None:
    mapping = properties(name)
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BisectBatchOnFunctionError"] is True
    assert 0 < mapping["MaximumRetryAttempts"] <= 100 or name in OF_REGIONS
    assert 0 < mapping["MaximumRecordAgeInSeconds"] <= 7 * 24 * 3600
    (queue,) = logical_ids(mapping["DestinationConfig"]["OnFailure"]["Destination"])
    (function,) = logical_ids(mapping["FunctionName"])
    if name in OF_REGIONS:  # its queue is in a nested stack
        assert queue == "Regions"
        return
    assert queue in QUEUES
    sends = [each for each, _ in statements(function) if queue in logical_ids(each["Resource"])]
    assert [each["Action"] for each in sends] == [["sqs:SendMessage"]]
    assert properties(function)["Environment"]["Variables"]["FAILURE_QUEUE_URL"] == {"Ref": queue}


@pytest.mark.parametrize("name", MAPPINGS)
def test_a_consumer_loses_nothing_that_was_there_before_it_and_can_be_switched_off(name: str) -> None:
    mapping = properties(name)
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert mapping["Enabled"] == (True if name in OF_REGIONS else {"Fn::If": ["Consumes", True, False]})


@pytest.mark.parametrize("name", MAPPINGS)
def test_a_consumer_may_read_its_source(name: str) -> None:
    (function,) = logical_ids(properties(name)["FunctionName"])
    (source,) = logical_ids(properties(name)["EventSourceArn"])
    actions = {
        action
        for statement, where in statements(function)
        if source in logical_ids(statement["Resource"]) and where == "always"
        for action in listed(statement["Action"])
    }
    service = "dynamodb" if source in TABLES else "kinesis"
    assert {f"{service}:GetRecords", f"{service}:GetShardIterator"} <= actions


@pytest.mark.parametrize("name", MAPPINGS)
def test_the_filters_of_a_consumer_are_json_that_the_poller_knows(name: str) -> None:
    for each in properties(name).get("FilterCriteria", {}).get("Filters", []):
        pattern = json.loads(each["Pattern"])
        assert {*pattern} <= {"eventName", "dynamodb"}, "AWS documents filters of nothing else"
        fitting = fits(pattern)
        assert matches(pattern, fitting)
        is_removal = pattern["eventName"] == ["REMOVE"]  # all others ask for what is there
        assert matches(pattern, fitting | {"eventName": "REMOVE"}) == is_removal


def fits(pattern: dict[str, Any]) -> dict[str, Any]:
    """Return the least record that a pattern lets through."""
    return {
        name: fits(wanted) if isinstance(wanted, dict) else wanted[0] if isinstance(wanted[0], str) else "any"
        for name, wanted in pattern.items()
    }


def test_a_table_s_stream_has_at_most_two_consumers() -> None:
    sources = [logical_ids(properties(name)["EventSourceArn"]) for name in MAPPINGS]
    for table in TABLES:
        assert sum(table in each for each in sources) <= 2
