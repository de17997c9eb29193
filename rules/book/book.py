"""A book of rules, its versions, and which of them judges an event. document.py reads a `Book`."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from rules.book.daily import (
    NO_REPAIRS,
    NO_REST,
    DailyRules,
    DailyTerms,
    DatedRules,
    RepairRules,
    daily_terms,
    day_starts,
)
from rules.book.goal_rules import AchievementRule, ConditionKind, NeedKind, StreakRule
from rules.book.levels import Level
from rules.book.measures import measures_of, sums_of
from rules.book.point_rules import AmountRule, Cap, Period
from rules.book.reminders import ReminderRules
from rules.book.rewards import Reward
from rules.days import EPOCH, DayStarts

# A date's points of answers are kept in two digits of base 36.
DAY_POINTS_LIMIT = 36**2 - 1
TYPE_NAME = "^[A-Za-z][A-Za-z0-9_.-]{0,63}$"


class Declarer(StrEnum):
    """Who may say that an event has happened."""

    ANYBODY = "anybody"
    # It stands for something of value that only a server has seen: from a user it would prove nothing.
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class EventType:
    """What one type of event is worth, and who may send it."""

    points: int  # of one event, whatever its amount
    cap_points: int | None = None  # the most points that a user's events of a period earn; None: no limit
    cap_events: int | None = None  # how many of a user's events of a period earn points; None: no limit
    per: Period = Period.DAY  # the period of the cap
    declared_by: Declarer = Declarer.ANYBODY
    keeps_streak: bool = True  # whether an event makes its date an active one
    # The data contract: a JSON Schema that an event's properties must satisfy. None: any properties do
    properties: Mapping[str, Any] | None = None
    by_amount: AmountRule | None = None  # what an amount in its properties earns besides

    def points_of(self, measures: str | None) -> int:
        """Return the points of an event before boosts and cap. measures: see Book.points."""
        if self.by_amount is None or measures is None:
            return self.points
        return self.points + self.by_amount.points(sums_of(measures).get(self.by_amount.of, 0))

    def cap(self, factor: int = 1) -> Cap | None:
        """Return the cap of an event, None for none. factor: what a boost multiplies the event's points by.

        A cap in events is the points that so many events earn. So a boost raises it. A cap in points stays.
        A type with `by_amount` has no cap in events.
        """
        if self.cap_events is not None:
            return Cap(self.cap_events * self.points * factor, self.per)
        return None if self.cap_points is None else Cap(self.cap_points, self.per)


@dataclass(frozen=True, slots=True)
class Boost:
    """Multiplies the points of events that occurred in [since, until)."""

    since: datetime
    until: datetime
    factor: int
    event_types: frozenset[str] = frozenset()  # the types whose points are multiplied; empty: all types

    def applies(self, event_type: str, occurred: datetime) -> bool:
        """Whether an event's points are multiplied."""
        in_time = self.since <= occurred < self.until
        return in_time and (not self.event_types or event_type in self.event_types)


@dataclass(frozen=True, slots=True)
class FreezeRules:
    """How many streak freezes a user may have, and what they cost."""

    held_max: int  # how many may wait to be used
    free_a_month: int  # how many cost nothing in a month (UTC)
    price_points: int  # the price of each further one of that month

    def price(self, free_this_month: int) -> int:
        """Return what the next freeze costs. free_this_month: how many were taken for nothing this month."""
        return 0 if free_this_month < self.free_a_month else self.price_points


@dataclass(frozen=True, slots=True)
class PauseRules:
    """How long a streak may be paused."""

    dates_max: int  # how many dates one pause may have
    dates_a_year: int  # how many of any 365 dates in a row may be paused


@dataclass(frozen=True, slots=True)
class OfflineRules:
    """How much a time receipt proves (docs/rules.md, rule 16)."""

    days_max: int  # how old an event may be
    days_a_year: int  # how many days of a year a user may have been offline


@dataclass(frozen=True, slots=True)
class Timing:
    """Points for answers that took neither too short nor too long a time.

    A person who answers faster has not read the question. One who answers slower has put it aside.
    """

    points: int  # of an answer that took from from_ms to to_ms milliseconds, both included
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """What answers earn in the stats of the person who answers (docs/rules.md, rule 5).

    Each answer is an event too. What that event earns follows from its type QUESTION_ANSWERED, not from here.
    """

    points: int  # of each answer
    day_points_max: int  # the most that a person's answers of one date earn
    confidence_points: int = 0  # of an answer that says how sure the person is, besides `points`
    timing: Timing | None = None  # None: how long an answer took earns nothing

    @property
    def most(self) -> int:
        """The most points that one answer can earn."""
        return self.points + self.confidence_points + (self.timing.points if self.timing else 0)


