"""Runs all checks on all sets of parameters, and says of each fault with which parameters it occurs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from samtranslator.model.exceptions import InvalidDocumentException

from infra.lint import variants
from infra.lint.checks import (
    absent,
    actions,
    documents,
    layers,
    limits,
    networks,
    partitions,
    queues,
    reserved,
    retained,
    roles,
    values,
)
from infra.lint.expanded import read
from infra.lint.faults import Fault, Sets
from infra.lint.intrinsics import Unresolvable, spelled
from infra.lint.parameter_sets import environments, parameter_sets
from infra.lint.refusals import Refused
from infra.lint.resolved import Stack, resolved

Stacks = Mapping[str, Stack]
Check = Callable[[Stacks], Iterator[Fault]]
CHECKS: tuple[Check, ...] = (
    absent.faults,
    documents.faults,
    actions.faults,
    roles.faults,
    networks.faults,
    values.faults,
    layers.faults,
    queues.faults,
    limits.faults,
    retained.faults,
)


ENVIRONMENT = "--config-env"


def run(template: Path, memory: Path = variants.MEMORY) -> tuple[list[str], int]:
    """Return a line per fault, and how many sets of parameters were looked at. memory: see variants.py."""
    overrides = parameter_sets(template)
    named = environments(template.parent / "samconfig.toml")
    named = {name: each for name, each in named.items() if each != overrides[0]}
    first = [0, *range(len(overrides), len(overrides) + len(named))]
    told = [*overrides, *({**each, ENVIRONMENT: name} for name, each in named.items())]
    overrides += named.values()
    found: dict[Fault, set[int]] = {}
    sets: list[Stacks] = []
    for number, each in enumerate(overrides):
        stacks, refused = _resolved(template, each)
        sets.append(stacks)
        for fault in chain(refused, _checked(stacks, defaults=number == 0, first=number in first)):
            found.setdefault(fault, set()).add(number)
    for fault, numbers in variants.faults(sets, first, memory):
        found.setdefault(fault, set()).update(numbers)
    where = Sets(told, {**_defaults(template), ENVIRONMENT: ""}).where
    lines = [f"{fault} ({where(found[fault])})" for fault in sorted(found)]
    return lines + [str(fault) for fault in _once(sets)], len(sets)


def _resolved(template: Path, overrides: Mapping[str, str]) -> tuple[Stacks, list[Fault]]:
    try:
        return resolved(overrides, template), []
    except (Refused, Unresolvable) as refusal:
        return {}, [Fault("/", "parameters", str(refusal))]
    except InvalidDocumentException as refusal:
        return {}, [Fault("/", "transform", each.message) for each in refusal.causes]


def _checked(stacks: Stacks, *, defaults: bool, first: bool) -> Iterator[Fault]:
    """Run the checks. first: with these parameters somebody may deploy for the first time."""
    if stacks:
        yield from chain.from_iterable(check(stacks) for check in CHECKS)
        yield from retained.protected(stacks) if first else ()
        yield from reserved.faults(stacks) if defaults else ()


def _defaults(template: Path) -> dict[str, str]:
    declared = read(template).get("Parameters", {})
    return {name: spelled(shape["Default"]) for name, shape in declared.items() if "Default" in shape}


def _once(sets: Iterable[Stacks]) -> Iterator[Fault]:
    """Find what does not depend on parameters: literal partitions, and conditions that never change."""
    stacks = [stack for each in sets for stack in each.values()]
    for file in sorted({stack.template for stack in stacks}):
        yield from partitions.faults(file)
    seen: dict[str, set[bool]] = {}
    for stack in stacks:
        for name, held in stack.conditions.items() if stack.path == "/" else ():
            seen.setdefault(name, set()).add(held)
    for name, held_as in seen.items():
        if len(held_as) == 1:
            reason = f"the condition is {spelled(*held_as)} in every set, so nobody sees what it decides"
            yield Fault("/", name, reason)
