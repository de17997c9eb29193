"""Reads of a stack on AWS what runs, what waits, and what its alarms say."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from local.aws_errors import AWS_ERRORS, explain_error
from local.cloud import patience
from local.cloud.emulator_template import ACCOUNT
from local.cloud.shards import iterator_since, shards_of
from local.cloud.streams import EventSourceMapping, function_name, mapping_of
from local.operate.consumers import (
    READERS,
    MappingDescription,
    Unread,
    consumer_of_backlog,
    is_stream,
    mapping_trouble,
    unread,
)
from local.operate.functions import functions
from local.operate.verdict import Consumer, Deployment, Part, Queue
from local.stack import Stack

ALARM, NESTED = "AWS::CloudWatch::Alarm", "AWS::CloudFormation::Stack"
ALARMS_MAX = 100  # in one request
AGE_PERIOD = timedelta(minutes=15)  # of the figures that say how late a consumer or queue is
# CloudWatch says how late a consumer is that worked within QUIET. For one that did not, its streams are read.
QUIET, QUIET_PERIOD = timedelta(minutes=5), timedelta(hours=3)
# CloudWatch's figures come some minutes late. A shorter limit would report lateness that is over already.
LATE = timedelta(minutes=5)
PERIOD_SECONDS = 60
EMPTY_PAGES_MAX = 10  # a page of a table's shard may be empty although records follow
STANDBY = "standby"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of one resource, and which of its statistics is wanted."""

    namespace: str
    name: str
    dimension: str  # the name of the dimension that says of which resource a figure is
    resource: str
    statistic: str  # Maximum or Sum, over a minute


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
    mappings = results.get("mappings", [])
    return Deployment(
        f"the stack {stack.name} in {stack.region}",
        now,
        (
            Part(
                "the stack", not state.endswith("FAILED"), f"is {state}", "look at its events in the console"
            ),
            *results.get("functions", ()),
            *_streams(stack, mappings, unseen),
        ),
        tuple(_consumers(stack, mappings, now, unseen)),
        results.get("queues", {}),
        results.get("failures", {}),
        results.get("alarms"),
        {"stack": stack.name, "region": stack.region, "state": state, "api_url": stack.api_url},
        unseen,
        LATE,
    )


def _functions(stack: Stack) -> list[Part]:
    """Return the functions that cannot run, each by itself, and how many can."""
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
        Part(f"{name}Function", runs=False, state=state, mend="deploy the stack again")
        for name, state in states.items()
        if state
    ]
    return [*bad, Part("functions", runs=True, state=f"{len(states) - len(bad)} of {len(states)} can run")]


def _function_state(stack: Stack, physical: str) -> str:
    """Return why a function cannot run; "" if it can."""
    client = stack.client("lambda")
    try:
        configuration = client.get_function_configuration(FunctionName=physical)
        reserved = client.get_function_concurrency(FunctionName=physical).get("ReservedConcurrentExecutions")
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return "is gone"
        raise
    if configuration.get("State") == "Failed":
        return f"has failed: {configuration.get('StateReason', 'no reason is given')}"
    if configuration.get("LastUpdateStatus") == "Failed":
        return f"could not be updated: {configuration.get('LastUpdateStatusReason', 'no reason is given')}"
    return "is stopped: its reserved concurrency is 0" if reserved == 0 else ""


def _mappings(stack: Stack) -> list[MappingDescription]:
    """Return the event source mappings of the stack's functions."""
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


def _streams(stack: Stack, mappings: Iterable[MappingDescription], unseen: dict[str, str]) -> list[Part]:
    """Return the streams that cannot be read, each by itself, and how many can."""
    sources = sorted({mapping["EventSourceArn"] for mapping in mappings if is_stream(mapping)})
    bad = []
    try:
        with ThreadPoolExecutor(READERS) as pool:
            states = dict(zip(sources, pool.map(partial(_stream_state, stack), sources), strict=True))
    except AWS_ERRORS as error:
        unseen["streams"] = explain_error(error)
        return []
    names = {physical: logical for logical, physical in stack.tables.items()}
    for source, state in states.items():
        if state not in ("ENABLED", "ENABLING", "ACTIVE", "UPDATING"):
            physical = source.split("/")[1]
            name = f"the stream of {names.get(physical, physical)}"
            bad.append(Part(name, runs=False, state=f"is {state}", mend="deploy the stack again"))
    return [
        *bad,
        Part("streams", runs=True, state=f"{len(sources) - len(bad)} of {len(sources)} can be read"),
    ]


