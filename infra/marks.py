"""The text that each mark of the fragments stands for; also that of the marks of infra/app/alarms.yaml.

A mark is a line like `# @queue_arns`. Some stand for a list over all domains, some for what rules say.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from infra.resources import DELIVERY, DERIVED, FUNCTION, MAPPING, QUEUE, TABLE
from infra.template_text import ROOT, Block, blocks, fill, patterns, with_condition
from rules.lake.entities import ENTITIES
from rules.leads.features import FEATURES
from rules.leads.lead_events import IDENTITY_TYPES
from rules.leads.memory import DERIVATIONS
from rules.regions.changes import KEYS as FOLLOWED

WATCHED_KINDS = (FUNCTION, QUEUE, TABLE, DELIVERY)
# Glue's own botocore is older than S3's conditional writes, and its numpy may be of version 1.
SPARK_MODULES = ("botocore", "duckdb", "isal", "numpy", "pyarrow")
# Entity of the lake -> its table, the logical id of the mapping from the table's stream, and the changes that
# are published, as Lambda's filter patterns.
CHANGES, INSERTS = ('{"eventName": ["INSERT", "MODIFY"]}',), ('{"eventName": ["INSERT"]}',)
# Of questions not the answers that are counted: what is asked, also under the key of one that is expired long
# since, and what has closed. Of responses no marks; of the subscriptions' table
# messages whose outcome is known, what is kept of phones (adapters/questions/subscription_store.py),
# and what is removed otherwise than by time to live.
ASKED_OR_CLOSED = (
    *INSERTS,
    '{"eventName": ["MODIFY"], "dynamodb": {"NewImage": {"status": {"S": ["CLOSED", "EXPIRED"]}}}}',
    '{"eventName": ["MODIFY"], "dynamodb": {"NewImage": {"current_responses": {"N": ["0"]}}}}',
)
SETTLED = ('{"eventName": ["MODIFY"], "dynamodb": {"NewImage": {"outcome": {"S": [{"exists": true}]}}}}',)
CHANGED_PHONES = (
    (
        '{"eventName": ["INSERT", "MODIFY"], '
        '"dynamodb": {"NewImage": {"is_changed": {"BOOL": [{"exists": true}]}}}}'
    ),
    '{"eventName": ["REMOVE"], "userIdentity": {"type": [{"exists": false}]}}',
)
PUBLISHED_TABLES = {
    "events": ("BPEvents", "PublishEventsMapping", CHANGES),
    "daily_activity": ("DailyActivity", "PublishDaysMapping", CHANGES),
    "ledger": ("RewardsLedger", "PublishLedgerMapping", INSERTS),
    "streaks": ("UserStreaks", "PublishStreaksMapping", CHANGES),
    "lead_events": ("Event", "PublishLeadEventsMapping", INSERTS),
    "lead_memory": ("Memory", "PublishMemoryMapping", CHANGES),
    "lead_features": ("Feature", "PublishFeaturesMapping", CHANGES),
    "questions": ("Questions", "PublishQuestionsMapping", ASKED_OR_CLOSED),
    "responses": ("Responses", "PublishResponsesMapping", INSERTS),
    "answer_stats": ("UserStats", "PublishStatsMapping", CHANGES),
    "notifications": ("Subscriptions", "PublishNotificationsMapping", (*SETTLED, *CHANGED_PHONES)),
    "rules": ("RuleBooks", "PublishRulesMapping", CHANGES),
}
# Tables that have no entity of their own, beside Rewards (processors/fulfilment.py). What is kept of them:
# rules/lake/table_items.py; of Erasures it is the journal.
TOMBSTONES = ('{"eventName": ["INSERT"], "dynamodb": {"NewImage": {"part": {"S": ["journal"]}}}}',)
KEPT_ITEMS = {
    "IdempotencyKeys": ("PublishKeysMapping", CHANGES),
    "Erasures": ("PublishTombstonesMapping", TOMBSTONES),
}


# What the settings of functions and their layers come from; infra/observability.yaml follows from these.
SOURCES = (
    *("infra/app/*.yaml", "infra/patterns/*.yaml", "infra/[!o]*.yaml", "infra/layer/*", "uv.lock"),
    "adapters/settings/choices.py",  # the defaults of the parameter Settings
)


def marks(declared: Iterable[tuple[str, str, str]], parameters: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the text of each mark of template.yaml. declared, parameters: see fragments."""
    streams = {
        name: name.title().replace("_", "") + "Delivery"
        for name, entity in ENTITIES.items()
        if not entity.is_of_nights
    }
    watched = [*declared, *((each, DELIVERY, "") for each in streams.values())]
    queues = [each for each, kind, _ in watched if kind == QUEUE]
    triggers = {trigger for feature in FEATURES for trigger in feature.triggers}
    urls = json.dumps({each: f"${{{each}}}" for each in queues})
    return {
        "queue_urls": f"QUEUE_URLS: !Sub '{urls}'\n",
        "queue_arns": _yaml_list("Resource", (f"!GetAtt {each}.Arn" for each in queues)),
        "followed_names": f"TABLES: !Sub '{json.dumps({each: f'${{{each}}}' for each in FOLLOWED})}'\n",
        "followed_arns": _yaml_list("Resource", (f"!GetAtt {each}.Arn" for each in FOLLOWED)),
        "curated_retention": "".join(_retention(each) for each, entity in ENTITIES.items() if entity.may_age),
        "deliveries": "".join(_delivery(*each) for each in streams.items()),
        "delivery_streams": "".join(
            f"{entity.upper()}_DELIVERY_STREAM: !Ref {each}\n" for entity, each in streams.items()
        ),
        "delivery_arns": _yaml_list("Resource", (f"!GetAtt {each}.Arn" for each in streams.values())),
        "published_streams": _yaml_list(
            "Resource",
            (
                f"!GetAtt {table}.StreamArn"
                for table in (*(table for table, _, _ in PUBLISHED_TABLES.values()), *KEPT_ITEMS)
            ),
        ),
        "spark_modules": f"--additional-python-modules: {_locked_versions(*SPARK_MODULES)}\n",
        "memory_events": _yaml_list("event_type", sorted(set(DERIVATIONS) | IDENTITY_TYPES)),
        "feature_events": _yaml_list("event_type", sorted(triggers | IDENTITY_TYPES)),
        "schema_digest": f"Digest: {_digest('sql/identity/*.sql')} # so that a change of it is applied\n",
        "sources": f"Sources: {_digest(*SOURCES)} # of the template and the layers\n",
        "parameters": "".join(f"{name}: {_text_of(name, kind)}\n" for name, kind in parameters),
        "watched": "".join(
            f"{each[0]}: {_metric_reference(*each)}\n" for each in watched if each[1] in WATCHED_KINDS
        ),
    }


