"""The text that each mark of template.yaml's fragments stands for.

A mark is a line such as `# @queue_arns`. infra/assemble.py puts the text that `template_marks` returns for it
in its place. Some marks stand for a list over all domains, some for what `rules` declares.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from infra.alarms import DIMENSIONS, metric_reference, watched_conditions
from infra.resources import DELIVERY, DERIVED, QUEUE
from infra.template_text import ROOT, fill, with_condition
from rules.lake.entities import ENTITIES
from rules.lake.schema import CHANGES, PublishedTable
from rules.parts import said
from rules.regions.changes import KEYS as FOLLOWED

# Glue's own botocore is older than S3's conditional writes, and its numpy may be of version 1.
SPARK_MODULES = ("botocore", "duckdb", "isal", "numpy", "pyarrow")
# The files that the settings of functions and their layers come from;
# infra/observability.yaml follows from these.
SOURCES = (
    *("infra/app/*.yaml", "infra/patterns/*.yaml", "infra/[!o]*.yaml", "infra/layer/*", "uv.lock"),
    *("adapters/settings/choices.py", "rules/*/settings.py"),  # the defaults of the parameter Settings
)
# Where the cache and the identity database are. CloudFormation reads a secret of yours. A parameter with
# NoEcho would hide a password too, but `sam deploy --guided` takes no empty answer for such a one.
REDIS_URL = (
    "!If [HasCache, !GetAtt Cache.Outputs.Url, "
    '!If [HasRedisSecret, !Sub "{{resolve:secretsmanager:${RedisUrl}}}", !Ref RedisUrl]]'
)
IDENTITY_URL = (
    "!If [HasIdentity, !GetAtt Identity.Outputs.Url, "
    '!If [NamesIdentity, !Sub "{{resolve:secretsmanager:${IdentityUrl}}}", ""]]'
)


PUBLISHED_TABLES = {  # by entity of the lake
    name: entity.published for name, entity in ENTITIES.items() if entity.published
}
# Tables that have no entity of their own, beside Rewards (processors/fulfilment.py). What is kept of them:
# rules/lake/table_items.py; of Erasures it is the journal.
TOMBSTONES = ('{"eventName": ["INSERT"], "dynamodb": {"NewImage": {"part": {"S": ["journal"]}}}}',)
KEPT_ITEMS = (
    PublishedTable("IdempotencyKeys", "PublishKeysMapping", CHANGES),
    PublishedTable("Erasures", "PublishTombstonesMapping", TOMBSTONES),
)


class DeclaredResource(NamedTuple):
    """A resource of the template, as far as marks need to know it."""

    logical_id: str
    kind: str  # its Type
    condition: str = ""  # "" for none


def delivery_streams(entities: Iterable[str]) -> dict[str, str]:
    """Return the delivery stream of each entity."""
    return {name: name.title().replace("_", "") + "Delivery" for name in entities}


def template_marks(
    resources: Iterable[DeclaredResource],
    parameters: Iterable[tuple[str, str]],
    of_parts: Mapping[str, str],
) -> dict[str, str]:
    """Return the text of each mark.

    resources: those that the fragments declare. parameters: (name, type). of_parts: the condition of each
    resource that a deployment may leave out, also of delivery streams.
    """
    streams = delivery_streams(name for name, entity in ENTITIES.items() if not entity.is_of_nights)
    deliveries = (DeclaredResource(stream, DELIVERY, of_parts.get(stream, "")) for stream in streams.values())
    all_resources = [*resources, *deliveries]
    queues = [resource.logical_id for resource in all_resources if resource.kind == QUEUE]
    published = dict.fromkeys(each.table for each in (*PUBLISHED_TABLES.values(), *KEPT_ITEMS))
    watched = [resource for resource in all_resources if resource.kind in DIMENSIONS]
    filters = {mark: types for each in said("filters") for mark, types in each.items()}
    return {
        "queue_urls": f"QUEUE_URLS: {_names_as_json(queues, of_parts)}\n",
        "queue_arns": _yaml_list("Resource", (f"!GetAtt {queue}.Arn" for queue in queues)),
        "followed_names": f"TABLES: {_names_as_json(FOLLOWED, of_parts)}\n",
        "followed_arns": _yaml_list("Resource", (f"!GetAtt {table}.Arn" for table in FOLLOWED)),
        "redis_url": f"REDIS_URL: {REDIS_URL}\n",
        "identity_url": f"IDENTITY_URL: {IDENTITY_URL}\n",
        "curated_retention": "".join(_retention(name) for name, entity in ENTITIES.items() if entity.may_age),
        "deliveries": "".join(
            with_condition(of_parts.get(stream, ""), _delivery(entity, stream))
            for entity, stream in streams.items()
        ),
        "delivery_streams": "".join(
            f"{entity.upper()}_DELIVERY_STREAM: !Ref {stream}\n" for entity, stream in streams.items()
        ),
        "delivery_arns": _yaml_list("Resource", (f"!GetAtt {stream}.Arn" for stream in streams.values())),
        "published_streams": _yaml_list("Resource", (f"!GetAtt {table}.StreamArn" for table in published)),
        "spark_modules": f"--additional-python-modules: {_locked_versions(*SPARK_MODULES)}\n",
        **{mark: _yaml_list("event_type", types) for mark, types in filters.items()},
        "schema_digest": f"Digest: {_digest('sql/identity/*.sql')} # so that a change of it is applied\n",
        "sources": f"Sources: {_digest(*SOURCES)} # of the template and the layers\n",
        "parameters": "".join(f"{name}: {_text_of(name, kind)}\n" for name, kind in parameters),
        "watched": "".join(
            [
                *(f'{name}: !If [{name}, "true", "false"]\n' for name in watched_conditions(watched)),
                *(f"{resource.logical_id}: {metric_reference(*resource)}\n" for resource in watched),
            ]
        ),
    }


def _names_as_json(logical_ids: Iterable[str], of_parts: Mapping[str, str]) -> str:
    """Return JSON of logical id -> what Ref gives of it, without those that are left out."""
    by_condition: dict[str, list[str]] = {"": []}
    for name in logical_ids:
        by_condition.setdefault(of_parts.get(name, ""), []).append(f'"{name}": "${{{name}}}"')
    always = f"!Sub '{{{', '.join(by_condition.pop(''))}'"
    of_part = (
        f"!If [{condition}, !Sub ', {', '.join(names)}', \"\"]" for condition, names in by_condition.items()
    )
    return '!Join ["", [' + ", ".join([always, *of_part, '"}"']) + "]]"


def _yaml_list(key: str, items: Iterable[str]) -> str:
    return f"{key}:\n" + "".join(f"  - {item}\n" for item in items)


def _retention(entity: str) -> str:
    return fill(DERIVED["curated_retention"], name=entity.replace("_", "-"), entity=entity)


def _delivery(entity: str, stream: str) -> str:
    """Return an entity's delivery stream, and the mappings from the streams of its tables."""
    text = fill(DERIVED["delivery"], stream=stream, entity=entity)
    tables = (PUBLISHED_TABLES[entity],) if entity in PUBLISHED_TABLES else KEPT_ITEMS
    return text + "".join(_mapping_text(each) for each in tables if each.mapping)


