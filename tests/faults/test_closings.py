"""A week's boards and leagues are closed by runs that die at any call, two at once, at once or up to two weeks late.

Meanwhile users go on: they leave, come back, change their group, are under review, are released, and play on. Some
are erased, before a closing, during one, or afterwards. Expected is what a plain reading of rules 25 and 27 says of what was so when the week's league closed, and when its
boards were final.
"""

import random
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from adapters.engagement import leagues as leagues_module
from adapters.engagement.boards import LeaderboardIndex
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.period_boards import CONTEST
from adapters.platform.tables import scan_all
from processors.ranks import RankBuilder
from rules.book.board_rules import BoardPeriod, BoardRule
from rules.book.league_rules import LeagueRules
from rules.days import stamp
from rules.engagement.account_state import Profile
from rules.engagement.board_settings import HIDDEN, YES, with_settings
from rules.engagement.boards import unpack_rows
from rules.engagement.leagues import Membership, Place
from rules.engagement.period_points import PeriodPoints
from rules.engagement.periods import period_named
from rules.engagement.review import end_review, put_under_review
from tests.faults.test_leagues import DIVISIONS, DOWN, SIZE, UP, Expected
from tests.faults.turns import Faults, Killed, Turns
from tests.support.effort import effort
from tests.support.engine import Engine, lean_client
from tests.support.league_town import FOREVER, LeagueTown, player
from tests.support.league_town import leagues_of as terms_of
from tests.support.same_thread import SameThread

