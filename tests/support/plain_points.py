"""A plain reading of rules 5, 11 and 12: what an account comes to, told from what happened and in no order.

It shares no code with rules/. All dates are UTC's. Versions begin at midnight, and all of them take effect in
the past: so an event is judged by the version in force on its date.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from tests.support.plain_lots import Plain

NEVER = date.max


@dataclass(frozen=True)
class Price:
    """What a version says of a type: points of an event, and the most of a date."""

    points: int
    cap: int


@dataclass
class Edition:
    """A version: since when, what it says of each type, after how many days points expire (None: never)."""

    since: date
    prices: dict[str, Price]
    lasts_days: int | None = None


@dataclass
class PlainPoints:
    """What happened. events: id -> (type, when). spent: id -> (when, points). Both without what was undone."""

    editions: list[Edition]
    events: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    spent: dict[str, tuple[datetime, int]] = field(default_factory=dict)

    def edition(self, day: date) -> Edition:
        """The one in force on a date: the latest to begin; of two, the one that was published last."""
        known = [each for each in self.editions if each.since <= day]
        return max(enumerate(known), key=lambda each: (each[1].since, each[0]))[1]

    def earned(self) -> dict[date, int]:
        """Points by the date on which they expire, whatever has been spent of them."""
        worth: dict[tuple[str, date], list[date]] = defaultdict(list)
        for kind, when in self.events.values():
            worth[kind, when.date()].append(when.date())
        lots: dict[date, int] = defaultdict(int)
        for (kind, day), several in worth.items():
            edition = self.edition(day)
            price = edition.prices[kind]
            points = min(price.cap, price.points * len(several))
            lots[NEVER if edition.lasts_days is None else day + timedelta(edition.lasts_days)] += points
        return lots

    def total(self) -> int:
        """Points ever earned."""
        return sum(self.earned().values())

    def expired(self, now: datetime) -> dict[date, int]:
        """Points that have expired, by date."""
        lots = [(on, points) for on, points in self.earned().items() if on != NEVER]
        return Plain(lots, list(self.spent.values())).expired(now)

    def balance(self, now: datetime) -> int:
        """What is left; below 0: a debt."""
        gone = sum(points for _, points in self.spent.values())
        return self.total() - gone - sum(self.expired(now).values())

    def dates(self) -> list[date]:
        """The active dates."""
        return sorted({when.date() for _, when in self.events.values()})

    def longest(self) -> int:
        """The longest run of them, where nobody has freezes."""
        best = run = 0
        before: date | None = None
        for day in self.dates():
            run = run + 1 if before and day - before == timedelta(days=1) else 1
            best, before = max(best, run), day
        return best
