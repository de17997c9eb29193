"""What CloudFormation refuses before it makes anything: values that a parameter does not allow, and Rules."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from infra.lint.intrinsics import Scope, Unresolvable, function, resolve, spelled


class Refused(ValueError):
    """Parameters that CloudFormation refuses; the message is its sentence."""


def values(declared: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Return the value of each parameter: a string, a number for the type Number, a list for a list's type.

    Raises Refused for a value that is missing, unknown or not allowed.
    """
    unknown = sorted(set(given) - set(declared))
    if unknown:
        raise Refused(f"there is no parameter {', '.join(unknown)}")
    missing = [name for name, shape in declared.items() if name not in given and "Default" not in shape]
    if missing:
        raise Refused(f"the parameter {', '.join(missing)} has no value")
    return {
        name: _value(name, shape, given.get(name, shape.get("Default"))) for name, shape in declared.items()
    }


def _value(name: str, shape: Mapping[str, Any], given: Any) -> Any:
    text = spelled(given)
    allowed = [spelled(each) for each in shape.get("AllowedValues", [])]
    items = [each.strip() for each in text.split(",")] if _is_list(shape) else [text]
    for each in items:
        if allowed and each not in allowed:
            raise Refused(f"{name} may be {', '.join(allowed)}, not {each!r}")
    if not re.fullmatch(shape.get("AllowedPattern", "(?s:.*)"), text):
        wanted = shape.get("ConstraintDescription", f"must match {shape['AllowedPattern']}")
        raise Refused(f"{name} {wanted}, unlike {text!r}")
    if not int(shape.get("MinLength", 0)) <= len(text) <= int(shape.get("MaxLength", 1 << 20)):
        raise Refused(f"{name} has a length that is not allowed: {text!r}")
    if shape["Type"] == "Number":
        return _number(name, shape, text)
    return items if _is_list(shape) else text


def _is_list(shape: Mapping[str, Any]) -> bool:
    return str(shape["Type"]).startswith("List<") or shape["Type"] == "CommaDelimitedList"


def _number(name: str, shape: Mapping[str, Any], text: str) -> int | float:
    if not re.fullmatch(r"-?\d+(\.\d+)?", text):
        raise Refused(f"{name} must be a number, unlike {text!r}")
    number = float(text) if "." in text else int(text)
    if not float(shape.get("MinValue", number)) <= number <= float(shape.get("MaxValue", number)):
        raise Refused(
            f"{name} must be from {shape.get('MinValue')} to {shape.get('MaxValue')}, unlike {text}"
        )
    return number


def check(rules: Mapping[str, Any], scope: Scope) -> None:
    """Evaluate a template's Rules; raises Refused with the first assertion that does not hold."""
    for name, rule in rules.items():
        if "RuleCondition" in rule and not _asserted(rule["RuleCondition"], scope):
            continue
        for each in rule["Assertions"]:
            if not _asserted(each["Assert"], scope):
                raise Refused(each.get("AssertDescription", f"the rule {name} does not hold"))


def _asserted(expression: Any, scope: Scope) -> bool:
    name, argument = function(expression)
    if name == "Fn::And":
        return all(_asserted(each, scope) for each in argument)
    if name == "Fn::Or":
        return any(_asserted(each, scope) for each in argument)
    if name == "Fn::Not":
        return not _asserted(argument[0], scope)
    if name not in COMPARE:
        raise Unresolvable(f"Rules know no {expression}: they see parameters only, and no conditions")
    left, right = (_spelled(resolve(each, scope)) for each in argument)
    return COMPARE[name](left, right)


def _spelled(value: Any) -> Any:
    return [spelled(each) for each in value] if isinstance(value, list) else spelled(value)


COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "Fn::Equals": lambda left, right: bool(left == right),
    "Fn::Contains": lambda items, wanted: wanted in items,
    "Fn::EachMemberEquals": lambda items, wanted: set(items) <= {wanted},
    "Fn::EachMemberIn": lambda items, among: set(items) <= set(among),
}
