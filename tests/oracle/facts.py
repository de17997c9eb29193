"""What the world knows of one user: what was accepted, granted, paused and set. Imports nothing of the product."""

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Any

from tests.oracle.bonus_reading import Declared, Section
from tests.oracle.calendar_dates import (
    MIDNIGHT,
    Starts,
    date_in,
    dates_skipped_by,
    first_date_from,
    instant,
    named_zone,
    offset_at,
)
from tests.oracle.points_reading import FOR_SERVERS, ByAmount, TimedBoost, worth
from tests.oracle.repair_reading import RepairTerms

KEY_LIVES, DAY = timedelta(days=90), timedelta(days=1)
EARLY = datetime(1970, 1, 1, tzinfo=UTC)
LATE_MAX, AHEAD_MAX = timedelta(hours=72), timedelta(minutes=5)
# Instants so near to a limit are not judged: a retry within the same phase may fall on its other side.
UNSURE = timedelta(minutes=2)


def said(body: Mapping[str, Any]) -> str:
    """What a body says, in one spelling: 1 is 1.0, NFC is NFD, Z is .000Z (rule 4)."""

    def plain(value: Any) -> Any:
        if isinstance(value, str):
            return unicodedata.normalize("NFC", value)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int | float):
            return float(value)
        if isinstance(value, dict):
            return {unicodedata.normalize("NFC", name): plain(each) for name, each in value.items()}
        return [plain(each) for each in value]

    text = body["occurred_at"]
    whole = text.replace(".000", "")
    return json.dumps(plain({**body, "occurred_at": whole}), sort_keys=True)


def refusal(body: Mapping[str, Any], door: str, now: datetime) -> set[str | None]:
    """Why rules 3, 5 and 8 refuse a body at a door; None: they do not. Several near a limit: any of them."""
    if door == "user" and body["event_type"] in FOR_SERVERS:
        return {"forbidden"}
    when, found = instant(body["occurred_at"]), set[str | None]()
    for unsure in (-UNSURE, UNSURE):
        if when > now + AHEAD_MAX + unsure:
            found.add("in_the_future")
        elif door == "user" and when < now - LATE_MAX + unsure:
            found.add("backfill_forbidden")
        else:
            found.add(None)
    return found


@dataclass(frozen=True)
class Taken:
    """An accepted event. claimed: the date that it names by rule 1."""

    key: str
    event_type: str
    when: datetime
    zone: str
    claimed: date
    worth: int


@dataclass(frozen=True)
class Held:
    """What an idempotency key stands for."""

    said: str
    event_id: str
    since: datetime


@dataclass(frozen=True)
class BookSaid:
    """What a version of the book says. since: it is published, and in force."""

    since: datetime = EARLY
    rest: frozenset[int] = frozenset()  # weekdays that are rest days, 0: Monday
    rest_chosen: int = 0  # how many a user may choose
    day_start: time = MIDNIGHT
    repairs: RepairTerms | None = None  # None: it sells none
    prices: Mapping[str, int] = field(default_factory=dict)  # points of types that are not the table's
    paying: Mapping[str, Section] = field(default_factory=dict)  # its achievements with points


@dataclass
class Facts:
    """Of one user. books: by since. moves: (instant, zone) as set. *_told_at: the step at which each of them was answered.

    renewed: events that were accepted again after their key had expired, by id. No rule says which of the two
    stays stored, or how long. The first has the ledger entry.
    """

    boosts: tuple[TimedBoost, ...] = ()
    by_amount: Mapping[str, ByAmount] = field(default_factory=dict)
    events: dict[str, Taken] = field(default_factory=dict)
    keys: dict[str, Held] = field(default_factory=dict)
    pauses: list[tuple[date, date]] = field(default_factory=list)
    pauses_told_at: list[int] = field(default_factory=list)
    books: tuple[BookSaid, ...] = (BookSaid(),)
    streaks: Mapping[str, Section] = field(default_factory=dict)  # of the book
    reversed_keys: set[str] = field(default_factory=set)  # of events whose reversal was asked for
    choices: list[tuple[date, frozenset[int]]] = field(default_factory=list)
    moves: list[tuple[datetime, str]] = field(default_factory=list)
    moves_told_at: list[int] = field(default_factory=list)
    renewed: dict[str, Taken] = field(default_factory=dict)

    @property
    def zone_set(self) -> str | None:
        return self.moves[-1][1] if self.moves else None

    def book_at(self, at: datetime) -> BookSaid:
        """The book in force at an instant."""
        return [each for each in self.books if each.since <= at][-1]

    @property
    def starts(self) -> Starts:
        """When dates begin: a version that judges a date says when it ends."""
        first, *later = self.books
        found = [(first_date_from(each.since) + DAY, each.day_start) for each in later]
        return ((date.min, first.day_start), *found)

    @property
    def short(self) -> frozenset[date]:
        """The dates that a new start of the day has cut short."""
        starts = self.starts
        return frozenset(since - DAY for (_, before), (since, start) in pairwise(starts) if start < before)

    @property
    def rests_by(self) -> tuple[tuple[date, frozenset[int], int], ...]:
        """What the books say of rest days, each from its date on."""
        first, *later = self.books
        found = [(first_date_from(each.since), each.rest, each.rest_chosen) for each in later]
        return ((date.min, first.rest, first.rest_chosen), *found)

    def paying(self, at: datetime) -> dict[str, Declared]:
        """The achievements that pay by the book in force, each since the first date that was to come everywhere."""
        found = {}
        for name, section in self.book_at(at).paying.items():
            declared = next(each.since for each in self.books if name in each.paying)
            found[name] = Declared(section, (declared + timedelta(hours=14)).date() + DAY)
        return found

    def held(self, key: str, now: datetime) -> Held | None:
        """What a key stands for; after 90 days it is new at once."""
        found = self.keys.get(key)
        return found if found and now < found.since + KEY_LIVES else None

    def take(self, body: Mapping[str, Any], event_id: str, now: datetime) -> None:
        """An event was accepted, for the first time or again."""
        key, when = body["idempotency_key"], instant(body["occurred_at"])
        self.keys[key] = Held(said(body), event_id, now)
        zone = named_zone(body["occurred_at"], body.get("timezone"), self.zone_set)
        rule = self.by_amount.get(body["event_type"])
        price = self.book_at(when).prices.get(body["event_type"])
        if rule:
            price = rule.price(body.get("properties", {}))
        points = worth(body["event_type"], when, self.boosts, price)
        taken = Taken(key, body["event_type"], when, zone, date_in(zone, when, self.starts), points)
        if event_id in self.events:
            self.renewed[event_id] = taken
        else:
            self.events[event_id] = taken

    def skipped(self, first: date, last: date) -> frozenset[date]:
        """The dates that a zone of the user's events skipped."""
        zones = {each.zone for each in self.events.values()}
        years = range(first.year, last.year + 1)
        found = {day for zone in zones for year in years for day in dates_skipped_by(zone, year)}
        return frozenset(day for day in found if first <= day <= last)

    def offsets(self) -> set[timedelta]:
        """All offsets that the user was ever seen with. One of 0 is how servers write."""
        seen = {offset_at(each.zone, each.when) for each in self.events.values()}
        seen |= {offset_at(zone, at) for at, zone in self.moves}
        return seen - {timedelta()}
