"""What CloudFormation would make for one set of parameters: the template and what it nests, resolved.

    stacks = resolved({"Size": "large"})
    stacks["/"].resources["EventsApiFunction"]["Properties"]["Timeout"]      # 15
    stacks["/Network"].resources["Vpc"]["Type"]                              # "AWS::EC2::VPC"
    stacks["/"].flat({"Fn::GetAtt": ["LakeBucket", "Arn"]})                  # "arn:aws:s3:::..."

SAM's translator expands, conditions choose, and functions are evaluated. References to resources stay:
{"Ref": id}, {"Fn::GetAtt": [id, attribute]}, {"Fn::Sub": text}. `flat` puts well-formed stand-ins for them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from infra.lint import placeholders, refusals
from infra.lint.expanded import expanded
from infra.lint.intrinsics import LISTS, MARK, Scope, Unresolvable, function, holds, resolve, spelled
from infra.lint.refusals import Refused
from infra.template_text import ROOT

ALWAYS = {"Fn::Equals": ["", ""]}
NESTED = "AWS::CloudFormation::Stack"
TEMPLATE = ROOT / "template.yaml"


@dataclass(frozen=True, slots=True)
class Stack:
    """One stack, resolved.

    path: "/" for the root, "/Network" for what it nests under that logical id. template: the file.
    parameters: name -> value. conditions: name -> whether it holds. resources: logical id -> resource as in a
    template (Type, Properties, DependsOn as a list, DeletionPolicy ...), only those that are made.
    absent: logical id -> the condition that does not hold. types: logical id -> type, whether made or not.
    outputs: name -> value, only those that are made.
    nested: logical id -> stack.
    """

    path: str
    template: Path
    parameters: Mapping[str, Any]
    conditions: Mapping[str, bool]
    resources: Mapping[str, Mapping[str, Any]]
    absent: Mapping[str, str]
    types: Mapping[str, str]
    outputs: Mapping[str, Any]
    nested: Mapping[str, "Stack"] = field(default_factory=dict)

    def flat(self, value: Any) -> Any:
        """Return a value with a well-formed stand-in for each reference; "" for one that leads nowhere."""
        name, argument = function(value)
        if name:
            return self._flat(name, argument)
        if isinstance(value, dict):
            return {key: self.flat(each) for key, each in value.items()}
        return [self.flat(each) for each in value] if isinstance(value, list) else value

    def _flat(self, name: str, argument: Any) -> Any:
        if name == "Ref":
            return self._named(argument, "")
        if name == "Fn::GetAtt":
            return self._named(*argument)
        if name == "Fn::Sub" and isinstance(argument, str):
            return MARK.sub(lambda found: self._marked(found[1], found[2]), argument)
        known = name in LISTS
        return resolve({name: self.flat(argument)}, Scope({})) if known else f"<{name}>"

    def _marked(self, literal: str, name: str) -> str:
        logical_id, _, attribute = name.partition(".")
        return f"${{{name}}}" if literal else spelled(self._named(logical_id, attribute))

    def _named(self, logical_id: str, attribute: str) -> Any:
        if logical_id not in self.resources:
            return ""
        if logical_id in self.nested:
            child = self.nested[logical_id]
            return (
                child.flat(child.outputs.get(attribute.removeprefix("Outputs."), ""))
                if attribute
                else child.path
            )
        kind = self.resources[logical_id]["Type"]
        find = placeholders.attribute(kind, logical_id, attribute) if attribute else ""
        return find or placeholders.ref(kind, logical_id)


def resolved(parameters: Mapping[str, str], template: Path = TEMPLATE) -> dict[str, Stack]:
    """Return all stacks that a deployment with these parameters would make, by path; the root is "/".

    A pseudo parameter such as AWS::AccountId may be among them.
    Raises Refused where CloudFormation refuses the parameters (values, Rules), Unresolvable for a function
    that it cannot evaluate, samtranslator's InvalidDocumentException for what SAM refuses.
    """
    return {each.path: each for each in walk(_stack("/", template, parameters))}


def walk(stack: Stack) -> Iterator[Stack]:
    """Give a stack, then all that it nests."""
    yield stack
    for each in stack.nested.values():
        yield from walk(each)


def references(value: Any) -> Iterator[tuple[str, str]]:
    """Give the references within a resolved value: logical id, and attribute or ""."""
    name, argument = function(value)
    if name == "Ref":
        yield argument, ""
    elif name == "Fn::GetAtt":
        yield argument[0], argument[1]
    elif name == "Fn::Sub":
        text, variables = (argument, {}) if isinstance(argument, str) else argument
        marks = [found[2].partition(".") for found in MARK.finditer(text) if not found[1]]
        yield from ((each, attribute) for each, _, attribute in marks if each not in variables)
        yield from references(list(variables.values()))
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from references(each)


def _stack(path: str, file: Path, parameters: Mapping[str, str]) -> Stack:
    pseudo = {name: parameters.get(name, usual) for name, usual in placeholders.PSEUDO.items()}
    given = {name: value for name, value in parameters.items() if name not in pseudo}
    template = expanded(file, given)
    values = refusals.values(template.get("Parameters", {}), given)
    scope = Scope({**pseudo, **values}, template.get("Mappings", {}), template.get("Conditions", {}))
    refusals.check(template.get("Rules", {}), scope)
    made = {name: each for name, each in template["Resources"].items() if _made(each, scope)}
    outputs = {name: each for name, each in template.get("Outputs", {}).items() if _made(each, scope)}
    stack = Stack(
        path=path,
        template=file,
        parameters=values,
        conditions={name: holds(name, scope) for name in scope.conditions},
        resources={name: _resource(name, each, scope) for name, each in made.items()},
        absent={name: each["Condition"] for name, each in template["Resources"].items() if name not in made},
        types={name: each["Type"] for name, each in template["Resources"].items()},
        outputs={name: _resolved(f"output {name}", each["Value"], scope) for name, each in outputs.items()},
    )
    named = {name: each for name, each in parameters.items() if name in pseudo}
    return _with_nested(stack, named)


@lru_cache(maxsize=256)
def _nested(path: str, file: Path, changed_ns: int, parameters: tuple[tuple[str, str], ...]) -> Stack:
    """Resolve a nested stack once for the same parameters, which most sets give it."""
    return _stack(path, file, dict(parameters))


def _made(declared: Mapping[str, Any], scope: Scope) -> bool:
    return holds(declared.get("Condition", ALWAYS), scope)


def _resolved(name: str, value: Any, scope: Scope) -> Any:
    try:
        return resolve(value, scope)
    except Unresolvable as refusal:
        raise Unresolvable(f"{name}: {refusal}") from refusal


def _resource(name: str, declared: Mapping[str, Any], scope: Scope) -> dict[str, Any]:
    found = _resolved(name, {key: each for key, each in declared.items() if key != "Condition"}, scope)
    after = found.pop("DependsOn", [])
    return {"Properties": {}, **found, "DependsOn": [after] if isinstance(after, str) else after}


def _with_nested(stack: Stack, pseudo: Mapping[str, str]) -> Stack:
    """Resolve what a stack nests, each after those whose outputs it is given. pseudo: as it has them."""
    nested = {name: each for name, each in stack.resources.items() if each["Type"] == NESTED}
    order = TopologicalSorter(
        {name: {id_ for id_, _ in references(each)} & {*nested} for name, each in nested.items()}
    )
    for name in order.static_order():
        properties = nested[name]["Properties"]
        file = stack.template.parent / properties["TemplateURL"]
        given = {key: spelled(each) for key, each in stack.flat(properties.get("Parameters", {})).items()}
        given |= pseudo
        try:
            path = f"{stack.path.rstrip('/')}/{name}"
            child = _nested(path, file, file.stat().st_mtime_ns, tuple(given.items()))
        except Refused as refusal:  # by then the deployment has begun
            raise Unresolvable(f"{name} does not take its parameters: {refusal}") from refusal
        stack = replace(stack, nested={**stack.nested, name: child})
    return stack
