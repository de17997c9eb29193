"""`streakline status` looks at what runs of a deployment, what waits, and what alarms say.

Of a stack on AWS it asks CloudFormation, Lambda, the queues and CloudWatch; of the laptop cloud each part
itself. What is wrong then, local/operate/verdict.py says.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from local.cloud import health, patience
from local.cloud.emulator_template import ACCOUNT
from local.cloud.poller import consumer_key, read_checkpoints
from local.cloud.shards import iterator_of, iterator_since, read_records, shards_of
from local.cloud.streams import EventSourceMapping, arrival_of, function_name, is_wanted, mapping_of
from local.command import command, find_stack, show
from local.operate import verdict
from local.operate.functions import functions
from local.operate.verdict import Consumer, Deployment, Part, Queue
from local.stack import AwsError, Stack, load, sentence

ALARM, NESTED = "AWS::CloudWatch::Alarm", "AWS::CloudFormation::Stack"
ALARMS_MAX = 100  # in one request
LOOKED_BACK = timedelta(minutes=15)
# A consumer that worked within the last minutes tells how late it is. What another one has left is read.
QUIET, QUIET_LOOKED_BACK = timedelta(minutes=5), timedelta(hours=3)
# CloudWatch's figures come some minutes late, so less would be told of what is long done.
LATE = timedelta(minutes=5)
PERIOD_SECONDS = 60
PAGES_MAX = 5  # of up to a thousand records
EMPTY_MAX = 10  # a part of a table's shard may be empty although more follows
AT_ONCE = 8
STANDBY = "standby"
FED = frozenset({"Enabled", "Enabling", "Creating", "Updating"})
Described = dict[str, Any]
LAPTOP = "the laptop cloud"
PROCESS_NAMES = {"ministack": "emulator", "poller": "poller", "redis": "Redis", "postgres": "PostgreSQL"}
PROCESS_MEND = "`streakline up` starts it again"
PROCESS_MENDS = {
    "ministack": "`streakline down` and `streakline up` begin anew: its data went with it",
    "poller": f"{PROCESS_MEND}; it goes on where it stopped",
    "redis": f"{PROCESS_MEND}; it is a cache, and filled anew",
    "postgres": f"{PROCESS_MEND}; its data are still there, and what came meanwhile waits in LeadIngestion",
}


@command("status", "status --json --stack-name streakline")
def status(stack_name: str | None, region: str | None, as_json: bool) -> None:
    """Say whether all is well: what runs, what waits and for how long. Fails if something is wrong."""
    try:
        stack = find_stack(stack_name, region)
    except SystemExit as nothing:  # no laptop cloud is up
        if as_json:
            text = str(nothing.code)
            show({"is_well": False, "verdict": text, "problems": [{"what": text}]}, as_json=True)
        raise
    seen = look_at_laptop() if stack.is_laptop else look_at_stack(stack)
    if as_json:
        show(verdict.as_json(seen), as_json=True)
    else:
        print(verdict.as_text(seen))
    if verdict.problems(seen):
        raise SystemExit(1)


@dataclass(frozen=True, slots=True)
class Unread:
    """What a consumer of a shard has not processed. Instants are epoch seconds of arrival."""

    records: int = 0
    oldest: float | None = None
    newest: float | None = None  # of all that were read, also of those that the consumer's filter leaves out
    is_more: bool = False  # than were read


def look_at_stack(stack: Stack) -> Deployment:
    """Look at a stack's state, functions, streams, queues, consumers and alarms.

    What cannot be looked at is in it with the reason. Raises what botocore raises if the stack itself cannot.
    """
    described = stack.client("cloudformation").describe_stacks(StackName=stack.name)["Stacks"][0]
    state, now = str(described["StackStatus"]), datetime.now(UTC)
    found: dict[str, Any] = {}
    unseen: dict[str, str] = {}
    for name, read in (
        ("functions", lambda: _functions(stack)),
        ("mappings", lambda: _mappings(stack)),
        ("queues", lambda: _queues(stack)),
        ("failures", lambda: patience.failures(stack)),
        ("alarms", lambda: alarm_states(stack)),
    ):
        try:
            found[name] = read()
        except AwsError as error:
            unseen[name] = sentence(error)
    mappings = found.get("mappings", [])
    return Deployment(
        f"the stack {stack.name} in {stack.region}",
        now,
        (
            Part(
                "the stack", not state.endswith("FAILED"), f"is {state}", "look at its events in the console"
            ),
            *found.get("functions", ()),
            *_streams(stack, mappings, unseen),
        ),
        tuple(_consumers(stack, mappings, now, unseen)),
        found.get("queues", {}),
        found.get("failures", {}),
        found.get("alarms"),
        {"stack": stack.name, "region": stack.region, "state": state, "api_url": stack.api_url},
        unseen,
        LATE,
    )


def _functions(stack: Stack) -> list[Part]:
    """Return the functions that cannot run, each by itself, and how many can."""
    known = functions(stack)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        states = dict(
            zip(known, pool.map(lambda each: _function_state(stack, each), known.values()), strict=True)
        )
    bad = [
        Part(f"{name}Function", runs=False, state=state, mend="deploy the stack again")
        for name, state in states.items()
        if state
    ]
    return [*bad, Part("functions", runs=True, state=f"{len(known) - len(bad)} of {len(known)} can run")]


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


def _mappings(stack: Stack) -> list[Described]:
    """Return the event source mappings of the stack's functions."""
    ours = set(functions(stack).values())
    # All mappings of the region are listed: asked for a function, Lambda leaves out those of its alias.
    pages = stack.client("lambda").get_paginator("list_event_source_mappings").paginate()
    return [
        each
        for page in pages
        for each in page["EventSourceMappings"]
        if function_name(each["FunctionArn"]) in ours
    ]


