"""The text that each mark of the fragments stands for.

A mark is a line like `# @queue_arns`. Some stand for a list over all domains, some for what rules/ declares.
"""

import hashlib
import json
import re
from collections.abc import Iterable

from infra.assembly.resources import DELIVERY, DERIVED, FUNCTION, QUEUE, TABLE
from infra.assembly.text import ROOT, fill
from rules.lake.entities import ENTITIES
from rules.leads.features import FEATURES
from rules.leads.lead_events import IDENTITY_TYPES
from rules.leads.memory import DERIVATIONS
from rules.regions.changes import KEYS as FOLLOWED

WATCHED = (FUNCTION, QUEUE, TABLE, DELIVERY)
# Glue's own botocore is older than S3's conditional writes, and its numpy may be of version 1.
SPARK_MODULES = ("botocore", "duckdb", "isal", "numpy", "pyarrow")
# Entity of the lake -> its table, the logical id of the mapping from the table's stream, and the changes that
# are published, as Lambda's filter patterns.
CHANGES, INSERTS = ('{"eventName": ["INSERT", "MODIFY"]}',), ('{"eventName": ["INSERT"]}',)
# Of questions not the answers that are counted: what is asked, also under the key of one that is expired long
# since, and what has closed. Of responses no marks; of the subscriptions' table
# messages whose outcome is known, what is kept of phones (adapters/questions/subscription_store.py),
# and what is removed otherwise than by time to live.
ASKED_OR_OVER = (
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
PUBLISHED = {
    "events": ("BPEvents", "PublishEventsMapping", CHANGES),
    "daily_activity": ("DailyActivity", "PublishDaysMapping", CHANGES),
    "ledger": ("RewardsLedger", "PublishLedgerMapping", INSERTS),
    "streaks": ("UserStreaks", "PublishStreaksMapping", CHANGES),
    "lead_events": ("Event", "PublishLeadEventsMapping", INSERTS),
    "lead_memory": ("Memory", "PublishMemoryMapping", CHANGES),
    "lead_features": ("Feature", "PublishFeaturesMapping", CHANGES),
    "questions": ("Questions", "PublishQuestionsMapping", ASKED_OR_OVER),
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
    streams = {entity: entity.title().replace("_", "") + "Delivery" for entity in ENTITIES}
    watched = [*declared, *((each, DELIVERY, "") for each in streams.values())]
    queues = [each for each, kind, _ in watched if kind == QUEUE]
    triggers = {trigger for feature in FEATURES for trigger in feature.triggers}
    urls = json.dumps({each: f"${{{each}}}" for each in queues})
    return {
        "queue_urls": f"QUEUE_URLS: !Sub '{urls}'\n",
        "queue_arns": _listed("Resource", (f"!GetAtt {each}.Arn" for each in queues)),
        "followed_names": f"TABLES: !Sub '{json.dumps({each: f'${{{each}}}' for each in FOLLOWED})}'\n",
        "followed_arns": _listed("Resource", (f"!GetAtt {each}.Arn" for each in FOLLOWED)),
        "curated_retention": "".join(_retention(each) for each, entity in ENTITIES.items() if entity.may_age),
        "deliveries": "".join(_delivery(*each) for each in streams.items()),
        "delivery_streams": "".join(
            f"{entity.upper()}_DELIVERY_STREAM: !Ref {each}\n" for entity, each in streams.items()
        ),
        "delivery_arns": _listed("Resource", (f"!GetAtt {each}.Arn" for each in streams.values())),
        "published_streams": _listed(
            "Resource",
            (
                f"!GetAtt {table}.StreamArn"
                for table in (*(table for table, _, _ in PUBLISHED.values()), *KEPT_ITEMS)
            ),
        ),
        "spark_modules": f"--additional-python-modules: {_locked(*SPARK_MODULES)}\n",
        "memory_events": _listed("event_type", sorted(set(DERIVATIONS) | IDENTITY_TYPES)),
        "feature_events": _listed("event_type", sorted(triggers | IDENTITY_TYPES)),
        "schema_digest": f"Digest: {_digest('sql/identity/*.sql')} # so that a change of it is applied\n",
        "sources": f"Sources: {_digest(*SOURCES)} # of the template and the layers\n",
        "parameters": "".join(f"{name}: {_text_of(name, kind)}\n" for name, kind in parameters),
        "watched": "".join(f"{each[0]}: {_shown(*each)}\n" for each in watched if each[1] in WATCHED),
    }


def _listed(key: str, items: Iterable[str]) -> str:
    return f"{key}:\n" + "".join(f"  - {each}\n" for each in items)


def _retention(entity: str) -> str:
    """Return the rule that deletes an entity's old curated files."""
    return fill(DERIVED["curated_retention"], name=entity.replace("_", "-"), entity=entity)


def _delivery(entity: str, stream: str) -> str:
    made = fill(DERIVED["delivery"], stream=stream, entity=entity)
    if entity in PUBLISHED:
        return made + _mapping(*PUBLISHED[entity])
    return made + "".join(_mapping(table, *each) for table, each in KEPT_ITEMS.items())


def _mapping(table: str, mapping: str, patterns: Iterable[str]) -> str:
    changes = "\n          ".join(f"- Pattern: '{each}'" for each in patterns)
    return fill(DERIVED["published"], table=table, mapping=mapping, changes=changes)


def _shown(logical_id: str, kind: str, condition: str) -> str:
    """Return what names a resource in its metrics: for a queue its QueueName, for any other its Ref.

    A resource that is absent is named `none`. Raises ValueError for a condition of anything but a function.
    """
    if condition and kind != FUNCTION:
        raise ValueError(f"{logical_id} has a condition; only functions may")
    shown = f"!GetAtt {logical_id}.QueueName" if kind == QUEUE else f"!Ref {logical_id}"
    return f"!If [{condition}, {shown}, none]" if condition else shown


def _locked(*packages: str) -> str:
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
