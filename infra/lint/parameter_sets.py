"""The sets of parameters that the lint looks at: few in which every small combination of values occurs,
and those of the environments in samconfig.toml.
"""

import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

from infra.lint import intrinsics, stacks
from infra.lint.intrinsics import ParametersRefused, Scope, function, scalar_text
from infra.lint.stacks import read_template, references

# The values that the lint gives each parameter. They follow from the templates, so nobody keeps a list.
#
# A value is what AllowedValues says (of numbers the first and the last, for each further one would go with
# all values of all other parameters), what a condition compares with, the least and the greatest number; and
# for text that may be anything, an example that goes by the parameter's name and description. A pseudo
# parameter that a condition looks at (AWS::AccountId) has values too.


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
    compared = _compared_values(template)
    deciding = {name: _pseudo(name, compared[name]) for name in stacks.PSEUDO if name in compared}
    others: dict[str, list[str]] = {}
    for name, shape in read_template(template).get("Parameters", {}).items():
        values = _values(name, shape, compared.get(name, []), named=name in compared)
        decides = name in compared or shape.get("Default") == ""
        if len(values) > 1 or "Default" not in shape:
            kept = values if decides else [values[0], *dict.fromkeys((values[1], values[-1]))]
            (deciding if decides else others)[name] = kept
    return deciding, others


def _pseudo(name: str, literals: list[str]) -> list[str]:
    return list(dict.fromkeys([scalar_text(stacks.PSEUDO[name]), *literals]))


def _values(name: str, shape: Mapping[str, Any], literals: list[str], *, named: bool) -> list[str]:
    default = [scalar_text(shape["Default"])] if "Default" in shape else []
    if "AllowedValues" in shape:
        allowed = shape["AllowedValues"]
        some = allowed if shape["Type"] != "Number" else [allowed[0], allowed[-1]]
        found = [
            *default,
            *(each for each in literals if each in map(scalar_text, allowed)),
            *map(scalar_text, some),
        ]
    elif shape["Type"] == "Number":
        limits = [scalar_text(shape[each]) for each in ("MinValue", "MaxValue") if each in shape]
        found = [*default, *literals, *limits] or ["1"]
    else:
        open_ = named or default in ([], [""])
        found = [*default, *literals, *([_example(name, shape)] if open_ else [])]
    return [each for each in dict.fromkeys(found) if _fits(name, shape, each)]


def _fits(name: str, shape: Mapping[str, Any], value: str) -> bool:
    try:
        intrinsics.parameter_values({name: shape}, {name: value})
    except ParametersRefused:
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


def _compared_values(template: Path) -> dict[str, list[str]]:
    """Return the parameters that decide something, and what they are compared with."""
    loaded = read_template(template)
    found: dict[str, list[str]] = {}
    for name, argument in _functions([loaded.get("Conditions", {}), loaded.get("Rules", {})]):
        if name in COMPARISONS:
            for each in _referenced_names(argument):
                found.setdefault(each, []).extend(_literals(argument))
    for resource in loaded["Resources"].values():
        if resource["Type"] == NESTED:
            properties = resource["Properties"]
            inner = _compared_values(template.parent / properties["TemplateURL"])
            for name in inner.keys() & properties.get("Parameters", {}).keys():
                value = properties["Parameters"][name]
                for each in _referenced_names(value):
                    found.setdefault(each, []).extend(inner[name] if value == {"Ref": each} else [])
    known = [*loaded.get("Parameters", {}), *stacks.PSEUDO]
    return {name: found[name] for name in known if name in found}


def _functions(value: Any) -> Iterator[tuple[str, Any]]:
    name, argument = function(value)
    if name:
        yield name, argument
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from _functions(each)


def _referenced_names(value: Any) -> set[str]:
    return {argument for name, argument in _functions(value) if name == "Ref"}


def _literals(value: Any) -> list[str]:
    if isinstance(value, list):
        return [each for item in value for each in _literals(item)]
    return [] if isinstance(value, dict) else [scalar_text(value)]


# Few sets of values in which every small combination occurs that is allowed.


Row = dict[str, str]
Combination = tuple[tuple[str, str], ...]  # names in the order of the domains
FLIPS_MAX = 2  # how many further values may have to change so that a combination is allowed


@dataclass(frozen=True, slots=True)
class Space:
    """domains: name -> values, the first is the usual one. allowed: tells whether a whole row is allowed."""

    domains: Mapping[str, Sequence[str]]
    allowed: Callable[[Row], bool]


def covering_rows(space: Space, strength: int) -> list[Row]:
    """Return rows (name -> value) in which each allowed combination of `strength` values occurs.

    The first row has the usual values, which must be allowed.
    """
    usual = {name: values[0] for name, values in space.domains.items()}
    rows = [usual]
    left = dict.fromkeys(_combinations(space, strength))
    _cover(usual, left, strength)
    reach = {item: _nearest_row(dict([item]), usual, space) for (item,) in _combinations(space, 1)}
    impossible: dict[Combination, bool] = {}
    while left:
        wanted = next(iter(left))
        changes = dict(item for each in wanted for item in reach[each].items() - usual.items())
        row = _first_allowed(dict(wanted), [{**usual, **changes}, *rows], space)
        if not row and not any(
            _impossible(each, usual, space, impossible) for each in combinations(wanted, 2)
        ):
            row = _nearest_row(dict(wanted), {**usual, **changes}, space)
        if row:
            rows.append(_fill_row(row, wanted, space, left))
            _cover(rows[-1], left, strength)
        left.pop(wanted, None)
    return rows