W48, W49 = period_named("2026-W48"), period_named("2026-W49")
BOARDS = (BoardRule("classes", BoardPeriod.WEEK, group="class"), BoardRule("weekly", BoardPeriod.WEEK))
IN_WEEK = datetime(2026, 11, 26, 12, tzinfo=UTC)
CLOSED, FINAL = datetime(2026, 11, 30, 18, tzinfo=UTC), datetime(2026, 12, 3, 12, tzinfo=UTC)
FAR = datetime(2027, 1, 1, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
CLASSES = ("4b", "4c")
USERS = [f"u{number:02}" for number in range(12)]
STEPS_MAX = 4_000
Since = list[tuple[datetime, Any]]


def value_at(history: Since, at: datetime, otherwise: Any) -> Any:
    """What was set before an instant."""
    return [otherwise, *(value for since, value in history if since < at)][-1]


@dataclass
class Person:
    """What is so of a user, each since an instant."""

    points: int = 0
    late: int = 0  # of the points, those that came after the league had closed
    groups: Since = field(default_factory=list)
    hidden: Since = field(default_factory=list)
    reviewed: Since = field(default_factory=list)
    away: Since = field(default_factory=list)  # has left the leagues
    joined: datetime | None = None  # the next week's league
    is_erased: bool = False

    @property
    def was_away(self) -> bool:
        """Had left the leagues when the week's closed. Who is back before the cohorts can be closed has the seat."""
        back = any(CLOSED <= at < CLOSED + 10 * MINUTE and not is_away for at, is_away in self.away)
        return value_at(self.away, CLOSED, False) and not back

    @property
    def has_left(self) -> bool:
        """Whoever had left the boards begins anew, too."""
        return self.was_away or value_at(self.hidden, CLOSED, False)

    def profile(self, user: str) -> Profile:
        """The profile as it is stored by now."""
        points = (PeriodPoints(W48, self.points + self.late, self.late),)
        made = replace(player(user, {}), period_points=points, chosen_zone="Europe/Berlin")
        settings = [(at, {"class": value}) for at, value in self.groups]
        settings += [(at, {HIDDEN: YES if value else ""}) for at, value in self.hidden]
        for at, values in sorted(settings, key=lambda each: each[0]):
            made = replace(made, board_settings=with_settings(made.board_settings, values, at))
        for at, begins in self.reviewed:
            made = put_under_review(made, at, stamp(at)) if begins else end_review(made, at)
        return made


@dataclass(frozen=True)
class Erasure:
    """Whether the result that is kept had the user when the erasure came: both, if that is not sure."""

    user: str
    in_league: tuple[bool, ...]
    on_boards: tuple[bool, ...]


@dataclass
class Closings:
    """The end of one week, as one seed leads to it. fate: who is erased, and when."""

    town: LeagueTown
    chance: random.Random
    fate: random.Random
    people: dict[str, Person] = field(default_factory=lambda: {user: Person() for user in USERS})
    expected: Expected = field(default_factory=lambda: Expected(dict.fromkeys(USERS, 0)))
    wrong: list[str] = field(default_factory=list)
    results: set[str] = field(default_factory=set)  # all that were the week's final result at some step
    cohorts: dict[Place, list[str]] = field(default_factory=dict)
    erasures: list[Erasure] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.turns = Turns(self.chance)
        self.faults = Faults(self.town.dynamodb, self.turns, self.chance)

    def run(self) -> list[str]:
        """Returns what is wrong."""
        self._week()
        cohorts = self.cohorts = self._joined()
        lateness = sorted(
            self.chance.choice((10 * MINUTE, DAY, 3 * DAY, 7 * DAY, 13 * DAY)) for _ in range(3)
        )
        visits = [CLOSED + 10 * MINUTE + late + number * HOUR for number, late in enumerate(lateness)]
        self._go_on(IN_WEEK, CLOSED - HOUR)
        self._perhaps_erase()
        expected_before = dict(self.expected.division)
        last = CLOSED
        for at in visits:
            self._go_on(last + MINUTE, at - MINUTE)
            self._perhaps_erase()
            self._at_once(self.chance.choice((1, 2, 2, 3)), at)
            last = at
        end = max(last, FINAL + HOUR) + HOUR
        self._clean(end)
        self._perhaps_erase()
        self._check(lambda missing: self._league_faults(cohorts, expected_before, missing), "in_league")
        self._check(self._board_faults, "on_boards")
        self._check_names()  # nor has anything brought them back
        return self.wrong

    # ---- what happens

    def _week(self) -> None:
        for user, person in self.people.items():
            division = self.chance.randrange(len(DIVISIONS))
            self.expected.division[user] = division
            store = self.town.process().store
            store.put_membership(user, Membership(), Membership(division=division, name=DIVISIONS[division]))
            person.points = self.chance.choice((0, 5, 5, 10, 10, 20, 30))
            person.late = self.chance.choice((0, 0, 5, 40, -5))
            person.groups.append((IN_WEEK - DAY, self.chance.choice((*CLASSES, ""))))

    def _joined(self) -> dict[Place, list[str]]:
        cohorts: dict[Place, list[str]] = {}
        for user, person in self.people.items():
            # Whoever has no points now had some, which were taken back.
            self.town.process().join_all([player(user, {W48: max(1, person.points)})], IN_WEEK)
            place = self.town.membership(user).place
            assert place
            cohorts.setdefault(place, []).append(user)
            self.town.put([person.profile(user)])
        return cohorts

    def _go_on(self, since: datetime, until: datetime) -> None:
        """Some of what users and admins do, at instants of a span."""
        for at in sorted(since + self.chance.random() * (until - since) for _ in range(4)):
            user = self.chance.choice(USERS)
            person = self.people[user]
            roll = self.chance.randrange(6)
            if person.is_erased:
                continue
            if roll == 0:
                person.groups.append((at, self.chance.choice((*CLASSES, ""))))
            elif roll == 1:
                person.hidden.append((at, not value_at(person.hidden, at, False)))
            elif roll == 2:
                if len(person.reviewed) < 3:  # of ended reviews, the last one is known
                    person.reviewed.append((at, not value_at(person.reviewed, at, False)))
            elif roll == 3:
                is_away = not value_at(person.away, at, False)
                person.away.append((at, is_away))
                self.town.process().take_part(user, at, takes_part=not is_away)
            elif roll == 4 and at > CLOSED + 10 * MINUTE:
                self._play_on(user, at)
            self.town.put([person.profile(user)])

    def _play_on(self, user: str, at: datetime) -> None:
        """The next week's first points, from a process that may die."""
        profile = self.people[user].profile(user)
        profile = replace(profile, period_points=(*profile.period_points, PeriodPoints(W49, 1)))
        self._act(lambda client: self.town.process(client).join_all([profile], at))
        place = self.town.membership(user).place
        if place and place.week == W49.name:
            self.people[user].joined = self.people[user].joined or at

    # ---- erasures

    def _perhaps_erase(self) -> None:
        """Perhaps erase a user while nobody closes anything."""
        if self.fate.random() < 0.25:
            self.town.sweep(self._begin_erasure(is_alone=True))
            self._check_names()

    def _begin_erasure(self, *, is_alone: bool) -> str:
        """Choose a user, who does nothing any more."""
        user = self.fate.choice([user for user, person in self.people.items() if not person.is_erased])
        self.people[user].is_erased = True
        place = next((each for each, members in self.cohorts.items() if user in members), None)
        cohort = self.town.process().store.cohort(place) if place else None
        is_closed = cohort is not None and cohort.standing is not None
        known = [(is_closed,), (self._final_item() is not None,)]
        self.erasures.append(
            Erasure(user, *(each if is_alone or each[0] else (True, False) for each in known))
        )
        return user

    # ---- runs of the schedule

    def _at_once(self, times: int, at: datetime) -> None:
        """Let runs close what is due, and perhaps a sweep erase somebody meanwhile.

        The erasure's second sweep comes when every process has ended that may have read the user before.
        """
        for _ in range(times):
            self._start(lambda client: self._close(client, at))
        gone = self._begin_erasure(is_alone=False) if self.fate.random() < 0.25 else ""
        if gone:
            self._start(lambda client: self.town.sweep(gone, client))
        self._drain()
        if gone:
            self.town.sweep(gone)
            self._check_names()

    def _act(self, body: Any) -> None:
        self._start(body)
        self._drain()

    def _start(self, body: Any) -> None:
        def act() -> None:
            try:
                body(self.faults)
            except Killed:
                pass
            except Exception:
                return  # the schedule's next run comes

        self.turns.start(f"run-{self.chance.randrange(10**9)}", act)

    def _drain(self) -> None:
        for _ in range(STEPS_MAX):
            if not self.turns.step():
                return
            self._look()
        raise AssertionError("it does not come to an end")

    def _look(self) -> None:
        if found := self._final_item():
            self.results.add(found["generation"]["S"])

    def _final_item(self) -> Any:
        key = {"board": {"S": "finals"}, "part": {"S": W48.name}}
        return self.town.dynamodb.get_item(TableName=self.town.table("Boards"), Key=key).get("Item")

    def _close(self, client: Any, at: datetime) -> Counter[str]:
        leagues, profiles, boards = (
            self.town.process(client),
            self.town.table("UserStreaks"),
            self.town.table("Boards"),
        )
        cache, terms = EngagementCache(""), lambda: self.town.terms
        index = LeaderboardIndex(client, profiles, 0)
        try:
            RankBuilder(client, profiles, boards, index, cache, leagues, terms).build(at)
        finally:
            closed = leagues.close_due(at, FOREVER)
        return closed

    def _clean(self, at: datetime) -> None:
        closed = self._close(self.town.dynamodb, at)
        if closed["failed"] or closed["left"]:
            self.wrong.append(f"a run with nothing in its way leaves {closed}")

    # ---- what it comes to

    def _check(self, faults: Callable[[Collection[str]], list[str]], result: str) -> None:
        """Note what is wrong, whoever of those who were erased meanwhile is in a result: at least one way is right."""
        found = list[list[str]]()
        for had in product(*(getattr(each, result) for each in self.erasures)):
            missing = {each.user for each, is_there in zip(self.erasures, had, strict=True) if not is_there}
            found.append(faults(missing))
        self.wrong += min(found, key=lambda some: len([*some]))

    def _league_faults(
        self, cohorts: Mapping[Place, list[str]], divisions: Mapping[str, int], missing: Collection[str]
    ) -> list[str]:
        """What is wrong with divisions and cohorts. missing: erased users whom no result had."""

        def is_ranked(user: str) -> bool:
            person = self.people[user]
            return not (user in missing or person.has_left or value_at(person.reviewed, CLOSED, False))

        ranked = {place: [user for user in members if is_ranked(user)] for place, members in cohorts.items()}
        points = {user: max(0, person.points) for user, person in self.people.items()}
        left = {user for members in cohorts.values() for user in members if self.people[user].has_left}
        expected = deepcopy(self.expected)
        expected.close(W48.name, ranked, points, left)
        wrong = []
        for user, person in self.people.items():
            membership, outcome = self.town.membership(user), expected.outcome.get(user)
            if person.is_erased:
                if membership != Membership():
                    wrong.append(f"{user} is erased, and has {membership}")
                continue
            told = membership.outcome and (
                membership.outcome.week, membership.outcome.rank, membership.outcome.zone.value,
            )  # fmt: skip
            last = person.joined or FAR
            is_late = any(CLOSED + 10 * MINUTE < at < last and not is_away for at, is_away in person.away)
            division = 0 if is_late or person.has_left else expected.division[user]
            found = membership.division
            if person.joined and membership.place:  # perhaps that has closed, too
                found = membership.place.division
                told = outcome if membership.outcome and membership.outcome.week == W49.name else told
            if (found, told) != (division, outcome):
                wrong.append(f"{user} was in {divisions[user]}: {membership}, not {division}, {outcome}")
        for place, users in ranked.items():
            cohort = self.town.process().store.cohort(place)
            rows = sorted(
                ("", rank, points[user], zone) for user in users for _, rank, zone in [expected.outcome[user]]
            )
            kept = sorted(cohort.standing or ()) if cohort else []
            if kept != rows or (cohort and cohort.members):
                wrong.append(f"{cohort}, not {rows}")
        return wrong

    def _board_faults(self, missing: Collection[str]) -> list[str]:
        """What is wrong with the final result. missing: erased users whom it never had."""
        items = list(scan_all(self.town.dynamodb, TableName=self.town.table("Boards")))
        finals = [each for each in items if (each["board"]["S"], each["part"]["S"]) == ("finals", W48.name)]
        if len(finals) != 1 or len(self.results) > 1:
            return [f"final results: {finals} of {self.results}"]
        generation = finals[0]["generation"]["S"]
        found = {
            each["board"]["S"].removeprefix(CONTEST): sorted(
                ((row.score, row.user_id) for row in unpack_rows(each["data"]["B"])), key=by_score
            )
            for each in items
            if each["part"]["S"].startswith(generation)
        }
        on = {
            user: person.points + person.late
            for user, person in self.people.items()
            if person.points + person.late > 0
            and user not in missing
            and not value_at(person.hidden, FINAL, False)
            and not value_at(person.reviewed, FINAL, False)
        }

        def rows(value: str) -> list[tuple[int, str]]:
            some = [
                (score, "" if self.people[user].is_erased else user)
                for user, score in on.items()
                if not value or value_at(self.people[user].groups, FINAL, "") == value
            ]
            return sorted(some, key=by_score)

        expected = {W48.name: rows(""), **{f"{W48.name} class={value}": rows(value) for value in CLASSES}}
        expected = {contest: some for contest, some in expected.items() if some}
        wrong = [] if found == expected else [f"final result: {found}, not {expected}"]
        if stamp(FINAL) != finals[0]["final_at"]["S"]:
            wrong.append(f"final since {finals[0]['final_at']}")
        return wrong

    def _check_names(self) -> None:
        """Nothing names who was erased."""
        for kind in ("UserStreaks", "DailyActivity", "Boards"):
            for item in scan_all(self.town.dynamodb, TableName=self.town.table(kind)):
                packed = [zlib.decompress(value["B"]) for value in item.values() if "B" in value]
                self.wrong += [
                    f"{each.user} is still in {kind}: {item} {packed}"
                    for each in self.erasures
                    if each.user in f"{item} {packed}"
                ]


def by_score(row: tuple[int, str]) -> tuple[int, str]:
    return -row[0], row[1]


def run_closings(engine: Engine, seed: int, patch: pytest.MonkeyPatch) -> list[str]:
    """Run a seed's closings; returns what is wrong."""
    patch.setattr(leagues_module, "ThreadPoolExecutor", SameThread)
    patch.setattr("processors.ranks.ThreadPoolExecutor", SameThread)
    patch.setattr(leagues_module, "pauses", range)
    patch.setattr("adapters.platform.aws.time.sleep", lambda _: None)
    terms = terms_of(LeagueRules("weekly", DIVISIONS, SIZE, UP, DOWN), BOARDS)
    town = LeagueTown(lean_client(engine, "dynamodb"), terms)
    chance, fate = random.Random(f"closings {seed}"), random.Random(f"closings {seed}: erasures")
    return Closings(town, chance, fate).run()


@pytest.mark.parametrize("seed", range(effort(12, soak=1000)))
def test_whoever_closes_a_week_and_when_the_standings_are_the_same(
    seed: int, environment: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_closings(environment, seed, monkeypatch) == []
