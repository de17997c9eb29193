"""The alarms and dashboard metrics of the resources of template.yaml: the marks of infra/app/alarms.yaml."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from infra.assembly.marks import WATCHED
from infra.assembly.resources import DELIVERY, FUNCTION, MAPPING, QUEUE, TABLE
from infra.assembly.text import Block, blocks, fill, patterns, under

ALARMS = patterns("alarms")
# These functions run by a schedule or at a deployment, so one error raises the alarm. Others raise it
# when there are errors in each of five minutes.
ONE_ERROR_IS_ENOUGH = {
    "Curate",
    "Warehouse",
    "Reconcile",
    "Ranks",
    "Erasure",
    "Refresh",
    "Reminders",
    "ExpireQuestions",
    "Migrate",
    "Release",
}
# The alarms of Monitoring=basic. AWS gives ten for nothing; the other four are in infra/app/alarms.yaml.
BASIC = {
    *("EventsApiSlow", "UsersApiSlow", "EngagementIteratorAge", "EngagementFailuresDepth"),
    *("PublisherFailuresDepth", "LeadIngestionFailuresDepth"),
}
# How slow the 95th percentile of these functions may be, in milliseconds: posting events, reading a profile.
SLOW_MS = {"EventsApi": 1500, "UsersApi": 1000}
# How many minutes a function may be behind its stream, if not five.
BEHIND_MINUTES = {"Publisher": 15}
# How old a message of these queues may be, in minutes, if not ten: what nobody waits for.
LATE_MINUTES = {"FeatureRefresh": 180, "Shipments": 1440}
# The alarms of these tables have `Table` in their names: MemoryTableThrottles, because MemoryThrottles is the
# alarm of the function.
SAY_TABLE = {"Event", "Memory", "Feature"}
# The dashboard does not show the latency of these functions; nobody waits for most of them.
LATENCY_LEFT_OUT = {
    *(
        "Publisher",
        "Curate",
        "Warehouse",
        "Reconcile",
        "Migrate",
        "Release",
        "LeadEvents",
        "Refresh",
        "Notify",
    ),
    *("FanOut", "Reminders", "ExpireQuestions", "Page", "OperationsApi", "IdentityApi"),
    *("PrivacyApi", "Erasure", "Sending", "TakingOver"),
}
# The dashboard shows the throttles of these functions beside their errors.
THROTTLES_SHOWN = {"EventsApi", "UsersApi", "EventsStream", "Engagement", "Ranks"}
LABELS = {"PublisherFailures": "Publisher"}
DIMENSIONS = {
    FUNCTION: ("AWS/Lambda", "FunctionName"),
    TABLE: ("AWS/DynamoDB", "TableName"),
    QUEUE: ("AWS/SQS", "QueueName"),
    DELIVERY: ("AWS/Firehose", "DeliveryStreamName"),
}


def marks(resources: Sequence[Block]) -> dict[str, str]:
    """Return the text of each mark of infra/app/alarms.yaml. resources: all of template.yaml."""
    watched = [each for each in resources if each.kind in WATCHED]
    mappings = [each.properties for each in resources if each.kind == MAPPING]
    fed = (each["FunctionName"]["Ref"] for each in mappings if "StartingPosition" in each)
    streams = Counter(each.removesuffix(".Alias") for each in fed)
    functions, tables, queues, deliveries = ([b for b in watched if b.kind == kind] for kind in DIMENSIONS)
    throttled = [each for each in functions if each.name in THROTTLES_SHOWN]
    errors = _metrics(functions, "Errors", "{} errors")
    return {
        "watched_parameters": "".join(f"{each.logical_id}: {{Type: String}}\n" for each in watched),
        "watched_conditions": "".join(map(_condition, filter(lambda each: each.condition, watched))),
        "alarms": "".join(_alarms(each, streams[each.logical_id]) for each in watched),
        "latency": _metrics([f for f in functions if f.name not in LATENCY_LEFT_OUT], "Duration"),
        "behind": _metrics([each for each in functions if each.logical_id in streams], "IteratorAge"),
        "failed": _metrics(filter(_is_failures, queues), "ApproximateNumberOfMessagesVisible"),
        "errors_and_throttles": f"{errors.rstrip()},\n{_metrics(throttled, 'Throttles', '{} throttles')}",
        "writes": _metrics(tables, "ConsumedWriteCapacityUnits"),
        "freshness": _metrics(deliveries, "DeliveryToS3.DataFreshness"),
        "waiting": _metrics([q for q in queues if not _is_failures(q)], "ApproximateAgeOfOldestMessage"),
    }


def _is_failures(block: Block) -> bool:
    return block.kind == QUEUE and block.logical_id.endswith("Failures")


def _condition(block: Block) -> str:
    """Return the conditions of a resource that may be absent: that it is there, and that it is watched."""
    name = block.logical_id
    return (
        f"Has{name}: !Not [!Equals [!Ref {name}, none]]\n"
        f"Watches{name}: !And [!Condition IsFull, !Condition Has{name}]\n"
    )


def _alarms(block: Block, streams: int) -> str:
    """Return a resource's alarms. streams: how many streams feed it."""
    behind, late = BEHIND_MINUTES.get(block.name, 5), LATE_MINUTES.get(block.name, 10)
    is_urgent = block.name in ONE_ERROR_IS_ENOUGH
    values = {
        "name": block.name,
        "alarm": f"{block.name}Table" if block.name in SAY_TABLE else block.name,
        "errors": "an error" if is_urgent else "errors for 5 minutes",
        "error_minutes": 1 if is_urgent else 5,
        "behind_minutes": behind,
        "late_minutes": late,
        "late_seconds": 60 * late,
        "behind_ms": 60_000 * behind,
        "stream": "its stream" if streams == 1 else "a stream",
        "slow_ms": SLOW_MS.get(block.name, 0),
        "throttles": "\n".join(_throttles(block)) if block.kind == TABLE else "",
    }
    names = ["failures" if _is_failures(block) else block.kind]
    names += ["consumer"] * bool(streams) + ["slow"] * (block.name in SLOW_MS)
    return "".join(_watched(block, fill(ALARMS[each], **values)) for each in names)


