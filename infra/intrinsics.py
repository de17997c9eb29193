"""CloudFormation's intrinsic functions, conditions, Rules and parameters, evaluated.

    scope = Scope({"Size": "large"}, conditions={"IsLarge": {"Fn::Equals": [{"Ref": "Size"}, "large"]}})
    resolve({"Fn::If": ["IsLarge", {"Fn::Sub": "${Size}-${Bucket}"}, "none"]}, scope)
    # {"Fn::Sub": "large-${Bucket}"}

References to resources stay: {"Ref": id}, {"Fn::GetAtt": [id, attribute]}, {"Fn::Sub": text}.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

NO_VALUE = {"Ref": "AWS::NoValue"}
REGION = "us-east-1"
# An account sees three zones of a region, or more, but two of this one.
TWO_ZONES = "us-west-1"
# Of Fn::Sub; with an exclamation mark it is meant literally
PLACEHOLDER = re.compile(r"\$\{(!?)\s*([^}]*?)\s*\}")
# What conditions and Rules compare with: both sides are texts or lists of texts.
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "Fn::Equals": lambda left, right: bool(left == right),
    "Fn::Contains": lambda items, wanted: wanted in items,
    "Fn::EachMemberEquals": lambda items, wanted: set(items) <= {wanted},
    "Fn::EachMemberIn": lambda items, among: set(items) <= set(among),
}


class Refusal(ValueError):
    """What CloudFormation refuses before it makes anything; the message is its sentence."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a template's functions may name."""

    # Name of a parameter, or id.attribute -> value, by a dictionary or another thing with its `get`
    values: Any
    mappings: Mapping[str, Any] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)  # name -> expression


def resolve(value: Any, scope: Scope) -> Any:
    """Return a value in which all is evaluated that can be; AWS::NoValue takes its key or item away.

    Raises Refusal for a function that CloudFormation refuses.
    """
    name, argument = intrinsic(value)
    if name:
        return _evaluate(name, argument, scope)
    if isinstance(value, dict):
        resolved = {key: resolve(item, scope) for key, item in value.items()}
        return {key: item for key, item in resolved.items() if item != NO_VALUE}
    if isinstance(value, list):
        return [item for item in (resolve(item, scope) for item in value) if item != NO_VALUE]
    return value


def holds(expression: Any, scope: Scope) -> bool:
    """Evaluate a condition, by name or as an expression, or what a Rule asserts; raises Refusal."""
    if isinstance(expression, str):
        if expression not in scope.conditions:
            raise Refusal(f"the condition {expression} is not declared")
        return holds(scope.conditions[expression], scope)
    name, argument = intrinsic(expression)
    if name == "Condition":
        return holds(argument, scope)
    if name in ("Fn::And", "Fn::Or"):
        return (all if name == "Fn::And" else any)([holds(item, scope) for item in argument])
    if name == "Fn::Not":
        return not holds(argument[0], scope)
    if name not in COMPARISONS:
        raise Refusal(f"{expression} is no condition")
    left, right = (_texts(resolve(side, scope)) for side in argument)
    return COMPARISONS[name](left, right)


def check_rules(rules: Mapping[str, Any], scope: Scope) -> None:
    """Raise Refusal with the first assertion that does not hold. Rules see no conditions or mappings."""
    for name, rule in rules.items():
        if holds(rule.get("RuleCondition", {"Fn::Equals": ["", ""]}), scope):
            for assertion in rule["Assertions"]:
                if not holds(assertion["Assert"], scope):
                    raise Refusal(assertion.get("AssertDescription", f"the rule {name} does not hold"))