def _is_stream(mapping: Described) -> bool:
    return ":sqs:" not in mapping["EventSourceArn"]


def _streams(stack: Stack, mappings: Iterable[Described], unseen: dict[str, str]) -> list[Part]:
    """Return the streams that give nothing, each by itself, and how many do."""
    sources = sorted({mapping["EventSourceArn"] for mapping in mappings if _is_stream(mapping)})
    bad = []
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            states = dict(
                zip(sources, pool.map(lambda each: _stream_state(stack, each), sources), strict=True)
            )
    except AwsError as error:
        unseen["streams"] = sentence(error)
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
    """Return the queues of work: how much waits, and for how long the oldest has, as CloudWatch last said."""
    now = datetime.now(UTC)
    waiting = patience.messages_waiting(stack)

    def age(name: str) -> timedelta | None:
        queue = stack.outputs[f"{name}Url"].rpartition("/")[2]
        metric = ("AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", queue)
        found = _figures(stack, *metric, "Maximum", now, LOOKED_BACK)
        return timedelta(seconds=found[max(found)]) if found else None

    return {name: Queue(messages, age(name) if messages else None) for name, messages in waiting.items()}


def _consumers(
    stack: Stack, mappings: Sequence[Described], now: datetime, unseen: dict[str, str]
) -> Iterator[Consumer]:
    """Yield each consumer with the states of its mappings, and how late it is."""
    of = {
        name: [mapping for mapping in mappings if function_name(mapping["FunctionArn"]) == physical]
        for name, physical in functions(stack).items()
    }

    def read(name: str) -> Consumer | str:
        try:
            return _consumer(stack, name, of[name], now)
        except AwsError as error:
            return sentence(error)

    fed = [name for name, each in of.items() if each]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, found in zip(fed, pool.map(read, fed), strict=True):
            if isinstance(found, Consumer):
                yield found
            else:
                unseen[f"consumer {name}"] = found


def _consumer(stack: Stack, name: str, mappings: Sequence[Described], now: datetime) -> Consumer:
    states = sorted(mapping["State"] for mapping in mappings)
    # A standby's consumers rest, and the emulator's streams are read by the laptop's poller.
    rests = stack.outputs.get("RegionRole") == STANDBY or all(
        f":{ACCOUNT}:" in mapping["EventSourceArn"] and _is_stream(mapping) for mapping in mappings
    )
    why = "" if rests else trouble(states)
    problem = next(
        (
            result
            for mapping in mappings
            if (result := str(mapping.get("LastProcessingResult"))).startswith("PROBLEM")
        ),
        "",
    )
    physical = functions(stack)[name]
    streams = [mapping for mapping in mappings if _is_stream(mapping) and mapping["State"] == "Enabled"]
    if not streams:
        return Consumer(name, tuple(states), trouble=why or problem)
    metric = ("AWS/Lambda", "IteratorAge", "FunctionName", physical)
    ages = _figures(stack, *metric, "Maximum", now, LOOKED_BACK)
    behind = timedelta(milliseconds=max(ages.values())) if ages else None
    worked = ("AWS/Lambda", "Invocations", "FunctionName", physical)
    worked_at = max(_figures(stack, *worked, "Sum", now, QUIET_LOOKED_BACK), default=now - QUIET_LOOKED_BACK)
    if now - worked_at < QUIET:
        return Consumer(name, tuple(states), behind=behind, trouble=why or problem)
    # Its last word is old: it has had nothing to do, or does nothing. The streams themselves tell which.
    found = [
        (mapping, each)
        for mapping in map(mapping_of, streams)
        for each in _unread_since(stack, mapping, worked_at)
    ]
    return replace(summed(name, stack, found, states), behind=behind, trouble=why or problem)


def _unread_since(stack: Stack, mapping: EventSourceMapping, worked_at: datetime) -> Iterator[Unread]:
    """Yield what each shard got after the minute in which its consumer last worked."""
    since = worked_at + timedelta(seconds=PERIOD_SECONDS)
    for shard in shards_of(stack, mapping.source):
        begin = iterator_since(stack, mapping.source, shard, since)
        yield unread(stack, mapping, begin, since=since.timestamp(), empty_max=EMPTY_MAX)


