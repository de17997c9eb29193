"""A book of rules, its versions, and which of them judges an event. document.py reads a `Book`."""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from rules.book.goal_rules import AchievementRule, ConditionKind, NeedKind, StreakRule
from rules.book.point_rules import Cap, Period
from rules.book.rewards import Reward
from rules.days import EPOCH

# A date's points are kept in two digits of base 36 (rules/questions/answer_stats.py).
DAY_POINTS_LIMIT = 36**2 - 1
TOOK_MS_MAX = 86_400_000  # the longest response_time_ms that the API takes
TYPE_NAME = "^[A-Za-z][A-Za-z0-9_.-]{0,63}$"
# A text with none of these reads as one without quotation marks.
NEEDS_QUOTES = re.compile(r'[\x00-\x1f\x7f-\x9f,\[\]{}"]|^\s|\s$|^$')

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Timing:
    """Points for answers that took neither too short nor too long.

    A faster answer was given without reading the question, a slower one was left lying.
    """

    points: int  # of an answer that took from from_ms to to_ms milliseconds, both included
    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """What answers earn in the stats of who answers (docs/rules.md, rule 5).

    The events that answers are (QUESTION_ANSWERED) are a type of the book like any other.
    """

    points: int  # of each answer
    day_points_max: int  # the most that a person's answers of one date earn
    confidence_points: int = 0  # further ones, if it says how sure the person is
    timing: Timing | None = None

    @property
    def most(self) -> int:
        """What one answer can earn."""
        return self.points + self.confidence_points + (self.timing.points if self.timing else 0)


# Of a book without the section: answers earn nothing, and there is no cap. A cap of 0 would hold for all of
# the date on which a section is first published, because a date has the cap in force when it begins.
NO_ANSWERS = AnswerRules(0, DAY_POINTS_LIMIT)


def _whole(least: int, most: int, description: str) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most, "description": description}


ANSWERS: Schema = {
    "type": "object",
    "required": ["points", "day_points_max"],
    "properties": {
        "points": _whole(0, DAY_POINTS_LIMIT, "of each answer"),
        "confidence_points": _whole(
            0, DAY_POINTS_LIMIT, "more, if the answer says how sure the person is; left out: none"
        ),
        "timing": {
            "type": "object",
            "required": ["points", "from_ms", "to_ms"],
            "properties": {
                "points": _whole(0, DAY_POINTS_LIMIT, "more, if the answer took so long"),
                "from_ms": _whole(0, TOOK_MS_MAX, "milliseconds, included"),
                "to_ms": _whole(0, TOOK_MS_MAX, "milliseconds, included"),
            },
            "additionalProperties": False,
            "description": "for answers that were neither hasty nor left lying; left out: no such points",
        },
        "day_points_max": _whole(
            1,
            DAY_POINTS_LIMIT,
            "the most that a person's answers of one date earn: by the version in force when the date begins",
        ),
    },
    "additionalProperties": False,
    "description": "what answers to questions earn in their own stats; left out: nothing",
}


def read_answers(document: Mapping[str, Any]) -> AnswerRules:
    """Return the rules of a document that satisfies the schema."""
    if (section := document.get("answers")) is None:
        return NO_ANSWERS
    timing = Timing(**section["timing"]) if "timing" in section else None
    return AnswerRules(**{**section, "timing": timing})


