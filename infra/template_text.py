"""Reads and fills templates as text, so that comments and short forms (!Ref) stay as they were written.

A *pattern* has places to fill in, such as <name>. A *mark* is a line such as `# @queue_arns`, in whose place
another text is put. Templates are also read as data: !Ref X is {"Ref": "X"}, !GetAtt X.Y is
{"Fn::GetAtt": "X.Y"}.
"""

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
# A resource's lines, with the empty lines and comments before it.
RESOURCE = re.compile(r"\n*(?:  #.*\n)*  \w+:.*\n(?:    .*\n)*")


@dataclass(frozen=True, slots=True)
class Block:
    """A resource."""

    logical_id: str
    kind: str
    properties: dict[str, Any]
    text: str  # its lines, with the empty lines and comments before it
    condition: str = ""  # "" for none

    @property
    def name(self) -> str:
        """The logical id; for a function without its ending `Function`."""
        return self.logical_id.removesuffix("Function")


def parse(text: str) -> dict[str, Any]:
    """Return a template, or a part of one, as data."""
    loaded: dict[str, Any] = yaml.load(text, Loader=_Loader)  # noqa: S506 (a SafeLoader with short forms)
    return loaded


class _Loader(yaml.CSafeLoader):
    pass


def _short_form(loader: _Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        return {name: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    assert isinstance(node, yaml.MappingNode)  # noqa: S101 (YAML has no fourth kind)
    return {name: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _short_form)


def sections(path: str) -> dict[str, str]:
    """Return a file's top-level sections, name -> text; the name "" has the text before the first section."""
    before, *rest = re.split(r"(?m)^([A-Za-z][\w:]*):\n", (ROOT / path).read_text())
    return {"": before, **dict(zip(rest[::2], rest[1::2], strict=True))}


def patterns(name: str) -> dict[str, str]:
    """Return the patterns of a file of infra/patterns, name -> text, without comments."""
    texts = sections(f"infra/patterns/{name}.yaml")
    return {key: re.sub(r"(?m)^(#.*)?\n", "", text) for key, text in texts.items()}


def fill(pattern: str, **values: object) -> str:
    """Return a pattern with each <name> in it replaced by that value."""
    return re.sub(r"<(\w+)>", lambda match: str(values[match[1]]), pattern)


def with_condition(condition: str, resources: str) -> str:
    """Return resources with a condition, which none of them has yet; "": as they are."""
    if not condition:
        return resources
    text = re.sub(r"(?m)^(    Type: .*\n)", rf"\1    Condition: {condition}\n", resources)
    return re.sub(r"(?m)^(  \w+: \{Type: [^,]+, )", rf"\1Condition: {condition}, ", text)  # those of one line


def replace_marks(text: str, marks: Mapping[str, str]) -> str:
    """Return a text in which each line `# @name` is replaced by its mark's text, with the line's indentation.

    Raises ValueError for an unknown mark.
    """

    def mark_text(match: re.Match[str]) -> str:
        if match[2] not in marks:
            raise ValueError(f"# @{match[2]} stands for nothing; known are {', '.join(marks)}")
        return textwrap.indent(textwrap.dedent(marks[match[2]]), match[1])

    return re.sub(r"(?m)^( *)# @(\w+)\n", mark_text, text)


def blocks(resources: str) -> list[Block]:
    """Return the resources of a section; raises ValueError if a line belongs to none of them."""
    texts = RESOURCE.findall(resources)
    if "".join(texts) != resources:
        raise ValueError(f"not all of this is resources, indented by two blanks:\n{resources[:400]}")
    return [_block(text) for text in texts]


def _block(text: str) -> Block:
    ((logical_id, declared),) = parse(text).items()
    properties = declared.get("Properties") or {}
    return Block(logical_id, declared["Type"], properties, text, declared.get("Condition", ""))
