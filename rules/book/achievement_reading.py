"""A book's achievements as its document declares them: their JSON Schema, their sense, how they are read."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from rules.book.achievement_rules import AchievementRule, Condition, ConditionKind
from rules.book.amounts import UNIT, thousandths
from rules.book.streak_reading import NAME, PROPERTY, SUM_MAX, is_bounded_number

Path = tuple[str | int, ...]
Said = Mapping[str, Any]

ACHIEVEMENTS_MAX = 100
CONDITIONS_MAX = 10
THRESHOLD_MAX = 1_000_000_000
STAYS, LEAVES = "never", "when_untrue"
_THRESHOLD: Said = {"type": "integer", "minimum": 1, "maximum": THRESHOLD_MAX}
_CONDITION: Said = {
    "type": "object",
    "properties": {
        ConditionKind.POINTS.value: {**_THRESHOLD, "description": "points ever earned"},
        ConditionKind.COUNT.value: {"type": "string", "description": "events of this type"},
        ConditionKind.STREAK.value: {"type": "string", "description": "a streak of this book"},
        ConditionKind.SUM.value: {
            "type": "object",
            "required": ["event_type", "property"],
            "properties": {
                "event_type": {"type": "string"},
                "property": {"type": "string", "pattern": PROPERTY},
            },
            "additionalProperties": False,
            "description": "the sum of a property over the events of a type",
        },
        "at_least": {"type": "number", "exclusiveMinimum": 0, "maximum": SUM_MAX},
    },
    "additionalProperties": False,
    "description": "points_earned; or one of count, sum and streak, with at_least",
}
_CONDITIONS: Said = {"type": "array", "items": _CONDITION, "minItems": 1, "maxItems": CONDITIONS_MAX}
ACHIEVEMENTS: dict[str, Any] = {
    "type": "object",
    "maxProperties": ACHIEVEMENTS_MAX,
    "propertyNames": {"pattern": NAME},
    "additionalProperties": {
        "type": "object",
        "properties": {
            "all": _CONDITIONS,
            "any": _CONDITIONS,
            "withdrawn": {
                "enum": [STAYS, LEAVES],
                "description": "whether one that was shown goes when it is no longer true: never",
            },
            "history": {
                "type": "boolean",
                "description": "whether it is dated before it was declared, too: false",
            },
            "title": {"type": "string", "maxLength": 100},
            "description": {"type": "string", "maxLength": 500},
        },
        "additionalProperties": False,
        "description": "one achievement; exactly one of all and any",
    },
    "description": "achievements, by name",
}


def read_achievements(document: Said) -> dict[str, AchievementRule]:
    """Return the achievements of a document that has no faults, by name."""
    return {name: _achievement(said) for name, said in document.get("achievements", {}).items()}


def _achievement(said: Said) -> AchievementRule:
    return AchievementRule(
        tuple(map(_condition, said.get("all") or said["any"])),
        needs_all="all" in said,
        stays=said.get("withdrawn", STAYS) == STAYS,
        of_history=said.get("history", False),
        title=said.get("title", ""),
    )


def _condition(said: Said) -> Condition:
    (kind,) = (each for each in ConditionKind if each in said)
    of = said[kind]
    if kind is ConditionKind.POINTS:
        return Condition(kind, of)
    if kind is ConditionKind.SUM:
        return Condition(kind, thousandths(said["at_least"]), of["event_type"], of["property"])
    is_count = kind is ConditionKind.COUNT
    return Condition(kind, said["at_least"], of if is_count else None, streak=None if is_count else of)


def achievement_faults(document: Said) -> Iterator[tuple[Path, str]]:
    """Yield what makes no sense in a document's achievements, as (path, reason)."""
    for name, said in document.get("achievements", {}).items():
        path: Path = ("achievements", name)
        if ("all" in said) == ("any" in said):
            yield path, "must have all or any, and not both"
            continue
        key = "all" if "all" in said else "any"
        for place, condition in enumerate(said[key]):
            for inner, reason in _condition_faults(document, condition):
                yield (*path, key, place, *inner), reason


def _condition_faults(document: Said, said: Said) -> Iterator[tuple[Path, str]]:
    kinds = [each for each in ConditionKind if each in said]
    if len(kinds) != 1:
        yield (), "must have exactly one of points_earned, count, sum and streak"
        return
    (kind,) = kinds
    if (kind is not ConditionKind.POINTS) != ("at_least" in said):
        yield (), "needs at_least" if "at_least" not in said else "has its threshold in points_earned"
        return
    at_least = Decimal(str(said.get("at_least", 1)))
    if at_least * (UNIT if kind is ConditionKind.SUM else 1) % 1:
        yield ("at_least",), "has more than three decimals" if kind is ConditionKind.SUM else "is not whole"
    of = said[kind]
    types = document["event_types"]
    if kind is ConditionKind.COUNT and of not in types:
        yield (kind.value,), f"names {of}, which is no event type"
    if kind is ConditionKind.STREAK and of not in document.get("streaks", {}):
        yield (kind.value,), f"names {of}, which is no streak"
    if kind is ConditionKind.SUM:
        contract = (types.get(of["event_type"]) or {}).get("properties") or {}
        if of["event_type"] not in types:
            yield (kind.value, "event_type"), f"names {of['event_type']}, which is no event type"
        elif not is_bounded_number((contract.get("properties") or {}).get(of["property"])):
            yield (kind.value, "property"), f"is no bounded number of {of['event_type']}"
