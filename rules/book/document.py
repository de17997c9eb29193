"""A book's document: how it is read into a `Book`, and what makes no sense in it. Its structure stands in
book_schema.py.

An event type may have a data contract: a JSON Schema that the properties of its events satisfy.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Any, TypeGuard

from rules.book.book import (
    NO_FREEZES,
    NO_PAUSES,
    USUAL_OFFLINE,
    Book,
    Boost,
    Declarer,
    EventType,
    FreezeRules,
    OfflineRules,
    PauseRules,
    answer_faults,
    read_answers,
)
from rules.book.goal_sections import achievement_faults, read_achievements, read_streaks, streak_faults
from rules.book.point_rules import DAYS, Period
from rules.book.rewards import read_rewards, reward_problems
from rules.days import parse_moment

Path = tuple[str | int, ...]
Contract = Mapping[str, Any]

TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")
# A lower bound, or an upper one: a new contract may move it outwards.
LOWER = ("minimum", "minLength", "minItems")
UPPER = ("maximum", "maxLength", "maxItems")
# A contract uses these keywords alone, so two contracts can be compared. A new version of a type may allow
# more than the old one, and never less, because its senders are out there and go on sending.
KEYWORDS = frozenset(
    {"type", "enum", "pattern", "properties", "required", "additionalProperties", "items", "description"}
    | {*LOWER, *UPPER}
)
DEPTH_MAX = 8
# Whoever sends a text can make matching it slow: so there are no groups, few repetitions, and short texts.
# Example of what would take for ever: (a+)+ on forty letters.
REPEATS_MAX = 2
MATCHED_MAX = 256
# Each match stands for one character: `\(` and `[(*]` are neither a group nor a repetition; `(` and `*` are.
ESCAPES_AND_CLASSES = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
PATTERN_MAX = 200


def contract_faults(contract: Any, depth: int = 0) -> Iterator[tuple[Path, str]]:
    """Yield what keeps a JSON value from being a contract, as (path, reason)."""
    if not isinstance(contract, Mapping):
        yield (), "is no object"
        return
    if depth > DEPTH_MAX:
        yield (), f"is nested deeper than {DEPTH_MAX} levels"
        return
    for name in contract.keys() - KEYWORDS:
        yield (name,), f"is no keyword of a contract: {', '.join(sorted(KEYWORDS))}"
    yield from _simple_faults(contract)
    for name, inner in _subcontracts(contract, "properties"):
        yield from (
            (("properties", name, *path), reason) for path, reason in contract_faults(inner, depth + 1)
        )
    if "items" in contract:
        yield from (
            (("items", *path), reason) for path, reason in contract_faults(contract["items"], depth + 1)
        )


def _subcontracts(contract: Contract, name: str) -> list[tuple[str, Any]]:
    """Return the contracts in an object of contracts, by name; none if it is no object."""
    contracts = contract.get(name, {})
    return list(contracts.items()) if isinstance(contracts, Mapping) else []


def _simple_faults(contract: Contract) -> Iterator[tuple[Path, str]]:
    kinds = contract.get("type", "string")
    names = kinds if isinstance(kinds, list) and kinds else [kinds]
    if not all(isinstance(name, str) and name in TYPES for name in names):
        yield ("type",), f"must be of {', '.join(TYPES)}"
    values = contract.get("enum", [0])
    if not isinstance(values, list) or not values or any(isinstance(value, dict | list) for value in values):
        yield ("enum",), "must be a list of texts, numbers, true, false or null"
    if not isinstance(contract.get("description", ""), str):
        yield ("description",), "must be a text"
    yield from _bound_faults(contract)
    yield from _object_faults(contract)
    if "pattern" in contract and (reason := _pattern_fault(contract)):
        yield ("pattern",), reason


def _bound_faults(contract: Contract) -> Iterator[tuple[Path, str]]:
    for name in (*LOWER, *UPPER):
        value = contract.get(name, 0)
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
        for name in sorted({*required} - {*dict(_subcontracts(contract, "properties"))}):
            yield ("required",), f"has {name}, which is no property, and others are not allowed"


def _pattern_fault(contract: Contract) -> str | None:
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
    """Yield where a new contract refuses what the old one takes, as (path, reason). None: anything goes."""
    if not new:
        return
    old = old or {}
    yield from _own_changes(old, new)
    before, after = dict(_subcontracts(old, "properties")), dict(_subcontracts(new, "properties"))
    for name in sorted(before.keys() | after.keys()):
        path: Path = ("properties", name)
        if name not in after and not new.get("additionalProperties", True):
            yield path, "is no longer allowed"
        elif name in after and (name in before or old.get("additionalProperties", True)):
            # Where the old contract did not name a property, it took any value of it.
            for inner, reason in breaking_changes(before.get(name), after[name]):
                yield path + inner, reason
    yield from ((("items", *path), why) for path, why in breaking_changes(old.get("items"), new.get("items")))


def _own_changes(old: Contract, new: Contract) -> Iterator[tuple[Path, str]]:
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


def _types(contract: Contract, default: tuple[str, ...] = TYPES) -> set[str]:
    kinds = contract.get("type", default)
    names = {kinds} if isinstance(kinds, str) else {name for name in kinds if isinstance(name, str)}
    return names | {"integer"} if "number" in names else names


def _lost_values(old: Contract, values: list[Any]) -> str | None:
    """Return how an enum of these values takes less than the old contract; None if it does not."""
    if "enum" not in old:
        return "is new"
    identities = set(map(_json_identity, values))
    lost = [value for value in old["enum"] if _json_identity(value) not in identities]
    return f"no longer has {lost[0]!r}" if lost else None


def _json_identity(value: Any) -> tuple[bool, Any]:
    """Return what distinguishes values as JSON does: 1 is not true."""
    return isinstance(value, bool), value


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a document."""

    path: Path  # the keys and indexes that lead to it, from the outside in
    reason: str

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path)) or 'the book'} {self.reason}"


