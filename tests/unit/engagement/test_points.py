"""Rule 5: points come from the rule table, under a daily cap, whatever the order of arrival."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.engagement.points import RULES, Boost, capped_points, is_servers, points_of

AT = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def boost(factor: int, *types: str, since: datetime = AT - HOUR, until: datetime = AT + HOUR) -> Boost:
    return Boost(since, until, factor, frozenset(types))


def test_points_are_those_of_the_table() -> None:
    assert points_of("CHECK_IN", AT) == 5
    assert points_of("LESSON_COMPLETED", AT) == 10


def test_a_type_that_is_not_in_the_table_has_no_points() -> None:
    with pytest.raises(KeyError):
        points_of("CLIENT_SAYS_1000", AT)


def test_what_stands_for_something_of_value_is_declared_by_servers_alone() -> None:
    assert {name for name in RULES if is_servers(name)} == {
        "FRIEND_INVITED",
        "PURCHASE_COMPLETED",
        "QUESTION_ANSWERED",
    }


def test_every_cap_takes_at_least_one_whole_event() -> None:
    assert all(0 < rule.points <= rule.daily_points_max for rule in RULES.values())


def test_nobody_can_change_the_table_at_run_time() -> None:
    with pytest.raises(TypeError):
        RULES["CHECK_IN"] = RULES["LESSON_COMPLETED"]  # type: ignore[index]


def test_a_boost_holds_from_its_beginning_and_not_at_its_end() -> None:
    double = [boost(2)]
    assert points_of("CHECK_IN", AT - HOUR, double) == 10
    assert points_of("CHECK_IN", AT + HOUR, double) == 5
    assert points_of("CHECK_IN", AT - 2 * HOUR, double) == 5


def test_a_boost_of_named_types_leaves_the_others_alone() -> None:
    triple = [boost(3, "LESSON_COMPLETED")]
    assert points_of("LESSON_COMPLETED", AT, triple) == 30
    assert points_of("CHECK_IN", AT, triple) == 5


def test_of_several_boosts_the_largest_applies_and_they_do_not_multiply() -> None:
    assert points_of("CHECK_IN", AT, [boost(2), boost(4), boost(3)]) == 20


def test_the_event_that_crosses_the_cap_gets_the_rest() -> None:
    assert [capped_points("WORKOUT_COMPLETED", 15, earned) for earned in (0, 45, 50, 60, 99)] == [
        15,
        15,
        10,
        0,
        0,
    ]


def test_a_type_that_has_left_the_table_keeps_what_it_was_promised() -> None:
    assert capped_points("RETIRED", 70, 1_000_000) == 70


amounts = st.lists(st.sampled_from([1, 5, 10, 15, 25, 50, 200, 1000]), max_size=30)


def earned(event_type: str, points: list[int]) -> int:
    total = 0
    for each in points:
        total += capped_points(event_type, each, total)
    return total


@given(st.sampled_from(sorted(RULES)), amounts, st.data())
def test_a_day_s_points_do_not_depend_on_order(
    event_type: str, points: list[int], data: st.DataObject
) -> None:
    other = data.draw(st.permutations(points))
    assert earned(event_type, points) == earned(event_type, other)
    assert earned(event_type, points) == min(sum(points), RULES[event_type].daily_points_max)


@given(st.sampled_from(sorted(RULES)), st.integers(0, 10_000), st.integers(0, 10_000))
def test_an_award_is_never_negative_nor_more_than_promised(event_type: str, points: int, before: int) -> None:
    award = capped_points(event_type, points, before)
    assert 0 <= award <= points
    assert before + award <= max(before, RULES[event_type].daily_points_max)


@given(st.lists(st.tuples(st.integers(-48, 48), st.integers(1, 48), st.integers(2, 9)), max_size=6))
def test_the_factor_is_the_largest_in_force_or_1(spans: list[tuple[int, int, int]]) -> None:
    boosts = [
        boost(factor, since=AT + start * HOUR, until=AT + (start + length) * HOUR)
        for start, length, factor in spans
    ]
    in_force = [factor for start, length, factor in spans if start <= 0 < start + length]
    assert points_of("CHECK_IN", AT, boosts) == 5 * max([1, *in_force])
