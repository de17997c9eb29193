"""What cfn-lint gets: whole templates of some sets, and each further variant of a resource once.

So rules that look at several resources see them together in whole templates only. All others see everything.
What was linted before is remembered in a file, so a run after which no template changed takes no cfn-lint.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from infra.lint.faults import Fault
from infra.lint.stacks import NESTED, Stack, references
from infra.template_text import ROOT

# What was found before in the same content, so that only what has changed is looked at again.


Found = list[tuple[str, ...]]


def remember_findings(
    path: Path, version: str, contents: Sequence[Any], look: Callable[[Sequence[Any]], Iterable[Found]]
) -> list[Found]:
    """Return what was found in each content, looking only at those that the file at path does not know.

    version: of whatever looks; a content is JSON data. The file keeps these contents and no others.
    """
    keys = [hashlib.sha256(f"{version}{json.dumps(each)}".encode()).hexdigest() for each in contents]
    known = _read_findings(path)
    new = [number for number, key in enumerate(keys) if key not in known]
    for number, found in zip(new, look([contents[number] for number in new]), strict=True):
        known[keys[number]] = found
    kept = {key: known[key] for key in keys}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{hashlib.sha256(json.dumps(kept).encode()).hexdigest()[:8]}")
    part.write_text(json.dumps(kept))
    part.replace(path)
    return [kept[key] for key in keys]


def _read_findings(path: Path) -> dict[str, Found]:
    try:
        found: Mapping[str, list[list[str]]] = json.loads(path.read_text())
        return {key: [tuple(each) for each in value] for key, value in found.items()}
    except (FileNotFoundError, ValueError):
        return {}


MEMORY = ROOT / ".local" / "lint" / "found.json"
OUTPUTS = "Outputs"


@dataclass(frozen=True, slots=True)
class Job:
    """A template to lint. new: logical id -> resource, and OUTPUTS -> outputs. stubs: what these refer to.

    sets: logical id, or OUTPUTS -> numbers of the sets that have this variant of it.
    """

    stack: str
    new: dict[str, Any] = field(default_factory=dict)
    stubs: dict[str, Any] = field(default_factory=dict)
    sets: dict[str, list[int]] = field(default_factory=dict)

    def template(self) -> dict[str, Any]:
        """Return the template, without what is empty."""
        resources = {name: each for name, each in self.new.items() if name != OUTPUTS}
        outputs = {name: {"Value": each} for name, each in self.new.get(OUTPUTS, {}).items()}
        return {
            "AWSTemplateFormatVersion": "2010-09-09",
            "Resources": {
                name: {key: each for key, each in resource.items() if each not in ([], {})}
                for name, resource in {**self.stubs, **resources}.items()
            },
            **({"Outputs": outputs} if outputs else {}),
        }


def faults(
    sets: Sequence[Mapping[str, Stack]], whole: Sequence[int], memory: Path = MEMORY
) -> Iterator[tuple[Fault, list[int]]]:
    """Give the faults with the numbers of their sets. whole: sets whose templates are linted as a whole."""
    todo = jobs(sets, whole)
    by = version("cfn-lint") + (Path(__file__).parent / "cfn_lint.py").read_text()
    for job, found in zip(
        todo, remember_findings(memory, by, [each.template() for each in todo], _lint), strict=True
    ):
        for section, name, reason in found:
            variant = OUTPUTS if section == OUTPUTS else name
            if variant in job.sets:
                yield Fault(job.stack, name, reason), job.sets[variant]


def by_cfn_lint(fault: Fault) -> bool:
    """Tell whether a fault is one of these, by its words."""
    return "(cfn-lint " in fault.reason


def _lint(templates: Sequence[Any]) -> list[Found]:
    if not templates:
        return []
    from infra.lint.cfn_lint import lint_all  # noqa: PLC0415 (it loads for seconds)

    return lint_all(templates)


def jobs(sets: Sequence[Mapping[str, Stack]], whole: Sequence[int]) -> list[Job]:
    """Return templates that have each variant of each resource, those of whole sets together."""
    seen: dict[tuple[str, str, str], list[int]] = {}
    together: list[Job] = []
    packed: dict[str, list[Job]] = {}
    for number in (*whole, *(each for each in range(len(sets)) if each not in whole)):
        for stack in sets[number].values():
            variants = {**stack.resources, OUTPUTS: stack.outputs}
            keys = {name: (stack.path, name, json.dumps(each)) for name, each in variants.items()}
            new = [name for name, key in keys.items() if key not in seen]
            for key in keys.values():
                seen.setdefault(key, []).append(number)
            if number not in whole:
                for name in new:
                    _put_variant(
                        packed.setdefault(stack.path, []), stack, name, variants[name], seen[keys[name]]
                    )
            elif new:
                together.append(Job(stack.path))
                for name, key in keys.items():
                    _put_variant(together[-1:], stack, name, variants[name], seen[key])
    return [*together, *(job for each in packed.values() for job in each)]


def _put_variant(
    into: list[Job], stack: Stack, name: str, variant: Mapping[str, Any], sets: list[int]
) -> None:
    """Put a variant, with what it refers to, into the first of these jobs that has no other variant of it."""
    job = next((each for each in into if name not in each.new), None)
    if job is None:
        job = Job(stack.path)
        into.append(job)
    job.new[name] = variant
    job.sets[name] = sets
    named = [each for each, _ in references(variant)] + list(variant.get("DependsOn", []))
    job.stubs.update({each: _stub(stack.types[each]) for each in named if each in stack.types})


def _stub(kind: str) -> dict[str, Any]:
    """Return a resource that others can refer to. What cfn-lint finds in itself is not looked at."""
    known = {NESTED: {"TemplateURL": "x"}, "AWS::EC2::SecurityGroup": {"VpcId": "vpc-0"}}
    return {"Type": kind, "Properties": known[kind]} if kind in known else {"Type": kind}
