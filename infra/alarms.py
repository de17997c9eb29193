"""The alarms and the dashboard's metrics of template.yaml's resources.

infra/app/alarms.yaml has *marks*, lines such as `# @alarms`. In the place of each mark, infra/assemble.py
puts the text that `alarm_marks` returns for it. The alarms of each type of resource are in
infra/patterns/alarms.yaml; their exceptions and limits are here.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple, Protocol

from infra.parts import said_of_part
from infra.resources import DELIVERY, FUNCTION, MAPPING, QUEUE, TABLE
from infra.template_text import Block, blocks, fill, patterns, with_condition
from rules.parts import Part

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
    *("Ranks", "Erasure", "Refresh"),
    *("Migrate", "Release", "WhatIf"),
    *(name for part in Part for name in said_of_part(part, "Alarms").get("one_error_is_enough", ())),
}
# The alarms of Monitoring=basic. AWS gives ten for nothing; the other four are in infra/app/alarms.yaml.
BASIC_ALARMS = {
    *("EventsApiSlow", "UsersApiSlow", "EngagementIteratorAge", "EngagementFailuresDepth"),
    *("PublisherFailuresDepth", "LeadIngestionFailuresDepth"),
}
# How slow the 95th percentile of these functions may be, in milliseconds: posting events, with up to five
# seconds of waiting; reading a profile.
SLOW_MS = {"EventsApi": 6000, "UsersApi": 1000}
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
    *("Page", "OperationsApi", "IdentityApi"),
    *("PrivacyApi", "Erasure", "Sender", "Receiver", "WhatIf"),
    *(name for part in Part for name in said_of_part(part, "Alarms").get("without_latency", ())),
}
# The dashboard shows the throttles of these functions beside their errors.
WITH_THROTTLES = {"EventsApi", "UsersApi", "EventsStream", "Engagement", "Ranks"}
LABELS = {"PublisherFailures": "Publisher"}  # on the dashboard, in place of the resource's name


class ShownMetric(NamedTuple):
    """A metric on the dashboard."""

    line: str  # as the dashboard's JSON has it
    condition: str  # the condition of its resource; "" for none


class Watched(Protocol):
    """A resource that is watched, as this module needs to know it."""

    @property
    def condition(self) -> str:
        """The condition under which it is there; "" for none."""


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
    widgets = {
        "latency": [(shown, "Duration", "{}")],
        "behind": [(consumers, "IteratorAge", "{}")],
        "failed": [(failure_queues, "ApproximateNumberOfMessagesVisible", "{}")],
        "errors_and_throttles": [
            (functions, "Errors", "{} errors"),
            (throttled, "Throttles", "{} throttles"),
        ],
        "writes": [(by_kind[TABLE], "ConsumedWriteCapacityUnits", "{}")],
        "freshness": [(by_kind[DELIVERY], "DeliveryToS3.DataFreshness", "{}")],
        "waiting": [(work_queues, "ApproximateAgeOfOldestMessage", "{}")],
    }
    shown_metrics = {
        name: [metric for kind in widget for metric in _metrics(*kind)] for name, widget in widgets.items()
    }
    return {
        "watched_parameters": "".join(
            f"{name}: {{Type: String}}\n"
            for name in (*watched_conditions(watched), *(block.logical_id for block in watched))
        ),
        "watched_conditions": "".join(map(_conditions, watched_conditions(watched))),
        "alarms": "".join(_alarms(block, streams[block.logical_id]) for block in watched),
        **{name: _always_shown(name, metrics) for name, metrics in shown_metrics.items()},
        "metrics_under_conditions": "".join(
            _shown_under(name, condition, metrics)
            for name, metrics in shown_metrics.items()
            for condition in _conditions_of(metrics)
        ),
    }


def _stream_counts(resources: Iterable[Block]) -> Counter[str]:
    """Return how many streams each function reads, by its logical id."""
    mappings = (block.properties for block in resources if block.kind == MAPPING)
    return Counter(
        mapping["FunctionName"]["Ref"].removesuffix(".Alias")
        for mapping in mappings
        if "StartingPosition" in mapping
    )


def watched_conditions(watched: Iterable[Watched]) -> list[str]:
    """Return the conditions under which there are resources that are watched, in their order."""
    return list(dict.fromkeys(each.condition for each in watched if each.condition))


def metric_reference(logical_id: str, kind: str, condition: str) -> str:
    """Return what names a resource in its metrics: for a queue its QueueName, for any other its Ref.

    A resource that is absent is named `none`.
    """
    reference = f"!GetAtt {logical_id}.QueueName" if kind == QUEUE else f"!Ref {logical_id}"
    return f"!If [{condition}, {reference}, none]" if condition else reference


def _is_failure_queue(block: Block) -> bool:
    """Whether a resource is a queue for what a consumer could not do."""
    return block.kind == QUEUE and block.logical_id.endswith("Failures")


def _conditions(name: str) -> str:
    """Return the conditions of resources that may be absent: they are there, and they are watched."""
    return (
        f'{name}: !Equals [!Ref {name}, "true"]\nWatches{name}: !And [!Condition IsFull, !Condition {name}]\n'
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
    full, basic = f"Watches{block.condition}" if block.condition else "IsFull", block.condition
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


def _metrics(watched: Iterable[Block], metric: str, label: str) -> Iterator[ShownMetric]:
    """Yield a metric of each resource for the dashboard. label: {} stands for the resource's name."""
    for block in watched:
        namespace, dimension = DIMENSIONS[block.kind]
        text = label.format(LABELS.get(block.logical_id, block.name.removesuffix("Delivery")))
        line = json.dumps([namespace, metric, dimension, f"${{{block.logical_id}}}", {"label": text}])
        yield ShownMetric(line, block.condition)


def _conditions_of(metrics: Iterable[ShownMetric]) -> list[str]:
    return list(dict.fromkeys(metric.condition for metric in metrics if metric.condition))


def _variable(widget: str, condition: str) -> str:
    """Return the name that metrics under a condition have in the dashboard's text."""
    return widget.title().replace("_", "") + condition


def _always_shown(widget: str, metrics: Sequence[ShownMetric]) -> str:
    """Return the metrics of resources that are always there, and the places of the others."""
    lines = ",\n".join(metric.line for metric in metrics if not metric.condition)
    return lines + "".join(f"${{{_variable(widget, each)}}}" for each in _conditions_of(metrics)) + "\n"


def _shown_under(widget: str, condition: str, metrics: Iterable[ShownMetric]) -> str:
    """Return what stands in a place of `_always_shown`: a comma and each metric, or nothing."""
    lines = "".join(f"      , {metric.line}\n" for metric in metrics if metric.condition == condition)
    return f'{_variable(widget, condition)}: !If\n  - {condition}\n  - !Sub |\n{lines}  - ""\n'