def _figures(  # noqa: PLR0917 (what names a metric)
    stack: Stack,
    space: str,
    metric: str,
    kind: str,
    name: str,
    statistic: str,
    now: datetime,
    back: timedelta,
) -> dict[datetime, float]:
    """Return a metric's figures by minute; none where nothing came."""
    answer = stack.client("cloudwatch").get_metric_statistics(
        Namespace=space,
        MetricName=metric,
        Dimensions=[{"Name": kind, "Value": name}],
        StartTime=now - back,
        EndTime=now,
        Period=PERIOD_SECONDS,
        Statistics=[statistic],
    )
    return {each["Timestamp"]: each[statistic] for each in answer["Datapoints"]}


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


def look_at_laptop() -> Deployment:
    """Look at every part; raises SystemExit, with what to do, if no laptop cloud is up."""
    stack = load()
    found = health.troubles(stack)
    parts = tuple(
        Part(PROCESS_NAMES[process], not why, why or "runs", PROCESS_MENDS[process])
        for process, why in found.items()
    )
    seen = Deployment(LAPTOP, datetime.now(UTC), parts, about={"api_url": stack.api_url})
    return replace(seen, **_laptop_waiting(stack)) if not found["ministack"] else seen


def _laptop_waiting(stack: Stack) -> dict[str, Any]:
    """Return what waits: in streams, in queues, in failure queues; or why that cannot be seen."""
    found: dict[str, Any] = {"unseen": {}}
    for name, read in (
        ("consumers", lambda: tuple(_laptop_consumers(stack))),
        ("queues", lambda: {each: Queue(held) for each, held in patience.messages_waiting(stack).items()}),
        ("failures", lambda: patience.failures(stack)),
    ):
        try:
            found[name] = read()
        except AwsError as error:
            found["unseen"][name] = sentence(error)
    return found


def _laptop_consumers(stack: Stack) -> Iterator[Consumer]:
    """Yield each consumer with what it has not processed, from what the poller has noted as done."""
    names = {physical: name for name, physical in functions(stack).items()}
    described = stack.client("lambda").list_event_source_mappings()["EventSourceMappings"]
    of_queues = {each["UUID"] for each in described if ":sqs:" in each["EventSourceArn"]}
    done = read_checkpoints()
    asked = [
        (mapping, shard)
        for mapping in (mapping_of(each) for each in described if each["UUID"] not in of_queues)
        for shard in shards_of(stack, mapping.source)
    ]

    def read(place: tuple[EventSourceMapping, str]) -> Unread:
        mapping, shard = place
        begin = iterator_of(stack, mapping.source, shard, done.get(consumer_key(mapping, shard), ""))
        return unread(stack, mapping, begin)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(zip((mapping for mapping, _ in asked), pool.map(read, asked), strict=True))
    for physical, name in names.items():
        states = [
            each["State"]
            for each in described
            if each["UUID"] in of_queues and function_name(each["FunctionArn"]) == physical
        ]
        of_streams = [each for each in found if function_name(each[0].function) == physical]
        if of_streams:
            yield summed(name, stack, of_streams, ("ByPoller",))
        elif states:
            yield Consumer(
                name, tuple(states), trouble=trouble(states), mend="`streakline up` enables it again"
            )


def unread(
    stack: Stack, mapping: EventSourceMapping, iterator: str, *, since: float = 0.0, empty_max: int = 1
) -> Unread:
    """Read what follows an iterator, for some pages. since: older records (epoch seconds) are done.

    empty_max: after so many empty pages nothing follows. Raises what botocore raises.
    """
    patterns = [json.loads(pattern) for pattern in mapping.patterns]
    found, newest, empty, place = list[float](), None, 0, iterator
    for _ in range(PAGES_MAX * empty_max):
        records, following = read_records(stack, mapping.source, place)
        arrived = [(arrival_of(record), record) for record in records]
        found += [at for at, each in arrived if at > since and is_wanted(each, patterns)]
        newest = max([at for at, _ in arrived] + ([newest] if newest else []), default=None)
        empty = 0 if records else empty + 1
        if not following or empty >= empty_max:
            return Unread(len(found), min(found, default=None), newest)
        place = following
    return Unread(len(found), min(found, default=None), newest, is_more=True)


def summed(
    name: str, stack: Stack, found: Sequence[tuple[EventSourceMapping, Unread]], states: Sequence[str]
) -> Consumer:
    """Return a consumer with what waits in all of its shards. states: those of its mappings."""
    tables = {physical: logical for logical, physical in stack.tables.items()}
    waiting: dict[str, int] = {}
    for mapping, each in found:
        stream = mapping.source.split("/")[1]
        stream = tables.get(stream, "Events" if mapping.is_kinesis else stream)
        waiting[stream] = waiting.get(stream, 0) + each.records
    return Consumer(
        name,
        tuple(states),
        waiting,
        oldest_at=_instant(min((each.oldest for _, each in found if each.oldest), default=None)),
        newest_at=_instant(max((each.newest for _, each in found if each.newest), default=None)),
        is_more=any(each.is_more for _, each in found),
    )


def trouble(states: Sequence[str]) -> str:
    """Return why a consumer gets nothing, from the states of its mappings; "" if it does."""
    bad = sorted({state for state in states if state not in FED})
    return f"an event source mapping is {', '.join(bad)}" if bad else ""


def _instant(seconds: float | None) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
