"""Books of rules for tests: the shipped one, and made ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Protocol

from adapters.book_store import BookStore, shipped_document, shipped_version
from rules.book.book import Books, Boost, Declarer, EventType, Version
from rules.book.daily import NO_REPAIRS, RepairRules, daily_rules
from rules.book.document import read_book
from rules.book.goal_rules import thousandths
from rules.book.point_rules import AmountRule, Cap, Period

SHIPPED = shipped_version().book
TYPES = SHIPPED.event_types


def most(event_type: str) -> int:
    """What a user can earn a day with a type of the shipped book."""
    return TYPES[event_type].cap_points or 0


def judged(event_type: str) -> dict[str, Any]:
    """What the shipped book fixes of an event, beside its points."""
    rule: EventType = TYPES[event_type]
    by_server = rule.declared_by is Declarer.SERVER
    return {"rules_version": 1, "cap": Cap(rule.cap_points or 0, Period.DAY), "by_server": by_server}


class AnyBoost(Protocol):
    """A boost, whoever reads it."""

    @property
    def since(self) -> datetime: ...
    @property
    def until(self) -> datetime: ...
    @property
    def factor(self) -> int: ...
    @property
    def types(self) -> frozenset[str]: ...


class AnyAmount(Protocol):
    """What a type earns by an amount, whoever reads it."""

    @property
    def base(self) -> int: ...
    @property
    def of(self) -> str: ...
    @property
    def each(self) -> str: ...
    @property
    def earns(self) -> int: ...


def boosted(boosts: Sequence[AnyBoost], amounts: Mapping[str, AnyAmount] = MappingProxyType({})) -> Version:
    """The shipped book with boosts, and with types that earn by an amount.

    Two boosts may meet, and an amount may have no bounds, which no document may say.
    """
    made = tuple(Boost(each.since, each.until, each.factor, each.types) for each in boosts)
    types = {
        name: replace(
            TYPES[name],
            points=rule.base,
            by_amount=AmountRule(rule.of, thousandths(float(rule.each)), rule.earns),
        )
        for name, rule in amounts.items()
    }
    book = replace(SHIPPED, boosts=made, event_types={**TYPES, **types})
    return replace(shipped_version(), read=lambda: book)


def resting(
    version: Version,
    daily: Mapping[str, Any],
    boards: Mapping[str, Any] | None = None,
    leagues: Mapping[str, Any] | None = None,
) -> Version:
    """A version with rest days, boards and leagues, each as the section of a document has them."""
    return replace(version, read=lambda: replace(version.book, daily=daily_rules(daily, boards, leagues)))


def repairing(version: Version, repairs: Mapping[str, Any]) -> Version:
    """A version that sells repairs. repairs: the section of a document; empty: it sells none."""
    rules = RepairRules(**repairs) if repairs else NO_REPAIRS
    return replace(version, read=lambda: replace(version.book, repairs=rules))


def achieving(
    version: Version, achievements: Mapping[str, Any], streaks: Mapping[str, Any], prices: Mapping[str, int]
) -> Version:
    """A version with achievements and streaks as documents have them, and with other points of some types."""
    document = shipped_document()
    with_sections = read_book({**document, "achievements": dict(achievements), "streaks": dict(streaks)})
    types = {
        name: replace(rule, points=prices.get(name, rule.points))
        for name, rule in version.book.event_types.items()
    }
    book = replace(
        version.book,
        event_types=types,
        achievements=with_sections.achievements,
        streaks=with_sections.streaks,
    )
    return replace(version, read=lambda: book)


class KnownAt:
    """Versions, as processes know them that hear of each at once."""

    def __init__(self, versions: Sequence[Version]) -> None:
        self._books = [Books(versions[: number + 1]) for number in range(len(versions))]

    def at(self, now: datetime) -> Books:
        """Return the versions that are published by an instant, and the first one."""
        first, *later = self._books
        return [first, *(books for books in later if books.newest.published_at <= now)][-1]


class KnownBooks(BookStore):
    """Versions that need no table; only the shipped one if none are given."""

    def __init__(self, versions: Iterable[Version] = ()) -> None:
        super().__init__(None, "")
        self._books = Books([*versions] or [shipped_version()])

    def look(self) -> Books:
        return self._books
