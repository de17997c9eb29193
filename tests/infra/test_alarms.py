"""Alarms and the dashboard: whatever needs somebody is seen."""

import json
import re
from typing import Any

import pytest

from infra.stacks import resolve_stacks
from rules.parts import Part
from tests.support.declared import (
    FAILURES,
    FUNCTIONS,
    MAPPINGS,
    NIGHTLY,
    NO_VALUE,
    QUEUES,
    TABLES,
    WORK,
    indexes_of,
    logical_ids,
)
from tests.support.template import resources, template


def alarms() -> dict[str, dict[str, Any]]:
    found = template("infra/observability.yaml")["Resources"].items()
    return {name: each["Properties"] for name, each in found if each["Type"] == "AWS::CloudWatch::Alarm"}


def metrics(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """The metrics that an alarm looks at: its own, or those of its expression."""
    stats = [each["MetricStat"]["Metric"] for each in alarm.get("Metrics", []) if "MetricStat" in each]
    return stats or [alarm] * ("MetricName" in alarm)


def watched(namespace: str, metric: str, dimension: str) -> set[str]:
    return {
        each["Value"]["Ref"]
        for alarm in alarms().values()
        for looked_at in metrics(alarm)
        if (looked_at["Namespace"], looked_at["MetricName"]) == (namespace, metric)
        for each in looked_at["Dimensions"]
        if each["Name"] == dimension
    }


@pytest.mark.parametrize("metric", ["Errors", "Throttles"])
def test_each_function_s_errors_and_throttles_raise_an_alarm(metric: str) -> None:
    assert watched("AWS/Lambda", metric, "FunctionName") == set(FUNCTIONS)


@pytest.mark.parametrize("function", sorted(NIGHTLY))
def test_one_error_of_a_nightly_step_raises_an_alarm(function: str) -> None:
    """The tries of a step end within three minutes."""
    alarm = alarms()[f"{function.removesuffix('Function')}Errors"]
    assert (alarm["Threshold"], alarm["EvaluationPeriods"]) == (1, 1)


def test_a_stream_function_that_falls_behind_raises_an_alarm() -> None:
    consumers = {
        name for each in MAPPINGS.values() for name in logical_ids(each["Properties"]["FunctionName"])
    }
    assert watched("AWS/Lambda", "IteratorAge", "FunctionName") == consumers


def test_whatever_waits_in_a_failure_queue_raises_an_alarm() -> None:
    assert watched("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName") == FAILURES
    assert watched("AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName") == WORK
    depths = [each for each in alarms().values() if each.get("MetricName", "").endswith("MessagesVisible")]
    assert all((each["Threshold"], each["EvaluationPeriods"]) == (1, 1) for each in depths)


def test_a_delivery_stream_that_holds_rows_back_raises_an_alarm() -> None:
    streams = resources("AWS::KinesisFirehose::DeliveryStream")
    assert watched("AWS/Firehose", "DeliveryToS3.DataFreshness", "DeliveryStreamName") == set(streams)


def test_a_table_that_throttles_and_an_api_that_fails_raise_an_alarm() -> None:
    for metric in ("ReadThrottleEvents", "WriteThrottleEvents"):
        assert watched("AWS/DynamoDB", metric, "TableName") == set(TABLES)
        for table, declared in TABLES.items():
            indexes = {each["IndexName"] for each in indexes_of(declared["Properties"])}
            assert throttled_indexes(table, metric) == indexes
    assert watched("AWS/ApiGateway", "5xx", "ApiId") == {"ApiId"}


def throttled_indexes(table: str, metric: str) -> set[str]:
    found = [
        {dimension["Name"]: dimension["Value"] for dimension in each["Dimensions"]}
        for alarm in alarms().values()
        for each in metrics(alarm)
        if each["MetricName"] == metric
    ]
    name = "GlobalSecondaryIndexName"
    return {each[name] for each in found if each["TableName"] == {"Ref": table} and name in each}


def test_slow_answers_to_people_raise_an_alarm() -> None:
    assert watched("AWS/Lambda", "Duration", "FunctionName") == {"EventsApiFunction", "UsersApiFunction"}


def test_where_no_table_has_an_alarm_of_its_own_two_look_at_all_tables() -> None:
    found = template("infra/observability.yaml")["Resources"]
    basic = {name: each["Properties"] for name, each in found.items() if each.get("Condition") == "IsBasic"}
    asked = {query["Expression"] for each in basic.values() for query in each["Metrics"]}
    assert asked == {f'SELECT SUM({kind}ThrottleEvents) FROM "AWS/DynamoDB"' for kind in ("Read", "Write")}
    assert all("Period" in query for each in basic.values() for query in each["Metrics"])


PARTS = tuple(f"Has{part.title()}" for part in Part)


def test_basic_monitoring_has_the_ten_alarms_that_cost_nothing() -> None:
    found = template("infra/observability.yaml")["Resources"].items()
    basic = [name for name, each in found if each.get("Condition") in (None, *PARTS)]
    assert len(basic) == 10, basic
    assert all(name in alarms() for name in basic)
    full = {each["Condition"] for name, each in found if "Condition" in each and name not in basic}
    conditional = (*PARTS, "HasIdentity", "HasStreamDoor", "HasPeer")
    assert full == {"IsFull", "IsBasic", *(f"Watches{each}" for each in conditional)}


def test_the_nightly_run_s_failures_and_differences_raise_an_alarm() -> None:
    assert watched("AWS/States", "ExecutionsFailed", "StateMachineArn") == {"Nightly"}
    found = {each["MetricName"] for each in alarms().values() if each.get("Namespace") == "Streakline"}
    nightly = {"Differences", "Unrepaired", "LakeDisagreements", "TestFailures"}
    assert found == {*nightly, "CurationFailures", "QuarantinedRows", "Unconfirmed"}


@pytest.mark.parametrize("name", alarms())
def test_an_alarm_can_be_raised_tells_somebody_and_is_quiet_without_traffic(name: str) -> None:
    alarm = alarms()[name]
    assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
    assert alarm["Threshold"] >= 1
    assert "Metrics" in alarm or alarm.get("Statistic", alarm.get("ExtendedStatistic")) in (
        "Sum",
        "Maximum",
        "p95",
    )
    assert alarm["TreatMissingData"] == "notBreaching"
    assert alarm["AlarmActions"] == {"Fn::If": ["HasTopic", [{"Ref": "AlarmTopicArn"}], NO_VALUE]}
    assert alarm["AlarmDescription"]


def test_the_dashboard_is_json_and_shows_every_function_queue_and_table() -> None:
    found = template("infra/observability.yaml")["Resources"].values()
    (dashboard,) = [each for each in found if each["Type"] == "AWS::CloudWatch::Dashboard"]
    text, variables = dashboard["Properties"]["DashboardBody"]["Fn::Sub"]
    for name, value in variables.items():  # metrics of what may be left out
        text = text.replace(f"${{{name}}}", value["Fn::If"][1]["Fn::Sub"])
    body = json.loads(re.sub(r"\$\{[^}]+\}", "x", text))
    assert all(each["properties"]["metrics"] for each in body["widgets"])
    assert {*FUNCTIONS, *QUEUES, *TABLES, "ApiId"} <= set(re.findall(r"\$\{([^}]+)\}", text))
    places = [(each["x"], each["y"]) for each in body["widgets"]]
    assert len(set(places)) == len(places)


def test_one_address_makes_a_topic_that_aws_s_alarms_and_budgets_may_write_to() -> None:
    (topic,) = [
        each
        for name, each in resources("AWS::SNS::Topic").items()
        if each.get("Condition") == "HasAlarmEmail"
    ]
    assert topic["Properties"]["Subscription"] == [{"Protocol": "email", "Endpoint": {"Ref": "AlarmEmail"}}]
    (policy,) = resources("AWS::SNS::TopicPolicy").values()
    (allowed,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert set(allowed["Principal"]["Service"]) == {"cloudwatch.amazonaws.com", "budgets.amazonaws.com"}


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({}, "nobody: set AlarmEmail"),
        ({"AlarmEmail": "ops@example.com"}, "ops@example.com"),
        ({"AlarmTopicArn": "arn:aws:sns:eu-west-1:1:t"}, "arn:aws:sns:eu-west-1:1:t"),
    ],
)
def test_a_deployment_says_whom_its_alarms_tell(parameters: dict[str, str], told: str) -> None:
    stacks = resolve_stacks(parameters)
    assert stacks["/"].outputs["AlarmsTell"] == told
    asked = stacks["/"].resources["Observability"]["Properties"]["Parameters"]["AlarmTopicArn"]
    assert bool(asked) == (told != "nobody: set AlarmEmail")
    actions = [
        each["Properties"].get("AlarmActions")
        for stack in stacks.values()
        for each in stack.resources.values()
        if each["Type"] == "AWS::CloudWatch::Alarm"
    ]
    assert all(bool(each) == bool(asked) for each in actions)
