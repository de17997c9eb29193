"""Alarms and the dashboard: whatever needs somebody is seen."""

import json
import re
from typing import Any

import pytest

from tests.support.declared import FAILURES, FUNCTIONS, MAPPINGS, NO_VALUE, QUEUES, TABLES, WORK, logical_ids
from tests.support.template import resources, template


def alarms() -> dict[str, dict[str, Any]]:
    found = template("infra/observability.yaml")["Resources"].items()
    return {name: each["Properties"] for name, each in found if each["Type"] == "AWS::CloudWatch::Alarm"}


def watched(namespace: str, metric: str, dimension: str) -> set[str]:
    return {
        each["Value"]["Ref"]
        for alarm in alarms().values()
        if (alarm["Namespace"], alarm["MetricName"]) == (namespace, metric)
        for each in alarm["Dimensions"]
        if each["Name"] == dimension
    }


@pytest.mark.parametrize("metric", ["Errors", "Throttles"])
def test_each_function_s_errors_and_throttles_raise_an_alarm(metric: str) -> None:
    assert watched("AWS/Lambda", metric, "FunctionName") == set(FUNCTIONS)


def test_a_stream_function_that_falls_behind_raises_an_alarm() -> None:
    consumers = {
        name for each in MAPPINGS.values() for name in logical_ids(each["Properties"]["FunctionName"])
    }
    assert watched("AWS/Lambda", "IteratorAge", "FunctionName") == consumers


def test_whatever_waits_in_a_failure_queue_raises_an_alarm() -> None:
    assert watched("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName") == FAILURES
    assert watched("AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName") == WORK
    depths = [each for each in alarms().values() if each["MetricName"].endswith("MessagesVisible")]
    assert all((each["Threshold"], each["EvaluationPeriods"]) == (1, 1) for each in depths)


def test_a_delivery_stream_that_holds_rows_back_raises_an_alarm() -> None:
    streams = resources("AWS::KinesisFirehose::DeliveryStream")
    assert watched("AWS/Firehose", "DeliveryToS3.DataFreshness", "DeliveryStreamName") == set(streams)


def test_a_table_that_throttles_and_an_api_that_fails_raise_an_alarm() -> None:
    assert watched("AWS/DynamoDB", "WriteThrottleEvents", "TableName") == set(TABLES)
    assert watched("AWS/ApiGateway", "5xx", "ApiId") == {"ApiId"}


def test_the_nightly_run_s_failures_and_differences_raise_an_alarm() -> None:
    assert watched("AWS/States", "ExecutionsFailed", "StateMachineArn") == {"Nightly"}
    found = {each["MetricName"] for each in alarms().values() if each["Namespace"] == "Streakline"}
    assert found == {"Differences", "Unrepaired", "LakeDisagreements", "TestFailures", "Unconfirmed"}


@pytest.mark.parametrize("name", alarms())
def test_an_alarm_can_be_raised_tells_somebody_and_is_quiet_without_traffic(name: str) -> None:
    alarm = alarms()[name]
    assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
    assert alarm["Threshold"] >= 1
    assert alarm["Statistic"] in ("Sum", "Maximum")
    assert alarm["TreatMissingData"] == "notBreaching"
    assert alarm["AlarmActions"] == {"Fn::If": ["HasTopic", [{"Ref": "AlarmTopicArn"}], NO_VALUE]}
    assert alarm["AlarmDescription"]


def test_the_dashboard_is_json_and_shows_every_function_queue_and_table() -> None:
    found = template("infra/observability.yaml")["Resources"].values()
    (dashboard,) = [each for each in found if each["Type"] == "AWS::CloudWatch::Dashboard"]
    text = dashboard["Properties"]["DashboardBody"]["Fn::Sub"]
    body = json.loads(re.sub(r"\$\{[^}]+\}", "x", text))
    assert all(each["properties"]["metrics"] for each in body["widgets"])
    assert {*FUNCTIONS, *QUEUES, *TABLES, "ApiId"} <= set(re.findall(r"\$\{([^}]+)\}", text))
    places = [(each["x"], each["y"]) for each in body["widgets"]]
    assert len(set(places)) == len(places)
