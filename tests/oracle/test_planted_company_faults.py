"""Would the rounds of companies notice? Each fault of boards, leagues and friends is planted by name, and found."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.oracle.company_plans import company_planned
from tests.oracle.company_rounds import company_played
from tests.oracle.machines import Stream
from tests.oracle.test_planted_faults import real
from tests.support.engine import Engine

SEEDS_MAX = 40
Patch = pytest.MonkeyPatch


def a_final_result_counts_what_comes_later(patch: Patch) -> None:
    far = real("rules.days.LAST_CLOCK")
    patch.setattr("rules.engagement.period_points.final_at", lambda *_: far)


def a_period_ends_a_day_early_in_the_west(patch: Patch) -> None:
    patch.setattr("rules.engagement.periods.EVERYWHERE", "+12:00")


def boards_rank_without_ties(patch: Patch) -> None:
    def numbered(rows: Any) -> Any:
        return [
            {"rank": number, "user_id": user, "score": score} for number, (user, score) in enumerate(rows, 1)
        ]

    patch.setattr("ingest.engagement.period_boards.with_ranks", numbered)


def who_has_left_the_boards_is_counted(patch: Patch) -> None:
    patch.setattr("rules.engagement.period_standings.is_hidden", lambda *_: False)


def a_pair_s_today_ends_at_the_first_midnight(patch: Patch) -> None:
    date_at = real("rules.engagement.pair_streaks.date_at")
    patch.setattr(
        "ingest.engagement.friends.pair_today",
        lambda one, other, now: max(date_at(one, now), date_at(other, now)),
    )


def a_friend_s_streak_uses_the_other_one_s_freeze(patch: Patch) -> None:
    pair_streak = real("rules.engagement.pair_streaks.pair_streak")

    def shared(one: Any, other: Any, *given: Any) -> Any:
        freezes = tuple(sorted(one.profile.cover.freezes + other.profile.cover.freezes))
        both = [
            replace(each, profile=replace(each.profile, cover=replace(each.profile.cover, freezes=freezes)))
            for each in (one, other)
        ]
        return pair_streak(*both, *given)

    patch.setattr("ingest.engagement.friends.pair_streak", shared)


def a_league_counts_late_points(patch: Patch) -> None:
    patch.setattr(
        "adapters.engagement.leagues.league_points",
        lambda profile, week: sum(each.points for each in profile.period_points if each.period == week),
    )


def a_league_is_joined_before_the_last_one_has_closed(patch: Patch) -> None:
    week_of = real("adapters.engagement.leagues.week_of")
    patch.setattr("adapters.engagement.leagues.open_week", lambda now, _: week_of(now.date()))


def who_comes_back_keeps_the_division(patch: Patch) -> None:
    membership = "rules.engagement.leagues.Membership"
    patch.setattr(
        f"{membership}.returning", lambda self, has_seat: replace(self, left_at="", is_settled=not has_seat)
    )


def an_erasure_takes_rows_of_results_away(patch: Patch) -> None:
    patch.setattr(
        "adapters.privacy.stores.without_user",
        lambda rows, user: [row for row in rows if row.user_id != user],
    )


def an_erasure_leaves_the_place_in_the_leagues(patch: Patch) -> None:
    patch.setattr("adapters.privacy.stores._day_partitions", lambda person: [person.user_id])


def an_erasure_leaves_ties_of_others(patch: Patch) -> None:
    patch.setattr("adapters.privacy.stores.keys_back", lambda own: ())


# Each fault, with rounds that find it at once: they come first.
FAULTS: dict[Callable[[Patch], None], tuple[int, ...]] = {
    a_final_result_counts_what_comes_later: (6,),
    a_period_ends_a_day_early_in_the_west: (1,),
    boards_rank_without_ties: (6,),
    who_has_left_the_boards_is_counted: (6,),
    a_pair_s_today_ends_at_the_first_midnight: (6,),
    a_friend_s_streak_uses_the_other_one_s_freeze: (6,),
    a_league_counts_late_points: (6,),
    a_league_is_joined_before_the_last_one_has_closed: (6,),
    who_comes_back_keeps_the_division: (6,),
    an_erasure_takes_rows_of_results_away: (2,),
    an_erasure_leaves_the_place_in_the_leagues: (2,),
    an_erasure_leaves_ties_of_others: (2,),
}


@pytest.mark.parametrize("plant", FAULTS, ids=lambda fault: fault.__name__)
def test_is_found(
    plant: Callable[[Patch], None], environment: Engine, stream: Stream, monkeypatch: Patch
) -> None:
    for seed in (*FAULTS[plant], *range(SEEDS_MAX)):
        with monkeypatch.context() as fault:
            plant(fault)
            try:
                if company_played(environment, stream, company_planned(seed), fault):
                    return
            except AssertionError:
                return  # It does not come to an end, or somebody is refused: that is a fault found, too.
    pytest.fail(f"no round found anything wrong with {plant.__name__}")
