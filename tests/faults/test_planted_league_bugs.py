"""Would the seasons of leagues notice? Each bug is planted in the real code; some season must find it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from adapters.engagement import leagues
from adapters.engagement.leagues import Leagues, LeagueStore
from rules.engagement.leagues import Membership, Zone, ranking
from tests.faults.planting import must_be_caught
from tests.faults.test_leagues import run_leagues
from tests.support.engine import Engine

SEEDS_MAX = 20
Patch = pytest.MonkeyPatch


def a_missed_closing_sends_everybody_to_the_lowest(patch: Patch) -> None:
    """A cohort that nobody has closed has no outcome: who plays on begins anew."""
    settled = Leagues._settle_last

    def forgetful(self: Any, user_id: str, membership: Membership, now: Any) -> Any:
        cohort = membership.place and self.store.cohort(membership.place)
        if not membership.is_settled and cohort and cohort.standing is None:
            return replace(membership, division=0, name="", is_settled=True)
        return settled(self, user_id, membership, now)

    patch.setattr(Leagues, "_settle_last", forgetful)


def the_absent_go_down(patch: Patch) -> None:
    joining = Membership.joining

    def punished(self: Membership, week: Any, rules: Any, cohort: int) -> Membership:
        weeks_ago = week.first.isocalendar().week - int(self.place.week[-2:]) if self.place else 1
        away = replace(self, division=max(0, self.division - 1), name="") if weeks_ago > 1 else self
        return joining(away, week, rules, cohort)

    patch.setattr(Membership, "joining", punished)


def leaving_the_boards_keeps_the_division(patch: Patch) -> None:
    """Who goes down leaves the boards a minute before the closing, and comes back a minute after it."""
    patch.setattr(leagues, "has_left", lambda profile, left_at, at: False)


def late_points_count(patch: Patch) -> None:
    patch.setattr(
        leagues,
        "league_points",
        lambda profile, week: sum(each.points for each in profile.period_points if each.period == week),
    )


def who_has_no_points_goes_up(patch: Patch) -> None:
    def generous(points: Any, rules: Any, division: int) -> Any:
        shifted = ranking({user: max(0, each) + 1 for user, each in points.items()}, rules, division)
        return [row._replace(points=row.points - 1) for row in shifted]

    patch.setattr(leagues, "ranking", generous)


def as_many_move_in_a_small_cohort(patch: Patch) -> None:
    """Fixed numbers: in a cohort of four, with two up and two down, nobody stays."""

    def fixed(points: Any, rules: Any, division: int) -> Any:
        return ranking(points, replace(rules, size=max(1, len(points))), division)

    patch.setattr(leagues, "ranking", fixed)


def the_closing_moves_one(patch: Patch) -> None:
    def first_only(points: Any, rules: Any, division: int) -> Any:
        rows = ranking(points, rules, division)
        return [row._replace(zone=Zone.STAY) if row.zone is Zone.UP and row.rank > 1 else row for row in rows]

    patch.setattr(leagues, "ranking", first_only)


def a_name_counts_without_a_place(patch: Patch) -> None:
    """Who is named in a roster is ranked there, whatever the place says."""
    memberships = LeagueStore.memberships

    def all_of_them(self: Any, user_ids: Any) -> Any:
        found, users = memberships(self, user_ids), set(user_ids)
        places = [each.place for each in found.values() if each.place]
        if len(users) > 1 and places:
            most = max(places, key=places.count)
            found = {user: replace(each, place=most) for user, each in found.items()}
        return found

    patch.setattr(LeagueStore, "memberships", all_of_them)


def names_go_before_the_outcomes(patch: Patch) -> None:
    """Whoever dies between the two leaves members without an outcome."""
    finish = Leagues.finish

    def hasty(self: Any, cohort: Any, *given: Any) -> None:
        ranked = self._close(cohort, *given)
        self.store.finish(replace(cohort, standing=tuple(ranked.standing)))
        finish(self, replace(cohort, standing=tuple(ranked.standing)), *given)

    patch.setattr(Leagues, "finish", hasty)


def a_cohort_has_no_end(patch: Patch) -> None:
    enter = LeagueStore.enter
    patch.setattr(
        LeagueStore, "enter", lambda self, place, user, size, until: enter(self, place, user, size + 1, until)
    )


def an_outcome_counts_twice(patch: Patch) -> None:
    """It moves the division of today, not that of the week, and nothing says that it has."""
    settled = Membership.settled

    def twice(self: Membership, rules: Any, user_id: str, standing: Any) -> Membership:
        once = settled(self, rules, user_id, standing)
        moved = once.division - self.place.division if self.place else 0
        division = min(max(0, self.division + moved), len(rules.divisions) - 1)
        return replace(once, division=division, name=rules.divisions[division], is_settled=False)

    patch.setattr(Membership, "settled", twice)


# Each bug, with seasons that find it at once: they come first.
BUGS: dict[Callable[[Patch], None], tuple[int, ...]] = {
    a_missed_closing_sends_everybody_to_the_lowest: (1, 2),
    the_absent_go_down: (2, 6),
    leaving_the_boards_keeps_the_division: (0, 1),
    late_points_count: (0, 1),
    who_has_no_points_goes_up: (0, 4),
    as_many_move_in_a_small_cohort: (0, 1),
    the_closing_moves_one: (0, 1),
    a_name_counts_without_a_place: (1, 2),
    names_go_before_the_outcomes: (0, 1),
    a_cohort_has_no_end: (0, 1),
    an_outcome_counts_twice: (0, 1),
}


@pytest.mark.parametrize("plant", BUGS, ids=lambda bug: bug.__name__)
def test_is_caught(plant: Callable[[Patch], None], fresh_environment: Engine, monkeypatch: Patch) -> None:
    must_be_caught(plant, run_leagues, fresh_environment, monkeypatch, (*BUGS[plant], *range(SEEDS_MAX)))
