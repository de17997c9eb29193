"""A fold that goes on from a settled state gives what folding all dates gives, whatever cover has changed."""

from datetime import date, timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from rules.days import DAY
from rules.engagement.streak import Cover, advance, cover_until, fold, is_still_settled

BASE = date(2026, 3, 1)
days = st.integers(0, 20).map(lambda number: BASE + timedelta(days=number))
freezes = st.dictionaries(days, st.sampled_from([-1, 1, 2]), max_size=4).map(lambda held: tuple(held.items()))
pauses = st.lists(st.tuples(days, days).map(lambda pair: (min(pair), max(pair))), max_size=2).map(tuple)
covers = st.builds(Cover, freezes, pauses, st.frozensets(days, max_size=2))


@given(active=st.sets(days), cover=covers, last=days)
@example({BASE, BASE + 2 * DAY}, Cover(skipped=frozenset({BASE + DAY})), BASE + 5 * DAY)
def test_what_of_a_cover_is_later_changes_nothing_before(active: set[date], cover: Cover, last: date) -> None:
    before = [day for day in active if day <= last]
    assert fold(before, cover_until(cover, last)) == fold(before, cover)


@given(active=st.sets(days), before=covers, other=covers, last=days, keeps=st.booleans(), gone=st.sets(days))
def test_what_is_still_settled_can_be_folded_on(
    active: set[date], before: Cover, other: Cover, last: date, keeps: bool, gone: set[date]
) -> None:
    now = other
    if keeps:  # only later cover has changed, and some freezes are gone
        now = Cover(
            (
                *((day, change - (day in gone)) for day, change in before.freezes if day <= last),
                *(each for each in other.freezes if each[0] > last),
            ),
            before.pauses,
            before.skipped,
        )
    state = fold((day for day in active if day <= last), before)
    if not is_still_settled(state, cover_until(before, last), cover_until(now, last)):
        return
    for day in sorted(day for day in active if day > last):
        state = advance(state, day, now)
    assert state == fold(active, now)
