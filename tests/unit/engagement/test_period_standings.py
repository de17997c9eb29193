"""Pages of a standing give what the whole list gives; settings of boards are as of an instant (rule 25)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.engagement.account_items import profile_from, profile_item
from adapters.platform.items import Item, decode_item, encode_item
from analytics.reconcile.stored_profiles import kept_of
from rules.book.board_rules import BoardPeriod, BoardRule
from rules.book.daily import DailyRules, DailyTerms
from rules.engagement import period_standings
from rules.engagement.account import decide_settings
from rules.engagement.account_state import Account, Profile
from rules.engagement.board_settings import (
    CHANGES_MAX,
    HIDDEN,
    YES,
    BoardSetting,
    BoardSettings,
    groups_of,
    is_hidden,
    settings_at,
    with_settings,
)
from rules.engagement.boards import Standing
from rules.engagement.ledger import OPENED_AT
from rules.engagement.period_standings import AFTER_ALL, Pages, first_places, pages_of, place_of, without_user
from rules.engagement.reconciliation import profile_of
from rules.engagement.rest_days import RestDays
from rules.engagement.review import end_review, put_under_review, was_under_review
from rules.engagement.streak import Cover
from tests.support.account_world import World, grant
from tests.support.engagement_strategies import event
from tests.support.examples import examples

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
scores = st.dictionaries(st.text("abcdefgh", min_size=1, max_size=4), st.integers(1, 9), max_size=60)


def listed(by_user: dict[str, int]) -> list[Standing]:
    return sorted((Standing(score, user) for user, score in by_user.items()), key=place_of)


def paged(rows: Sequence[Standing]) -> Pages:
    pages = pages_of(rows)
    return Pages(first_places(pages), len(rows), pages.__getitem__)


@settings(max_examples=examples(200))
@given(scores, st.integers(1, 5), st.integers(1, 10), st.text("abcdefgh", min_size=1, max_size=4))
def test_ranks_and_rows_around_are_those_of_the_whole_list(
    by_user: dict[str, int], page: int, score: int, user: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(period_standings, "ROWS_IN_PAGE", page)
        rows, me = listed(by_user), Standing(score, user)
        pages = paged(rows)
        assert pages.rank(score) == 1 + sum(row.score > score for row in rows)
        assert pages.position(place_of(me)) == sum(place_of(row) < place_of(me) for row in rows)
        assert pages.has(me) == (me in rows)
        assert pages.rows(0, 7) == rows[:7]
        others = [row for row in rows if row.user_id != user]
        above = [row for row in others if place_of(row) < place_of(me)]
        below = [row for row in others if place_of(row) > place_of(me)]
        assert pages.around(me) == [*above[-3:], me, *below[:3]]


def test_pages_of_erased_users_alone_stay_in_their_order() -> None:
    rows = [Standing(1, "a"), Standing(1, ""), Standing(1, ""), Standing(1, "b"), Standing(0, "")]
    assert first_places([[row] for row in rows]) == [
        (-1, "a"),
        (-1, "b"),
        (-1, "b"),
        (-1, "b"),
        (0, AFTER_ALL),
    ]


@settings(max_examples=examples(200))
@given(scores, st.integers(1, 5), st.data())
def test_an_erased_user_changes_nobody_else_s_place(
    by_user: dict[str, int], page: int, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(period_standings, "ROWS_IN_PAGE", page)
        rows = listed(by_user)
        erased = data.draw(st.sampled_from([row.user_id for row in rows])) if rows else "nobody"
        whole = paged(rows)
        pages = [without_user(each, erased) for each in pages_of(rows)]
        left = Pages(first_places(pages), len(rows), pages.__getitem__)
        for row in rows:
            if row.user_id != erased:
                assert left.rank(row.score) == whole.rank(row.score)
                assert left.has(row)
                assert left.position(place_of(row)) == whole.position(place_of(row))
        assert erased not in {row.user_id for each in pages for row in each}


changes = st.lists(
    st.tuples(
        st.integers(0, 100 * 24),
        st.sampled_from(["class", "team", HIDDEN]),
        st.sampled_from(["", "4b", "4c=x", YES]),
    ),
    max_size=CHANGES_MAX,
).map(sorted)


@settings(max_examples=examples(200))
@given(changes, st.integers(0, 20 * 24))
def test_settings_are_as_of_an_instant(made: list[tuple[int, str, str]], ago: int) -> None:
    """A closing that is up to twenty days late sees what was set when the period was final."""
    found: BoardSettings = ()
    for hours, name, value in made:
        found = with_settings(found, {name: value}, NOW + hours * HOUR)
        assert tuple(map(BoardSetting.of, (each.text for each in found))) == found
    last = made[-1][0] if made else 0
    at = NOW + (last - ago) * HOUR + timedelta(minutes=1)
    plain = {name: value for hours, name, value in made if NOW + hours * HOUR < at}
    assert settings_at(found, at) == {name: value for name, value in plain.items() if value}
    newest = {name: value for _, name, value in made}
    assert is_hidden(found) == bool(newest.pop(HIDDEN, ""))
    assert groups_of(found) == {name: value for name, value in newest.items() if value}


def test_no_change_is_lost_for_which_a_closing_may_ask() -> None:
    found: BoardSettings = ()
    for minute in range(100):
        found = with_settings(found, {"class": str(minute % 2), "team": "red"}, NOW + minute * HOUR / 60)
    for minute in range(100):
        assert settings_at(found, NOW + (minute + 0.5) * HOUR / 60)["class"] == str(minute % 2)
    assert groups_of(found) == {"class": "1", "team": "red"}
    assert with_settings(found, {"class": "1"}, NOW + DAY) is found, "the same again is no change"
    assert len(with_settings(found, {"class": "2"}, NOW + 40 * DAY)) == 3, "what no closing asks for goes"


def test_a_review_counts_from_its_beginning_to_its_end() -> None:
    begun = put_under_review(Profile("u"), NOW, "it flies")
    ended = end_review(begun, NOW + DAY)
    moments = (NOW, NOW + HOUR, NOW + DAY, NOW + 2 * DAY)
    assert [was_under_review(begun, at) for at in moments] == [False, True, True, True]
    assert [was_under_review(ended, at) for at in moments] == [False, True, True, False]


WEEKLY = BoardRule("weekly", BoardPeriod.WEEK)
TERMS: DailyTerms = ((date.min, DailyRules(boards=(WEEKLY,))),)


def test_a_profile_that_is_made_again_has_equal_counters_and_keeps_its_settings() -> None:
    world = World(profile=Profile("u", cover=Cover(rest=RestDays(TERMS))), now=NOW)
    world.apply([event(str(number), NOW.date() - number * DAY, created_at=NOW) for number in range(9)])
    world.apply(commands=[grant(NOW.date())])
    changed = world.profile
    hidden = with_settings(changed.board_settings, {HIDDEN: YES, "class": "4b"}, NOW)
    decision = decide_settings(Account(changed, {}), replace(changed, board_settings=hidden), NOW)
    stored: Item = profile_item(decision.profile, 4, NOW)
    assert decode_item(stored)["board_settings"] == [each.text for each in hidden]
    assert "leaderboard_partition" not in decode_item(stored), "who has left is in no index"
    again = profile_of(kept_of("u", stored, TERMS), [*world.entries, *decision.entries])
    assert again.period_points == profile_from(decode_item(stored), TERMS).period_points
    assert [each.period.name for each in again.period_points] == ["2026-W48"], "the week before is final"
    assert encode_item(decode_item(profile_item(again, 4, NOW))) == stored
    assert world.entries[0].created_at == OPENED_AT
