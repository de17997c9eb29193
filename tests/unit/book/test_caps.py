"""Rule 5: caps leave the same points in any order of arrival, also where a date has several caps."""

from collections import defaultdict
from itertools import combinations, permutations

from hypothesis import given
from hypothesis import strategies as st

from rules.book.book import EventType
from rules.book.point_rules import Cap, Period, points_left, total_points

Events = list[tuple[int, int | None]]
events_list = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from([20, 50, 55, 100, None])), max_size=9
).map(list[tuple[int, int | None]])


def awards(events: Events) -> list[int]:
    """What each event gets, in their order. An event: points, cap."""
    earned: dict[int, int] = defaultdict(int)
    given_points = []
    for points, cap in events:
        given_points.append(points_left(points, cap, earned))
        if cap is not None:
            earned[cap] += given_points[-1]
    return given_points


def best(events: Events) -> int:
    """The most that all caps allow together, by trying out which of them bind."""
    capped = sorted((cap, points) for points, cap in events if cap is not None)
    free = sum(points for points, cap in events if cap is None)
    caps = sorted({cap for cap, _ in capped})
    bounds = [sum(points for _, points in capped)]
    for count in range(1, len(caps) + 1):
        for binding in combinations(caps, count):
            # Below the highest cap that binds, nothing else matters; above it, all points count.
            bounds.append(binding[-1] + sum(points for cap, points in capped if cap > binding[-1]))
    return free + min(bounds)


@given(events_list, st.randoms())
def test_every_order_of_arrival_gives_the_same_sum(events: Events, chance: object) -> None:
    assert sum(awards(events)) == best(events)
    shuffled = list(events)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert sum(awards(shuffled)) == best(events)


@given(events_list)
def test_an_event_gets_from_nothing_to_its_own_points(events: Events) -> None:
    assert all(0 <= got <= points for got, (points, _) in zip(awards(events), events, strict=True))


@given(events_list)
def test_no_cap_is_ever_exceeded(events: Events) -> None:
    got = awards(events)
    for limit in {cap for _, cap in events if cap is not None}:
        assert (
            sum(g for g, (_, cap) in zip(got, events, strict=True) if cap is not None and cap <= limit)
            <= limit
        )


@given(events_list)
def test_the_sum_has_a_formula(events: Events) -> None:
    by_cap: dict[int, int] = defaultdict(int)
    for points, cap in events:
        if cap is not None:
            by_cap[cap] += points
    assert total_points(by_cap) + sum(points for points, cap in events if cap is None) == best(events)


def test_with_one_cap_the_event_that_crosses_it_gets_the_rest() -> None:
    assert awards([(15, 60)] * 6) == [15, 15, 15, 15, 0, 0]
    assert awards([(25, 60), (25, 60), (25, 60), (1, 60)]) == [25, 25, 10, 0]


def test_a_lower_cap_of_a_later_version_binds_its_own_events() -> None:
    for order in permutations([(60, 100), (30, 50), (30, 50)]):
        assert sum(awards(list(order))) == 100
    assert awards([(60, 100), (30, 50), (30, 50)]) == [60, 30, 10]


def test_a_higher_cap_of_a_later_version_makes_room_at_once() -> None:
    assert awards([(125, 100), (150, 300)]) == [100, 150]


def test_a_cap_in_events_is_worth_so_many_events() -> None:
    rule = EventType(points=10, cap_events=5, per=Period.WEEK)
    assert rule.cap() == Cap(50, Period.WEEK)
    assert rule.cap(factor=3) == Cap(150, Period.WEEK)
    assert EventType(points=10, cap_points=40).cap(factor=3) == Cap(40)
    assert EventType(points=10).cap() is None


def test_a_cap_is_read_as_it_was_written() -> None:
    for cap in (Cap(1), Cap(0), Cap(400, Period.WEEK)):
        assert Cap.of(cap.text) == cap
    assert Cap.of(None) is None
