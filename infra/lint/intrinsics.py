"""Evaluates intrinsic functions, and says what CloudFormation refuses before it makes anything.

What names a resource stays a reference, in one of three forms: {"Ref": id}, {"Fn::GetAtt": [id, attribute]},
{"Fn::Sub": text}. What else cannot be known beforehand stays as it is.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

ZONES = ["us-east-1a", "us-east-1b", "us-east-1c"]
NO_VALUE = {"Ref": "AWS::NoValue"}
MARK = re.compile(r"\$\{(!?)([^}]*)\}")


class Unresolvable(ValueError):
    """An intrinsic function that CloudFormation would refuse too."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a template's functions may name.

    values: of parameters and pseudo parameters; a list for a list's type. conditions: as declared,
    name -> expression.
    """

    values: Mapping[str, Any]
    mappings: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)


def function(value: Any) -> tuple[str, Any]:
    """Return name and argument of an intrinsic function, or ("", None) if the value is none."""
    if isinstance(value, dict) and len(value) == 1:
        name, argument = next(iter(value.items()))
        if name in ("Ref", "Condition") or name.startswith("Fn::"):
            return name, argument
    return "", None


def scalar_text(value: Any) -> str:
    """Return a scalar as CloudFormation spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def holds(expression: Any, scope: Scope) -> bool:
    """Evaluate a condition, by name or as an expression; raises Unresolvable for an unknown one."""
    if isinstance(expression, str):
        if expression not in scope.conditions:
            raise Unresolvable(f"the condition {expression} is not declared")
        return holds(scope.conditions[expression], scope)
    name, argument = function(expression)
    if name == "Condition":
        return holds(argument, scope)
    if name in ("Fn::And", "Fn::Or"):
        return (all if name == "Fn::And" else any)([holds(each, scope) for each in argument])
    if name == "Fn::Not":
        return not holds(argument[0], scope)
    if name == "Fn::Equals":
        left, right = (resolve(each, scope) for each in argument)
        return scalar_text(left) == scalar_text(right)
    raise Unresolvable(f"{expression} is no condition")


def resolve(value: Any, scope: Scope) -> Any:
    """Return a value in which all is evaluated that can be; AWS::NoValue takes its key or item away."""
    name, argument = function(value)
    if name:
        return _evaluate_function(name, argument, scope)
    if isinstance(value, dict):
        found = {key: resolve(each, scope) for key, each in value.items()}
        return {key: each for key, each in found.items() if each != NO_VALUE}
    if isinstance(value, list):
        return [each for each in (resolve(each, scope) for each in value) if each != NO_VALUE]
    return value


def _evaluate_function(name: str, argument: Any, scope: Scope) -> Any:
    if name == "Ref":
        return scope.values.get(argument, {"Ref": argument})
    if name == "Fn::If":
        condition, yes, no = argument
        return resolve(yes if holds(condition, scope) else no, scope)
    if name == "Fn::GetAtt":
        parts = argument.split(".", 1) if isinstance(argument, str) else argument
        return {name: [parts[0], ".".join(map(scalar_text, parts[1:]))]}
    if name == "Fn::Sub":
        return _fn_sub(argument, scope)
    resolved = resolve(argument, scope)
    if name == "Fn::FindInMap":
        return _fn_find_in_map(resolved, scope)
    return LISTS[name](resolved) if name in LISTS else {name: resolved}


def text_of(value: Any) -> str | None:
    """Return a scalar or a reference as text for Fn::Sub; None if it has no such form."""
    name, argument = function(value)
    if name == "Ref":
        return f"${{{argument}}}"
    if name == "Fn::GetAtt":
        return f"${{{argument[0]}.{argument[1]}}}"
    if name == "Fn::Sub":
        return argument if isinstance(argument, str) else None
    return None if isinstance(value, dict | list) else scalar_text(value).replace("${", "${!")


def value_of(text: str) -> Any:
    """Return text for Fn::Sub in its simplest form: a string, one Ref, one GetAtt, or Fn::Sub."""
    names = [found[2] for found in MARK.finditer(text) if not found[1]]
    if not names:
        return text.replace("${!", "${")
    if text != f"${{{names[0]}}}":
        return {"Fn::Sub": text}
    logical_id, _, attribute = names[0].partition(".")
    return {"Fn::GetAtt": [logical_id, attribute]} if attribute else {"Ref": logical_id}


def _fn_sub(argument: Any, scope: Scope) -> Any:
    text, variables = (argument, {}) if isinstance(argument, str) else argument
    own = {key: resolve(each, scope) for key, each in variables.items()}
    kept = {key: each for key, each in own.items() if text_of(each) is None}

    def put(found: re.Match[str]) -> str:
        name = found[2].strip()
        if found[1] or name in kept:
            return found[0]
        known = own.get(name, scope.values.get(name))
        if isinstance(known, list):
            raise Unresolvable(f"Fn::Sub takes no list: {name}")
        return found[0] if known is None else text_of(known) or ""

    filled = MARK.sub(put, text)
    return {"Fn::Sub": [filled, kept]} if kept else value_of(filled)


def _fn_join(argument: Any) -> Any:
    between, items = argument
    texts = [text_of(each) for each in items] if isinstance(items, list) else [None]
    known = [each for each in texts if each is not None]
    return value_of(between.join(known)) if len(known) == len(texts) else {"Fn::Join": argument}


