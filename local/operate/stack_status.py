"""What runs on AWS, what waits, and what alarms say: `streakline status` of a deployed stack."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from local.cloud import queue_counts
from local.cloud.streams.delivery import function_name
from local.stack import Stack

FUNCTION = "FunctionName"
ALARM, NESTED = "AWS::CloudWatch::Alarm", "AWS::CloudFormation::Stack"
ALARMS_MAX = 100  # in one request
LOOKED_BACK = timedelta(minutes=15)
PERIOD_SECONDS = 60
AT_ONCE = 8


def status(stack: Stack) -> dict[str, Any]:
    """Return a stack's state, its queues, its consumers, and the alarms that are not OK.

    Raises what botocore raises.
    """
    described = stack.client("cloudformation").describe_stacks(StackName=stack.name)["Stacks"][0]
    states = alarm_states(stack)
    return {
        "stack": stack.name,
        "region": stack.region,
        "state": described["StackStatus"],
        "api_url": stack.api_url,
        "failures": queue_counts.failures(stack),
        "queues": queue_counts.waiting(stack),
        "consumers": consumers(stack),
        "alarms": {
            "known": len(states),
            "not_ok": {name: state for name, state in states.items() if state != "OK"},
        },
    }


def consumers(stack: Stack) -> dict[str, Any]:
    """Return each consumer's mappings, and how many seconds it was behind at worst in the last 15 minutes.

    behind_seconds: null where CloudWatch has no figure: nothing came, or a queue feeds the consumer.
    """
    names = {stack.outputs[name]: name for name in sorted(stack.outputs) if name.endswith(FUNCTION)}
    # All mappings of the region are listed: asked for a function, Lambda leaves out those of its alias.
    pages = stack.client("lambda").get_paginator("list_event_source_mappings").paginate()
    states: dict[str, list[str]] = {}
    for each in (mapping for page in pages for mapping in page["EventSourceMappings"]):
        states.setdefault(function_name(each["FunctionArn"]), []).append(each["State"])
    fed = [function for function in names if function in states]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        behind = pool.map(lambda function: _behind(stack, function), fed)
        return {
            names[function].removesuffix(FUNCTION): {
                "mappings": sorted(states[function]),
                "behind_seconds": seconds,
            }
            for function, seconds in zip(fed, behind, strict=True)
        }


def _behind(stack: Stack, function: str) -> float | None:
    now = datetime.now(UTC)
    answer = stack.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/Lambda",
        MetricName="IteratorAge",
        Dimensions=[{"Name": "FunctionName", "Value": function}],
        StartTime=now - LOOKED_BACK,
        EndTime=now,
        Period=PERIOD_SECONDS,
        Statistics=["Maximum"],
    )
    return max((each["Maximum"] / 1000 for each in answer["Datapoints"]), default=None)


def alarm_states(stack: Stack) -> dict[str, str]:
    """Return the state of every alarm of a stack and of what it nests, by name.

    A state is OK, ALARM or INSUFFICIENT_DATA.
    """
    names, client = sorted(_alarms(stack, stack.name)), stack.client("cloudwatch")
    found: dict[str, str] = {}
    for start in range(0, len(names), ALARMS_MAX):
        answer = client.describe_alarms(AlarmNames=names[start : start + ALARMS_MAX], MaxRecords=ALARMS_MAX)
        found |= {each["AlarmName"]: each["StateValue"] for each in answer["MetricAlarms"]}
    return found


def _alarms(stack: Stack, name: str) -> Iterator[str]:
    """Yield the names of a stack's alarms, and of those of the stacks that it nests."""
    for page in stack.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=name):
        for each in page["StackResourceSummaries"]:
            if each["ResourceType"] == ALARM and each.get("PhysicalResourceId"):
                yield each["PhysicalResourceId"]
            elif each["ResourceType"] == NESTED and each.get("PhysicalResourceId"):
                yield from _alarms(stack, each["PhysicalResourceId"])
