"""Reads of a stack on AWS what runs, what waits, and what its alarms say."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from local.aws_errors import AWS_ERRORS, explain_error
from local.cloud import patience
from local.cloud.deployment import ACCOUNT
from local.cloud.streams import function_name
from local.operate.functions import MISSING, functions
from local.operate.verdict import Consumer, Deployment, Queue, RunningPart
from local.stack import Stack

ALARM, NESTED = "AWS::CloudWatch::Alarm", "AWS::CloudFormation::Stack"
ALARMS_MAX = 100  # in one request
AGE_PERIOD = timedelta(minutes=15)  # of the figures that say how late a consumer or queue is
# CloudWatch's figures come some minutes late. A shorter limit would report lateness that is over already.
LATE = timedelta(minutes=5)
READERS = 8
FEEDING_STATES = frozenset({"Enabled", "Enabling", "Creating", "Updating"})
STANDBY = "standby"
MappingDescription = dict[str, Any]  # an event source mapping, as Lambda describes it


def look_at_stack(stack: Stack) -> Deployment:
    """Look at a stack's state, functions, streams, queues, consumers and alarms.

    What cannot be read is in `unseen` with the reason. Raises what botocore raises if the stack itself cannot
    be read.
    """
    description = stack.client("cloudformation").describe_stacks(StackName=stack.name)["Stacks"][0]
    state, now = str(description["StackStatus"]), datetime.now(UTC)
    results: dict[str, Any] = {}
    unseen: dict[str, str] = {}
    for name, read in (
        ("functions", lambda: _functions(stack)),
        ("mappings", lambda: _mappings(stack)),
        ("queues", lambda: _queues(stack)),
        ("failures", lambda: patience.failures(stack)),
        ("alarms", lambda: alarm_states(stack)),
    ):
        try:
            results[name] = read()
        except AWS_ERRORS as error:
            unseen[name] = explain_error(error)
    runs = not state.endswith("FAILED")
    stack_part = RunningPart("the stack", runs, f"is {state}", "look at its events in the console")
    return Deployment(
        where=f"the stack {stack.name} in {stack.region}",
        at=now,
        parts=(stack_part, *results.get("functions", ())),
        consumers=tuple(_consumers(stack, results.get("mappings", []), now, unseen)),  # adds to `unseen`
        queues=results.get("queues", {}),
        failures=results.get("failures", {}),
        alarms=results.get("alarms"),
        about={"stack": stack.name, "region": stack.region, "state": state, "api_url": stack.api_url},
        unseen=unseen,
        late=LATE,
    )


def _functions(stack: Stack) -> list[RunningPart]:
    physical_names = functions(stack)
    with ThreadPoolExecutor(READERS) as pool:
        states = dict(
            zip(
                physical_names,
                pool.map(partial(_function_state, stack), physical_names.values()),
                strict=True,
            )
        )
    bad = [
        RunningPart(f"{name}Function", runs=False, state=state, mend="deploy the stack again")
        for name, state in states.items()
        if state
    ]
    return [
        *bad,
        RunningPart("functions", runs=True, state=f"{len(states) - len(bad)} of {len(states)} can run"),
    ]


def _function_state(stack: Stack, physical: str) -> str:
    client = stack.client("lambda")
    try:
        configuration = client.get_function_configuration(FunctionName=physical)
        reserved = client.get_function_concurrency(FunctionName=physical).get("ReservedConcurrentExecutions")
    except ClientError as error:
        if error.response["Error"]["Code"] == MISSING:
            return "is gone"
        raise
    if configuration.get("State") == "Failed":
        return f"has failed: {configuration.get('StateReason', 'no reason is given')}"
    if configuration.get("LastUpdateStatus") == "Failed":
        return f"could not be updated: {configuration.get('LastUpdateStatusReason', 'no reason is given')}"
    return "is stopped: its reserved concurrency is 0" if reserved == 0 else ""


def _mappings(stack: Stack) -> list[MappingDescription]:
    stack_functions = set(functions(stack).values())
    # All mappings of the region are listed. If it is asked for a function, Lambda leaves out those of its
    # alias.
    pages = stack.client("lambda").get_paginator("list_event_source_mappings").paginate()
    return [
        mapping
        for page in pages
        for mapping in page["EventSourceMappings"]
        if function_name(mapping["FunctionArn"]) in stack_functions
    ]


def _queues(stack: Stack) -> dict[str, Queue]:
    """Return the queues of work: how many messages wait and, as CloudWatch last said, for how long."""
    now = datetime.now(UTC)
    return {
        name: Queue(messages, _age_of_oldest(stack, name, now) if messages else None)
        for name, messages in patience.messages_waiting(stack).items()
    }


def _age_of_oldest(stack: Stack, name: str, now: datetime) -> timedelta | None:
    """Return how old a queue's oldest message was by CloudWatch's newest figure; None: there is no figure."""
    queue = stack.outputs[f"{name}Url"].rpartition("/")[2]
    ages = _figures(stack, "AWS/SQS", "ApproximateAgeOfOldestMessage", {"QueueName": queue}, now)
    return timedelta(seconds=ages[max(ages)]) if ages else None


def _consumers(
    stack: Stack, mappings: Sequence[MappingDescription], now: datetime, unseen: dict[str, str]
) -> Iterator[Consumer]:
    """Yield each consumer with the states of its mappings, and how late it is."""
    mappings_of = {
        name: [mapping for mapping in mappings if function_name(mapping["FunctionArn"]) == physical]
        for name, physical in functions(stack).items()
    }

    def read(name: str) -> Consumer | str:
        try:
            return _consumer(stack, name, mappings_of[name], now)
        except AWS_ERRORS as error:
            return explain_error(error)

    names = [name for name in mappings_of if mappings_of[name]]
    with ThreadPoolExecutor(READERS) as pool:
        for name, consumer in zip(names, pool.map(read, names), strict=True):
            if isinstance(consumer, Consumer):
                yield consumer
            else:
                unseen[f"consumer {name}"] = consumer


def _consumer(stack: Stack, name: str, mappings: Sequence[MappingDescription], now: datetime) -> Consumer:
    """Return a consumer with how late its batches of the last minutes were, by CloudWatch's figures."""
    states = tuple(sorted(mapping["State"] for mapping in mappings))
    # A standby's consumers rest, and the emulator's streams are read by the laptop's poller.
    rests = stack.outputs.get("RegionRole") == STANDBY or all(
        f":{ACCOUNT}:" in mapping["EventSourceArn"] and is_stream(mapping) for mapping in mappings
    )
    results = [str(mapping.get("LastProcessingResult")) for mapping in mappings]
    problem = next((result for result in results if result.startswith("PROBLEM")), "")
    trouble = ("" if rests else mapping_trouble(states)) or problem
    if not any(map(is_stream, mappings)):
        return Consumer(name, states, None, trouble)
    ages = _figures(stack, "AWS/Lambda", "IteratorAge", {"FunctionName": functions(stack)[name]}, now)
    behind = timedelta(milliseconds=max(ages.values())) if ages else None
    return Consumer(name, states, behind, trouble)


