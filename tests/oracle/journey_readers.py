"""Plays journeys of one lake, and lets all readers tell of them."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.oracle.journey_judging import JourneyJudge
from tests.oracle.journeys import Journey, Shared, journey_of
from tests.oracle.machines import Stream
from tests.support.engine import Engine
from tests.support.journey_clients import Guess, in_python, in_typescript
from tests.support.journey_lake import DAYS, MARTS, WEEKS, JourneyBooks, JourneyLake, journey_lake

REPAIRS = "marts.streak_repairs"
MODELS = (*MARTS, WEEKS, DAYS)


@dataclass
class JourneyReaders:
    """All that read the journeys of a lake. patch: a MonkeyPatch.

    unplayed: what the oracle says against the live answers of journeys. The others are in journeys.
    """

    engine: Engine
    stream: Stream
    shared: Shared
    patch: Any
    journeys: list[Journey] = field(default_factory=list)
    unplayed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.books = JourneyBooks(self.shared.documents())

    def play(self, seeds: list[int]) -> None:
        """Play journeys; the oracle judges each."""
        for seed in seeds:
            with self.patch.context() as wiring:
                journey = journey_of(self.engine, self.stream, self.shared, seed, self.books, wiring)
                if wrong := journey.play():
                    self.unplayed.append(f"seed {seed}: {wrong}\n{journey.plan}")
                else:
                    self.journeys.append(journey)

    def compare(self, folder: Path) -> "Comparison":
        """Hold all readers against each other. folder: an empty one."""
        comparison = Comparison(self, folder)
        comparison.run()
        return comparison


@dataclass
class Comparison:
    """wrong: what has been found. not_promised: estimates by the reason for which nobody promises them; "": promised."""

    readers: JourneyReaders
    folder: Path
    wrong: list[str] = field(default_factory=list)
    not_promised: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)
    guesses: list[tuple[str, Guess, dict[str, Any]]] = field(default_factory=list)

    @property
    def promised(self) -> int:
        """How many estimates were promised."""
        return self.not_promised[""]

    def run(self) -> None:
        """Ask all readers."""
        readers, self.wrong = self.readers, list(self.readers.unplayed)
        judges = self.listen()
        with journey_lake(self.folder, readers.books, readers.shared.end) as lake:
            records = [record for each in readers.journeys for record in each.seen]
            lake.take_in(readers.stream.real, [each.user for each in judges], records)
            self._night(lake, judges)
            self._sql(lake, judges)
            self._what_if(lake, judges)
        self.wrong += self.clients_wrong()
        for each in judges:
            self.wrong += each.wrong
            self.happened += each.happened()
            self.not_promised += each.not_promised

    def listen(self) -> list[JourneyJudge]:
        """Read what is live, and what clients are to be asked."""
        return [self._live(each) for each in self.readers.journeys]

    def clients_wrong(self) -> list[str]:
        """Ask both clients; returns where they differ from the service."""
        told = in_typescript([guess for _, guess, _ in self.guesses], self.folder)
        return [
            f"{user}: {name} estimates {found}, not {expected}: {guess}"
            for (user, guess, service), typescript in zip(self.guesses, told, strict=True)
            for name, found in (("Python", in_python(guess)), ("TypeScript", typescript))
            if found != (expected := guess.figures(service))
        ]

    def _live(self, journey: Journey) -> JourneyJudge:
        """Read what is live of a journey."""
        with self.readers.patch.context() as wiring:
            journey.machines.patch = wiring
            journey.machines.wire()
            judge = JourneyJudge(journey)
            judge.explained()
            self.guesses += [(judge.user, *each) for each in judge.guesses()]
            return judge

    def _night(self, lake: JourneyLake, judges: list[JourneyJudge]) -> None:
        night = lake.recompute()
        for each in judges:
            machines, found = each.journey.machines, night.user(each.user)
            each.recomputed(found)
            with self.readers.patch.context() as wiring:
                machines.patch = wiring
                machines.wire()
                told = machines.night(found, lake.goal_rows)
            # A machine whose clock is days ahead has stored that a streak is over.
            each.must(each.journey.plan.skewed or not told, f"the night finds {told}")
        lake.load()
        self._must(not (found := lake.disagreements(night)), f"the night and SQL differ: {found}")

    def _sql(self, lake: JourneyLake, judges: list[JourneyJudge]) -> None:
        marts = {name: lake.by_user(name) for name in MODELS if name != REPAIRS}
        for each in judges:
            each.in_sql(marts)
        expected = sum((each.repairs_by_month() for each in judges), Counter[Any]())
        found = Counter[Any]()
        for row in lake.rows(f"SELECT * FROM {REPAIRS}"):
            for name in ("repaired_dates", "points", "given_back_dates", "points_given_back"):
                found[row["month_start"], name] += row[name]
        self._must(+found == +expected, f"SQL's repairs are {found}, not {expected}")
        broken = lake.broken_tests()
        self._must(not broken, f"SQL's own tests find {broken}")

    def _what_if(self, lake: JourneyLake, judges: list[JourneyJudge]) -> None:
        for answer in lake.what_ifs():
            rows = {row["user_id"]: row for row in answer.users.to_pylist()}
            for each in judges:
                each.predicted(rows.get(each.user))

    def _must(self, is_so: bool, what: str) -> None:
        if not is_so:
            self.wrong.append(what)
