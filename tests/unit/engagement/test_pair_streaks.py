"""Streaks of friends: against a plain reading, date by date."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.days import DAY
from rules.engagement.account_state import Profile, date_at
from rules.engagement.brought_forward import bring_forward
from rules.engagement.pair_streaks import (
    FIRST,
    ActiveDates,
    Friend,
    SettledDates,
    dense_dates,
    first_date,
    need_of,
    pair_streak,
    pair_today,
    run_reaches,
)
from rules.engagement.streak import Checkpoint, Cover, fold
from tests.support.effort import effort

BEGIN = date(2026, 3, 1)
DATES = [BEGIN + timedelta(days=number) for number in range(100)]
ZONES = ["Pacific/Kiritimati", "Asia/Tokyo", "UTC", "America/New_York", "Etc/GMT+12"]
Person = tuple[set[date], Cover, str]  # active dates, what protects them, and the zone
PLACES = st.integers(0, len(DATES) - 1)


def plain_streak(people: Sequence[tuple[AbstractSet[date], Cover]], first: date, today: date) -> int:
    """Return the length of a pair's streak, date by date. people: (active dates, cover) of each."""
    misses: set[date] = set()
    for active, cover in people:
        begun, spent = False, 0
        is_over = False  # the run has ended, so no freeze is spent before it begins anew
        day = BEGIN
        while day < today:
            if day in active:
                begun, is_over = True, False
            elif begun and not cover.is_neutral(day):
                if not is_over and cover.granted(day) > spent:
                    spent += 1
                else:
                    is_over = True
                    misses.add(day)
            elif not begun or is_over:
                misses.add(day)
            day += DAY
    length, day = 0, first
    while day <= today:
        if day in misses:
            length = 0
        elif all(day in active for active, _ in people):
            length += 1
        day += DAY
    return length


@st.composite
def persons(draw: st.DrawFn) -> Person:
    """Return active dates, mostly dense, what protects them, and a zone."""
    missed = draw(st.sets(PLACES, max_size=12))
    is_dense = draw(st.booleans())
    active = {day for number, day in enumerate(DATES) if (number in missed) != is_dense}
    freezes = draw(st.dictionaries(PLACES, st.integers(1, 2), max_size=3))
    pauses = draw(st.lists(st.tuples(PLACES, st.integers(0, 5)), max_size=2))
    cover = Cover(
        freezes=tuple(sorted((DATES[number], change) for number, change in freezes.items())),
        pauses=tuple(
            sorted((DATES[number], DATES[number] + timedelta(days=more)) for number, more in pauses)
        ),
        skipped=frozenset(DATES[number] for number in draw(st.sets(PLACES, max_size=2))),
    )
    return active, cover, draw(st.sampled_from(ZONES))


def profile_of(
    user: str, person: Person, now: datetime, is_brought_forward: bool
) -> tuple[Profile, set[date]]:
    active, cover, zone = person
    local = date_at(Profile(user, chosen_zone=zone), now)
    done = {day for day in active if day <= local}
    profile = Profile(user, streak=fold(done, cover), cover=cover, chosen_zone=zone)
    if is_brought_forward and profile.streak and profile.streak.checkpoints:
        start = profile.streak.checkpoints[0]
        if (profile.streak.last - start.last).days > 10:
            profile = bring_forward(profile, start)
    return profile, done


@settings(max_examples=effort(300, soak=20_000), deadline=None)
@given(persons(), persons(), PLACES, PLACES, st.integers(0, 23), st.booleans())
def test_the_streak_of_a_pair_is_that_of_a_plain_reading(
    one: Person, other: Person, since: int, until: int, hour: int, is_brought_forward: bool
) -> None:
    now = datetime.combine(DATES[until], time(hour), UTC)
    (profile, done), (other_profile, other_done) = (
        profile_of(user, person, now, is_brought_forward) for user, person in (("ann", one), ("bob", other))
    )
    first, today = DATES[since], pair_today(profile, other_profile, now)
    run_first = max(run_reaches(profile, today), run_reaches(other_profile, today))

    def friend(profile: Profile, done: set[date]) -> Friend:
        need = need_of(profile, first, run_first, today)
        known = ActiveDates.of(done).between(need.first, need.last) if need else ActiveDates()
        return Friend(profile, known | dense_dates(profile))

    found = pair_streak(friend(profile, done), friend(other_profile, other_done), first, today)
    people = [
        ({day for day in active if day <= today}, cover)
        for (active, cover), active in (((one[0], one[1]), done), ((other[0], other[1]), other_done))
    ]
    assert found.length == plain_streak(people, first, today)
    assert found.active_today == (today in done, today in other_done)
    if found.length == 0:
        assert not found.is_at_risk