def is_stream(mapping: MappingDescription) -> bool:
    """Whether a mapping's source is a stream. The other sources are queues."""
    return ":sqs:" not in mapping["EventSourceArn"]


def mapping_trouble(states: Sequence[str]) -> str:
    """Return why a consumer gets no records, by the states of its mappings; "" if it gets them."""
    bad = sorted({state for state in states if state not in FEEDING_STATES})
    return f"an event source mapping is {', '.join(bad)}" if bad else ""


def _figures(
    stack: Stack, namespace: str, metric: str, resource: Mapping[str, str], now: datetime
) -> dict[datetime, float]:
    """Return a metric's highest figures in AGE_PERIOD by minute. resource: the dimension that names one."""
    answer = stack.client("cloudwatch").get_metric_statistics(
        Namespace=namespace,
        MetricName=metric,
        Dimensions=[{"Name": name, "Value": value} for name, value in resource.items()],
        StartTime=now - AGE_PERIOD,
        EndTime=now,
        Period=60,
        Statistics=["Maximum"],
    )
    return {point["Timestamp"]: point["Maximum"] for point in answer["Datapoints"]}


def alarm_states(stack: Stack) -> dict[str, str]:
    """Return the state of every alarm of a stack and of what it nests, by name.

    A state is OK, ALARM or INSUFFICIENT_DATA.
    """
    names, client = sorted(_alarms(stack, stack.name)), stack.client("cloudwatch")
    states: dict[str, str] = {}
    for start in range(0, len(names), ALARMS_MAX):
        answer = client.describe_alarms(AlarmNames=names[start : start + ALARMS_MAX], MaxRecords=ALARMS_MAX)
        states |= {alarm["AlarmName"]: alarm["StateValue"] for alarm in answer["MetricAlarms"]}
    return states


def _alarms(stack: Stack, name: str) -> Iterator[str]:
    for page in stack.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=name):
        for resource in page["StackResourceSummaries"]:
            physical = resource.get("PhysicalResourceId")
            if resource["ResourceType"] == ALARM and physical:
                yield physical
            elif resource["ResourceType"] == NESTED and physical:
                yield from _alarms(stack, physical)