def _yaml_list(key: str, items: Iterable[str]) -> str:
    return f"{key}:\n" + "".join(f"  - {each}\n" for each in items)


def _retention(entity: str) -> str:
    """Return the rule that deletes an entity's old curated files."""
    return fill(DERIVED["curated_retention"], name=entity.replace("_", "-"), entity=entity)


def _delivery(entity: str, stream: str) -> str:
    made = fill(DERIVED["delivery"], stream=stream, entity=entity)
    if entity in PUBLISHED_TABLES:
        return made + _mapping_text(*PUBLISHED_TABLES[entity])
    return made + "".join(_mapping_text(table, *each) for table, each in KEPT_ITEMS.items())


def _mapping_text(table: str, mapping: str, patterns: Iterable[str]) -> str:
    filters = [f"Pattern: '{each}'" for each in patterns]
    criteria = f" {{Filters: [{{{filters[0]}}}]}}"
    if len(filters) > 1:
        criteria = "\n        Filters:" + "".join(f"\n          - {each}" for each in filters)
    return fill(DERIVED["published"], table=table, mapping=mapping, filters=criteria)


def _metric_reference(logical_id: str, kind: str, condition: str) -> str:
    """Return what names a resource in its metrics: for a queue its QueueName, for any other its Ref.

    A resource that is absent is named `none`. Raises ValueError for a condition of anything but a function.
    """
    if condition and kind != FUNCTION:
        raise ValueError(f"{logical_id} has a condition; only functions may")
    shown = f"!GetAtt {logical_id}.QueueName" if kind == QUEUE else f"!Ref {logical_id}"
    return f"!If [{condition}, {shown}, none]" if condition else shown


