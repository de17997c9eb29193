"""A plain reading of rule 15: the whole history event by event, and after each all conditions. No code of rules/."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

from tests.support.plain_goals import Done, PlainGoals, least, periods

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Earned:
    """An event of a history: its id, the points that it earned, and the rest."""

    event_id: str
    points: int
    done: Done


@dataclass(frozen=True)
class PlainAchievements:
    """goals: the same history for streaks. today: the newest date."""

    history: Sequence[Earned]
    goals: PlainGoals
    today: date
    firsts: dict[tuple[str, int], list[date] | None] = field(default_factory=dict)

    def in_order(self) -> list[Earned]:
        return sorted(self.history, key=lambda each: (each.done.day, each.event_id))

    def dated(self, said: Document, since: date | None) -> str | None:
        """The id of the event at which an achievement is dated. since: from which date on it may be."""
        conditions = said.get("all") or said["any"]
        combined = all if "all" in said else any
        seen: list[Earned] = []
        true = [False] * len(conditions)
        for each in self.in_order():
            seen.append(each)
            true = [was or self.is_true(one, seen) for was, one in zip(true, conditions, strict=True)]
            if combined(true) and (since is None or each.done.day >= since):
                return each.event_id
        return None

    def is_true(self, condition: Document, seen: Sequence[Earned]) -> bool:
        if "points_earned" in condition:
            return bool(sum(each.points for each in seen) >= condition["points_earned"])
        if "count" in condition:
            found = sum(each.done.kind == condition["count"] for each in seen)
            return bool(found >= condition["at_least"])
        if "sum" in condition:
            of = condition["sum"]
            return self.total(of["event_type"], of["property"], seen) >= Fraction(str(condition["at_least"]))
        return self.streak_by(condition["streak"], condition["at_least"], seen)

    def total(self, kind: str, name: str, seen: Sequence[Earned]) -> Fraction:
        found = Fraction(0)
        for each in seen:
            if each.done.kind == kind and self.goals.is_measured(kind, name, each.done.version):
                found += Fraction(str(each.done.properties.get(name, 0)))
        return found

    def streak_by(self, name: str, length: int, seen: Sequence[Earned]) -> bool:
        """Whether the period that first makes the streak so long has been reached by these events."""
        if (name, length) not in self.firsts:
            self.firsts[name, length] = self.first_period(name, length)
        dates = self.firsts[name, length]
        if dates is None or seen[-1].done.day < dates[0]:
            return False
        book, _ = self.goals.asking(name, dates)
        streak = book["streaks"][name]
        keeping = [kind for kind, said in book["event_types"].items() if said.get("keeps_streak", True)]
        by_now = replace(self.goals, done=[each.done for each in seen])
        return by_now.have(streak, streak.get("event_types", keeping), dates) >= least(streak["needs"])

    def first_period(self, name: str, length: int) -> list[date] | None:
        """The dates of the period that first makes a streak so long."""
        per = next(
            each["streaks"][name]["per"]
            for _, _, each in self.goals.versions
            if name in each.get("streaks", {})
        )
        first_day = min((each.day for each in self.goals.done), default=self.today)
        for dates in periods(per, first_day, self.today + timedelta(days=31)):
            if self.goals.run(name, per, dates[-1]).longest >= length:
                return dates
        return None