def _stream_state(stack: Stack, source: str) -> str:
    """Return a stream's status as Kinesis or DynamoDB names it, or `gone`."""
    try:
        if ":kinesis:" in source:
            description = stack.client("kinesis").describe_stream_summary(StreamARN=source)
            return str(description["StreamDescriptionSummary"]["StreamStatus"])
        description = stack.client("dynamodbstreams").describe_stream(StreamArn=source, Limit=1)
        return str(description["StreamDescription"]["StreamStatus"])
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return "gone"
        raise


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
    metric = Metric("AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", queue, "Maximum")
    ages = _figures(stack, metric, now, AGE_PERIOD)
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
    """Return a consumer with how late it is by CloudWatch's figures, and what waits for it if it is quiet."""
    states = sorted(mapping["State"] for mapping in mappings)
    # A standby's consumers rest, and the emulator's streams are read by the laptop's poller.
    rests = stack.outputs.get("RegionRole") == STANDBY or all(
        f":{ACCOUNT}:" in mapping["EventSourceArn"] and is_stream(mapping) for mapping in mappings
    )
    results = [str(mapping.get("LastProcessingResult")) for mapping in mappings]
    problem = next((result for result in results if result.startswith("PROBLEM")), "")
    trouble = ("" if rests else mapping_trouble(states)) or problem
    physical = functions(stack)[name]
    streams = [mapping for mapping in mappings if is_stream(mapping) and mapping["State"] == "Enabled"]
    if not streams:
        return Consumer(name, tuple(states), trouble=trouble)
    iterator_age = Metric("AWS/Lambda", "IteratorAge", "FunctionName", physical, "Maximum")
    ages = _figures(stack, iterator_age, now, AGE_PERIOD)
    behind = timedelta(milliseconds=max(ages.values())) if ages else None
    invocations = Metric("AWS/Lambda", "Invocations", "FunctionName", physical, "Sum")
    worked_at = max(_figures(stack, invocations, now, QUIET_PERIOD), default=now - QUIET_PERIOD)
    if now - worked_at < QUIET:
        return Consumer(name, tuple(states), behind=behind, trouble=trouble)
    # It has not worked lately: either it had nothing to do, or it is stuck. Its streams tell which.
    backlog = [
        (mapping, shard_unread)
        for mapping in map(mapping_of, streams)
        for shard_unread in _unread_since(stack, mapping, worked_at)
    ]
    return replace(consumer_of_backlog(name, stack, backlog, states), behind=behind, trouble=trouble)


def _unread_since(stack: Stack, mapping: EventSourceMapping, worked_at: datetime) -> Iterator[Unread]:
    """Yield what each shard got after the minute in which its consumer last worked."""
    since = worked_at + timedelta(seconds=PERIOD_SECONDS)
    for shard in shards_of(stack, mapping.source):
        begin = iterator_since(stack, mapping.source, shard, since)
        yield unread(stack, mapping, begin, since=since.timestamp(), empty_max=EMPTY_PAGES_MAX)


def _figures(stack: Stack, metric: Metric, now: datetime, period: timedelta) -> dict[datetime, float]:
    """Return a metric's figures of the last period by minute; a minute without data is left out."""
    answer = stack.client("cloudwatch").get_metric_statistics(
        Namespace=metric.namespace,
        MetricName=metric.name,
        Dimensions=[{"Name": metric.dimension, "Value": metric.resource}],
        StartTime=now - period,
        EndTime=now,
        Period=PERIOD_SECONDS,
        Statistics=[metric.statistic],
    )
    return {point["Timestamp"]: point[metric.statistic] for point in answer["Datapoints"]}


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
    """Yield the names of a stack's alarms, and of those of the stacks that it nests."""
    for page in stack.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=name):
        for resource in page["StackResourceSummaries"]:
            physical = resource.get("PhysicalResourceId")
            if resource["ResourceType"] == ALARM and physical:
                yield physical
            elif resource["ResourceType"] == NESTED and physical:
                yield from _alarms(stack, physical)
