"""The environments of samconfig.toml: what CloudFormation would make of each, the handlers and consumers
of its functions, and how often its schedules fire.
"""

import json
import re
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
    from infra.stacks import TEMPLATE, read_template, resolve_stacks

    stacks = resolve_stacks(parameters)
    resources = {
        f"{place.strip('/')}/{each}".lstrip("/"): resource
        for place, stack in stacks.items()
        for each, resource in stack.resources.items()
    }
    told = stacks["/"].parameters
    sized = {row: of[told["Size"]] for row, of in read_template(TEMPLATE)["Mappings"]["Sizes"].items()}
    values = {**sized, **settings_of(told["Settings"]), **told}
    return Deployment(name, {key: str(each) for key, each in values.items()}, resources)


# How often a schedule of EventBridge fires, and how many states a run of the state machine enters.


DAYS_A_MONTH = 365 / 12
SECONDS_A_DAY = 86_400
UNIT_SECONDS = {"minute": 60, "hour": 3600, "day": SECONDS_A_DAY}


def fires_a_day(expression: str) -> float:
    """Return how often `rate(15 minutes)` or `cron(30 2 * * ? *)` fires a day; raises ValueError."""
    if found := re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", expression):
        return SECONDS_A_DAY / (int(found[1]) * UNIT_SECONDS[found[2]])
    if found := re.fullmatch(r"cron\((\S+) (\S+) (\S+) (\S+) (\S+) (\S+)\)", expression):
        if any(each not in ("*", "?") for each in found.groups()[2:]):
            raise ValueError(f"the planner knows schedules of every day alone: {expression}")
        return _matches(found[1], 60) * _matches(found[2], 24)
    raise ValueError(f"the planner does not know the schedule {expression}")


def _matches(field: str, count: int) -> int:
    """Return how many of so many values a field of cron names: *, 5, 1,2, 8-17, */15 or 0/15."""
    named: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        begin = 0 if first == "*" else int(first)
        end = int(last) if last else (begin if not step and first != "*" else count - 1)
        named |= set(range(begin, end + 1, int(step or 1)))
    return len(named)


def states_of(definition: Path) -> int:
    """Return how many states a run enters that succeeds; a map counts as one, and nothing is done twice."""
    text = re.sub(r"\$\{\w+\}", "0", definition.read_text())
    return _entered(json.loads(text))


def _entered(machine: dict[str, Any]) -> int:
    name, count = machine["StartAt"], 0
    while name:
        state = machine["States"][name]
        count += 1 + sum(map(_entered, state.get("Branches", ())))
        name = state.get("Next", state.get("Default", ""))
    return count
