"""The sections of a book's document that declare streaks and achievements (docs/rules.md, rules 14 and 15).

In this order: their JSON Schema; how they are read; their faults that no schema finds.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from rules.book.goal_rules import (
    DAILY,
    UNIT,
    AchievementRule,
    Condition,
    ConditionKind,
    Need,
    NeedKind,
    StreakPeriod,
    StreakRule,
    thousandths,
)

Path = tuple[str | int, ...]  # the keys and indexes that lead to a value of the document
Section = Mapping[str, Any]  # a part of the document

STREAKS_MAX = 20
NAME = "^[a-z][a-z0-9_]{0,31}$"
PROPERTY = "^[A-Za-z][A-Za-z0-9_]{0,31}$"
PROPERTIES_MAX = 4  # how many properties of one event type may be summed
EVENTS_MAX = 10_000
AMOUNT_MAX = 1_000_000  # what one event may add to a sum, before it is counted in thousandths
SUM_MAX = 1_000_000_000
ACHIEVEMENTS_MAX = 100
CONDITIONS_MAX = 10
THRESHOLD_MAX = 1_000_000_000
NEVER, WHEN_UNTRUE = "never", "when_untrue"  # the values of an achievement's `withdrawn`
# How many dates every period has at least: no streak can need more active dates.
DATES_MAX = {StreakPeriod.DAY: 1, StreakPeriod.WEEK: 7, StreakPeriod.MONTH: 28}

_SUM: Section = {
    "type": "object",
    "required": ["property", "at_least"],
    "properties": {
        "property": {
            "type": "string",
            "pattern": PROPERTY,
            "description": "a number that the data contract has",
        },
        "at_least": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": SUM_MAX,
            "description": "has up to three decimals",
        },
    },
    "additionalProperties": False,
    "description": "the sum of a property over the period's events",
}
_NEEDS: Section = {
    "type": "object",
    "properties": {
        NeedKind.ACTIVE_DAYS.value: {"type": "integer", "minimum": 1, "maximum": 28},
        NeedKind.EVENTS.value: {"type": "integer", "minimum": 1, "maximum": EVENTS_MAX},
        NeedKind.SUM.value: _SUM,
    },
    "additionalProperties": False,
    "description": "what each period needs; exactly one of active_days, events and sum",
}
STREAKS: dict[str, Any] = {
    "type": "object",
    "maxProperties": STREAKS_MAX,
    "propertyNames": {"pattern": NAME},
    "additionalProperties": {
        "type": "object",
        "required": ["per", "needs"],
        "properties": {
            "per": {"enum": [each.value for each in StreakPeriod], "description": "a week begins on Monday"},
            "needs": _NEEDS,
            "event_types": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "maxItems": 500,
                "uniqueItems": True,
                "description": "the types that count; left out: all that keep streaks",
            },
            "freezes": {
                "type": "boolean",
                "description": "whether a freeze covers a missed period; default: false",
            },
            "pauses": {
                "type": "boolean",
                "description": "whether a pause covers a missed period; default: false",
            },
            "description": {"type": "string", "maxLength": 500},
        },
        "additionalProperties": False,
        "description": "one streak",
    },
    "description": "streaks besides the daily one, by name",
}

_THRESHOLD: Section = {"type": "integer", "minimum": 1, "maximum": THRESHOLD_MAX}
_CONDITION: Section = {
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
_CONDITIONS: Section = {"type": "array", "items": _CONDITION, "minItems": 1, "maxItems": CONDITIONS_MAX}
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
                "enum": [NEVER, WHEN_UNTRUE],
                "description": "whether a shown one is withdrawn when it is no longer true; default: never",
            },
            "history": {
                "type": "boolean",
                "description": "whether its date may be before its declaration; default: false",
            },
            "title": {"type": "string", "maxLength": 100},
            "description": {"type": "string", "maxLength": 500},
        },
        "additionalProperties": False,
        "description": "one achievement; exactly one of all and any",
    },
    "description": "achievements, by name",
}


def read_streaks(document: Section) -> dict[str, StreakRule]:
    """Return the streaks of a document that has no faults, by name."""
    keeping = frozenset(
        name for name, section in document["event_types"].items() if section.get("keeps_streak", True)
    )
    return {name: _streak(section, keeping) for name, section in document.get("streaks", {}).items()}


def _streak(section: Section, keeping: frozenset[str]) -> StreakRule:
    ((kind, value),) = section["needs"].items()
    if kind == NeedKind.SUM:
        need = Need(NeedKind.SUM, thousandths(value["at_least"]), value["property"])
    else:
        need = Need(NeedKind(kind), value)
    return StreakRule(
        per=StreakPeriod(section["per"]),
        need=need,
        event_types=frozenset(section.get("event_types", keeping)),
        freezes=section.get("freezes", False),
        pauses=section.get("pauses", False),
    )


def read_achievements(document: Section) -> dict[str, AchievementRule]:
    """Return the achievements of a document that has no faults, by name."""
    return {name: _achievement(section) for name, section in document.get("achievements", {}).items()}


def _achievement(section: Section) -> AchievementRule:
    return AchievementRule(
        tuple(map(_condition, section.get("all") or section["any"])),
        needs_all="all" in section,
        stays=section.get("withdrawn", NEVER) == NEVER,
        of_history=section.get("history", False),
        title=section.get("title", ""),
    )


def _condition(condition: Section) -> Condition:
    (kind,) = (each for each in ConditionKind if each in condition)
    value = condition[kind]
    if kind is ConditionKind.POINTS:
        return Condition(kind, value)
    if kind is ConditionKind.SUM:
        return Condition(kind, thousandths(condition["at_least"]), value["event_type"], value["property"])
    if kind is ConditionKind.COUNT:
        return Condition(kind, condition["at_least"], event_type=value)
    return Condition(kind, condition["at_least"], streak=value)


def streak_faults(document: Section) -> Iterator[tuple[Path, str]]:
    """Yield the faults of a document's streaks that no schema finds, as (path, reason)."""
    for name, section in document.get("streaks", {}).items():
        path: Path = ("streaks", name)
        if name == DAILY:
            yield path, "is the streak of the profile, which every book has: choose another name"
        needs = section["needs"]
        if len(needs) != 1:
            yield (*path, "needs"), "must have exactly one of active_days, events and sum"
            continue
        dates_max = DATES_MAX[StreakPeriod(section["per"])]
        if needs.get(NeedKind.ACTIVE_DAYS, 0) > dates_max:
            reason = f"is more than the {dates_max} that every {section['per']} has"
            yield (*path, "needs", NeedKind.ACTIVE_DAYS), reason
        for index, event_type in enumerate(section.get("event_types", ())):
            if event_type not in document["event_types"]:
                yield (*path, "event_types", index), f"names {event_type}, which is no event type"
        if "sum" in needs:
            yield from _sum_faults(document, path, section)
    yield from _excess_sum_faults(document)


