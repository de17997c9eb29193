"""Journeys: rounds of users who share one history of the book, so that one lake can have them all, as of one instant.

The number of a lake decides the place, the books, and the instant; a seed decides each journey.
"""

import copy
import random
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from adapters.book_store import shipped_document
from tests.oracle import plans
from tests.oracle.board_reading import BOARDS
from tests.oracle.facts import Facts, Taken
from tests.oracle.machines import Machines, Stream
from tests.oracle.plans import DAY, HOUR, STARTS, STYLES, LaterBook, Plan
from tests.oracle.points_reading import ByAmount, TimedBoost
from tests.oracle.rounds import (
    PLAYED,
    REPAIRS,
    STREAKS,
    Round,
    books_said,
    daily_of,
    editions,
    machines_of,
    paid_by,
    prices_of,
)
from tests.support.engine import Engine
from tests.support.journey_lake import JourneyBooks

EVES = (28 * HOUR, 28 * HOUR, 52 * HOUR, 76 * HOUR)  # before the end: so that runs are alive at the end
FRESH = (0, 1, 5, 12, 20)  # hours
LONG = (5 * HOUR, DAY, 2 * DAY, 3 * DAY, 29 * DAY)  # so that rest days may be chosen anew
AMOUNTS = {plans.TIMED: ByAmount(2, "minutes", "2.5", 1)}
MINUTES: dict[str, Any] = {
    "properties": {"minutes": {"type": "number", "minimum": 0, "maximum": max(plans.MINUTES)}}
}
# A document allows no two at once.
SINCE, SWITCH = datetime(1993, 8, 20, tzinfo=UTC), datetime(2026, 3, 10, tzinfo=UTC)
BACK, UNTIL = datetime(2026, 3, 20, tzinfo=UTC), datetime(2026, 5, 9, 12, tzinfo=UTC)
BOOSTS = (
    TimedBoost(SINCE, SWITCH, 2),
    TimedBoost(SWITCH, BACK, 3, frozenset({"CONTRIBUTION", "CHECK_IN"})),
    TimedBoost(BACK, UNTIL, 2, frozenset({"LESSON_COMPLETED"})),
)


@dataclass(frozen=True)
class Shared:
    """What all journeys of a lake share. edition: a plan without phases, which says what the first book says."""

    number: int
    edition: Plan
    gaps: tuple[timedelta, ...]
    end: datetime

    @classmethod
    def of(cls, number: int) -> "Shared":
        """Return what the lake with a number has."""
        chance, style = random.Random(f"journeys {number}"), list(STYLES)[number % len(STYLES)]
        start = datetime.fromisoformat(STYLES[style][0]).replace(tzinfo=UTC)
        is_long = style == "archive" or chance.random() < 0.3
        gaps = LONG if is_long else plans.Planner.gaps
        last = start + (3 * max(gaps) + DAY) + (401 * DAY if style == "archive" else timedelta())
        edition = Plan(
            *(number, style, "some", False, chance.random() < 0.5, chance.random() < 0.5, ()),
            repairs=chance.random() < 0.7,
            rests=chance.choice(("", "book", "chosen")),
            starts=chance.choice(STARTS),
            bonuses=chance.random() < 0.8,
        )
        if chance.random() < 0.75:
            # Phases begin at quarters of hours.
            at = start + chance.randrange(1, 8) * 12 * HOUR + 14 * HOUR / 60
            terms = (chance.random() < 0.7, chance.choice(("", "book", "chosen")), chance.choice(STARTS))
            edition = replace(edition, later=LaterBook(at, *terms))
        return cls(number, edition, gaps, last.replace(minute=0) + (4 if is_long else 2) * DAY)

    @property
    def rests_change(self) -> bool:
        """Whether there is time for a second choice of rest days, which a user has after 28 days."""
        books = editions(self.edition)
        return self.gaps is LONG and all(each.rests == "chosen" for each in books)

    def seeds(self, journeys: int) -> list[int]:
        """Return the seeds of so many journeys. Machines whose clocks differ by days know books at other times."""
        steps = len(STYLES)
        first = self.number % steps + self.number // steps * 10_000 * steps
        seeds = range(first, first + 3 * journeys * steps, steps)
        return [seed for seed in seeds if not self.edition.later or seed % 3 != 1][:journeys]

    def documents(self) -> list[tuple[datetime | None, dict[str, Any]]]:
        """Return the books as documents, each with the instant since which it is published, and in force."""
        found = []
        for number, each in enumerate(editions(self.edition), 1):
            document = copy.deepcopy(shipped_document())
            types = document["event_types"]
            for name, points in prices_of(number).items():
                types[name]["points"] = points
            for name, rule in (AMOUNTS if self.edition.by_amount else {}).items():
                amount = {"base": rule.base, "of": rule.of, "each": float(rule.each), "earns": rule.earns}
                types[name] |= {"points": amount, "properties": MINUTES}
            document |= {"daily": daily_of(each), "boards": BOARDS, "streaks": STREAKS}
            document["achievements"] = paid_by(self.edition, number)
            document["boosts"] = [_boost(boost) for boost in (BOOSTS if self.edition.boosted else ())]
            if each.repairs:
                document["repairs"] = dict(vars(REPAIRS))
            found.append((each.at if isinstance(each, LaterBook) else None, document))
        return found