NO_FREEZES, NO_PAUSES = FreezeRules(0, 0, 0), PauseRules(0, 0)
# A book without the section has these: the events of a fortnight at sea count.
USUAL_OFFLINE = OfflineRules(14, 60)
# Without the section, answers earn nothing. The cap is not 0, because a date keeps the cap that was in force
# when it began: answers would earn nothing on the date on which a section is first published.
NO_ANSWERS = AnswerRules(0, DAY_POINTS_LIMIT)


@dataclass(frozen=True, slots=True)
class Book:
    """All rules that are data."""

    event_types: Mapping[str, EventType]
    boosts: tuple[Boost, ...] = ()
    freezes: FreezeRules = NO_FREEZES
    repairs: RepairRules = NO_REPAIRS
    pauses: PauseRules = NO_PAUSES
    expiry: str | None = None  # the rule by which points expire (rules.book.point_rules); None: never
    rewards: Mapping[str, Reward] = field(default_factory=dict)  # by id
    streaks: Mapping[str, StreakRule] = field(default_factory=dict)  # by name, without the daily streak
    achievements: Mapping[str, AchievementRule] = field(default_factory=dict)  # by name
    levels: tuple[Level, ...] = ()  # in ascending order
    friends_max: int = 0  # how many friends a user may have; 0: there are none
    offline: OfflineRules = USUAL_OFFLINE  # what time receipts prove
    answers: AnswerRules = NO_ANSWERS  # what answers to questions earn in stats
    daily: DailyRules = NO_REST  # when dates begin, and the rest days of the daily streak
    reminders: ReminderRules | None = None  # None: nobody is reminded of a streak

    @property
    def paying(self) -> frozenset[str]:
        """The names of achievements that have points."""
        return frozenset(name for name, rule in self.achievements.items() if rule.points)

    def factor(self, event_type: str, occurred: datetime) -> int:
        """Return what an event's points are multiplied by."""
        return max((boost.factor for boost in self.boosts if boost.applies(event_type, occurred)), default=1)

    def points(self, event_type: str, occurred: datetime, measures: str | None = None) -> int:
        """Return an event's points before its cap. Raises KeyError for a type that the book lacks.

        measures: the event's own. Points by an amount that they do not have are 0.
        """
        rule = self.event_types[event_type]
        return rule.points_of(measures) * self.factor(event_type, occurred)

    def cap(self, event_type: str, occurred: datetime) -> Cap | None:
        """Return an event's cap, None for none. Raises KeyError for a type that the book lacks."""
        return self.event_types[event_type].cap(self.factor(event_type, occurred))

    def measured(self, event_type: str) -> tuple[str, ...] | None:
        """Return the properties of a type's events by which the book counts, sorted; () for none.

        They are those that streaks and achievements sum, and the one by which the type earns points. None:
        the book has neither. Then events are not even counted, and nothing is stored for them.
        """
        rule = self.event_types.get(event_type)
        earning = {rule.by_amount.of} if rule and rule.by_amount else set[str]()
        if not self.streaks and not self.achievements and not earning:
            return None
        summed_by_streaks = {
            rule.need.property or ""
            for rule in self.streaks.values()
            if rule.need.kind is NeedKind.SUM and event_type in rule.event_types
        }
        summed_by_achievements = {
            condition.property or ""
            for rule in self.achievements.values()
            for condition in rule.conditions
            if condition.kind is ConditionKind.SUM and condition.event_type == event_type
        }
        return tuple(sorted(earning | summed_by_streaks | summed_by_achievements))


@dataclass(frozen=True)
class Version:
    """A published book. It never changes: publishing adds a version.

    It is in force from effective_at until the next later effective_at of any version. Of two with one
    instant, the higher number wins.
    """

    number: int  # 1, 2, 3 ... in the order of publishing
    effective_at: datetime
    read: Callable[[], Book]
    published_at: datetime = EPOCH
    author: str = ""  # who published it
    note: str = ""
    known_daily: DailyRules | None = None  # the book's, if it is known without reading the book
    known_to_pay: bool | None = None  # whether an achievement has points, if that is known, too

    @property
    def daily(self) -> DailyRules:
        """What the version says of dates and rest days. Many ask for it who need nothing else of the book."""
        return self.book.daily if self.known_daily is None else self.known_daily

    @property
    def pays_bonuses(self) -> bool:
        """Whether an achievement has points."""
        return bool(self.book.paying) if self.known_to_pay is None else self.known_to_pay

    @cached_property
    def book(self) -> Book:
        """What the version says. It is read when it is first needed."""
        return self.read()

    @property
    def is_retroactive(self) -> bool:
        """Whether it took effect before it was published. Events since then are judged anew by it."""
        return self.effective_at < self.published_at


@dataclass(frozen=True, slots=True)
class Terms:
    """What a version says of one event. It is fixed when the event is accepted."""

    version: int  # the version's number
    points: int  # before the cap
    cap: Cap | None
    keeps_streak: bool  # see EventType
    declared_by: Declarer  # see EventType
    expiry: str | None = None  # see Book
    measures: str | None = None  # of the event (rules/book/measures.py)
    offline: OfflineRules = USUAL_OFFLINE  # see Book


