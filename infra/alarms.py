"""The alarms and the dashboard's metrics of template.yaml's resources.

infra/app/alarms.yaml has *marks*, lines such as `# @alarms`. In the place of each mark, infra/assemble.py
puts the text that `alarm_marks` returns for it. The alarms of each type of resource are in
infra/patterns/alarms.yaml; their exceptions and limits are here.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from infra.resources import DELIVERY, FUNCTION, MAPPING, QUEUE, TABLE
from infra.template_text import Block, blocks, fill, patterns, with_condition

ALARMS = patterns("alarms")
# By type of resource that is watched: the namespace of its metrics, and the dimension that names a resource.
DIMENSIONS = {
    FUNCTION: ("AWS/Lambda", "FunctionName"),
    TABLE: ("AWS/DynamoDB", "TableName"),
    QUEUE: ("AWS/SQS", "QueueName"),
    DELIVERY: ("AWS/Firehose", "DeliveryStreamName"),
}
# These functions run seldom: by a schedule, at a deployment, or if somebody asks. So one error raises their
# alarm. The other functions raise it only if each of five minutes has an error.
ONE_ERROR_IS_ENOUGH = {
    *("Curate", "CurateLarge", "Forget", "Retain", "Warehouse", "Reconcile"),
    *("Ranks", "Erasure", "Refresh", "Reminders", "ExpireQuestions"),
    *("Migrate", "Release", "WhatIf"),
}
# The alarms of Monitoring=basic. AWS gives ten for nothing; the other four are in infra/app/alarms.yaml.
BASIC_ALARMS = {
    *("EventsApiSlow", "UsersApiSlow", "EngagementIteratorAge", "EngagementFailuresDepth"),
    *("PublisherFailuresDepth", "LeadIngestionFailuresDepth"),
}
# How slow the 95th percentile of these functions may be, in milliseconds: posting events, reading a profile.
SLOW_MS = {"EventsApi": 1500, "UsersApi": 1000}
# How many minutes a function may be behind its stream, if not five.
BEHIND_MINUTES = {"Publisher": 15}
# How old a message of these queues may be, in minutes, if not ten: what nobody waits for.
LATE_MINUTES = {"FeatureRefresh": 180, "Shipments": 1440}
# These tables have the names of functions. So their alarms have `Table` in their names: MemoryTableThrottles,
# because MemoryThrottles is the alarm of the function.
NAMED_LIKE_FUNCTIONS = {"Event", "Memory", "Feature"}
# The dashboard does not show the latency of these functions; nobody waits for most of them.
WITHOUT_LATENCY = {
    *("Publisher", "Curate", "Warehouse", "Reconcile", "Migrate", "Release", "LeadEvents", "Refresh"),
    *("Notify", "FanOut", "Reminders", "ExpireQuestions", "Page", "OperationsApi", "IdentityApi"),
    *("PrivacyApi", "Erasure", "Sender", "Receiver", "WhatIf"),
}
# The dashboard shows the throttles of these functions beside their errors.
WITH_THROTTLES = {"EventsApi", "UsersApi", "EventsStream", "Engagement", "Ranks"}
LABELS = {"PublisherFailures": "Publisher"}  # on the dashboard, in place of the resource's name


def alarm_marks(resources: Sequence[Block]) -> dict[str, str]:
    """Return the text of each mark of infra/app/alarms.yaml. resources: all of template.yaml."""
    watched = [block for block in resources if block.kind in DIMENSIONS]
    by_kind = {kind: [block for block in watched if block.kind == kind] for kind in DIMENSIONS}
    functions = by_kind[FUNCTION]
    streams = _stream_counts(resources)
    failure_queues = [block for block in by_kind[QUEUE] if _is_failure_queue(block)]
    work_queues = [block for block in by_kind[QUEUE] if not _is_failure_queue(block)]
    shown = [block for block in functions if block.name not in WITHOUT_LATENCY]
    consumers = [block for block in functions if block.logical_id in streams]
    throttled = [block for block in functions if block.name in WITH_THROTTLES]
    errors = _metrics(functions, "Errors", "{} errors").rstrip()
    return {
        "watched_parameters": "".join(f"{block.logical_id}: {{Type: String}}\n" for block in watched),
        "watched_conditions": "".join(_conditions(block) for block in watched if block.condition),
        "alarms": "".join(_alarms(block, streams[block.logical_id]) for block in watched),
        "latency": _metrics(shown, "Duration"),
        "behind": _metrics(consumers, "IteratorAge"),
        "failed": _metrics(failure_queues, "ApproximateNumberOfMessagesVisible"),
        "errors_and_throttles": f"{errors},\n{_metrics(throttled, 'Throttles', '{} throttles')}",
        "writes": _metrics(by_kind[TABLE], "ConsumedWriteCapacityUnits"),
        "freshness": _metrics(by_kind[DELIVERY], "DeliveryToS3.DataFreshness"),
        "waiting": _metrics(work_queues, "ApproximateAgeOfOldestMessage"),
    }


def _stream_counts(resources: Iterable[Block]) -> Counter[str]:
    """Return how many streams each function reads, by its logical id."""
    mappings = (block.properties for block in resources if block.kind == MAPPING)
    return Counter(
        mapping["FunctionName"]["Ref"].removesuffix(".Alias")
        for mapping in mappings
        if "StartingPosition" in mapping
    )


def metric_reference(logical_id: str, kind: str, condition: str) -> str:
    """Return what names a resource in its metrics: for a queue its QueueName, for any other its Ref.

    A resource that is absent is named `none`. Raises ValueError for a condition of anything but a function.
    """
    if condition and kind != FUNCTION:
        raise ValueError(f"{logical_id} has a condition; only functions may")
    reference = f"!GetAtt {logical_id}.QueueName" if kind == QUEUE else f"!Ref {logical_id}"
    return f"!If [{condition}, {reference}, none]" if condition else reference


def _is_failure_queue(block: Block) -> bool:
    """Whether a resource is a queue for what a consumer could not do."""
    return block.kind == QUEUE and block.logical_id.endswith("Failures")


def _conditions(block: Block) -> str:
    """Return the conditions of a resource that may be absent: that it is there, and that it is watched."""
    name = block.logical_id
    return (
        f"Has{name}: !Not [!Equals [!Ref {name}, none]]\n"
        f"Watches{name}: !And [!Condition IsFull, !Condition Has{name}]\n"
    )


def _alarms(block: Block, streams: int) -> str:
    """Return a resource's alarms: the patterns of its type, filled. streams: how many streams it reads."""
    behind_minutes, late_minutes = BEHIND_MINUTES.get(block.name, 5), LATE_MINUTES.get(block.name, 10)
    error_minutes = 1 if block.name in ONE_ERROR_IS_ENOUGH else 5
    values = {
        "name": block.name,
        "alarm": f"{block.name}Table" if block.name in NAMED_LIKE_FUNCTIONS else block.name,
        "errors": "an error" if error_minutes == 1 else f"errors for {error_minutes} minutes",
        "error_minutes": error_minutes,
        "stream": "its stream" if streams == 1 else "a stream",
        "behind_minutes": behind_minutes,
        "behind_ms": 60_000 * behind_minutes,
        "late_minutes": late_minutes,
        "late_seconds": 60 * late_minutes,
        "slow_ms": SLOW_MS.get(block.name, 0),
        "throttles": "\n".join(_throttles(block)) if block.kind == TABLE else "",
    }
    patterns_of_block = ["failures" if _is_failure_queue(block) else block.kind]
    if streams:
        patterns_of_block.append("consumer")
    if block.name in SLOW_MS:
        patterns_of_block.append("slow")
    return "".join(_conditional_alarms(block, fill(ALARMS[name], **values)) for name in patterns_of_block)