def test_who_lives_ahead_and_has_missed_the_pairs_today_keeps_the_streak_until_it_is_over() -> None:
    now = datetime(2026, 3, 31, 14, tzinfo=UTC)  # April on Kiritimati, with a checkpoint behind it
    active = {each for each in DATES if each not in (date(2026, 3, 25), date(2026, 3, 31))}
    ahead, done = profile_of("eve", (active, Cover(), "Pacific/Kiritimati"), now, False)
    behind, behind_done = profile_of("cid", (active, Cover(), "America/New_York"), now, False)
    today, first = pair_today(ahead, behind, now), BEGIN
    run_first = max(run_reaches(ahead, today), run_reaches(behind, today))
    friends: list[Friend] = []
    for profile, dates in ((ahead, done), (behind, behind_done)):
        need = need_of(profile, first, run_first, today)
        assert need
        known = ActiveDates.of(dates).between(need.first, need.last)
        friends.append(Friend(profile, known | dense_dates(profile)))
    assert today == date(2026, 3, 31)
    assert pair_streak(friends[0], friends[1], first, today).length == 5


@given(st.sets(st.integers(0, 4000)), st.integers(0, 50), st.integers(0, 4000), st.integers(0, 4000))
def test_a_set_of_dates_is_what_it_was_made_of(places: set[int], number: int, first: int, last: int) -> None:
    days = {FIRST + timedelta(days=place) for place in places}
    dates = ActiveDates.of(days)
    assert list(dates) == sorted(days)
    assert len(dates) == len(days)
    assert list(dates.newest(number)) == sorted(days)[len(days) - min(number, len(days)) :]
    begin, end = FIRST + timedelta(days=first), FIRST + timedelta(days=last)
    assert set(dates.between(begin, end)) == {day for day in days if begin <= day <= end}
    assert all(day in dates for day in days)
    assert FIRST - DAY not in dates


def test_settled_dates_are_read_as_they_were_written_and_a_late_change_voids_them() -> None:
    dates = ActiveDates.of([date(2026, 3, 2), date(2026, 3, 9)])
    settled = SettledDates(date(2026, 3, 1), date(2026, 4, 1), "2026-04-09T10:00:00.000000Z", dates)
    assert SettledDates.of(settled.text) == settled
    profile = Profile("ann")
    assert settled.is_usable(profile, date(2026, 3, 1))
    assert not settled.is_usable(profile, date(2026, 2, 28))
    late = replace(profile, past_entry="2026-04-10T10:00:00.000000Z")
    assert not settled.is_usable(late, date(2026, 3, 1))
    with pytest.raises(ValueError, match="edition"):
        SettledDates.of(settled.text.replace("1 ", "0 ", 1))


def test_dates_of_an_imported_streak_count_for_no_pair() -> None:
    opening = Checkpoint(date(2026, 3, 10), 40, 40, 40, 0)
    cover = Cover(opening=opening)
    days = [date(2026, 3, 9), date(2026, 3, 11), date(2026, 3, 12)]
    imported = Profile("ann", streak=fold(days, cover), cover=cover)
    other = Profile("bob", streak=fold([*days, date(2026, 3, 10)], Cover()))
    assert imported.streak
    assert imported.streak.length == 42
    both = Friend(imported, ActiveDates.of(days)), Friend(other, ActiveDates.of([*days, date(2026, 3, 10)]))
    assert pair_streak(*both, date(2026, 3, 1), date(2026, 3, 12)).length == 2


def test_the_first_date_of_a_pair_is_the_date_in_utc() -> None:
    assert first_date("2026-03-01T23:59:59.000000Z") == date(2026, 3, 1)
    assert first_date("2026-03-02T00:00:00.000000Z") == date(2026, 3, 2)


def test_today_of_a_pair_lasts_until_the_later_midnight() -> None:
    east, west = Profile("ann", chosen_zone="Asia/Tokyo"), Profile("bob", chosen_zone="America/New_York")
    assert pair_today(east, west, datetime(2026, 3, 2, 4, 59, tzinfo=UTC)) == date(2026, 3, 1)
    assert pair_today(east, west, datetime(2026, 3, 2, 5, 0, tzinfo=UTC)) == date(2026, 3, 2)
