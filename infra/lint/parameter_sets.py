"""The sets of parameters that the lint looks at, and those of the environments in samconfig.toml."""

import shlex
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from infra.lint import placeholders, refusals
from infra.lint.covering import Row, Space, covering
from infra.lint.domains import domains
from infra.lint.expanded import read
from infra.lint.intrinsics import Scope, spelled
from infra.lint.refusals import Refused
from infra.lint.resolved import references

STRENGTH = 3  # pairs are too few: the account decides with most other parameters whether something is made


def parameter_sets(template: Path, strength: int = STRENGTH) -> list[Row]:
    """Return sets of overrides that Rules allow. The first is {}, but for what has no default.

    Each allowed combination of `strength` values of the parameters that decide something occurs. Each value
    of any parameter occurs by itself, too: most users change one thing.
    """
    declared = read(template).get("Parameters", {})
    rules = read(template).get("Rules", {})
    defaults = {name: spelled(value) for name, value in placeholders.PSEUDO.items()}
    defaults |= {name: spelled(shape["Default"]) for name, shape in declared.items() if "Default" in shape}
    deciding, others = domains(template)
    needed = {name: values[0] for name, values in {**deciding, **others}.items() if name not in defaults}
    usual = {**placeholders.PSEUDO, **refusals.values(declared, needed)}
    typed = {
        (name, value): refusals.values({name: declared[name]}, {name: value})[name]
        if name in declared
        else value
        for name, values in {**deciding, **others}.items()
        for value in values
    }

    allowed = _allowed(rules, usual, typed)
    rows = [{}, *covering(Space(deciding, allowed), strength)]
    singly = ({name: value} for name, values in {**others, **deciding}.items() for value in values)
    rows += filter(allowed, singly)
    sets = [{**needed, **row} for row in rows]
    sets = [{name: value for name, value in each.items() if defaults.get(name) != value} for each in sets]
    return [each for number, each in enumerate(sets) if each not in sets[:number]]


def _allowed(
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
        refusals.check(rules, scope)
    except Refused:
        return False
    return True


def environments(samconfig: Path) -> dict[str, Row]:
    """Return the overrides of each environment that samconfig.toml has, by the name of its table."""
    tables = tomllib.loads(samconfig.read_text()) if samconfig.exists() else {}
    named = {name: each for name, each in tables.items() if isinstance(each, dict) and "deploy" in each}
    return {name: _given(each["deploy"].get("parameters", {})) for name, each in named.items()}


def _given(parameters: Mapping[str, Any]) -> Row:
    given = parameters.get("parameter_overrides", [])
    items = shlex.split(given) if isinstance(given, str) else given
    return dict(each.split("=", 1) for each in items)
