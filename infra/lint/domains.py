"""The values that the lint gives each parameter. They follow from the templates, so nobody keeps a list.

A value is what AllowedValues says (of numbers the first and the last, for each further one would go with all
values of all other parameters), what a condition compares with, the least and the greatest number; and for
text that may be anything, an example that goes by the parameter's name and description. A pseudo parameter
that a condition looks at (AWS::AccountId) has values too.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from infra.lint import placeholders, refusals
from infra.lint.expanded import read
from infra.lint.intrinsics import function, spelled
from infra.lint.refusals import Refused

NESTED = "AWS::CloudFormation::Stack"
COMPARISONS = ("Fn::Equals", "Fn::Contains", "Fn::EachMemberEquals", "Fn::EachMemberIn")
# The first pattern that is found in a parameter's name without case tells what it is about.
EXAMPLES = {
    "topic.*arn": "arn:aws:sns:us-east-1:123456789012:example",
    "application.*arn": "arn:aws:sns:us-east-1:123456789012:app/GCM/example",
    "arn": "arn:aws:example:us-east-1:123456789012:example",
    "ownvpc": "vpc-0123456789abcdef0/sg-0123456789abcdef0/subnet-0123456789abcdef0,subnet-0123456789abcdef1",
    "ownwarehouse": "redshift://example/dev,arn:aws:redshift-serverless:us-east-1:123456789012:workgroup/example,"
    "arn:aws:iam::123456789012:role/example",
    "owndomain": "api.example.com,Z0123456789EXAMPLE,arn:aws:acm:us-east-1:123456789012:certificate/example",
    "peerbuckets": "payloads-example,lake-example",
    "zone": "us-east-1a,us-east-1b,us-east-1c",
    "mail": "somebody@example.com",
    "issuer|authority|origin|url": "https://example.com",
    "": "example",
}


def domains(template: Path) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return values by parameter, its default first: of those that decide something, and of the others.

    Conditions or Rules look at the first kind (also those of nested templates), or it may be left empty. Of a
    long list of the second kind only the ends are returned.
    Raises ValueError for a parameter of which no allowed value is known.
    """
    compared = _compared(template)
    deciding = {name: _pseudo(name, compared[name]) for name in placeholders.PSEUDO if name in compared}
    others: dict[str, list[str]] = {}
    for name, shape in read(template).get("Parameters", {}).items():
        values = _values(name, shape, compared.get(name, []), named=name in compared)
        decides = name in compared or shape.get("Default") == ""
        if len(values) > 1 or "Default" not in shape:
            kept = values if decides else [values[0], *dict.fromkeys((values[1], values[-1]))]
            (deciding if decides else others)[name] = kept
    return deciding, others


def _pseudo(name: str, literals: list[str]) -> list[str]:
    return list(dict.fromkeys([spelled(placeholders.PSEUDO[name]), *literals]))


def _values(name: str, shape: Mapping[str, Any], literals: list[str], *, named: bool) -> list[str]:
    default = [spelled(shape["Default"])] if "Default" in shape else []
    if "AllowedValues" in shape:
        allowed = shape["AllowedValues"]
        some = allowed if shape["Type"] != "Number" else [allowed[0], allowed[-1]]
        found = [*default, *(each for each in literals if each in map(spelled, allowed)), *map(spelled, some)]
    elif shape["Type"] == "Number":
        limits = [spelled(shape[each]) for each in ("MinValue", "MaxValue") if each in shape]
        found = [*default, *literals, *limits] or ["1"]
    else:
        open_ = named or default in ([], [""])
        found = [*default, *literals, *([_example(name, shape)] if open_ else [])]
    return [each for each in dict.fromkeys(found) if _fits(name, shape, each)]


def _fits(name: str, shape: Mapping[str, Any], value: str) -> bool:
    try:
        refusals.values({name: shape}, {name: value})
    except Refused:
        return False
    return True


def _example(name: str, shape: Mapping[str, Any]) -> str:
    """Return a value of the scheme that the description names (redis://), or one that goes by the name."""
    described = re.search(r"[a-z]+://[\w./-]*", shape.get("Description", ""))
    schemes = [described[0] + ("example.com" if described[0].endswith("/") else "")] if described else []
    about = [value for pattern, value in EXAMPLES.items() if re.search(pattern, name.lower())]
    for value in [*schemes, *about]:
        if _fits(name, shape, value):
            return value
    raise ValueError(f"the lint knows no value for the parameter {name}: add one to EXAMPLES in {__name__}")


def _compared(template: Path) -> dict[str, list[str]]:
    """Return the parameters that decide something, and what they are compared with."""
    loaded = read(template)
    found: dict[str, list[str]] = {}
    for name, argument in _functions([loaded.get("Conditions", {}), loaded.get("Rules", {})]):
        if name in COMPARISONS:
            for each in _named(argument):
                found.setdefault(each, []).extend(_literals(argument))
    for resource in loaded["Resources"].values():
        if resource["Type"] == NESTED:
            properties = resource["Properties"]
            inner = _compared(template.parent / properties["TemplateURL"])
            for name in inner.keys() & properties.get("Parameters", {}).keys():
                value = properties["Parameters"][name]
                for each in _named(value):
                    found.setdefault(each, []).extend(inner[name] if value == {"Ref": each} else [])
    known = [*loaded.get("Parameters", {}), *placeholders.PSEUDO]
    return {name: found[name] for name in known if name in found}


def _functions(value: Any) -> Iterator[tuple[str, Any]]:
    name, argument = function(value)
    if name:
        yield name, argument
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from _functions(each)


def _named(value: Any) -> set[str]:
    return {argument for name, argument in _functions(value) if name == "Ref"}


def _literals(value: Any) -> list[str]:
    if isinstance(value, list):
        return [each for item in value for each in _literals(item)]
    return [] if isinstance(value, dict) else [spelled(value)]
