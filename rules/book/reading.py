"""Reads a document into a Book. book_schema.py checks its structure, this its sense."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Any

from rules.book.achievement_reading import achievement_faults, read_achievements
from rules.book.answers import answer_faults, read_answers
from rules.book.book import (
    NO_FREEZES,
    NO_PAUSES,
    USUAL_OFFLINE,
    Book,
    Boost,
    Declarer,
    EventType,
    Freezes,
    Offline,
    Pauses,
)
from rules.book.caps import Period
from rules.book.contracts import contract_faults
from rules.book.expiry import DAYS
from rules.book.rewards import read_rewards, reward_problems
from rules.book.streak_reading import read_streaks, streak_faults
from rules.days import parse_moment

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a document. path: the keys and places that lead to it, from the outside in."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path)) or 'the book'} {self.reason}"


class BookRefused(ValueError):
    """The document is no book. faults: all that is wrong, in the order of the document."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


def read_book(document: Mapping[str, Any]) -> Book:
    """Return the book of a document that satisfies book_schema.BOOK and has no faults.

    A published document is read as it is, also where a later release would no longer take it.
    """
    return Book(
        {name: _event_type(each) for name, each in document["event_types"].items()},
        tuple(map(_boost, document.get("boosts", ()))),
        Freezes(**document["freezes"]) if "freezes" in document else NO_FREEZES,
        Pauses(**document["pauses"]) if "pauses" in document else NO_PAUSES,
        _expiry(document.get("expiry")),
        read_rewards(document),
        read_streaks(document),
        read_achievements(document),
        Offline(**document["offline"]) if "offline" in document else USUAL_OFFLINE,
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


def _event_type(said: Mapping[str, Any]) -> EventType:
    cap = said.get("cap", {})
    return EventType(
        points=said["points"],
        cap_points=cap.get("points"),
        cap_events=cap.get("events"),
        per=Period(cap.get("per", Period.DAY)),
        declared_by=Declarer(said.get("declared_by", Declarer.ANYBODY)),
        keeps_streak=said.get("keeps_streak", True),
        properties=said.get("properties"),
    )


def _boost(said: Mapping[str, Any]) -> Boost:
    since, until = _instant(said["since"]), _instant(said["until"])
    return Boost(since, until, said["factor"], frozenset(said.get("event_types", ())))


def _expiry(said: Mapping[str, Any] | None) -> str | None:
    if not said:
        return None
    return str(said["end_of"]) if "end_of" in said else f"{said['after_days']}{DAYS}"


def _instant(text: str) -> datetime:
    return parse_moment(text).utc


def _type_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    for name, said in document["event_types"].items():
        path: Path = ("event_types", name)
        if (cap := said.get("cap")) is not None:
            if ("points" in cap) == ("events" in cap):
                yield Fault((*path, "cap"), "must have points or events, and not both")
            elif cap.get("points", said["points"]) < said["points"]:
                reason = f"is below the {said['points']} points of one event"
                yield Fault((*path, "cap", "points"), reason)
        for inner, reason in contract_faults(said["properties"]) if "properties" in said else ():
            yield Fault((*path, "properties", *inner), reason)


def _boost_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    known = document["event_types"].keys()
    sound: list[tuple[int, Boost]] = []
    for place, said in enumerate(document.get("boosts", ())):
        unreadable = list(_instant_faults(said, ("boosts", place)))
        yield from unreadable
        for at, name in enumerate(said.get("event_types", ())):
            if name not in known:
                yield Fault(("boosts", place, "event_types", at), f"names {name}, which is no event type")
        if unreadable:
            continue
        boost = _boost(said)
        if boost.since >= boost.until:
            yield Fault(("boosts", place, "until"), "is not after since")
        sound.append((place, boost))
    for (earlier, one), (later, other) in combinations(sound, 2):
        if _overlap(one, other):
            yield Fault(("boosts", later), f"overlaps with boosts.{earlier}: which of them applies?")


def _instant_faults(said: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    for name in ("since", "until"):
        try:
            _instant(said[name])
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
