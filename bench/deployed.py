"""Reads from the template: the modules of handlers, and the functions that a table's changes go to."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from bench.units.standing import called
from infra.template_text import parse
from local.cloud.streams import matches
from local.paths import ROOT
from rules.parts import Part

# Conditions of what is deployed by default: none, and those of the parts that may be left out
ON_BY_DEFAULT = (None, *(f"Has{part.title()}" for part in Part))


@dataclass(frozen=True, slots=True)
class StreamConsumer:
    """A function that is handed a table's changes."""

    function: str
    table: str
    patterns: tuple[str, ...]  # of its filter; none: it is handed all changes

    def wants(self, record: Mapping[str, Any]) -> bool:
        """Whether a record gets through the filter."""
        return not self.patterns or any(matches(json.loads(pattern), record) for pattern in self.patterns)


@cache
def template() -> dict[str, Any]:
    """Return template.yaml as data."""
    return parse((ROOT / "template.yaml").read_text())


@cache
def handler_modules() -> dict[str, str]:
    """Return the module of each function's handler, by the function's name in the template."""
    return {
        name: each["Properties"]["Handler"].rpartition(".")[0]
        for name, each in template()["Resources"].items()
        if each["Type"] == "AWS::Serverless::Function"
    }


@cache
def consumers(table: str) -> tuple[StreamConsumer, ...]:
    """Return the functions that a table's changes are handed to, except those that are off by default."""
    mappings = (
        each["Properties"]
        for each in template()["Resources"].values()
        if each["Type"] == "AWS::Lambda::EventSourceMapping" and each.get("Condition") in ON_BY_DEFAULT
    )
    return tuple(
        StreamConsumer(
            called(mapping["FunctionName"]),
            table,
            tuple(each["Pattern"] for each in mapping.get("FilterCriteria", {}).get("Filters", ())),
        )
        for mapping in mappings
        if mapping["EventSourceArn"] == {"Fn::GetAtt": f"{table}.StreamArn"}
    )
