"""Would the schedules of closings notice? Each bug is planted in the real code; some schedule must find it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from adapters.engagement import leagues, period_boards
from adapters.engagement.leagues import Leagues, LeagueStore
from adapters.engagement.period_boards import StandingStore
from adapters.platform.tables import put_all
from adapters.privacy import stores
from rules.engagement import period_standings
from rules.engagement.board_settings import groups_of, is_hidden
from rules.engagement.leagues import Zone, closes_at, is_ranked, ranking
from rules.engagement.periods import final_at, period_named
from rules.engagement.review import was_under_review
from tests.faults.planting import must_be_caught
from tests.faults.test_closings import run_closings
from tests.support.engine import Engine

SEEDS_MAX = 30
Patch = pytest.MonkeyPatch


def a_result_has_the_groups_of_now(patch: Patch) -> None:
    patch.setattr(period_standings, "settings_at", lambda settings, _: groups_of(settings))


def who_leaves_the_boards_later_is_in_no_result(patch: Patch) -> None:
    patch.setattr(period_standings, "is_hidden", lambda settings, _: is_hidden(settings))


def a_later_review_takes_a_row_away(patch: Patch) -> None:
    patch.setattr(period_standings, "was_under_review", lambda profile, _: profile.tz_review)


def a_review_that_has_ended_is_forgotten(patch: Patch) -> None:
    for module in ("rules.engagement.period_standings", "rules.engagement.leagues"):
        patch.setattr(
            f"{module}.was_under_review",
            lambda profile, at: was_under_review(replace(profile, released_at=""), at),
        )


def two_at_once_write_two_results(patch: Patch) -> None:
    def always(put: Any, **item: Any) -> bool:
        put(**{name: each for name, each in item.items() if name != "ConditionExpression"})
        return True

    patch.setattr(period_boards, "write_if", always)


def the_loser_deletes_the_winner_s_pages(patch: Patch) -> None:
    """All pages of final results have one generation."""
    patch.setattr(period_boards, "uuid4", lambda: UUID(int=0))


def a_result_is_named_before_its_pages(patch: Patch) -> None:
    """Whoever dies between the two leaves a result without rows."""
    late = list[Any]()

    def close(self: Any, *given: Any) -> bool:
        late.clear()
        patch.setattr(period_boards, "put_all", lambda *pages: late.append(pages))
        try:
            is_first = real(self, *given)
        finally:
            patch.setattr(period_boards, "put_all", put_all)
        for pages in late:
            put_all(*pages)
        return is_first

    real = StandingStore.close
    patch.setattr(StandingStore, "close", close)


def a_period_is_final_when_it_ends(patch: Patch) -> None:
    for module in ("rules.engagement.period_standings", "processors.ranks"):
        patch.setattr(f"{module}.final_at", lambda period, terms: final_at(period, terms) - timedelta(days=3))


def coming_back_forgets_that_the_user_was_away(patch: Patch) -> None:
    """Nobody closes the cohort before the user is back."""

    def take_part(self: Any, user_id: str, now: Any, *, takes_part: bool) -> None:
        before = self.store.membership(user_id)
        if takes_part is not bool(before.left_at):
            return
        terms, place = self._accounts.daily_terms(), before.place
        has_seat = place is not None and now < closes_at(period_named(place.week), terms)
        after = before.returning(has_seat=has_seat) if takes_part else before.leaving(now)
        self.store.put_membership(user_id, before, after)

    patch.setattr(Leagues, "take_part", take_part)


def up_and_down_overlap(patch: Patch) -> None:
    """Down wins where a small cohort has both."""

    def both(points: Any, rules: Any, division: int) -> Any:
        rows = ranking(points, rules, division)
        downs = -(-rules.down * len(rows) // rules.size) if division else 0
        return [
            *rows[: len(rows) - downs],
            *(row._replace(zone=Zone.DOWN) for row in rows[len(rows) - downs :]),
        ]

    patch.setattr(leagues, "ranking", both)


def ranks_are_not_shared(patch: Patch) -> None:
    def numbered(rows: Any) -> Any:
        return [
            {"rank": number, "user_id": user, "score": score} for number, (user, score) in enumerate(rows, 1)
        ]

    patch.setattr("rules.engagement.leagues.with_ranks", numbered)


def a_second_closing_writes_over_the_first(patch: Patch) -> None:
    """It ranks those who are left of the roster by then."""
    cohort = LeagueStore.cohort
    patch.setattr(
        Leagues,
        "_close",
        lambda self, found, week, rules, now: self._rank(
            cohort(self.store, found.place) or found, week, rules, now
        ),
    )


def an_erasure_takes_the_row_away(patch: Patch) -> None:
    patch.setattr(stores, "without_user", lambda rows, user: [row for row in rows if row.user_id != user])


def an_erasure_forgets_results_of_cohorts(patch: Patch) -> None:
    """It takes the name out of the members, and leaves the row with it."""

    def remove_member(dynamodb: Any, boards: str, key: Any, user: str) -> None:
        dynamodb.update_item(
            TableName=boards,
            Key=key,
            UpdateExpression="DELETE #members :me",
            ExpressionAttributeNames={"#members": "members"},
            ExpressionAttributeValues={":me": {"SS": [user]}},
        )

    patch.setattr(stores, "remove_member", remove_member)


def who_is_being_erased_is_the_last_of_the_cohort(patch: Patch) -> None:
    patch.setattr(
        leagues,
        "is_ranked",
        lambda profile, left_at, at: is_ranked(replace(profile, version=1), left_at, at),
    )


def who_is_back_after_a_closing_has_died_is_ranked(patch: Patch) -> None:
    memberships = LeagueStore.memberships
    patch.setattr(
        LeagueStore,
        "memberships",
        lambda self, users: {
            user: replace(each, is_settled=each.is_settled and each.outcome is not None)
            for user, each in memberships(self, users).items()
        },
    )


# Each bug, with schedules that find it at once: they come first.
BUGS: dict[Callable[[Patch], None], tuple[int, ...]] = {
    a_result_has_the_groups_of_now: (0, 2),
    who_leaves_the_boards_later_is_in_no_result: (0, 2),
    a_later_review_takes_a_row_away: (0, 1),
    a_review_that_has_ended_is_forgotten: (10, 15),
    two_at_once_write_two_results: (45, 82),
    the_loser_deletes_the_winner_s_pages: (45, 82),
    a_result_is_named_before_its_pages: (5, 8),
    a_period_is_final_when_it_ends: (0, 1),
    coming_back_forgets_that_the_user_was_away: (18, 22),
    up_and_down_overlap: (0, 1),
    ranks_are_not_shared: (0, 1),
    a_second_closing_writes_over_the_first: (0, 1),
    an_erasure_takes_the_row_away: (1, 5),
    an_erasure_forgets_results_of_cohorts: (1, 6),
    who_is_being_erased_is_the_last_of_the_cohort: (16, 10),
    who_is_back_after_a_closing_has_died_is_ranked: (720,),
}


@pytest.mark.parametrize("plant", BUGS, ids=lambda bug: bug.__name__)
def test_is_caught(plant: Callable[[Patch], None], fresh_environment: Engine, monkeypatch: Patch) -> None:
    must_be_caught(plant, run_closings, fresh_environment, monkeypatch, (*BUGS[plant], *range(SEEDS_MAX)))
