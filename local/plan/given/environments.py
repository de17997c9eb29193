"""The environments of samconfig.toml, and what CloudFormation would make of each."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from adapters.settings.choices import settings_of
from local.paths import ROOT

SAMCONFIG = ROOT / "samconfig.toml"
SMALL, DEFAULT = "small", "default"
Resource = Mapping[str, Any]


class UnknownEnvironment(ValueError):
    """samconfig.toml has no such environment."""


@dataclass(frozen=True)
class Deployment:
    """An environment, resolved.

    resources: by logical id, those of nested stacks as `Network/Vpc`; each with Type and Properties.
    parameters: the root template's, defaults included, and by the same kind of name what Size says
    (infra/app/sizes.yaml) and each setting (docs/settings.md).
    """

    name: str
    parameters: Mapping[str, str]
    resources: Mapping[str, Resource]

    def of_type(self, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield logical id and properties of each resource of a type."""
        for name, each in self.resources.items():
            if each["Type"] == kind:
                yield name, each.get("Properties", {})

    @property
    def has_cache(self) -> bool:
        """Whether functions are given a Redis."""
        return any(self.of_type("AWS::ElastiCache::ServerlessCache")) or bool(self.parameters.get("RedisUrl"))

    @cached_property
    def functions(self) -> Mapping[str, Mapping[str, Any]]:
        """The properties of each function."""
        return dict(self.of_type("AWS::Lambda::Function"))

    @cached_property
    def mappings(self) -> tuple["EventSource", ...]:
        """What each function is handed batches of."""
        found = (each for _, each in self.of_type("AWS::Lambda::EventSourceMapping"))
        return tuple(_source(each) for each in found)


@dataclass(frozen=True, slots=True)
class EventSource:
    """A stream or queue and the function that gets its batches. concurrency_max: 0 if it is not limited."""

    function: str
    source: str
    kind: str  # "StreamArn" of a table, "Arn" of a queue or a Kinesis stream
    batch_size: int
    window_seconds: float
    concurrency_max: int


def called(function: Mapping[str, Any]) -> str:
    """Return the logical id of a function that a template names by Ref, by its alias or by GetAtt."""
    named = function.get("Ref") or _attribute(function)[0]
    return str(named).removesuffix(".Alias")


def _source(mapping: Mapping[str, Any]) -> EventSource:
    source, kind = _attribute(mapping["EventSourceArn"])
    return EventSource(
        function=called(mapping["FunctionName"]),
        source=source,
        kind=kind,
        batch_size=int(mapping.get("BatchSize", 100)),
        window_seconds=float(mapping.get("MaximumBatchingWindowInSeconds", 0)),
        concurrency_max=int(mapping.get("ScalingConfig", {}).get("MaximumConcurrency", 0)),
    )


def _attribute(value: Mapping[str, Any]) -> tuple[str, str]:
    found = value["Fn::GetAtt"]
    name, attribute = found.split(".", 1) if isinstance(found, str) else found
    return str(name), str(attribute)


def overrides(path: Path = SAMCONFIG) -> dict[str, dict[str, str]]:
    """Return each environment's parameters. `default` is what `sam` takes unasked: we call it small."""
    tables = tomllib.loads(path.read_text())
    found = {
        name: _pairs(table.get("deploy", {}).get("parameters", {}).get("parameter_overrides", []))
        for name, table in tables.items()
        if isinstance(table, dict) and "deploy" in table
    }
    if DEFAULT in found:
        found.setdefault(SMALL, found[DEFAULT])
    return found


def _pairs(given: str | list[str]) -> dict[str, str]:
    """Read `Name=value` pairs: a list of them, or one text with blanks between."""
    listed = given.split() if isinstance(given, str) else given
    return {name: value.strip('"') for name, _, value in (each.partition("=") for each in listed)}


def deployment(name: str, path: Path = SAMCONFIG) -> Deployment:
    """Resolve the template for an environment; raises UnknownEnvironment."""
    known = overrides(path)
    if name not in known:
        raise UnknownEnvironment(f"{path.name} has no environment {name}: it has {', '.join(sorted(known))}")
    return deployed_with(name, known[name])


def deployed_with(name: str, parameters: Mapping[str, str]) -> Deployment:
    """Resolve the template for some parameters, by the name of what has them."""
    from infra.lint.expanded import read
    from infra.lint.resolved import TEMPLATE, resolved

    stacks = resolved(parameters)
    resources = {
        f"{place.strip('/')}/{each}".lstrip("/"): resource
        for place, stack in stacks.items()
        for each, resource in stack.resources.items()
    }
    told = stacks["/"].parameters
    sized = {row: of[told["Size"]] for row, of in read(TEMPLATE)["Mappings"]["Sizes"].items()}
    values = {**sized, **settings_of(told["Settings"]), **told}
    return Deployment(name, {key: str(each) for key, each in values.items()}, resources)
