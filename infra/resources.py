"""Completes the resources of a fragment of the template, for infra/assemble.py.

A *pattern* is a piece of YAML with places to fill in, such as <name>. A resource gets the pattern that all
resources of its type have (infra/patterns/common.yaml). After it come resources that are derived from it,
such as a function's log group and routes (infra/patterns/derived.yaml).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from infra.template_text import Block, blocks, fill, patterns, with_condition
from ingest.openapi import ROUTES
from ingest.web.routes import Route
from rules.regions.changes import KEYS as FOLLOWED_TABLES

FUNCTION, TABLE, QUEUE = "AWS::Serverless::Function", "AWS::DynamoDB::Table", "AWS::SQS::Queue"
BUCKET = "AWS::S3::Bucket"
DELIVERY, MAPPING = "AWS::KinesisFirehose::DeliveryStream", "AWS::Lambda::EventSourceMapping"
COMMON, DERIVED = patterns("common"), patterns("derived")
TYPE_LINE = re.compile(r"(?m)^    Type: .*\n")
# A function with one of these variables connects to a server in the network. Variables -> the condition under
# which the function is in the network.
NETWORKS = {
    frozenset({"REDIS_URL"}): "CacheInVpc",
    frozenset({"IDENTITY_URL"}): "IdentityInVpc",
    frozenset({"REDIS_URL", "IDENTITY_URL"}): "LeadsInVpc",
}
# Type of a resource that has an output -> the ending of the output's name
OUTPUTS = {FUNCTION: "Name", QUEUE: "Url", TABLE: "Table"}
GATEWAY_SECONDS_MIN = 16
# These are called by an alias, and so are the functions that routes lead to: infra/app/release.yaml says why.
CALLED_BY_ALIAS = {"Engagement"}
VARIABLES = "        Variables:\n"
STATEMENTS = "          Statement:\n"
# Buckets whose objects are copied to the other region, in the order of the parameter PeerBuckets.
COPIED_BUCKETS = ("PayloadBucket", "LakeBucket")


def complete_resources(resources: str) -> Iterator[Block]:
    """Yield the resources of a section as they are deployed, each followed by those derived from it."""
    for block in blocks(resources):
        for resource in (block, *blocks(_derived_resources(block))):
            yield replace(resource, text=_complete_resource(resource))


def output(block: Block) -> str:
    """Return the output that names a function, a queue or a table; "" for another resource."""
    name = f"{block.logical_id}{OUTPUTS.get(block.kind, '')}"
    condition = f"Condition: {block.condition}, " if block.condition else ""
    return f"  {name}: {{{condition}Value: !Ref {block.logical_id}}}\n" if block.kind in OUTPUTS else ""


def _derived_resources(block: Block) -> str:
    if block.kind == BUCKET:
        return fill(DERIVED["bucket_policy"], name=block.name)
    if block.kind != FUNCTION:
        return ""
    text = fill(DERIVED["log_group"], name=block.name)
    routes = _routes(block)
    if routes:  # the gateway must wait at least a second longer than the function may run
        seconds = max(GATEWAY_SECONDS_MIN, block.properties["Timeout"] + 1)
        text += fill(DERIVED["door"], name=block.name, milliseconds=1000 * seconds)
    for route in routes:
        pattern = DERIVED["open_route" if route.is_open else "route"]
        route_text = fill(pattern, name=route.name, key=route.key, api=route.api)
        if route.method == "get":  # the gateway knows no HEAD of its own
            route_text += fill(pattern, name=f"Head{route.name}", key=f"HEAD {route.path}", api=route.api)
        part = "" if block.condition else route.part or ""
        text += with_condition(f"Has{part.title()}" if part else "", route_text)
    return with_condition(block.condition, text)


def _complete_resource(block: Block) -> str:
    """Return a resource's text with what all resources of its type have, and what follows from it alone.

    A table that the other region follows has a stream, a bucket is copied there. A function gets its network
    and statements. If an alias calls it, a new version gets a tenth of the calls at first.
    """
    if block.kind not in COMMON:
        return block.text
    type_line = TYPE_LINE.search(block.text)
    if type_line is None:
        raise ValueError(f"{block.logical_id}: its Type needs a line of its own")
    own_attributes, own_properties = _attributes_and_properties(block.text[type_line.end() :])
    attributes, properties = _attributes_and_properties(fill(COMMON[block.kind], name=block.name))
    if block.kind == TABLE and block.logical_id in FOLLOWED_TABLES:
        properties += DERIVED["followed"]
    if block.logical_id in COPIED_BUCKETS:
        properties += fill(DERIVED["copied"], place=COPIED_BUCKETS.index(block.logical_id))
    if block.kind == FUNCTION:
        properties += _network(block)
        own_properties = own_properties.replace(STATEMENTS, STATEMENTS + _statements(block), 1)
        if _routes(block) or block.name in CALLED_BY_ALIAS:
            gradual_attributes, gradual_properties = _attributes_and_properties(DERIVED["gradual"])
            attributes, properties = attributes + gradual_attributes, properties + gradual_properties
            own_properties = own_properties.replace(VARIABLES, VARIABLES + DERIVED["gradual_variable"])
    opening = block.text[: type_line.end()]
    return f"{opening}{attributes}{own_attributes}    Properties:\n{properties}{own_properties}"


def _attributes_and_properties(lines: str) -> tuple[str, str]:
    """Split the lines below a resource's Type: attributes such as DependsOn, and what is in Properties."""
    attributes, _, properties = lines.partition("    Properties:\n")
    return attributes, properties


def _routes(block: Block) -> list[Route]:
    return [route for route in ROUTES if route.api == block.name]


def _statements(block: Block) -> str:
    """Return the statements of a function's policy that follow from its variables."""
    variables = _variables(block)
    asks_for_turn = block.name in ("Sender", "OperationsApi")  # they ask whether it is the region's turn
    has_tables = any(name == "TABLES" or name.endswith("_TABLE") for name in variables)
    has_identity = "IDENTITY_URL" in variables and "ADMIN_SECRET_ARN" not in variables
    register = DERIVED["register"] if asks_for_turn or has_tables else ""
    return register + (DERIVED["identity"] if has_identity else "")


def _network(block: Block) -> str:
    """Return the VpcConfig of a function that connects to a server in the network; "" for another."""
    condition = NETWORKS.get(frozenset(_variables(block)) & {"REDIS_URL", "IDENTITY_URL"})
    return fill(DERIVED["network"], condition=condition) if condition else ""


def _variables(block: Block) -> Mapping[str, Any]:
    variables: Mapping[str, Any] = block.properties.get("Environment", {}).get("Variables", {})
    return variables
