"""Rules 2 and 3 for any history: the streak agrees with a walk over every date."""

from datetime import date, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from rules.engagement.account_state import DateReason, Profile, explain_date
from rules.engagement.streak import (
    Cover,
    Streak,
    advance,
    fold,
    lapse_date,
    shown_streak,
)
from tests.support.engagement_strategies import histories, near
from tests.support.examples import examples

DAY = timedelta(days=1)


def rests(cover: Cover, day: date) -> bool:
    """Whether a date is a rest date, read once more from the lists."""
    rules = [rules for since, rules in cover.rest.terms if since <= day]
    chosen = [weekdays for since, weekdays in cover.rest.chosen if since <= day]
    if not rules:
        return False
    if rules[-1].chosen_max:
        return bool(chosen) and day.weekday() in chosen[-1][: rules[-1].chosen_max]
    return day.weekday() in rules[-1].rest_days


def walked(days: list[date], cover: Cover, until: date | None = None) -> tuple[int, int, list[date]]:
    """The same answer by another way: every date one by one, with the freezes held counted up and down."""
    length = longest = held = 0
    spent: list[date] = []
    active = set(days)
    changes = dict.fromkeys((day for day, _ in cover.freezes), 0)
    for day, change in cover.freezes:
        changes[day] += change
    first = min([*active, *changes])
    last = max(active) if until is None else until - DAY
    day = first
    while day <= last:
        held += changes.get(day, 0)
        if day in active:
            length += 1
            longest = max(longest, length)
        elif (
            length
            and day not in cover.skipped
            and not any(a <= day <= b for a, b in cover.pauses)
            and not rests(cover, day)
        ):
            if held > 0:
                held -= 1
                spent.append(day)
            else:
                length = 0
        day += DAY
    return length, longest, spent


@given(histories())
def test_folding_is_advancing_one_by_one(history: tuple[list[date], Cover]) -> None:
    days, cover = history
    state: Streak | None = None
    for day in sorted(days):
        state = advance(state, day, cover)
        assert state == fold([each for each in days if each <= day], cover)
    assert state == fold(days, cover)


@settings(max_examples=examples(200))
@given(histories(days_min=1))
def test_the_streak_is_what_a_walk_over_every_date_finds(history: tuple[list[date], Cover]) -> None:
    days, cover = history
    streak = fold(days, cover)
    assert streak
    length, longest, spent = walked(days, cover)
    assert (streak.length, streak.longest, list(streak.spent)) == (length, longest, spent)
    assert streak.active_days == len(set(days))
    assert streak.last == max(days)


@settings(max_examples=examples(200))
@given(histories(days_min=1), st.integers(0, 40))
def test_what_shows_on_a_date_is_what_a_walk_up_to_it_finds(
    history: tuple[list[date], Cover], later: int
) -> None:
    days, cover = history
    streak = fold(days, cover)
    assert streak
    as_of = streak.last + timedelta(days=later)
    shown = shown_streak(streak, cover, as_of)
    if later:
        length, longest, spent = walked(days, cover, until=as_of)
    else:
        length, longest, spent = walked(days, cover)
    assert (shown.current, shown.longest, list(shown.spent)) == (length, longest, spent)
    held = sum(change for day, change in cover.freezes if day <= as_of)
    assert shown.freezes_available == held - len(spent)


@settings(max_examples=examples(200))
@given(histories(days_min=1))
def test_the_lapse_date_is_the_first_on_which_the_streak_shows_0(history: tuple[list[date], Cover]) -> None:
    days, cover = history
    streak = fold(days, cover)
    assert streak
    lapses = lapse_date(streak, cover)
    day = streak.last
    while day < lapses:
        assert shown_streak(streak, cover, day).current == streak.length
        day += DAY
    for later in range(60):
        assert shown_streak(streak, cover, lapses + later * DAY).current == 0


@settings(max_examples=examples(200))
@given(histories(days_min=1), st.data())
def test_the_explanation_agrees_with_the_walk(history: tuple[list[date], Cover], data: st.DataObject) -> None:
    days, cover = history
    asked = data.draw(near(min(days), 50))
    today = max(days) + timedelta(days=60)
    upto = fold((day for day in days if day <= asked), cover)
    reason, length = explain_date(upto, Profile("ann", cover=cover), asked, today)
    _, _, spent = walked(days, cover, until=today)
    assert (reason is DateReason.COUNTED) is (asked in days)
    assert (reason is DateReason.FREEZE) is (asked in spent)
    shown = shown_streak(upto, cover, asked + DAY if reason is DateReason.MISSED else asked)
    assert length == shown.current, "as the profile shows it"