def _mapping_text(published: PublishedTable) -> str:
    filters = [f"Pattern: '{pattern}'" for pattern in published.changes]
    criteria = f" {{Filters: [{{{filters[0]}}}]}}"
    if len(filters) > 1:
        criteria = "\n        Filters:" + "".join(f"\n          - {text}" for text in filters)
    return fill(DERIVED["published"], table=published.table, mapping=published.mapping, filters=criteria)


def _locked_versions(*packages: str) -> str:
    """Return packages as pip names them, in the versions of uv.lock for Glue's Python.

    Where uv.lock has several versions of a package, the lowest is for the oldest Python: 3.11, as Glue 5's.
    """
    lock = (ROOT / "uv.lock").read_text()
    requirements = []
    for name in packages:
        versions: list[str] = re.findall(rf'(?m)^name = "{name}"\nversion = "(.+)"$', lock)
        lowest = min(versions, key=lambda version: [*map(int, version.split("."))])
        requirements.append(f"{name}=={lowest}")
    return ",".join(requirements)


def _text_of(parameter: str, kind: str) -> str:
    """Return a parameter's value as text: a list becomes its items with commas."""
    return f"!Ref {parameter}" if kind in ("String", "Number") else f'!Join [",", !Ref {parameter}]'


def _digest(*patterns: str) -> str:
    files = sorted(path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