def _fn_split(argument: Any) -> Any:
    between, text = argument
    return text.split(between) if isinstance(text, str) else {"Fn::Split": argument}


def _fn_get_azs(_: Any) -> list[str]:
    return ZONES


def _fn_select(argument: Any) -> Any:
    index, items = argument
    if not isinstance(items, list):
        return {"Fn::Select": argument}
    if not 0 <= int(index) < len(items):
        raise Unresolvable(f"Fn::Select wants item {index} of {len(items)}")
    return items[int(index)]


def _fn_find_in_map(argument: Any, scope: Scope) -> Any:
    found: Any = scope.mappings
    for key in argument[:3]:
        if not isinstance(key, str | int) or str(key) not in found:
            raise Unresolvable(f"Fn::FindInMap finds no {argument}")
        found = found[str(key)]
    return found


LISTS = {"Fn::Join": _fn_join, "Fn::Split": _fn_split, "Fn::Select": _fn_select, "Fn::GetAZs": _fn_get_azs}


# What CloudFormation refuses before it makes anything: values that a parameter does not allow, and Rules.


class ParametersRefused(ValueError):
    """Parameters that CloudFormation refuses; the message is its sentence."""


def parameter_values(declared: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Return the value of each parameter: a string, a number for the type Number, a list for a list's type.

    Raises ParametersRefused for a value that is missing, unknown or not allowed.
    """
    unknown = sorted(set(given) - set(declared))
    if unknown:
        raise ParametersRefused(f"there is no parameter {', '.join(unknown)}")
    missing = [name for name, shape in declared.items() if name not in given and "Default" not in shape]
    if missing:
        raise ParametersRefused(f"the parameter {', '.join(missing)} has no value")
    return {
        name: _parameter_value(name, shape, given.get(name, shape.get("Default")))
        for name, shape in declared.items()
    }


def _parameter_value(name: str, shape: Mapping[str, Any], given: Any) -> Any:
    text = scalar_text(given)
    allowed = [scalar_text(each) for each in shape.get("AllowedValues", [])]
    items = [each.strip() for each in text.split(",")] if _is_list(shape) else [text]
    for each in items:
        if allowed and each not in allowed:
            raise ParametersRefused(f"{name} may be {', '.join(allowed)}, not {each!r}")
    if not re.fullmatch(shape.get("AllowedPattern", "(?s:.*)"), text):
        wanted = shape.get("ConstraintDescription", f"must match {shape['AllowedPattern']}")
        raise ParametersRefused(f"{name} {wanted}, unlike {text!r}")
    if not int(shape.get("MinLength", 0)) <= len(text) <= int(shape.get("MaxLength", 1 << 20)):
        raise ParametersRefused(f"{name} has a length that is not allowed: {text!r}")
    if shape["Type"] == "Number":
        return _number(name, shape, text)
    return items if _is_list(shape) else text


def _is_list(shape: Mapping[str, Any]) -> bool:
    return str(shape["Type"]).startswith("List<") or shape["Type"] == "CommaDelimitedList"


def _number(name: str, shape: Mapping[str, Any], text: str) -> int | float:
    if not re.fullmatch(r"-?\d+(\.\d+)?", text):
        raise ParametersRefused(f"{name} must be a number, unlike {text!r}")
    number = float(text) if "." in text else int(text)
    if not float(shape.get("MinValue", number)) <= number <= float(shape.get("MaxValue", number)):
        raise ParametersRefused(
            f"{name} must be from {shape.get('MinValue')} to {shape.get('MaxValue')}, unlike {text}"
        )
    return number


def check_rules(rules: Mapping[str, Any], scope: Scope) -> None:
    """Evaluate a template's Rules; raises ParametersRefused with the first assertion that does not hold."""
    for name, rule in rules.items():
        if "RuleCondition" in rule and not _assertion_holds(rule["RuleCondition"], scope):
            continue
        for each in rule["Assertions"]:
            if not _assertion_holds(each["Assert"], scope):
                raise ParametersRefused(each.get("AssertDescription", f"the rule {name} does not hold"))


def _assertion_holds(expression: Any, scope: Scope) -> bool:
    name, argument = function(expression)
    if name == "Fn::And":
        return all(_assertion_holds(each, scope) for each in argument)
    if name == "Fn::Or":
        return any(_assertion_holds(each, scope) for each in argument)
    if name == "Fn::Not":
        return not _assertion_holds(argument[0], scope)
    if name not in COMPARE:
        raise Unresolvable(f"Rules know no {expression}: they see parameters only, and no conditions")
    left, right = (_scalar_texts(resolve(each, scope)) for each in argument)
    return COMPARE[name](left, right)


def _scalar_texts(value: Any) -> Any:
    return [scalar_text(each) for each in value] if isinstance(value, list) else scalar_text(value)


COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "Fn::Equals": lambda left, right: bool(left == right),
    "Fn::Contains": lambda items, wanted: wanted in items,
    "Fn::EachMemberEquals": lambda items, wanted: set(items) <= {wanted},
    "Fn::EachMemberIn": lambda items, among: set(items) <= set(among),
}
