"""A profile is brought forward, stays small, and answers as one that keeps everything."""

from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.engagement.account_items import profile_from
from adapters.platform.items import decode_item, item_bytes
from rules.days import DAY
from rules.engagement.account_state import Profile
from rules.engagement.brought_forward import bring_forward, brought_forward_as, whole_profile
from rules.engagement.ledger import Head
from rules.engagement.packed_dates import unpack_dates, unpack_spans
from rules.engagement.reconciliation import profile_of
from rules.engagement.streak import (
    BroughtForward,
    Checkpoint,
    Cover,
    Streak,
    advance,
    fold,
    is_consistent_streak,
    net_freezes,
    resumed_streak,
    revocation_date,
    shown_streak,
)
from tests.support.account_world import World, grant, revoke
from tests.support.engagement_strategies import event
from tests.support.examples import examples
from tests.support.short_profiles import ShortWorld, keep_profiles_short, protection_of, shown, with_pause

BASE = date(2024, 1, 20)
WRITE_UNIT_BYTES = 1024


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_profiles_short(monkeypatch)


def noon(day: date) -> datetime:
    return datetime.combine(day, time(12), UTC)


# ---- years


def four_years(seed: int) -> tuple[ShortWorld, Profile, set[date], int]:
    """Return a user of four years with 600 freezes spent and 40 pauses, and texts as long as they come.

    Also the profile that keeps everything, the active dates, and the largest size of the profile's item.
    """
    chance = Random(seed)
    world, largest = ShortWorld(), 0
    dates: set[date] = set()
    plain_one = world.profile = Profile(
        "u" * 36,
        chosen_zone="America/Argentina/Buenos_Aires",
        observed_zone="America/Argentina/Buenos_Aires",
        observed_at="2026-03-01T23:58:00.000000Z#ac815fe5-9e4a-5e2b-9e6b-1263af0034a7",
        tz_changes=(("2026-03-01T12:00:00.000000+00:00", "America/Argentina/Buenos_Aires"),),
        zones_seen=(("2026-03-01T23:58:00.000000Z", "America/Argentina/Buenos_Aires"),),
        applied_through="2026-03-01T00:00:00.000/300000000000000499659",
        updated_at="2026-03-01T12:00:00.000000+00:00",
        alias="a name for the boards",
    )
    day = first = date(2016, 1, 1)
    while (day - first).days < 1461:
        spent = len(plain_one.streak.spent) if plain_one.streak else 0
        held = shown_streak(plain_one.streak, plain_one.cover, day).freezes_available
        changed = [plain_one, world.profile]
        if held < 3:  # to be used up tomorrow and after
            changed = [with_freezes(each, day, 5 - held) for each in changed]
        if (day - first).days % 36 == 20:
            last = day + DAY * chance.randrange(3)
            changed = [with_pause(each, day, last) for each in changed]
        # The harder it is to spend 2,000 freezes, the more dates are missed.
        if (day - first).days < 3 or held < 2 or chance.random() > (0.64 if spent < 2000 else 0.05):
            dates.add(day)
            changed = [active(each, day) for each in changed]
        if changed[0] is not plain_one:
            plain_one = changed[0]
            world.put(changed[1])
            largest = max(largest, item_bytes(world.written))
        day += DAY
    return world, plain_one, dates, largest


def with_freezes(profile: Profile, day: date, count: int) -> Profile:
    freezes = net_freezes([*profile.cover.freezes, (day, count)])
    return replace(profile, cover=replace(profile.cover, freezes=freezes), version=profile.version + 1)


def active(profile: Profile, day: date) -> Profile:
    head = Head(f"{day}T12:00:00.000001Z", profile.version, profile.total_points)
    streak = advance(profile.streak, day, profile.cover)
    points = profile.total_points + 30
    return replace(profile, streak=streak, head=head, total_points=points, version=profile.version + 1)