def _watched(block: Block, alarms: str) -> str:
    """Return alarms, each under the condition that it needs."""
    full = f"Watches{block.logical_id}" if block.condition else "IsFull"
    basic = f"Has{block.logical_id}" if block.condition else ""
    return "".join(under(basic if each.logical_id in BASIC else full, each.text) for each in blocks(alarms))


def _throttles(table: Block) -> Iterator[str]:
    """Yield a metric of refused reads and one of refused writes, of a table and of each of its indexes."""
    declared = table.properties.get("GlobalSecondaryIndexes", [])
    if isinstance(declared, dict):  # of an index that is not there nothing is refused
        declared = declared["Fn::If"][1]
    indexes = [each["IndexName"] for each in declared]
    refusals = ("ReadThrottleEvents", "WriteThrottleEvents")
    for place, (index, name) in enumerate((index, name) for index in ("", *indexes) for name in refusals):
        of_index = f", {{Name: GlobalSecondaryIndexName, Value: {index}}}" if index else ""
        where = f"Dimensions: [{{Name: TableName, Value: !Ref {table.logical_id}}}{of_index}]"
        stat = f"Metric: {{Namespace: AWS/DynamoDB, MetricName: {name}, {where}}}, Period: 60, Stat: Sum"
        yield f"        - {{Id: m{place}, ReturnData: false, MetricStat: {{{stat}}}}}"


def _metrics(blocks: Iterable[Block], metric: str, label: str = "{}") -> str:
    """Return a metric of each resource for the dashboard. label: {} stands for the resource's name."""
    lines = []
    for each in blocks:
        namespace, dimension = DIMENSIONS[each.kind]
        called = label.format(LABELS.get(each.logical_id, each.name.removesuffix("Delivery")))
        lines.append([namespace, metric, dimension, f"${{{each.logical_id}}}", {"label": called}])
    return ",\n".join(map(json.dumps, lines)) + "\n"