def _locked_versions(*packages: str) -> str:
    """Return packages as pip names them, in the versions of uv.lock for Glue's Python.

    Where uv.lock has several versions of a package, the lowest is for the oldest Python: 3.11, as Glue 5's.
    """
    lock = (ROOT / "uv.lock").read_text()
    found = [re.findall(rf'(?m)^name = "{each}"\nversion = "(.+)"$', lock) for each in packages]
    lowest = (min(each, key=lambda version: [*map(int, version.split("."))]) for each in found)
    return ",".join(f"{name}=={version}" for name, version in zip(packages, lowest, strict=True))


def _text_of(parameter: str, kind: str) -> str:
    return f"!Ref {parameter}" if kind in ("String", "Number") else f'!Join [",", !Ref {parameter}]'


def _digest(*patterns: str) -> str:
    files = sorted(path for each in patterns for path in ROOT.glob(each) if path.is_file())
    return hashlib.sha256(b"".join(each.read_bytes() for each in files)).hexdigest()[:16]


# The alarms and dashboard metrics of the resources of template.yaml: the marks of infra/app/alarms.yaml.


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
    *("PrivacyApi", "Erasure", "Sender", "Receiver"),
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


def alarm_marks(resources: Sequence[Block]) -> dict[str, str]:
    """Return the text of each mark of infra/app/alarms.yaml. resources: all of template.yaml."""
    watched = [each for each in resources if each.kind in WATCHED_KINDS]
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
    names += ["consumer"] if streams else []
    names += ["slow"] if block.name in SLOW_MS else []
    return "".join(_conditional_alarms(block, fill(ALARMS[each], **values)) for each in names)


def _conditional_alarms(block: Block, alarms: str) -> str:
    """Return alarms, each under the condition that it needs."""
    full = f"Watches{block.logical_id}" if block.condition else "IsFull"
    basic = f"Has{block.logical_id}" if block.condition else ""
    return "".join(
        with_condition(basic if each.logical_id in BASIC else full, each.text) for each in blocks(alarms)
    )


def _throttles(table: Block) -> Iterator[str]:
    """Yield a metric of refused reads and one of refused writes, of a table and of each of its indexes."""
    declared = table.properties.get("GlobalSecondaryIndexes", [])
    if isinstance(declared, dict):  # of an index that is not there nothing is refused
        declared = declared["Fn::If"][1]
    indexes = [each["IndexName"] for each in declared]
    refusals = ("ReadThrottleEvents", "WriteThrottleEvents")
    for number, (index, name) in enumerate((index, name) for index in ("", *indexes) for name in refusals):
        of_index = f", {{Name: GlobalSecondaryIndexName, Value: {index}}}" if index else ""
        where = f"Dimensions: [{{Name: TableName, Value: !Ref {table.logical_id}}}{of_index}]"
        stat = f"Metric: {{Namespace: AWS/DynamoDB, MetricName: {name}, {where}}}, Period: 60, Stat: Sum"
        yield f"        - {{Id: m{number}, ReturnData: false, MetricStat: {{{stat}}}}}"


def _metrics(blocks: Iterable[Block], metric: str, label: str = "{}") -> str:
    """Return a metric of each resource for the dashboard. label: {} stands for the resource's name."""
    lines = []
    for each in blocks:
        namespace, dimension = DIMENSIONS[each.kind]
        called = label.format(LABELS.get(each.logical_id, each.name.removesuffix("Delivery")))
        lines.append([namespace, metric, dimension, f"${{{each.logical_id}}}", {"label": called}])
    return ",\n".join(map(json.dumps, lines)) + "\n"
