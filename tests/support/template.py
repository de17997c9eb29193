"""template.yaml as data: so that tests demand of it what the design does, and make tables from it."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]


class _Loader(yaml.SafeLoader):
    """Reads CloudFormation's short forms: !Ref X -> {"Ref": X}, !GetAtt X.Y -> {"Fn::GetAtt": "X.Y"}."""


def _short(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        return {name: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.MappingNode)
    return {name: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _short)


@cache
def template(name: str = "template.yaml") -> dict[str, Any]:
    """Return a parsed template."""
    loaded: dict[str, Any] = yaml.load((ROOT / name).read_text(), Loader=_Loader)
    return loaded


def resources(kind: str) -> dict[str, dict[str, Any]]:
    """Return the resources of a type, by logical id."""
    found = template()["Resources"].items()
    return {name: each for name, each in found if each["Type"] == kind}


def table_definition(logical_id: str, name: str) -> dict[str, Any]:
    """Return CreateTable's arguments for a table of the template."""
    wanted = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
    properties = template()["Resources"][logical_id]["Properties"]
    definition = {key: properties[key] for key in wanted if key in properties}
    if "StreamSpecification" in properties:
        definition["StreamSpecification"] = {"StreamEnabled": True, **properties["StreamSpecification"]}
    return {"TableName": name, **definition}
