"""Weeks of leagues in which processes die at any call, closings are missed, and points come late.

Expected is what a plain reading of rule 27 makes of the places that users had. It calls nothing of the rules of
leagues.
"""

import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from adapters.engagement import leagues as leagues_module
from adapters.engagement.leagues import Leagues
from rules.book.league_rules import LeagueRules
from rules.engagement.account_state import Profile
from rules.engagement.board_settings import HIDDEN, YES, BoardSettings, with_settings
from rules.engagement.leagues import Place
from rules.engagement.period_points import PeriodPoints
from rules.engagement.periods import Period, period_named
from tests.support.dying import FAILURES, Dying, Killed
from tests.support.effort import effort
from tests.support.engine import Engine
from tests.support.league_town import BOARDS, FOREVER, LeagueTown, player
from tests.support.league_town import leagues_of as terms_of

SIZE, UP, DOWN = 5, 2, 2
DIVISIONS = ("bronze", "silver", "gold")
WEEKS = [period_named(f"2026-W{number}") for number in (48, 49, 50)]
CLOSED = datetime(2026, 11, 30, 18, 10, tzinfo=UTC)  # the first of them
WEEK = timedelta(days=7)
USERS = [f"u{number:02}" for number in range(14)]
Outcome = tuple[str, int, str]  # week, rank, zone


@dataclass
class Expected:
    """What the divisions should be, told in words."""

    division: dict[str, int] = field(default_factory=lambda: dict.fromkeys(USERS, 0))
    outcome: dict[str, Outcome] = field(default_factory=dict)

    def close(
        self, week: str, cohorts: Mapping[Place, list[str]], points: Mapping[str, int], left: set[str]
    ) -> None:
        self.division |= dict.fromkeys(left, 0)
        cohorts = {place: [user for user in users if user not in left] for place, users in cohorts.items()}
        for members in cohorts.values():
            for user in members:
                own, count = points[user], len(members)
                above = sum(points[other] > own for other in members)
                not_above = sum(points[other] <= own for other in members)
                zone = "stay"
                if own and above * SIZE < UP * count and self.division[user] < len(DIVISIONS) - 1:
                    zone = "up"
                elif not_above * SIZE <= DOWN * count and self.division[user] > 0:
                    zone = "down"
                self.outcome[user] = (week, above + 1, zone)
        for members in cohorts.values():
            for user in members:
                self.division[user] += {"up": 1, "stay": 0, "down": -1}[self.outcome[user][2]]


@dataclass
class Season:
    """Three weeks of a town, as one seed leads to them."""

    town: LeagueTown
    chance: random.Random
    expected: Expected = field(default_factory=Expected)
    faults: list[str] = field(default_factory=list)
    counted: dict[str, dict[Period, PeriodPoints]] = field(default_factory=dict)
    on_time: dict[tuple[str, str], int] = field(default_factory=dict)  # by user and week
    settings: dict[str, BoardSettings] = field(default_factory=dict)

    def profile(self, user: str) -> Profile:
        counted = tuple(sorted(self.counted[user].values()))
        return replace(player(user, {}), period_points=counted, board_settings=self.settings.get(user, ()))

    def hide(self, user: str, since: datetime, until: datetime) -> None:
        hidden = with_settings(self.settings.get(user, ()), {HIDDEN: YES}, since)
        self.settings[user] = with_settings(hidden, {HIDDEN: ""}, until)
        self.town.put([self.profile(user)])

    def process(self) -> Leagues:
        """A process, which may die or lose an answer at some call."""
        if self.chance.random() < 0.5:
            return self.town.process()
        how = self.chance.choice(FAILURES)
        return self.town.process(Dying(self.town.dynamodb, self.chance.randrange(1, 40), how))

    def earn(self, user: str, week: Period, points: int, late: int = 0) -> None:
        mine = self.counted.setdefault(user, {})
        before = mine.get(week, PeriodPoints(week, 0))
        mine[week] = replace(before, points=before.points + points + late, late=before.late + late)
        self.town.put([self.profile(user)])
        self.on_time[user, week.name] = mine[week].points - mine[week].late

    def join(self, user: str, process: Leagues, now: datetime) -> None:
        with suppress(Killed):
            process.join_all([self.profile(user)], now)

    def play(self, week: Period, now: datetime) -> None:
        processes = [self.process() for _ in range(3)]
        events = [
            user for user in USERS if self.chance.random() < 0.75 for _ in range(self.chance.randrange(1, 4))
        ]
        self.chance.shuffle(events)
        for user in events:
            self.earn(user, week, self.chance.randrange(1, 9))
            self.join(user, self.chance.choice(processes), now)
        for user in set(events):
            if self.chance.random() < 0.2:  # all of it is taken back
                self.earn(user, week, -self.on_time[user, week.name])

    def run(self) -> list[str]:
        for number, week in enumerate(WEEKS):
            closed = CLOSED + number * WEEK
            self.play(week, closed - timedelta(days=3))
            cohorts: dict[Place, list[str]] = {}
            for user in USERS:
                place = self.town.membership(user).place
                if place and place.week == week.name:
                    cohorts.setdefault(place, []).append(user)
                    if place.division != self.expected.division[user]:
                        self.faults.append(f"{user} joined {place}, not {self.expected.division[user]}")
            self.expected.division |= {
                user: place.division for place, users in cohorts.items() for user in users
            }
            for place, names in self.town.rosters().items():
                if len(names) > SIZE:
                    self.faults.append(f"{place} has {len(names)} members")
            members = [user for users in cohorts.values() for user in users]
            hidden = {user for user in members if self.chance.random() < 0.1}
            for user in hidden:  # who looks as if nothing had been when the cohort is closed
                self.hide(user, closed - timedelta(minutes=11), closed - timedelta(minutes=5))
            on_time = {user: self.on_time.get((user, week.name), 0) for user in USERS}
            self.expected.close(week.name, cohorts, on_time, hidden)
            for user in self.chance.sample(USERS, 4):
                if user in self.counted:
                    self.earn(user, week, 0, late=self.chance.randrange(1, 50))
            for _ in range(self.chance.randrange(3)):  # perhaps nobody closes it
                with suppress(Killed, Exception):
                    self.process().close_due(closed + timedelta(hours=self.chance.randrange(72)), FOREVER)
        last = CLOSED + 2 * WEEK + timedelta(days=1)
        self.town.process().close_due(last, FOREVER)
        for user in USERS:
            membership = self.town.membership(user)
            told = membership.outcome and (
                membership.outcome.week, membership.outcome.rank, membership.outcome.zone.value,
            )  # fmt: skip
            if (membership.division, told) != (self.expected.division[user], self.expected.outcome.get(user)):
                self.faults.append(f"{user}: {membership}, expected {self.expected.outcome.get(user)}")
        self.faults += [
            f"{place} still names {names}" for place, names in self.town.rosters().items() if names
        ]
        return self.faults


def run_leagues(engine: Engine, seed: int, patch: pytest.MonkeyPatch) -> list[str]:
    """Run a seed's season; returns what is wrong."""
    patch.setattr(leagues_module, "WRITERS", 1)  # so a seed leads to the same
    patch.setattr(leagues_module, "pauses", range)
    terms = terms_of(LeagueRules("weekly", DIVISIONS, SIZE, UP, DOWN), BOARDS)
    return Season(LeagueTown(engine.client("dynamodb"), terms), random.Random(seed)).run()


@pytest.mark.parametrize("seed", range(effort(12, soak=400)))
def test_a_season_ends_as_it_is_told_in_words(
    seed: int, environment: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_leagues(environment, seed, monkeypatch) == []