def test_after_years_with_600_freezes_and_40_pauses_a_profile_is_below_a_kilobyte() -> None:
    world, kept, dates, largest = four_years(1)
    assert kept.streak
    assert len(kept.streak.spent) >= 600
    assert len(kept.cover.pauses) >= 40
    assert largest < WRITE_UNIT_BYTES
    assert 0 < world.brought <= 12 * 4  # once a month at most
    assert is_consistent_streak(world.profile.streak, world.profile.cover)  # type: ignore[arg-type]
    entries = protection_of(kept)
    assert whole_profile(world.profile, entries) == kept
    assert kept.streak == fold(dates, kept.cover)
    now = noon(kept.streak.last)
    for asked in Random(2).sample([kept.streak.last - DAY * n for n in range(1460)], 30):
        found = shown(world.profile, entries, dict.fromkeys(dates), asked, now)
        assert found == shown(kept, (), dict.fromkeys(dates), asked, now)


def test_a_user_of_ten_years_without_freezes_is_brought_forward_once() -> None:
    world = ShortWorld()
    for number in range(3652):
        world.put(active(world.profile, date(2016, 1, 1) + DAY * number))
        assert item_bytes(world.written) < WRITE_UNIT_BYTES
    assert world.brought <= 2


# ---- the same answers


days = st.integers(0, 150).map(lambda number: BASE + timedelta(days=number))
steps = st.one_of(
    st.tuples(st.just("events"), st.sets(days, min_size=1, max_size=25)),
    st.tuples(st.just("run"), st.tuples(days, st.integers(10, 60))),
    st.tuples(st.just("grant"), days),
    st.tuples(st.just("return"), days),
    st.tuples(st.just("pause"), st.tuples(days, st.integers(0, 4))),
    st.tuples(st.just("apia"), days),
)


def take(world: World, step: tuple[str, Any], number: int) -> None:
    """Let something happen to a user."""
    kind, what = step
    match kind, what:
        case "events", set(some):
            world.apply([event(f"{day}", day) for day in sorted(some)])
        case "run", (first, length):
            for n in range(length):
                world.apply([event(f"{first + DAY * n}", first + DAY * n)])
        case "apia", day:
            world.apply([event(f"a{number}", day, zone="Pacific/Apia")])
        case "grant", day:
            world.apply(commands=[grant(day)] * 2)
        case "return", day:
            granted = [
                each.draft.freeze_date for each in world.entries if each.draft.freeze == "freeze_granted"
            ]
            if granted:
                since = date.fromisoformat(str(granted[number % len(granted)]))
                profile = world.reaching(since)
                world.apply(commands=[revoke(revocation_date(profile.streak, profile.cover, since, day))])
        case "pause", (first, length):
            if world.profile.streak is None or first >= world.profile.streak.last:
                world.set(with_pause(world.profile, first, first + DAY * length))


@settings(max_examples=examples(60))
@given(st.lists(steps, min_size=3, max_size=14), st.lists(days, min_size=1, max_size=8))
@pytest.mark.usefixtures("eager")
def test_whatever_happens_all_answers_are_those_of_a_profile_that_keeps_everything(
    history: list[tuple[str, Any]], asked: list[date]
) -> None:
    kept, world = World(), ShortWorld()
    for number, step in enumerate(history):
        take(kept, step, number)
        take(world, step, number)
        whole = world.whole()
        assert without_marks(whole) == without_marks(kept.profile)
        assert [each.draft for each in world.entries] == [each.draft for each in kept.entries]
        if kept.profile.streak and whole.streak:
            sums = world.profile.cover.brought_forward
            since = sums.start.last if sums else date.min
            used = sums.freezes_used if sums else 0
            assert world.profile.streak.checkpoints == tuple(  # type: ignore[union-attr]
                replace(each, freezes_used=each.freezes_used - used)
                for each in kept.profile.streak.checkpoints
                if each.last > since
            )
            now = noon(kept.profile.streak.last)
            for day in asked:
                found = shown(world.profile, world.entries, kept.days, day, now)
                assert found == shown(kept.profile, (), kept.days, day, now)
    kept.check()
    settings_only = replace(world.whole(), streak=None)
    assert profile_of(settings_only, world.entries) == without_marks(world.whole())


def without_marks(profile: Profile) -> Profile:
    return replace(profile, cover=replace(profile.cover, pauses=tuple(sorted(profile.cover.pauses))))