def _conditional_alarms(block: Block, alarms: str) -> str:
    """Return alarms, each under the condition that it needs."""
    full = f"Watches{block.logical_id}" if block.condition else "IsFull"
    basic = f"Has{block.logical_id}" if block.condition else ""
    return "".join(
        with_condition(basic if alarm.logical_id in BASIC_ALARMS else full, alarm.text)
        for alarm in blocks(alarms)
    )


def _throttles(table: Block) -> Iterator[str]:
    """Yield a metric of refused reads and one of refused writes, of a table and of each of its indexes."""
    declared = table.properties.get("GlobalSecondaryIndexes", [])
    if isinstance(declared, dict):  # an index under a condition: if it is absent, its metrics are empty
        declared = declared["Fn::If"][1]
    indexes = ["", *(index["IndexName"] for index in declared)]
    refusals = ("ReadThrottleEvents", "WriteThrottleEvents")
    for number, (index, metric) in enumerate(product(indexes, refusals)):
        of_index = f", {{Name: GlobalSecondaryIndexName, Value: {index}}}" if index else ""
        dimensions = f"Dimensions: [{{Name: TableName, Value: !Ref {table.logical_id}}}{of_index}]"
        stat = (
            f"Metric: {{Namespace: AWS/DynamoDB, MetricName: {metric}, {dimensions}}}, Period: 60, Stat: Sum"
        )
        yield f"        - {{Id: m{number}, ReturnData: false, MetricStat: {{{stat}}}}}"


def _metrics(watched: Iterable[Block], metric: str, label: str = "{}") -> str:
    """Return a metric of each resource for the dashboard. label: {} stands for the resource's name."""
    lines = []
    for block in watched:
        namespace, dimension = DIMENSIONS[block.kind]
        text = label.format(LABELS.get(block.logical_id, block.name.removesuffix("Delivery")))
        lines.append([namespace, metric, dimension, f"${{{block.logical_id}}}", {"label": text}])
    return ",\n".join(map(json.dumps, lines)) + "\n"