class Books:
    """All versions that one process knows, at least one."""

    def __init__(self, versions: Iterable[Version]) -> None:
        self.versions = tuple(sorted(versions, key=lambda version: version.number))
        self._by_effect = sorted(self.versions, key=_order_of_effect)
        self._effective_at = [version.effective_at for version in self._by_effect]
        self._by_number = {version.number: version for version in self.versions}

    @cached_property
    def daily_terms(self) -> DailyTerms:
        """What the books say of dates and rest days (rules.book.daily.daily_terms)."""
        return daily_terms(
            DatedRules(version.number, version.effective_at, version.published_at, version.daily)
            for version in self.versions
        )

    @cached_property
    def pay_bonuses(self) -> bool:
        """Whether any version pays for achievements."""
        return any(version.pays_bonuses for version in self.versions)

    @property
    def day_starts(self) -> DayStarts:
        """When dates begin (rules.book.daily.day_starts)."""
        return day_starts(self.daily_terms)

    @property
    def newest(self) -> Version:
        """The version that was published last."""
        return self.versions[-1]

    def at(self, instant: datetime) -> Version:
        """Return the version in force at an instant; before any takes effect, the first one to do so."""
        return self._by_effect[max(0, bisect_right(self._effective_at, instant) - 1)]

    def at_as_known(self, instant: datetime, known: datetime) -> Version:
        """Return the version in force at an instant, among those that were published by the instant `known`.

        So no version that is published later changes the answer. If none was published by then, it is version
        1.
        """
        candidates = (
            version
            for version in self.versions
            if version.published_at <= known and version.effective_at <= instant
        )
        return max(candidates, key=_order_of_effect, default=self.versions[0])

    def after(self, instant: datetime) -> Version | None:
        """Return the next version that takes effect after an instant; None if none is planned."""
        index = bisect_right(self._effective_at, instant)
        return self._by_effect[index] if index < len(self._by_effect) else None

    def beginning(self, first: datetime, end: datetime) -> Iterator[Version]:
        """Yield the versions that come into force between two instants, both excluded, in order of time.

        Of several versions with one instant, only the one that is ever in force is among them.
        """
        while (following := self.after(first)) is not None and following.effective_at < end:
            first = following.effective_at
            yield self.at(first)

    def numbered(self, number: int) -> Version:
        """Return the version with a number; raises KeyError for a number that this process does not know."""
        if number not in self._by_number:
            raise KeyError(f"there is no version {number} of the book")
        return self._by_number[number]

    def in_force(self, version: Version) -> tuple[datetime, datetime | None]:
        """Return the instants from which and until which a version is in force; None: without end.

        Both are equal if the version is never in force, because a later one has the same instant.
        """
        following = self._by_effect[self._by_effect.index(version) + 1 :]
        return version.effective_at, following[0].effective_at if following else None

    def between(self, first: datetime, last: datetime) -> list[Version]:
        """Return the versions that are in force at some time from one instant to another, both included."""
        begin = max(0, bisect_right(self._effective_at, first) - 1)
        return self._by_effect[begin : bisect_right(self._effective_at, last)]

    def rejudging(self, judged_by: int | None, event_type: str, occurred: datetime) -> Version | None:
        """Return judged_by's version, unless a later retroactive one was in force when the event occurred.

        judged_by: the number of the version that judged the event first; None: unknown. Returns None if that
        version is unknown to this process, or lacks the event's type.
        """
        if judged_by is None:
            return None
        newer = self.at(occurred)
        if newer.number > judged_by and newer.is_retroactive and event_type in newer.book.event_types:
            return newer
        first = self._by_number.get(judged_by)
        return first if first and event_type in first.book.event_types else None

    def judging(self, event_type: str, occurred: datetime, now: datetime) -> Iterator[Version]:
        """Yield the versions that may judge an event, in order. The first one that takes the event judges it.

        They are the version that was in force when the event occurred, and all that have come into force
        since. Versions that lack the type are left out. So an event that a sender keeps until the book has
        its type counts like any other.
        """
        first = max(0, bisect_right(self._effective_at, occurred) - 1)
        for index, version in enumerate(self._by_effect[first:]):
            if index and version.effective_at > now:
                break
            if event_type in version.book.event_types:
                yield version


def _order_of_effect(version: Version) -> tuple[datetime, int]:
    return version.effective_at, version.number


def terms_of(
    version: Version, event_type: str, occurred: datetime, properties: Mapping[str, Any] | None = None
) -> Terms:
    """Return what a version says of an event. Raises KeyError for a type that the version lacks.

    properties: the event's, which keep the version's contract.
    """
    book = version.book
    rule, measures = book.event_types[event_type], measures_of(properties, book.measured(event_type))
    return Terms(
        version.number,
        book.points(event_type, occurred, measures),
        book.cap(event_type, occurred),
        rule.keeps_streak,
        rule.declared_by,
        book.expiry,
        measures,
        book.offline,
    )