@pytest.mark.usefixtures("eager")
def test_a_profile_is_brought_forward_at_all() -> None:
    world = ShortWorld()
    for step in (("grant", BASE), ("run", (BASE + DAY * 2, 60)), ("run", (BASE + DAY * 70, 20))):
        take(world, step, 0)
    assert world.brought
    assert world.profile.cover.brought_forward


# ---- the item


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01 99999999",
        "2026-01-01 99999999999",
        "2026-01-01/99999999",
        "2026-01-01/99999999999",
        "9999-12-31/1",
        "2026-01-01 1/x",
        "2026-01-01 1+99999999999 9999999",
        "2026-01-01/-1",
        "x",
    ],
)
def test_a_text_without_dates_is_a_value_error(text: str) -> None:
    for read in (unpack_dates, unpack_spans, BroughtForward.of):
        with pytest.raises(ValueError, match=r"."):
            read(text)


@given(st.sets(days, min_size=2, max_size=60), st.lists(st.tuples(days, st.sampled_from([-1, 1, 3]))))
def test_the_ledger_makes_a_profile_whole_and_its_sums_are_right(
    active_dates: set[date], freezes: list[tuple[date, int]]
) -> None:
    cover = Cover(net_freezes(freezes), ((BASE - DAY * 500, BASE - DAY * 490), (BASE, BASE + DAY)))
    streak = fold(active_dates, cover)
    assert streak
    profile = Profile("u", 1, streak=streak, cover=cover)
    until = sorted(active_dates)[len(active_dates) // 2 - 1]
    for first in (until, min(active_dates)):  # in one step, and in two
        short = brought_forward_as(profile, begun_at(first), fold(upto(active_dates, first), cover))
        start = fold(upto(active_dates, until), cover)
        assert start and short.streak and short.cover.brought_forward
        if first < until:
            used = start.spent[short.cover.brought_forward.freezes_used :]
            short = bring_forward(short, replace(start, spent=used).checkpoint)
        assert short == brought_forward_as(profile, begun_at(until), start)
        assert whole_profile(short, protection_of(profile)) == profile
        assert len(short.cover.pauses) == 1
        short_streak = short.streak
        for later in (streak.last + DAY * n for n in range(9)):
            shown_one = shown_streak(short_streak, short.cover, later)
            assert shown_one.current == shown_streak(streak, cover, later).current
            assert shown_one.freezes_available == shown_streak(streak, cover, later).freezes_available


def upto(dates: set[date], last: date) -> set[date]:
    return {day for day in dates if day <= last}


def begun_at(day: date) -> Profile:
    return Profile("u", cover=Cover(brought_forward=BroughtForward(Checkpoint(day, 1, 1, 1, 0), 0)))


def test_a_fold_from_the_start_gives_the_same_streak_and_checkpoints() -> None:
    dates = [date(2024, 1, 1) + DAY * number for number in range(80)]
    streak = fold(dates, Cover())
    assert streak
    short = bring_forward(Profile("u", streak=streak), streak.checkpoints[0])
    start = resumed_streak(short.streak, short.cover, date(2024, 2, 5))
    assert start and start.last == date(2024, 1, 31)
    again = fold((day for day in dates if day > start.last), short.cover, start)
    assert again == short.streak
    assert again and short.streak and again.checkpoints == short.streak.checkpoints


def test_a_profile_that_was_brought_forward_reads_back() -> None:
    sums = BroughtForward(Checkpoint(BASE, 5, 8, 40, 0), -1, 7)
    cover = Cover(
        ((BASE + DAY, 2), (BASE + DAY * 3, -1)), ((BASE, BASE + DAY),), frozenset([BASE + DAY * 9]), sums
    )
    streak = Streak(BASE + DAY * 9, 3, 8, 45, (BASE + DAY * 2, BASE + DAY * 6), ())
    profile = Profile("u", 3, streak=streak, cover=cover, updated_at="2026-03-01T12:00:00+00:00")
    world = ShortWorld()
    world.put(profile)
    assert profile_from(decode_item(world.written)) == profile
    assert is_consistent_streak(streak, cover)
    for wrong in (
        replace(sums.start, active_days=45),
        replace(sums.start, longest=9),
        replace(sums.start, length=0),
    ):
        assert not is_consistent_streak(streak, replace(cover, brought_forward=replace(sums, start=wrong)))
