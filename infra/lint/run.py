"""Runs all checks on all sets of parameters, and says of each fault with which parameters it occurs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from samtranslator.model.exceptions import InvalidDocumentException

from infra.lint import functions, iam, templates, variants
from infra.lint.faults import Fault, fewest_parameters, on_aws, parameters_in_words
from infra.lint.intrinsics import ParametersRefused, Unresolvable, scalar_text
from infra.lint.parameter_sets import STRENGTH, environments, parameter_sets
from infra.lint.stacks import Stack, resolve_stacks

Stacks = Mapping[str, Stack]
Check = Callable[[Stacks], Iterator[Fault]]
CHECKS: tuple[Check, ...] = (
    templates.absence_faults,
    iam.document_faults,
    iam.action_faults,
    iam.role_faults,
    functions.network_faults,
    templates.value_faults,
    functions.layer_faults,
    functions.queue_faults,
    templates.limit_faults,
    templates.retention_faults,
    functions.quota_faults,
)


ENVIRONMENT = "--config-env"


@dataclass(slots=True)
class ResolvedSets:
    """What was resolved. told: the parameters of each set. first: numbers of sets of a first deployment.

    refused: what CloudFormation would say of sets that it does not take -> the parameters of one of them.
    """

    sets: list[Stacks] = field(default_factory=list)
    told: list[Mapping[str, str]] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    refused: dict[Fault, Mapping[str, str]] = field(default_factory=dict)


def run(template: Path, memory: Path = variants.MEMORY, strength: int = STRENGTH) -> tuple[list[str], int]:
    """Return a line per fault, and how many sets of parameters were looked at.

    memory: see variants.py. strength: all combinations of so many values occur. Below STRENGTH, cfn-lint
    looks at sets of a first deployment only: all variants take it minutes.
    """
    runs = _resolve_sets(template, strength)
    found: dict[Fault, set[int]] = {}
    for number, stacks in enumerate(runs.sets):
        for fault in _run_checks(stacks, defaults=not runs.told[number], first=number in runs.first):
            found.setdefault(fault, set()).add(number)
    linted = range(len(runs.sets)) if strength >= STRENGTH else runs.first
    whole = [place for place, number in enumerate(linted) if number in runs.first]
    for fault, places in variants.faults([runs.sets[each] for each in linted], whole, memory):
        found.setdefault(fault, set()).update(linted[each] for each in places)
    lines = [
        f"{fault} (for instance with {parameters_in_words(each)})" for fault, each in runs.refused.items()
    ]
    lines += [f"{fault} ({_parameters_text(fault, found[fault], runs, template)})" for fault in sorted(found)]
    once = _check_once(runs.sets, are_all=strength >= STRENGTH)
    return lines + [str(fault) for fault in once], len(runs.sets) + len(runs.refused)


def _parameters_text(fault: Fault, numbers: set[int], runs: ResolvedSets, template: Path) -> str:
    """Return the words for the parameters with which a fault occurs. numbers: of the sets that have it."""
    if len(numbers) == len(runs.sets):
        return "with any parameters"
    number = min(numbers, key=lambda each: (not on_aws(runs.sets[each]), len(runs.told[each]), each))
    told = runs.told[number]
    variant = _variant(fault, runs.sets[number])

    def still(fewer: Mapping[str, str]) -> bool:
        try:
            stacks = resolve_stacks(fewer, template)
        except (ParametersRefused, Unresolvable, InvalidDocumentException):
            return False
        return fault in _run_checks(stacks) or _variant(fault, stacks) == variant is not None

    return "with " + parameters_in_words(
        told if ENVIRONMENT in told or len(told) < 2 else fewest_parameters(told, still)
    )


def _variant(fault: Fault, stacks: Stacks) -> Mapping[str, Any] | None:
    """Return the resource that a fault is in, if cfn-lint found it."""
    return (
        stacks[fault.stack].resources.get(fault.place)
        if variants.by_cfn_lint(fault) and fault.stack in stacks
        else None
    )


def _resolve_sets(template: Path, strength: int) -> ResolvedSets:
    """Resolve the template for all sets of parameters."""
    made = parameter_sets(template, strength)
    named = environments(template.parent / "samconfig.toml").items()
    runs = ResolvedSets()
    for name, given in [*(("", each) for each in made), *(each for each in named if each[1] != made[0])]:
        told = {**given, ENVIRONMENT: name} if name else given
        try:
            stacks = resolve_stacks(given, template)
        except (ParametersRefused, Unresolvable) as refusal:
            runs.refused.setdefault(Fault("/", "parameters", str(refusal)), told)
        except InvalidDocumentException as refusal:
            for each in refusal.causes:
                runs.refused.setdefault(Fault("/", "transform", each.message), told)
        else:
            runs.first += [len(runs.sets)] if name or given == made[0] else []
            runs.sets.append(stacks)
            runs.told.append(told)
    return runs


def _run_checks(stacks: Stacks, *, defaults: bool = False, first: bool = False) -> Iterator[Fault]:
    """Run the checks. first: with these parameters somebody may deploy for the first time."""
    yield from chain.from_iterable(check(stacks) for check in CHECKS)
    yield from templates.protection_faults(stacks) if first else ()
    yield from functions.reserved_faults(stacks) if defaults else ()


def _check_once(sets: Iterable[Stacks], *, are_all: bool) -> Iterator[Fault]:
    """Find what does not depend on parameters: literal partitions, and conditions that never change.

    are_all: these are all sets, so a condition that is always the same is a fault. It may take three values.
    """
    stacks = [stack for each in sets for stack in each.values()]
    for file in sorted({stack.template for stack in stacks}):
        yield from iam.partition_faults(file)
    seen: dict[str, set[bool]] = {}
    for stack in stacks:
        for name, held in stack.conditions.items() if stack.path == "/" else ():
            seen.setdefault(name, set()).add(held)
    for name, held_as in seen.items():
        if are_all and len(held_as) == 1:
            reason = f"the condition is {scalar_text(*held_as)} in every set, so nobody sees what it decides"
            yield Fault("/", name, reason)
