"""A plain reading of rule 14: periods day by day, from the documents as they were published. No code of rules/."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

Document = Mapping[str, Any]
ONE = timedelta(days=1)


@dataclass(frozen=True)
class Done:
    """An event: the date that it counts for, its type, its properties, and the version that judged it."""

    day: date
    kind: str
    properties: Mapping[str, Any]
    version: int


@dataclass(frozen=True)
class Protection:
    """freezes: date and change. pauses: first and last date. skipped: dates that the zone left out."""

    freezes: Sequence[tuple[date, int]] = ()
    pauses: Sequence[tuple[date, date]] = ()
    skipped: frozenset[date] = frozenset()


@dataclass
class Run:
    """A streak day by day: see rules.engagement.goals.GoalStreak."""

    length: int = 0
    longest: int = 0
    reached: int = 0
    last: date | None = None
    covered: list[date] = field(default_factory=list)


@dataclass(frozen=True)
class PlainGoals:
    """versions: number, since when, document."""

    versions: Sequence[tuple[int, datetime, Document]]
    done: Sequence[Done]
    protection: Protection = Protection()

    def in_force(self, day: date) -> Document:
        """The document at midnight UTC."""
        return self.newest(datetime(day.year, day.month, day.day, tzinfo=UTC))

    def newest(self, instant: datetime) -> Document:
        """The document in force at an instant."""
        begun = [each for each in self.versions if each[1] <= instant]
        if begun:
            return max(begun, key=lambda each: (each[1], each[0]))[2]
        return min(self.versions, key=lambda each: (each[1], each[0]))[2]

    def asking(self, name: str, dates: Sequence[date]) -> tuple[Document, bool]:
        """The document that judges a period; and whether the streak was declared within it."""
        begun = self.in_force(dates[0])
        if name in begun.get("streaks", {}):
            return begun, False
        instants = sorted({each[1] for each in self.versions if dates[0] <= each[1].date() <= dates[-1]})
        for instant in instants:
            newest = max((each for each in self.versions if each[1] == instant), key=lambda each: each[0])
            if name in newest[2].get("streaks", {}):
                return newest[2], True
        return begun, False

    def document(self, number: int) -> Document:
        return next(each for each in self.versions if each[0] == number)[2]

    def amount(self, done: Done, name: str) -> Fraction:
        """What an event has of a property, if the version that judged it sums it."""
        is_summed = self.is_measured(done.kind, name, done.version)
        return Fraction(str(done.properties.get(name, 0))) if is_summed else Fraction(0)

    def is_measured(self, kind: str, name: str, version: int) -> bool:
        book = self.document(version)
        of_streaks = any(
            "sum" in each["needs"]
            and each["needs"]["sum"]["property"] == name
            and kind in each["event_types"]
            for each in book.get("streaks", {}).values()
        )
        return of_streaks or any(
            "sum" in one and one["sum"] == {"event_type": kind, "property": name}
            for each in book.get("achievements", {}).values()
            for one in each.get("all", each.get("any", ()))
        )

    def is_counted(self, done: Done) -> bool:
        book = self.document(done.version)
        return bool(book.get("streaks") or book.get("achievements"))

    def have(self, streak: Document, types: Iterable[str], dates: Sequence[date]) -> Fraction:
        of_types = set(types)
        counted = [
            each
            for each in self.done
            if each.day in dates and each.kind in of_types and self.is_counted(each)
        ]
        needs = streak["needs"]
        if "active_days" in needs:
            return Fraction(len({each.day for each in counted}))
        if "events" in needs:
            return Fraction(len(counted))
        return sum((self.amount(each, needs["sum"]["property"]) for each in counted), Fraction(0))

    def run(self, name: str, per: str, until: date) -> Run:
        """The streak after all periods that end up to a date."""
        run = Run()
        first_day = min((each.day for each in self.done), default=until)
        for dates in periods(per, first_day, until):
            book, is_late = self.asking(name, dates)
            streak = book.get("streaks", {}).get(name)
            if streak is None or streak["per"] != per:
                continue
            keeping = [kind for kind, said in book["event_types"].items() if said.get("keeps_streak", True)]
            have = self.have(streak, streak.get("event_types", keeping), dates)
            if have >= least(streak["needs"]):
                run.length, run.reached, run.last = run.length + 1, run.reached + 1, dates[0]
                run.longest = max(run.longest, run.length)
            elif run.length and not is_late and not self.is_no_miss(streak, dates):
                granted = sum(change for day, change in self.protection.freezes if day <= dates[-1])
                if streak.get("freezes") and granted > len(run.covered):
                    run.covered.append(dates[0])
                else:
                    run.length = 0
        return run

    def is_no_miss(self, streak: Document, dates: Sequence[date]) -> bool:
        """Most of its dates were skipped, or paused if that counts."""
        free = 0
        for day in dates:
            paused = any(first <= day <= last for first, last in self.protection.pauses)
            free += day in self.protection.skipped or (bool(streak.get("pauses")) and paused)
        return Fraction(free, len(dates)) > Fraction(1, 2)


def least(needs: Document) -> Fraction:
    (need,) = needs.values()
    return Fraction(str(need["at_least"])) if isinstance(need, Mapping) else Fraction(need)


def label(per: str, day: date) -> tuple[int, ...]:
    """What the dates of one period share."""
    if per == "week":
        return day.isocalendar()[:2]
    return (day.year, day.month) if per == "month" else (day.year, day.month, day.day)


def periods(per: str, since: date, until: date) -> Iterator[list[date]]:
    """The whole periods from that of a date on, up to a date."""
    while label(per, since - ONE) == label(per, since):
        since -= ONE
    day, dates = since, list[date]()
    while day <= until:
        dates.append(day)
        if label(per, day) != label(per, day + ONE):
            yield dates
            dates = []
        day += ONE