def _combinations(space: Space, size: int) -> Iterator[Combination]:
    for names in combinations(space.domains, size):
        yield from (tuple(zip(names, values, strict=True)) for values in _products(names, space))


def _products(names: Sequence[str], space: Space) -> Iterator[tuple[str, ...]]:
    return product(*(space.domains[name] for name in names))


def _cover(row: Row, left: dict[Combination, None], strength: int) -> None:
    for each in combinations(row.items(), strength):
        left.pop(each, None)


def _first_allowed(fixed: Row, bases: Sequence[Row], space: Space) -> Row:
    """Return the first of some rows that is allowed with the fixed values put over it; {} for none."""
    return next(filter(space.allowed, ({**base, **fixed} for base in bases)), {})


def _nearest_row(fixed: Row, base: Row, space: Space) -> Row:
    """Return an allowed row that has the fixed values and else differs little from a base; {} for none."""
    free = [name for name in space.domains if name not in fixed]
    flips = (
        dict(zip(names, values, strict=True))
        for size in range(FLIPS_MAX + 1)
        for names in combinations(free, size)
        for values in _products(names, space)
    )
    return next(filter(space.allowed, ({**base, **each, **fixed} for each in flips)), {})


def _impossible(pair: Combination, usual: Row, space: Space, known: dict[Combination, bool]) -> bool:
    """Tell whether a pair is never allowed. Rules mostly refuse pairs, which are in many combinations."""
    if pair not in known:
        known[pair] = not _nearest_row(dict(pair), usual, space)
    return known[pair]


def _fill_row(row: Row, wanted: Combination, space: Space, left: Mapping[Combination, None]) -> Row:
    """Give each free name, one after another, the value that covers most of what is left and is allowed."""
    place = {name: number for number, name in enumerate(space.domains)}
    for name in [each for each in space.domains if each not in dict(wanted)]:
        others = [item for item in row.items() if item[0] != name]
        near = [
            (sum(place[each] < place[name] for each, _ in some), some)
            for some in combinations(others, len(wanted) - 1)
        ]
        gains = {
            value: sum((*some[:at], (name, value), *some[at:]) in left for at, some in near)
            for value in space.domains[name]
        }
        for value in sorted(gains, key=gains.__getitem__, reverse=True):
            if value == row[name] or space.allowed({**row, name: value}):
                row = {**row, name: value}
                break
    return row


STRENGTH = 3  # pairs are too few: the account decides with most other parameters whether something is made


def parameter_sets(template: Path, strength: int = STRENGTH) -> list[Row]:
    """Return sets of overrides that Rules allow. The first is {}, but for what has no default.

    Each allowed combination of `strength` values of the parameters that decide something occurs. Each value
    of any parameter occurs by itself, too: most users change one thing.
    """
    declared = read_template(template).get("Parameters", {})
    rules = read_template(template).get("Rules", {})
    defaults = {name: scalar_text(value) for name, value in stacks.PSEUDO.items()}
    defaults |= {
        name: scalar_text(shape["Default"]) for name, shape in declared.items() if "Default" in shape
    }
    deciding, others = domains(template)
    needed = {name: values[0] for name, values in {**deciding, **others}.items() if name not in defaults}
    usual = {**stacks.PSEUDO, **intrinsics.parameter_values(declared, needed)}
    typed = {
        (name, value): intrinsics.parameter_values({name: declared[name]}, {name: value})[name]
        if name in declared
        else value
        for name, values in {**deciding, **others}.items()
        for value in values
    }

    allowed = _row_check(rules, usual, typed)
    rows = [{}, *covering_rows(Space(deciding, allowed), strength)]
    singly = ({name: value} for name, values in {**others, **deciding}.items() for value in values)
    rows += filter(allowed, singly)
    sets = [{**needed, **row} for row in rows]
    sets = [{name: value for name, value in each.items() if defaults.get(name) != value} for each in sets]
    return [each for number, each in enumerate(sets) if each not in sets[:number]]


def _row_check(
    rules: Mapping[str, Any], usual: Mapping[str, Any], typed: Mapping[tuple[str, str], Any]
) -> Callable[[Row], bool]:
    """Return what tells whether Rules allow a row. usual: values of what a row does not name.

    typed: (name, value of a row) -> the value that Rules see. Each Rule names few parameters, so it is
    evaluated once for each combination of these; the search for sets asks a hundred thousand times.
    """
    names = {name: sorted(each for each, _ in references(rule)) for name, rule in rules.items()}
    known: dict[tuple[str, tuple[str | None, ...]], bool] = {}

    def holds(rule: str, row: Row) -> bool:
        key = (rule, tuple(map(row.get, names[rule])))
        if key not in known:
            scope = Scope({**usual, **{item[0]: typed[item] for item in row.items()}})
            known[key] = _holds({rule: rules[rule]}, scope)
        return known[key]

    return lambda row: all(holds(rule, row) for rule in rules)


def _holds(rules: Mapping[str, Any], scope: Scope) -> bool:
    try:
        intrinsics.check_rules(rules, scope)
    except ParametersRefused:
        return False
    return True


def environments(samconfig: Path) -> dict[str, Row]:
    """Return the overrides of each environment that samconfig.toml has, by the name of its table."""
    tables = tomllib.loads(samconfig.read_text()) if samconfig.exists() else {}
    named = {name: each for name, each in tables.items() if isinstance(each, dict) and "deploy" in each}
    return {name: _overrides_of(each["deploy"].get("parameters", {})) for name, each in named.items()}


def _overrides_of(parameters: Mapping[str, Any]) -> Row:
    given = parameters.get("parameter_overrides", [])
    items = shlex.split(given) if isinstance(given, str) else given
    return dict(each.split("=", 1) for each in items)