def answer_faults(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what makes no sense in the section: where, and why."""
    rules = read_answers(document)
    if rules.timing and rules.timing.from_ms > rules.timing.to_ms:
        yield ("answers", "timing", "from_ms"), "is more than to_ms"
    if rules.day_points_max < rules.most:
        yield ("answers", "day_points_max"), f"is below the {rules.most} points that one answer can earn"


class Declarer(StrEnum):
    """Who may say that an event has happened."""

    ANYBODY = "anybody"
    # It stands for something of value that only a server has seen: from a user it would prove nothing.
    SERVER = "server"


@dataclass(frozen=True, slots=True)
class EventType:
    """What one type of event is worth, and who may send it."""

    points: int  # of one event
    cap_points: int | None = None  # the most points that a user's events of a period earn; None: no limit
    cap_events: int | None = None  # how many of a user's events of a period earn points; None: no limit
    per: Period = Period.DAY  # the period of the cap
    declared_by: Declarer = Declarer.ANYBODY
    keeps_streak: bool = True  # whether an event makes its date an active one
    # JSON Schema of the properties that senders promise, None for any
    properties: Mapping[str, Any] | None = None

    def cap(self, factor: int = 1) -> Cap | None:
        """Return the cap of an event whose points a boost multiplies.

        A cap in events is so many times what the event is worth. So a boost lifts it, and a cap in points
        stays.
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
    event_types: frozenset[str] = frozenset()  # whose points are multiplied; none: those of all types

    def applies(self, event_type: str, occurred: datetime) -> bool:
        """Whether an event's points are multiplied."""
        in_time = self.since <= occurred < self.until
        return in_time and (not self.event_types or event_type in self.event_types)


@dataclass(frozen=True, slots=True)
class FreezeRules:
    """What a user's streak freezes cost."""

    held_max: int  # how many may wait to be used
    free_a_month: int  # for nothing in a month (UTC)
    price_points: int  # of each further one

    def price(self, free_this_month: int) -> int:
        """Return what the next freeze costs, if so many were taken for nothing this month."""
        return 0 if free_this_month < self.free_a_month else self.price_points


@dataclass(frozen=True, slots=True)
class PauseRules:
    """How long a streak may be paused."""

    dates_max: int  # of one pause
    dates_a_year: int  # how many of any 365 dates in a row may be paused


@dataclass(frozen=True, slots=True)
class OfflineRules:
    """How much a time receipt proves (rule 16)."""

    days_max: int  # how old an event may be
    days_a_year: int  # how many days of a year a user may have been offline


NO_FREEZES, NO_PAUSES = FreezeRules(0, 0, 0), PauseRules(0, 0)
# A week at sea counts, and a fortnight. A book need not say so.
USUAL_OFFLINE = OfflineRules(14, 60)


@dataclass(frozen=True, slots=True)
class Book:
    """All rules that are data."""

    event_types: Mapping[str, EventType]
    boosts: tuple[Boost, ...] = ()
    freezes: FreezeRules = NO_FREEZES
    pauses: PauseRules = NO_PAUSES
    expiry: str | None = None  # by which rule points expire (rules.book.point_rules), None for never
    rewards: Mapping[str, Reward] = field(default_factory=dict)  # by id
    streaks: Mapping[str, StreakRule] = field(default_factory=dict)  # by name; those beside the daily one
    achievements: Mapping[str, AchievementRule] = field(default_factory=dict)  # by name
    offline: OfflineRules = USUAL_OFFLINE  # what time receipts prove
    answers: AnswerRules = NO_ANSWERS  # what they earn in stats

    def __post_init__(self) -> None:
        for name in ("event_types", "rewards", "streaks", "achievements"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how another process makes the same book: a read-only mapping cannot be sent to it."""
        values = (getattr(self, attribute.name) for attribute in fields(self))
        return Book, tuple(dict(value) if isinstance(value, MappingProxyType) else value for value in values)

    def factor(self, event_type: str, occurred: datetime) -> int:
        """Return what an event's points are multiplied by."""
        return max((boost.factor for boost in self.boosts if boost.applies(event_type, occurred)), default=1)

    def points(self, event_type: str, occurred: datetime) -> int:
        """Return an event's points before its cap. Raises KeyError for a type that the book lacks."""
        return self.event_types[event_type].points * self.factor(event_type, occurred)

    def cap(self, event_type: str, occurred: datetime) -> Cap | None:
        """Return an event's cap, None for none. Raises KeyError for a type that the book lacks."""
        return self.event_types[event_type].cap(self.factor(event_type, occurred))

    def measured(self, event_type: str) -> tuple[str, ...] | None:
        """Return which properties of a type's events are summed; None if its events are not even counted.

        While a book declares no streaks and achievements, nothing is counted, and nothing is stored for it.
        """
        if not self.streaks and not self.achievements:
            return None
        of_streaks = {
            rule.need.property or ""
            for rule in self.streaks.values()
            if rule.need.kind is NeedKind.SUM and event_type in rule.event_types
        }
        of_achievements = {
            condition.property or ""
            for rule in self.achievements.values()
            for condition in rule.conditions
            if condition.kind is ConditionKind.SUM and condition.event_type == event_type
        }
        return tuple(sorted(of_streaks | of_achievements))


@dataclass(frozen=True)
class Version:
    """A published book. It never changes: publishing adds a version.

    It is in force from its effective instant until the next later one of another version; of two with the
    same instant the one with the higher number.
    """

    number: int  # 1, 2, 3 ... in the order of publishing
    effective_at: datetime
    # Returns the book. It is called for versions that something is judged by alone, once, or twice by two
    # threads at once.
    read: Callable[[], Book]
    published_at: datetime = EPOCH
    author: str = ""  # who published it
    note: str = ""

    @property
    def book(self) -> Book:
        """What the version says."""
        # Until Python 3.12 functools.cached_property has one lock for all versions, held while one is read.
        book: Book | None = self.__dict__.get("_book")
        if book is None:
            book = self.__dict__["_book"] = self.read()
        return book

    @property
    def is_retroactive(self) -> bool:
        """Whether it was in force before it was published: events that were judged are judged anew by it."""
        return self.effective_at < self.published_at


@dataclass(frozen=True, slots=True)
class Terms:
    """What an event is judged by, and under which version. It is fixed when the event is accepted."""

    version: int
    points: int  # before the cap
    cap: Cap | None
    keeps_streak: bool  # see EventType
    declared_by: Declarer  # see EventType
    expiry: str | None = None  # by which rule they expire (rules.book.point_rules)
    measured: tuple[str, ...] | None = None  # see Book.measured
    offline: OfflineRules = USUAL_OFFLINE  # what time receipts prove


class Books:
    """All versions that one process knows, at least one."""

    def __init__(self, versions: Iterable[Version]) -> None:
        self.versions = tuple(sorted(versions, key=lambda version: version.number))
        self._by_effect = sorted(self.versions, key=_order_of_effect)
        self._effective_at = [version.effective_at for version in self._by_effect]
        self._by_number = {version.number: version for version in self.versions}

    @property
    def newest(self) -> Version:
        """The version that was published last."""
        return self.versions[-1]

    def at(self, instant: datetime) -> Version:
        """Return the version in force at an instant. Before the first one that is the first one."""
        return self._by_effect[max(0, bisect_right(self._effective_at, instant) - 1)]

    def at_as_known(self, instant: datetime, known: datetime) -> Version:
        """Return the version in force at an instant, by those alone that were published until `known`.

        No later version changes the answer. Before the first one it is the first one.
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
        """Yield the versions that come into force after an instant and before another one, in that order.

        Of those with one instant only the last is ever in force.
        """
        while (following := self.after(first)) is not None and following.effective_at < end:
            first = following.effective_at
            yield self.at(first)

    def numbered(self, number: int) -> Version:
        """Return a version; raises KeyError if it is not known."""
        if number not in self._by_number:
            raise KeyError(f"there is no version {number} of the book")
        return self._by_number[number]

    def in_force(self, version: Version) -> tuple[datetime, datetime | None]:
        """Return from when to when a version is in force; None: for good. If both are equal, never."""
        following = self._by_effect[self._by_effect.index(version) + 1 :]
        return version.effective_at, following[0].effective_at if following else None

    def between(self, first: datetime, last: datetime) -> list[Version]:
        """Return the versions that are in force at some time from one instant to another, both included."""
        begin = max(0, bisect_right(self._effective_at, first) - 1)
        return self._by_effect[begin : bisect_right(self._effective_at, last)]

    def rejudging(self, judged_by: int | None, event_type: str, occurred: datetime) -> Version | None:
        """Return the version by which an event counts now; None if no version that is known decides it.

        judged_by: the number of the version that judged the event first. It stays, until a later version
        takes effect in the past and is in force when the event occurred.
        """
        if judged_by is None:
            return None
        newer = self.at(occurred)
        if newer.number > judged_by and newer.is_retroactive and event_type in newer.book.event_types:
            return newer
        first = self._by_number.get(judged_by)
        return first if first and event_type in first.book.event_types else None

    def judging(self, event_type: str, occurred: datetime, now: datetime) -> Iterator[Version]:
        """Yield the versions that may judge an event, in order: the first one that takes the event judges it.

        They are the version in force when the event occurred, and the later ones that are in force by now, as
        far as they have the type. So an event that waited until the book had learned its type is as good as
        one that came in time.
        """
        first = max(0, bisect_right(self._effective_at, occurred) - 1)
        for index, version in enumerate(self._by_effect[first:]):
            if index and version.effective_at > now:
                break
            if event_type in version.book.event_types:
                yield version


def _order_of_effect(version: Version) -> tuple[datetime, int]:
    return version.effective_at, version.number


def terms_of(version: Version, event_type: str, occurred: datetime) -> Terms:
    """Return what a version says of an event. Raises KeyError for a type that it lacks."""
    rule = version.book.event_types[event_type]
    return Terms(
        version.number,
        version.book.points(event_type, occurred),
        version.book.cap(event_type, occurred),
        rule.keeps_streak,
        rule.declared_by,
        version.book.expiry,
        version.book.measured(event_type),
        version.book.offline,
    )


def differences(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield a line for each value that two documents do not share, in the order of their keys.

    Example: `event_types.CHECK_IN.points: 5 -> 8`.
    """
    for name in sorted(old.keys() | new.keys()):
        value_path = f"{path}{name}"
        if name not in new:
            yield f"{value_path}: {_yaml_text(old[name])} -> gone"
        elif name not in old:
            yield f"{value_path}: new: {_yaml_text(new[name])}"
        elif isinstance(old[name], Mapping) and isinstance(new[name], Mapping):
            yield from differences(old[name], new[name], f"{value_path}.")
        elif old[name] != new[name]:
            yield f"{value_path}: {_yaml_text(old[name])} -> {_yaml_text(new[name])}"


def _yaml_text(value: Any) -> str:
    """Return a value of a document as YAML writes it in one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_yaml_text(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_yaml_text, value)) + "]"
    if isinstance(value, str) and not NEEDS_QUOTES.search(value) and not _is_json(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is_json(text: str) -> bool:
    """Whether a text without quotation marks would be a number, a truth value or null."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
