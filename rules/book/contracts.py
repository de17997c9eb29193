"""Data contracts: the JSON Schema that an event type may ask of its events' properties.

In this order: the faults of one contract; what a new version of a contract takes away from its senders.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

Path = tuple[str | int, ...]  # the keys and indexes that lead to a value, from the outside in
Contract = Mapping[str, Any]
TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")
# Keywords of lower and of upper bounds. A new version of a contract may lower the first and raise the second.
LOWER = ("minimum", "minLength", "minItems")
UPPER = ("maximum", "maxLength", "maxItems")
# A contract has no other keywords, so that two contracts can be compared. A new version may allow more than
# the old one, and never less, because senders that obey the old one go on sending.
KEYWORDS = frozenset(
    {"type", "enum", "pattern", "properties", "required", "additionalProperties", "items", "description"}
    | {*LOWER, *UPPER}
)
DEPTH_MAX = 8
PATTERN_MAX = 200  # characters
# Some patterns take for ever on some texts, such as (a+)+ on forty letters. A sender could use that to block
# the service. So a pattern has no groups and few repetitions, and its texts are short.
REPEATS_MAX = 2
MATCHED_MAX = 256
# Finds the parts of a pattern in which `(` and `*` are plain characters, such as `\(` and `[(*]`.
ESCAPES_AND_CLASSES = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)


def contract_faults(contract: Any, depth: int = 0) -> Iterator[tuple[Path, str]]:
    """Yield (path, reason) for each fault that keeps a JSON value from being a contract.

    depth: in how many contracts this one is nested.
    """
    if not isinstance(contract, Mapping):
        yield (), "is no object"
        return
    if depth > DEPTH_MAX:
        yield (), f"is nested deeper than {DEPTH_MAX} levels"
        return
    for name in (name for name in contract if name not in KEYWORDS):
        yield (name,), f"is no keyword of a contract: {', '.join(sorted(KEYWORDS))}"
    yield from _simple_faults(contract)
    for name, property_contract in _property_contracts(contract).items():
        for path, reason in contract_faults(property_contract, depth + 1):
            yield ("properties", name, *path), reason
    if "items" in contract:
        for path, reason in contract_faults(contract["items"], depth + 1):
            yield ("items", *path), reason


def _property_contracts(contract: Contract) -> dict[str, Any]:
    """Return the contracts of the properties, by name; none if they are no object."""
    contracts = contract.get("properties", {})
    return dict(contracts) if isinstance(contracts, Mapping) else {}


def _simple_faults(contract: Contract) -> Iterator[tuple[Path, str]]:
    """Yield the faults of all keywords whose values have no contracts in them."""
    if "type" in contract and not _is_type(contract["type"]):
        yield ("type",), f"must be of {', '.join(TYPES)}"
    if "enum" in contract and not _is_enum(contract["enum"]):
        yield ("enum",), "must be a list of texts, numbers, true, false or null"
    if not isinstance(contract.get("description", ""), str):
        yield ("description",), "must be a text"
    yield from _bound_faults(contract)
    yield from _object_faults(contract)
    if "pattern" in contract and (reason := _pattern_fault(contract)):
        yield ("pattern",), reason


def _is_type(value: Any) -> bool:
    names = value if isinstance(value, list) and value else [value]
    return all(isinstance(name, str) and name in TYPES for name in names)


def _is_enum(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return not any(isinstance(each, dict | list) for each in value)


def _bound_faults(contract: Contract) -> Iterator[tuple[Path, str]]:
    for name in (*LOWER, *UPPER):
        if name not in contract:
            continue
        value = contract[name]
        if not _is_number(value):
            yield (name,), "must be a number"
        elif name not in ("minimum", "maximum") and (not isinstance(value, int) or value < 0):
            yield (name,), "must be a whole number from 0"
    for least, most in zip(LOWER, UPPER, strict=True):
        lower, upper = contract.get(least), contract.get(most)
        if _is_number(lower) and _is_number(upper) and lower > upper:
            yield (least,), f"is above {most}: no value satisfies both"


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _object_faults(contract: Contract) -> Iterator[tuple[Path, str]]:
    if not isinstance(contract.get("properties", {}), Mapping):
        yield ("properties",), "must be an object"
    required, others = contract.get("required", []), contract.get("additionalProperties", True)
    if not isinstance(others, bool):
        yield ("additionalProperties",), "must be true or false"
    if not isinstance(required, list) or not all(isinstance(each, str) for each in required):
        yield ("required",), "must be a list of names"
    elif len(set(required)) < len(required):
        yield ("required",), "has a name twice"
    elif others is False:
        for name in sorted({*required} - _property_contracts(contract).keys()):
            yield ("required",), f"has {name}, which is no property, and others are not allowed"


def _pattern_fault(contract: Contract) -> str | None:
    """Return why a contract's pattern is refused; None if it is fine."""
    pattern, length = contract["pattern"], contract.get("maxLength")
    if not isinstance(pattern, str) or len(pattern) > PATTERN_MAX:
        return f"must be a text of up to {PATTERN_MAX} characters"
    plain = ESCAPES_AND_CLASSES.sub("x", pattern)
    if "(" in plain or len(re.findall(r"[*+?{]", plain)) > REPEATS_MAX or re.search(r"\\\d", pattern):
        return f"may have {REPEATS_MAX} repetitions and no groups: some texts would take for ever"
    if not isinstance(length, int) or length > MATCHED_MAX:
        return f"needs a maxLength of up to {MATCHED_MAX} beside it: long texts would take for ever"
    try:
        re.compile(pattern)
    except (re.error, OverflowError) as error:
        return f"is no regular expression: {error}"
    return None


