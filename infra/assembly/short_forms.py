"""CloudFormation's YAML as data: !Ref X is {"Ref": "X"}, !GetAtt X.Y is {"Fn::GetAtt": "X.Y"}."""

from typing import Any

import yaml


class _Loader(yaml.CSafeLoader):
    pass


def _short(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        return {name: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.MappingNode)  # noqa: S101 (YAML has no fourth kind)
    return {name: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _short)


def parse(text: str) -> dict[str, Any]:
    """Return a template, or a part of one, as data."""
    loaded: dict[str, Any] = yaml.load(text, Loader=_Loader)  # noqa: S506 (a SafeLoader with short forms)
    return loaded
