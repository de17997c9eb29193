"""The document of a book of rules: how a `Book` is made of it, and which faults its JSON Schema cannot find.

The schema is in book_schema.py. What several sections of the document need is here. The sections of rewards,
answers, streaks and achievements have modules of their own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Any

from rules.book.answer_rules import answer_faults, read_answers
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
)
from rules.book.contracts import Path, contract_faults
from rules.book.goal_sections import achievement_faults, read_achievements, read_streaks, streak_faults
from rules.book.point_rules import DAYS_SUFFIX, Period
from rules.book.rewards import read_rewards, reward_faults
from rules.days import parse_moment


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a document."""

    path: Path  # the keys and indexes that lead to the bad value, from the outside in
    reason: str

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path)) or 'the book'} {self.reason}"


class BookRefused(ValueError):
    """A document has faults, so no book is made of it."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults  # all that is wrong, in the order of the document


def read_book(document: Mapping[str, Any]) -> Book:
    """Return the book of a document that satisfies book_schema.BOOK and has no faults.

    The faults of a published document are not looked for again: a later release, which may be stricter, has
    to read it too.
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
    """Return the faults of a document that satisfies book_schema.BOOK."""
    return [
        *_type_faults(document),
        *_boost_faults(document),
        *_pause_faults(document),
        *_offline_faults(document),
        *_expiry_faults(document),
        *(Fault(path, reason) for path, reason in reward_faults(document)),
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
    return str(section["end_of"]) if "end_of" in section else f"{section['after_days']}{DAYS_SUFFIX}"


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
    boosts: list[tuple[int, Boost]] = []  # those whose instants can be read, with their indexes
    for index, section in enumerate(document.get("boosts", ())):
        unreadable = list(_instant_faults(section, ("boosts", index)))
        yield from unreadable
        for type_index, name in enumerate(section.get("event_types", ())):
            if name not in event_types:
                path = ("boosts", index, "event_types", type_index)
                yield Fault(path, f"names {name}, which is no event type")
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
    if "expiry" in document and len(document["expiry"]) != 1:
        yield Fault(("expiry",), "must have after_days or end_of, and not both")