def breaking_changes(old: Contract | None, new: Contract | None) -> Iterator[tuple[Path, str]]:
    """Yield (path, reason) for each place where a new contract refuses what the old one takes.

    None: no contract, so that all properties are taken.
    """
    if not new:
        return
    old = old or {}
    yield from _breaking_keywords(old, new)
    before, after = _property_contracts(old), _property_contracts(new)
    for name in sorted(before.keys() | after.keys()):
        path: Path = ("properties", name)
        if name not in after and not new.get("additionalProperties", True):
            yield path, "is no longer allowed"
        elif name in after and (name in before or old.get("additionalProperties", True)):
            # Where the old contract did not name a property, it took any value of it.
            for inner, reason in breaking_changes(before.get(name), after[name]):
                yield path + inner, reason
    for inner, reason in breaking_changes(old.get("items"), new.get("items")):
        yield ("items", *inner), reason


def _breaking_keywords(old: Contract, new: Contract) -> Iterator[tuple[Path, str]]:
    """Yield the breaking changes of all keywords whose values have no contracts in them."""
    if lost := sorted(_types(old) - _types(new)):
        yield ("type",), f"no longer takes {', '.join(lost)}"
    if "enum" in new and (reason := _lost_values(old, new["enum"])):
        yield ("enum",), reason
    if "pattern" in new and new["pattern"] != old.get("pattern"):
        yield ("pattern",), "is another one"
    for name in sorted({*new.get("required", ())} - {*old.get("required", ())}):
        yield ("required",), f"now has {name}, which senders may leave out so far"
    if old.get("additionalProperties", True) and not new.get("additionalProperties", True):
        yield ("additionalProperties",), "are no longer allowed"
    for name in LOWER:
        if name in new and new[name] > old.get(name, float("-inf")):
            yield (name,), "is higher than it was"
    for name in UPPER:
        if name in new and new[name] < old.get(name, float("inf")):
            yield (name,), "is lower than it was"


def _types(contract: Contract) -> set[str]:
    """Return the JSON types that a contract takes; `number` has the integers in it."""
    kinds = contract.get("type", TYPES)
    names = {kinds} if isinstance(kinds, str) else {name for name in kinds if isinstance(name, str)}
    return names | {"integer"} if "number" in names else names


def _lost_values(old: Contract, values: list[Any]) -> str | None:
    """Return why an enum of these values takes less than the old contract; None if it takes as much."""
    if "enum" not in old:
        return "is new"
    identities = set(map(_json_identity, values))
    lost = [value for value in old["enum"] if _json_identity(value) not in identities]
    return f"no longer has {lost[0]!r}" if lost else None


def _json_identity(value: Any) -> tuple[bool, Any]:
    """Return what equal JSON values share. In Python 1 equals True, in JSON it does not."""
    return isinstance(value, bool), value
