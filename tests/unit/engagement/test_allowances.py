"""What a user may take for nothing: freezes a month, paused dates a year, and freezes that are returned."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rules.engagement.streak import (
    Cover,
    fold,
    net_freezes,
    paused_dates_a_year,
    revocation_date,
    shown_streak,
)
from tests.support.engagement_strategies import bases, covers, near

JANUARY = date(2026, 1, 1)
DAY = timedelta(days=1)


def test_a_year_is_any_365_dates_in_a_row() -> None:
    assert paused_dates_a_year([]) == 0
    assert paused_dates_a_year([(JANUARY, JANUARY)]) == 1
    assert paused_dates_a_year([(JANUARY, JANUARY + 9 * DAY), (JANUARY + 5 * DAY, JANUARY + 11 * DAY)]) == 12
    assert paused_dates_a_year([(JANUARY, JANUARY), (JANUARY + 364 * DAY, JANUARY + 364 * DAY)]) == 2
    assert paused_dates_a_year([(JANUARY, JANUARY), (JANUARY + 365 * DAY, JANUARY + 365 * DAY)]) == 1


pauses = st.lists(
    st.tuples(st.integers(0, 1500), st.integers(0, 60)).map(
        lambda pair: (JANUARY + pair[0] * DAY, JANUARY + sum(pair) * DAY)
    ),
    max_size=8,
)


@given(pauses)
def test_the_most_paused_year_is_found(taken: list[tuple[date, date]]) -> None:
    def paused(day: date) -> bool:
        return any(first <= day <= last for first, last in taken)

    starts = {first for first, _ in taken}
    counted = [sum(paused(start + n * DAY) for n in range(365)) for start in starts]
    assert paused_dates_a_year(taken) >= max(counted, default=0)
    assert paused_dates_a_year(taken) <= sum(paused(JANUARY + n * DAY) for n in range(1600))


@given(st.data(), bases)
def test_a_returned_freeze_leaves_the_streak_as_it_was_and_takes_one_freeze(
    data: st.DataObject, base: date
) -> None:
    days = data.draw(st.lists(near(base), min_size=1, max_size=20))
    cover = data.draw(covers(base))
    granted, today = data.draw(near(base)), max(days) + data.draw(st.integers(0, 30)) * DAY
    held = Cover(net_freezes([*cover.freezes, (granted, 1)]), cover.pauses, cover.skipped)
    streak = fold(days, held)
    gone = revocation_date(streak, held, granted, today)
    after = Cover(net_freezes([*held.freezes, (gone, -1)]), cover.pauses, cover.skipped)
    assert fold(days, after) == streak
    if granted <= today:
        before, then = shown_streak(streak, held, today), shown_streak(streak, after, today)
        assert then.spent == before.spent
        assert then.freezes_available == before.freezes_available - 1
