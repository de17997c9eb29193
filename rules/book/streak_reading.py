"""The part of a book's document that declares streaks: its JSON Schema, its sense, and how it is read."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from rules.book.amounts import UNIT, thousandths
from rules.book.streak_rules import Need, NeedKind, StreakPeriod, StreakRule

Path = tuple[str | int, ...]
Said = Mapping[str, Any]

STREAKS_MAX = 20
NAME = "^[a-z][a-z0-9_]{0,31}$"
PROPERTY = "^[A-Za-z][A-Za-z0-9_]{0,31}$"
PROPERTIES_MAX = 4  # of one event type that are summed
EVENTS_MAX = 10_000
AMOUNT_MAX = 1_000_000  # of one event
SUM_MAX = 1_000_000_000
# The streak of the profile: every book has it.
DAILY = "daily"
DATES_MAX = {StreakPeriod.DAY: 1, StreakPeriod.WEEK: 7, StreakPeriod.MONTH: 28}
_SUM: Said = {
    "type": "object",
    "required": ["property", "at_least"],
    "properties": {
        "property": {"type": "string", "pattern": PROPERTY, "description": "a number of the data contract"},
        "at_least": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": SUM_MAX,
            "description": "with up to three decimals",
        },
    },
    "additionalProperties": False,
    "description": "the sum of a property over the period's events",
}
_NEEDS: Said = {
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
                "description": "whose events count; left out: of all types that keep streaks",
            },
            "freezes": {"type": "boolean", "description": "whether a freeze covers a missed period: false"},
            "pauses": {"type": "boolean", "description": "whether a pause covers one: false"},
            "description": {"type": "string", "maxLength": 500},
        },
        "additionalProperties": False,
        "description": "one streak",
    },
    "description": "streaks beside the daily one of the profile, by name",
}


def read_streaks(document: Said) -> dict[str, StreakRule]:
    """Return the streaks of a document that has no faults, by name."""
    keeping = frozenset(
        name for name, said in document["event_types"].items() if said.get("keeps_streak", True)
    )
    return {name: _streak(said, keeping) for name, said in document.get("streaks", {}).items()}


def _streak(said: Said, keeping: frozenset[str]) -> StreakRule:
    ((kind, need),) = said["needs"].items()
    return StreakRule(
        StreakPeriod(said["per"]),
        Need(NeedKind.SUM, thousandths(need["at_least"]), need["property"])
        if kind == NeedKind.SUM
        else Need(NeedKind(kind), need),
        frozenset(said.get("event_types", keeping)),
        said.get("freezes", False),
        said.get("pauses", False),
    )


def streak_faults(document: Said) -> Iterator[tuple[Path, str]]:
    """Yield what makes no sense in a document's streaks, as (path, reason)."""
    for name, said in document.get("streaks", {}).items():
        path: Path = ("streaks", name)
        if name == DAILY:
            yield path, "is the streak of the profile, which every book has: choose another name"
        needs = said["needs"]
        if len(needs) != 1:
            yield (*path, "needs"), "must have exactly one of active_days, events and sum"
            continue
        most = DATES_MAX[StreakPeriod(said["per"])]
        if needs.get(NeedKind.ACTIVE_DAYS, 0) > most:
            reason = f"is more than the {most} that every {said['per']} has"
            yield (*path, "needs", NeedKind.ACTIVE_DAYS), reason
        for place, kind in enumerate(said.get("event_types", ())):
            if kind not in document["event_types"]:
                yield (*path, "event_types", place), f"names {kind}, which is no event type"
        if "sum" in needs:
            yield from _sum_faults(document, path, said)
    yield from _too_many(document)


def _sum_faults(document: Said, path: Path, said: Said) -> Iterator[tuple[Path, str]]:
    summed, at = said["needs"]["sum"], (*path, "needs", "sum")
    if Decimal(str(summed["at_least"])) * UNIT % 1:
        yield (*at, "at_least"), "has more than three decimals"
    if "event_types" not in said:
        yield path, "needs event_types: of which events is the property summed?"
    for kind in said.get("event_types", ()):
        contract = (document["event_types"].get(kind) or {}).get("properties") or {}
        promised = (contract.get("properties") or {}).get(summed["property"])
        if kind in document["event_types"] and not is_bounded_number(promised):
            reason = (
                f"is no bounded number of {kind}: its data contract must give it a type (integer or number),"
                f" a minimum of 0 or more and a maximum of up to {AMOUNT_MAX}"
            )
            yield (*at, "property"), reason


def is_bounded_number(said: Any) -> bool:
    """Whether a property's contract makes it a number that may be summed."""
    if not isinstance(said, Mapping) or said.get("type") not in ("integer", "number"):
        return False
    least, most = said.get("minimum"), said.get("maximum")
    if not isinstance(least, int | float) or not isinstance(most, int | float):
        return False
    return not isinstance(least, bool) and not isinstance(most, bool) and 0 <= least <= most <= AMOUNT_MAX


def _too_many(document: Said) -> Iterator[tuple[Path, str]]:
    summed: dict[str, set[str]] = {}
    for path, kind, name in _summed(document):
        summed.setdefault(kind, set()).add(name)
        if len(summed[kind]) > PROPERTIES_MAX:
            yield path, f"sums a fifth property of {kind}: {PROPERTIES_MAX} are allowed"


def _summed(document: Said) -> Iterator[tuple[Path, str, str]]:
    """Yield what is summed, and where: path, event type, property."""
    for name, said in document.get("streaks", {}).items():
        if "sum" in said["needs"]:
            for kind in said.get("event_types", ()):
                yield ("streaks", name), kind, said["needs"]["sum"]["property"]
    for name, said in document.get("achievements", {}).items():
        for each in said.get("all", said.get("any", ())):
            if "sum" in each:
                yield ("achievements", name), each["sum"]["event_type"], each["sum"]["property"]