def _boost(boost: TimedBoost) -> dict[str, Any]:
    types = {"event_types": sorted(boost.types)} if boost.types else {}
    return {
        "since": boost.since.isoformat(),
        "until": boost.until.isoformat(),
        "factor": boost.factor,
        **types,
    }


class JourneyPlanner(plans.Planner):
    """Makes the plan of a journey: that of a round, and then an eve and an end with events on both."""

    def __init__(self, seed: int, shared: Shared) -> None:
        super().__init__(seed)
        self.shared, self.gaps, edition = shared, shared.gaps, shared.edition
        self.changes, self.later, self.is_fresh = False, edition.later, False
        self.by_amount, self.bonuses = edition.by_amount, edition.bonuses
        self.repairs, self.rests, self.starts = edition.repairs, edition.rests, edition.starts
        self.first_book = (edition.repairs, edition.rests, edition.starts)

    def plan(self) -> Plan:
        made = replace(super().plan(), boosted=self.shared.edition.boosted)
        end = self.shared.end
        assert self.now <= end - max(EVES)
        self.now = end - self.chance.choice(EVES)
        eve = plans.Phase(self.now, (*self._posts(), *self._rare()), busy=False, drain=True, judge=False)
        self.now, self.is_fresh = end, self.chance.random() < 0.8
        posts = plans.Phase(end, tuple(self._posts()), busy=False, drain=True, judge=False)
        looks = (plans.Look("hourly"), plans.Look("achievements"))
        last = plans.Phase(end + HOUR / 2, looks, busy=False, drain=True)
        return replace(made, phases=(*made.phases, eve, posts, last))

    def _when(self) -> plans.Body:
        when = super()._when()
        if not self.is_fresh or self.style in ("liar", "archive"):
            return when
        at = self.now - self.chance.choice(FRESH) * HOUR - self.chance.randrange(60) * HOUR / 60
        return plans.written(at, self.place, self.chance)

    def _rare(self) -> list[plans.Action]:
        self._turn_page()
        return super()._rare()

    def _repairs(self) -> list[plans.Action]:
        self._turn_page()
        return super()._repairs()

    def _turn_page(self) -> None:
        if self.later and self.now >= self.later.at:
            self.repairs, self.rests, self.starts = self.later.repairs, self.later.rests, self.later.starts


@dataclass
class Journey(Round):
    """A round that keeps what a device would have: the profile on the eve of its last events.

    before: as the service showed it. arrived: the events that it has taken since. shown: as it is at the end.
    """

    before: Any = None
    shown: Any = None
    arrived: list[Taken] = field(default_factory=list)

    def play(self) -> list[str]:
        *phases, posts, last = self.plan.phases
        for phase in (*phases, posts, last):
            known = set(self.facts.events)
            if phase is posts:  # the device was last online on the eve
                self.before = self.machines.get("")
            self.play_phase(phase)
            if phase is posts:
                self.arrived = [each for key, each in self.facts.events.items() if key not in known]
            if self.judge.wrong:
                return self.judge.wrong
        self.shown = self.machines.get("")
        return []

    @property
    def today(self) -> date:
        """The user's date at the end."""
        return date.fromisoformat(self.shown["as_of"])


def journey_of(
    engine: Engine, stream: Stream, shared: Shared, seed: int, books: JourneyBooks, wiring: Any
) -> Journey:
    """Return a journey that is yet to be played, under a new name."""
    plan = JourneyPlanner(seed, shared).plan()
    user = f"j{shared.number}-{seed}-{PLAYED[seed]}"
    PLAYED[seed] += 1
    machines: Machines = machines_of(engine, stream, plan, user, wiring, books.versions)
    boosts, amounts = BOOSTS if plan.boosted else (), AMOUNTS if plan.by_amount else {}
    return Journey(plan, machines, Facts(boosts, amounts, streaks=STREAKS), books_said(plan))
