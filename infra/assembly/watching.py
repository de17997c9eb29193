"""The alarms and dashboard metrics of the resources of template.yaml: the marks of infra/app/alarms.yaml."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from infra.assembly.marks import WATCHED
from infra.assembly.resources import DELIVERY, FUNCTION, MAPPING, QUEUE, TABLE
from infra.assembly.text import Block, fill, patterns

ALARMS = patterns("alarms")
# One error of these functions fails the nightly run, so it raises the alarm. Other functions raise it when
# there are errors in each of five minutes.
ONE_ERROR_IS_ENOUGH = {"Curate", "Warehouse", "Reconcile"}
# How many minutes a function may be behind its stream, if not five.
BEHIND_MINUTES = {"Publisher": 15}
# The alarms of these tables have `Table` in their names: MemoryTableThrottles, because MemoryThrottles is the
# alarm of the function.
SAY_TABLE = {"Event", "Memory", "Feature"}
# The dashboard does not show the latency of these functions; nobody waits for most of them.
LATENCY_LEFT_OUT = {
    *("Publisher", "Curate", "Warehouse", "Reconcile", "Migrate", "LeadEvents", "Refresh", "Notify"),
    *("Reminders", "Page", "OperationsApi"),
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
    streams = Counter(each["FunctionName"]["Ref"] for each in mappings if "StartingPosition" in each)
    functions, tables, queues, deliveries = ([b for b in watched if b.kind == kind] for kind in DIMENSIONS)
    throttled = [each for each in functions if each.name in THROTTLES_SHOWN]
    errors = _metrics(functions, "Errors", "{} errors")
    return {
        "watched_parameters": "".join(f"{each.logical_id}: {{Type: String}}\n" for each in watched),
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


def _alarms(block: Block, streams: int) -> str:
    """Return a resource's alarms. streams: how many streams feed it."""
    behind = BEHIND_MINUTES.get(block.name, 5)
    is_urgent = block.name in ONE_ERROR_IS_ENOUGH
    values = {
        "name": block.name,
        "alarm": f"{block.name}Table" if block.name in SAY_TABLE else block.name,
        "errors": "an error" if is_urgent else "errors for 5 minutes",
        "error_minutes": 1 if is_urgent else 5,
        "behind_minutes": behind,
        "behind_ms": 60_000 * behind,
        "stream": "its stream" if streams == 1 else "a stream",
    }
    names = ["failures" if _is_failures(block) else block.kind, *(["consumer"] if streams else [])]
    return "".join(fill(ALARMS[each], **values) for each in names)


def _metrics(blocks: Iterable[Block], metric: str, label: str = "{}") -> str:
    """Return a metric of each resource for the dashboard. label: {} stands for the resource's name."""
    lines = []
    for each in blocks:
        namespace, dimension = DIMENSIONS[each.kind]
        called = label.format(LABELS.get(each.logical_id, each.name.removesuffix("Delivery")))
        lines.append([namespace, metric, dimension, f"${{{each.logical_id}}}", {"label": called}])
    return ",\n".join(map(json.dumps, lines)) + "\n"