def _sum_faults(document: Section, path: Path, section: Section) -> Iterator[tuple[Path, str]]:
    sum_need, sum_path = section["needs"]["sum"], (*path, "needs", "sum")
    if Decimal(str(sum_need["at_least"])) * UNIT % 1:
        yield (*sum_path, "at_least"), "has more than three decimals"
    if "event_types" not in section:
        yield path, "needs event_types: of which events is the property summed?"
    for event_type in section.get("event_types", ()):
        if event_type in document["event_types"]:
            for reason in _property_faults(document, event_type, sum_need["property"]):
                yield (*sum_path, "property"), reason


def _excess_sum_faults(document: Section) -> Iterator[tuple[Path, str]]:
    properties: dict[str, set[str]] = {}  # by event type
    for path, event_type, name in _declared_sums(document):
        properties.setdefault(event_type, set()).add(name)
        if len(properties[event_type]) > PROPERTIES_MAX:
            yield path, f"sums more than {PROPERTIES_MAX} properties of {event_type}"


def _declared_sums(document: Section) -> Iterator[tuple[Path, str, str]]:
    """Yield each sum that streaks and achievements declare: path, event type, property."""
    for name, section in document.get("streaks", {}).items():
        if "sum" in section["needs"]:
            for event_type in section.get("event_types", ()):
                yield ("streaks", name), event_type, section["needs"]["sum"]["property"]
    for name, section in document.get("achievements", {}).items():
        for condition in section.get("all", section.get("any", ())):
            if "sum" in condition:
                yield ("achievements", name), condition["sum"]["event_type"], condition["sum"]["property"]


def achievement_faults(document: Section) -> Iterator[tuple[Path, str]]:
    """Yield the faults of a document's achievements that no schema finds, as (path, reason)."""
    for name, section in document.get("achievements", {}).items():
        path: Path = ("achievements", name)
        if ("all" in section) == ("any" in section):
            yield path, "must have all or any, and not both"
            continue
        key = "all" if "all" in section else "any"
        for index, condition in enumerate(section[key]):
            for inner_path, reason in _condition_faults(document, condition):
                yield (*path, key, index, *inner_path), reason


def _condition_faults(document: Section, condition: Section) -> Iterator[tuple[Path, str]]:
    kinds = [each for each in ConditionKind if each in condition]
    if len(kinds) != 1:
        yield (), "must have exactly one of points_earned, count, sum and streak"
        return
    (kind,) = kinds
    if kind is ConditionKind.POINTS:
        if "at_least" in condition:
            yield (), "has its threshold in points_earned"
        return
    if "at_least" not in condition:
        yield (), "needs at_least"
        return
    yield from _threshold_faults(kind, Decimal(str(condition["at_least"])))
    value, types = condition[kind], document["event_types"]
    if kind is ConditionKind.COUNT and value not in types:
        yield (kind.value,), f"names {value}, which is no event type"
    if kind is ConditionKind.STREAK and value not in document.get("streaks", {}):
        yield (kind.value,), f"names {value}, which is no streak"
    if kind is ConditionKind.SUM:
        event_type = value["event_type"]
        if event_type not in types:
            yield (kind.value, "event_type"), f"names {event_type}, which is no event type"
            return
        for reason in _property_faults(document, event_type, value["property"]):
            yield (kind.value, "property"), reason


def _threshold_faults(kind: ConditionKind, at_least: Decimal) -> Iterator[tuple[Path, str]]:
    if kind is ConditionKind.SUM and at_least * UNIT % 1:
        yield ("at_least",), "has more than three decimals"
    if kind is not ConditionKind.SUM and at_least % 1:
        yield ("at_least",), "is not whole"


def _property_faults(document: Section, event_type: str, name: str) -> Iterator[str]:
    """Yield why a property of an event type of the book cannot be summed."""
    contract = document["event_types"][event_type].get("properties") or {}
    if not is_bounded_number((contract.get("properties") or {}).get(name)):
        yield (
            f"is no bounded number of {event_type}: its data contract must give it a type (integer or"
            f" number), a minimum of 0 or more and a maximum of up to {AMOUNT_MAX}"
        )


def is_bounded_number(contract: Any) -> bool:
    """Whether a property's contract makes it a number that may be summed. contract: None if there is none."""
    if not isinstance(contract, Mapping) or contract.get("type") not in ("integer", "number"):
        return False
    least, most = contract.get("minimum"), contract.get("maximum")
    if not isinstance(least, int | float) or not isinstance(most, int | float):
        return False
    return not isinstance(least, bool) and not isinstance(most, bool) and 0 <= least <= most <= AMOUNT_MAX