def parameter_values(declared: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Return the value of each parameter: a string, a number for the type Number, a list for a list's type.

    Raises Refusal for a value that is missing, unknown or not allowed.
    """
    unknown = sorted(set(given) - set(declared))
    if unknown:
        raise Refusal(f"there is no parameter {', '.join(unknown)}")
    missing = [name for name, shape in declared.items() if name not in given and "Default" not in shape]
    if missing:
        raise Refusal(f"the parameter {', '.join(missing)} has no value")
    return {
        name: _parameter_value(name, shape, scalar_text(given.get(name, shape.get("Default"))))
        for name, shape in declared.items()
    }


def references(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the references within a resolved value: logical id, and attribute or ""."""
    name, argument = intrinsic(value)
    if name == "Ref":
        yield argument, ""
    elif name == "Fn::GetAtt":
        yield argument[0], argument[1]
    elif name == "Fn::Sub":
        text, variables = _text_and_variables(argument)
        names = [mark[2].partition(".") for mark in PLACEHOLDER.finditer(text) if not mark[1]]
        yield from ((logical_id, rest) for logical_id, _, rest in names if logical_id not in variables)
        yield from references(list(variables.values()))
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from references(item)


def intrinsic(value: Any) -> tuple[str, Any]:
    """Return name and argument of an intrinsic function, or ("", None) if the value is none."""
    if isinstance(value, dict) and len(value) == 1:
        name, argument = next(iter(value.items()))
        if name in ("Ref", "Condition") or name.startswith("Fn::"):
            return name, argument
    return "", None


def scalar_text(value: Any) -> str:
    """Return a scalar as CloudFormation spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _texts(value: Any) -> Any:
    return [scalar_text(item) for item in value] if isinstance(value, list) else scalar_text(value)


def _evaluate(name: str, argument: Any, scope: Scope) -> Any:
    if name == "Ref":
        return _value_of(argument, {"Ref": argument}, scope)
    if name == "Fn::If":
        condition, yes, no = argument
        return resolve(yes if holds(condition, scope) else no, scope)
    if name == "Fn::GetAtt":
        parts = argument.split(".", 1) if isinstance(argument, str) else argument
        return _value_of(".".join(parts), {name: [parts[0], ".".join(parts[1:])]}, scope)
    if name == "Fn::Sub":
        return _substitute(argument, scope)
    resolved = resolve(argument, scope)
    if name == "Fn::GetAZs":
        resolved = resolved or scope.values.get("AWS::Region") or REGION
    if name == "Fn::FindInMap":
        return _mapped_value(scope.mappings, resolved)
    return LIST_FUNCTIONS[name](resolved) if name in LIST_FUNCTIONS else {name: resolved}


def _value_of(name: str, reference: Any, scope: Scope) -> Any:
    value = scope.values.get(name)
    return reference if value is None else value


def _text_and_variables(argument: Any) -> tuple[str, Mapping[str, Any]]:
    return (argument, {}) if isinstance(argument, str) else argument


def _substitute(argument: Any, scope: Scope) -> Any:
    """Return the value of Fn::Sub. It stays an Fn::Sub for values that cannot be written within a text."""
    text, variables = _text_and_variables(argument)
    resolved = {name: resolve(item, scope) for name, item in variables.items()}
    unwritable = {name: item for name, item in resolved.items() if _within_sub(item) is None}

    def replacement(mark: re.Match[str]) -> str:
        if mark[1]:
            return mark[0]
        name = mark[2]
        value = resolved[name] if name in resolved else scope.values.get(name)
        if isinstance(value, list):
            raise Refusal(f"Fn::Sub takes no list: {name}")
        return f"${{{name}}}" if value is None or name in unwritable else _within_sub(value) or ""

    text = PLACEHOLDER.sub(replacement, text)
    return {"Fn::Sub": [text, unwritable]} if unwritable else _simplest_form(text)


def _within_sub(value: Any) -> str | None:
    """Return a scalar or a reference as it is written within Fn::Sub; None for what has no such form."""
    name, argument = intrinsic(value)
    if name == "Ref":
        return f"${{{argument}}}"
    if name == "Fn::GetAtt":
        return f"${{{argument[0]}.{argument[1]}}}"
    if name == "Fn::Sub":
        return argument if isinstance(argument, str) else None
    return None if isinstance(value, dict | list) else scalar_text(value).replace("${", "${!")


def _simplest_form(text: str) -> Any:
    """Return text of Fn::Sub in its simplest form: a string, one Ref, one GetAtt, or Fn::Sub."""
    names = [mark[2] for mark in PLACEHOLDER.finditer(text) if not mark[1]]
    if not names:
        return text.replace("${!", "${")
    if text != f"${{{names[0]}}}":
        return {"Fn::Sub": text}
    logical_id, _, attribute = names[0].partition(".")
    return {"Fn::GetAtt": [logical_id, attribute]} if attribute else {"Ref": logical_id}


def _join(argument: Any) -> Any:
    separator, items = argument
    texts = [_within_sub(item) for item in items] if isinstance(items, list) else [None]
    written = [text for text in texts if text is not None]
    return _simplest_form(separator.join(written)) if len(written) == len(texts) else {"Fn::Join": argument}


def _split(argument: Any) -> Any:
    separator, text = argument
    return text.split(separator) if isinstance(text, str) else {"Fn::Split": argument}


def _select(argument: Any) -> Any:
    index, items = argument
    if not isinstance(items, list):
        return {"Fn::Select": argument}
    if not 0 <= int(index) < len(items):
        raise Refusal(f"Fn::Select wants item {index} of {len(items)}")
    return items[int(index)]


def _zones(region: str) -> list[str]:
    return [f"{region}{letter}" for letter in ("ac" if region == TWO_ZONES else "abc")]


LIST_FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "Fn::Join": _join,
    "Fn::Split": _split,
    "Fn::Select": _select,
    "Fn::GetAZs": _zones,
}


def _mapped_value(mappings: Any, keys: list[Any]) -> Any:
    for key in keys:
        if not isinstance(key, str | int) or str(key) not in mappings:
            raise Refusal(f"Fn::FindInMap finds no {keys}")
        mappings = mappings[str(key)]
    return mappings


def _parameter_value(name: str, shape: Mapping[str, Any], text: str) -> Any:
    kind = shape["Type"]
    is_list = kind.startswith("List<") or kind == "CommaDelimitedList"
    allowed = [scalar_text(value) for value in shape.get("AllowedValues", [])]
    items = [item.strip() for item in text.split(",")] if is_list else [text]
    for item in items:
        if allowed and item not in allowed:
            raise Refusal(f"{name} may be {', '.join(allowed)}, not {item!r}")
    if not re.fullmatch(shape.get("AllowedPattern", "(?s:.*)"), text):
        wanted = shape.get("ConstraintDescription", f"must match {shape['AllowedPattern']}")
        raise Refusal(f"{name} {wanted}, unlike {text!r}")
    if kind != "Number":
        return items if is_list else text
    try:
        number = float(text) if "." in text else int(text)
    except ValueError as error:
        raise Refusal(f"{name} must be a number, unlike {text!r}") from error
    if not float(shape.get("MinValue", number)) <= number <= float(shape.get("MaxValue", number)):
        limits = f"from {shape.get('MinValue')} to {shape.get('MaxValue')}"
        raise Refusal(f"{name} must be {limits}, unlike {text}")
    return number