class BookRefused(ValueError):
    """The document is no book."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults  # all that is wrong, in the order of the document


def read_book(document: Mapping[str, Any]) -> Book:
    """Return the book of a document that satisfies book_schema.BOOK and has no faults.

    A published document is read as it is, also where a later release would no longer take it.
    """
    return Book(
        {name: _event_type(section) for name, section in document["event_types"].items()},
        tuple(map(_boost, document.get("boosts", ()))),
        FreezeRules(**document["freezes"]) if "freezes" in document else NO_FREEZES,
        PauseRules(**document["pauses"]) if "pauses" in document else NO_PAUSES,
        _expiry(document.get("expiry")),
        read_rewards(document),
        read_streaks(document),
        read_achievements(document),
        OfflineRules(**document["offline"]) if "offline" in document else USUAL_OFFLINE,
        read_answers(document),
    )


def faults_of(document: Mapping[str, Any]) -> list[Fault]:
    """Return what makes no sense in a document that satisfies book_schema.BOOK."""
    return [
        *_type_faults(document),
        *_boost_faults(document),
        *_pause_faults(document),
        *_offline_faults(document),
        *_expiry_faults(document),
        *(Fault(path, reason) for path, reason in reward_problems(document)),
        *(Fault(path, reason) for path, reason in answer_faults(document)),
        *(Fault(path, reason) for path, reason in streak_faults(document)),
        *(Fault(path, reason) for path, reason in achievement_faults(document)),
    ]


def _event_type(section: Mapping[str, Any]) -> EventType:
    cap = section.get("cap", {})
    return EventType(
        points=section["points"],
        cap_points=cap.get("points"),
        cap_events=cap.get("events"),
        per=Period(cap.get("per", Period.DAY)),
        declared_by=Declarer(section.get("declared_by", Declarer.ANYBODY)),
        keeps_streak=section.get("keeps_streak", True),
        properties=section.get("properties"),
    )


def _boost(section: Mapping[str, Any]) -> Boost:
    since, until = _instant(section["since"]), _instant(section["until"])
    return Boost(since, until, section["factor"], frozenset(section.get("event_types", ())))


def _expiry(section: Mapping[str, Any] | None) -> str | None:
    if not section:
        return None
    return str(section["end_of"]) if "end_of" in section else f"{section['after_days']}{DAYS}"


def _instant(text: str) -> datetime:
    return parse_moment(text).utc


def _type_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    for name, section in document["event_types"].items():
        path: Path = ("event_types", name)
        if (cap := section.get("cap")) is not None:
            if ("points" in cap) == ("events" in cap):
                yield Fault((*path, "cap"), "must have points or events, and not both")
            elif cap.get("points", section["points"]) < section["points"]:
                reason = f"is below the {section['points']} points of one event"
                yield Fault((*path, "cap", "points"), reason)
        for inner, reason in contract_faults(section["properties"]) if "properties" in section else ():
            yield Fault((*path, "properties", *inner), reason)


def _boost_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    event_types = document["event_types"].keys()
    boosts: list[tuple[int, Boost]] = []  # those that can be compared, with their indexes
    for index, section in enumerate(document.get("boosts", ())):
        unreadable = list(_instant_faults(section, ("boosts", index)))
        yield from unreadable
        for at, name in enumerate(section.get("event_types", ())):
            if name not in event_types:
                yield Fault(("boosts", index, "event_types", at), f"names {name}, which is no event type")
        if unreadable:
            continue
        boost = _boost(section)
        if boost.since >= boost.until:
            yield Fault(("boosts", index, "until"), "is not after since")
        boosts.append((index, boost))
    for (index, boost), (later_index, later_boost) in combinations(boosts, 2):
        if _overlap(boost, later_boost):
            yield Fault(("boosts", later_index), f"overlaps with boosts.{index}: which of them applies?")


def _instant_faults(section: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    for name in ("since", "until"):
        try:
            _instant(section[name])
        except ValueError as error:
            yield Fault((*path, name), str(error))


def _overlap(one: Boost, other: Boost) -> bool:
    share_a_type = not (one.event_types and other.event_types) or one.event_types & other.event_types
    return bool(share_a_type) and one.since < other.until and other.since < one.until


def _pause_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    pauses = document.get("pauses")
    if pauses and pauses["dates_max"] > pauses["dates_a_year"]:
        yield Fault(("pauses", "dates_max"), "is more than dates_a_year")


def _offline_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    offline = document.get("offline")
    if offline and offline["days_max"] > offline["days_a_year"]:
        yield Fault(("offline", "days_max"), "is more than days_a_year")


def _expiry_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    if len(document.get("expiry", {"end_of": "year"})) != 1:
        yield Fault(("expiry",), "must have after_days or end_of, and not both")
