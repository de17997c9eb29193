"""Rule 20: a position is as if what it tells had happened here, whatever comes before it or after it."""

import math
import random
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.book.daily import DailyRules, Weekday
from rules.days import DAY
from rules.engagement.account_state import History, NeedsHistory, Profile
from rules.engagement.events import InputRefused
from rules.engagement.ledger import EntryKind, Setting
from rules.engagement.lots import SettlementBasis, settlement_of
from rules.engagement.opening_positions import (
    OpeningPosition,
    has_position,
    position_of,
    with_position,
)
from rules.engagement.period_points import OPENING_TYPE
from rules.engagement.reconciliation import days_of, ledger_faults, profile_of
from rules.engagement.rest_days import RestDays
from rules.engagement.streak import Cover, Streak, advance, fold, shown_streak
from tests.support.account_world import World
from tests.support.engagement_strategies import bases, covers, event, near
from tests.support.examples import examples

D = date(2026, 6, 10)


def position(**more: Any) -> OpeningPosition:
    told = OpeningPosition("u", D, D, 4, 9, 20, {date(2027, 1, 1): 30, None: 5}, 2)
    return replace(told, **more)


def figures(streak: Streak | None) -> tuple[date, int, int, int] | None:
    return (streak.last, streak.length, streak.longest, streak.active_days) if streak else None


@settings(max_examples=examples(100))
@given(st.data())
def test_a_fold_from_a_position_is_the_fold_of_the_whole_history(data: st.DataObject) -> None:
    """Whoever is told of up to a date, and comes on from there, has what the whole history would have given."""
    base = data.draw(bases)
    days = sorted(data.draw(st.sets(near(base, 40), min_size=1)))
    cover = data.draw(covers(base))
    on = data.draw(st.sampled_from(days))
    before = fold([each for each in days if each <= on], cover)
    assert before
    left = cover.granted(on) - len(before.spent)
    later = tuple(each for each in cover.freezes if each[0] > on)
    freezes = tuple(sorted([*([(on, left)] if left else []), *later]))
    opening = replace(before.checkpoint, freezes_used=0)
    brought = Cover(freezes, cover.pauses, cover.skipped, opening=opening, rest=cover.rest)
    whole, told = fold(days, cover), fold(data.draw(st.permutations(days)), brought)
    assert figures(told) == figures(whole)
    assert whole
    assert told
    as_of = whole.last + data.draw(st.integers(0, 9)) * DAY
    one, other = shown_streak(whole, cover, as_of), shown_streak(told, brought, as_of)
    assert (one.current, one.status, one.freezes_available) == (
        other.current,
        other.status,
        other.freezes_available,
    )
    state: Streak | None = None
    for day in days:
        state = advance(state, day, brought)
    assert state == told


def move(world: World, told: OpeningPosition) -> bool:
    account = world.account([told.as_of])
    if has_position(account, told):
        return False
    world.now += timedelta(seconds=1)
    try:
        decision = with_position(account, told, world.now)
    except NeedsHistory:
        active = [day for day, each in world.days.items() if each.is_active]
        decision = with_position(replace(account, history=History(active)), told, world.now)
    world.entries += decision.entries
    world.days |= decision.days
    world.put(decision.profile)
    return True


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32), place=st.integers(0, 6))
def test_a_position_may_come_before_among_or_after_the_events(seed: int, place: int) -> None:
    chance = random.Random(seed)
    days = [D + timedelta(days=chance.randrange(-3, 12)) for _ in range(6)]
    events = [event(f"k{number}", day) for number, day in enumerate(days)]
    world = World()
    for number, each in enumerate(events):
        if number == place:
            assert move(world, position())
        world.apply([each])
    assert move(world, position()) == (place >= len(events))
    assert not move(world, position())
    other = World()
    move(other, position())
    other.apply(events)
    assert figures(world.profile.streak) == figures(other.profile.streak)
    assert world.profile.balance == other.profile.balance
    for made in (world, other):
        entries = [replace(each, active=each is made.entries[-1]) for each in made.entries]
        assert ledger_faults(entries) == []
        through = made.entries[-1].applied_through
        assert profile_of(made.profile, made.entries) == replace(made.profile, applied_through=through)
        assert days_of(made.entries) == {day.isoformat(): kept for day, kept in made.days.items()}


def test_lots_and_freezes_are_entries_and_the_streak_is_where_the_fold_begins() -> None:
    world = World()
    move(world, position())
    assert [(e.draft.kind, e.draft.points, e.draft.expires_on) for e in world.entries] == [
        (EntryKind.OPEN, 0, None),
        (EntryKind.EARN, 30, "2027-01-01"),
        (EntryKind.EARN, 5, None),
        (EntryKind.ADJUST, 0, None),
        (EntryKind.ADJUST, 0, None),
        (EntryKind.SETTING, 0, None),
    ]
    assert {e.draft.event_type for e in world.entries[1:3]} == {OPENING_TYPE}
    assert world.profile.expiry.first_unsettled == date(2027, 1, 1)
    seen = shown_streak(world.profile.streak, world.profile.cover, D + 3 * DAY)
    assert (seen.current, seen.longest, seen.active_days, seen.freezes_available) == (4, 9, 20, 0)
    assert shown_streak(world.profile.streak, world.profile.cover, D + 4 * DAY).current == 0


def test_points_that_were_earned_and_are_gone_count_as_earned_and_cannot_be_spent() -> None:
    """A settlement finds nothing more to write; the lots that are left expire as ever."""
    world = World()
    move(world, position(earned=1035))
    assert (world.profile.total_points, world.profile.balance) == (1035, 35)
    gone = [each.draft for each in world.entries if each.draft.expires_on == "2026-06-08"]
    assert [(each.kind, each.points) for each in gone] == [(EntryKind.EARN, 1000), (EntryKind.EXPIRE, -1000)]
    assert ledger_faults([replace(each, active=each is world.entries[-1]) for each in world.entries]) == []
    lots = {date(2026, 6, 8): 1000, date(2027, 1, 1): 30}
    for now, more in ((datetime(2026, 6, 11, tzinfo=UTC), 0), (datetime(2027, 1, 1, 12, tzinfo=UTC), 30)):
        profile = world.profile
        basis = SettlementBasis(profile.expiry, profile.balance, profile.total_points, lots, world.entries)
        assert sum(-each.points for each in settlement_of(basis, now).drafts) == more
    assert not move(world, position(earned=1035))
    plain = World()
    move(plain, position())
    assert plain.profile.total_points == 35, "without the column, the balance"


def test_freezes_that_were_spent_on_what_a_position_tells_come_back() -> None:
    world = World()
    world.apply([event("a", D - 3 * DAY)])
    world.apply([event("b", D)])
    move(world, position(freezes=0))
    assert world.profile.streak
    assert world.profile.streak.length == 4


def test_rest_days_that_were_chosen_elsewhere_count_from_the_position_on() -> None:
    """The 10th is a Wednesday. Thursdays and Fridays are rest days, if the book lets users choose two."""
    chosen = (Weekday.THURSDAY, Weekday.FRIDAY)
    worlds = []
    for place in (0, 1):
        world = World(
            profile=Profile("u", cover=Cover(rest=RestDays(((date.min, DailyRules(chosen_max=2)),))))
        )
        told = position(freezes=0, rest_days=chosen)
        later = [event("a", D + 3 * DAY)]
        if place:
            world.apply(later)
        assert move(world, told)
        if not place:
            world.apply(later)
        assert not move(world, told)
        worlds.append(world)
        assert world.profile.cover.rest.chosen == ((D, chosen),)
        assert figures(world.profile.streak) == (D + 3 * DAY, 5, 9, 21)
        settings_ = [each.draft.set_to for each in world.entries if each.draft.setting is Setting.REST_DAYS]
        assert settings_ == ["2026-06-10 thursday friday"]
        assert profile_of(world.profile, world.entries).cover == world.profile.cover
    plain = World()
    move(plain, position(freezes=0))
    plain.apply([event("a", D + 3 * DAY)])
    assert plain.profile.streak
    assert plain.profile.streak.length == 1


@pytest.mark.parametrize("written", [["saturday", "sunday"], "saturday sunday", "sunday  saturday"])
def test_rest_days_may_be_written_as_a_list_or_in_a_cell(written: Any) -> None:
    found = position_of({**GOOD, "rest_days": written}, date(2026, 6, 11))
    assert found.rest_days == (Weekday.SATURDAY, Weekday.SUNDAY)
    assert position_of({**GOOD, "rest_days": ""}, date(2026, 6, 11)).rest_days == ()


def test_who_has_another_position_or_a_history_is_refused() -> None:
    world = World()
    move(world, position())
    with pytest.raises(InputRefused, match="another position"):
        move(world, position(streak=5))
    world = World()
    world.apply([event("a", D - 30 * DAY)])
    with pytest.raises(InputRefused, match="a history here since 2026-05-11"):
        move(world, position())


GOOD = {"user_id": "ann", "as_of": "2026-06-10", "streak": "4", "longest": 9, "last_date": "2026-06-09"}


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("user_id", {"user_id": "Ann B"}),
        ("as_of", {"as_of": "10.06.2026"}),
        ("as_of", {"as_of": "2026-06-13"}),
        ("streak", {"streak": -1}),
        ("streak", {"streak": "4.5"}),
        ("streak", {"streak": 0}),
        ("longest", {"longest": 3}),
        ("longest", {"longest": 30_000}),
        ("last_date", {"last_date": "2026-06-11"}),
        ("last_date", {"last_date": "2026-06-07"}),
        ("active_days", {"active_days": 5}),
        ("balance", {"balance": True}),
        ("balance", {"balance": 6, "lots": {"never": 5}}),
        ("lots", {"lots": {"2026-06-10": 5}}),
        ("lots", {"lots": {"soon": 5}}),
        ("lots", {"lots": "[1]"}),
        ("lots", {"lots": {"never": -5}}),
        ("earned", {"balance": 5, "earned": 4}),
        ("earned", {"lots": {"never": 5}, "earned": "0"}),
        ("earned", {"earned": 1.5}),
        ("freezes", {"freezes": 31}),
        ("achievements", {"achievements": {"a": "yesterday"}}),
        ("rest_days", {"rest_days": ["Saturday"]}),
        ("rest_days", {"rest_days": "saturday,sunday"}),
        ("rest_days", {"rest_days": {"saturday": True}}),
        ("rest_days", {"rest_days": [1]}),
        ("rest_days", {"rest_days": ["monday"] * 7}),
        ("level", {"level": 3}),
    ],
)
def test_a_row_that_cannot_be_is_refused_with_its_field(field: str, change: dict[str, Any]) -> None:
    assert position_of(GOOD, date(2026, 6, 11)).streak == 4
    since_1970 = (date.fromisoformat(str(GOOD["last_date"])) - date(1970, 1, 1)).days + 1
    assert position_of({**GOOD, "longest": since_1970}, date(2026, 6, 11)).longest == since_1970
    with pytest.raises(InputRefused) as refused:
        position_of({**GOOD, **change}, date(2026, 6, 11))
    assert refused.value.field == field


def test_a_position_without_a_user_is_refused() -> None:
    with pytest.raises(InputRefused, match="user_id is missing"):
        position_of(GOOD | {"user_id": ""}, date(2026, 6, 11))


@pytest.mark.parametrize(
    "user_id",
    [
        *("4.91771E+12", "1e+16", "NULL", "undefined", "nan", "TRUE", "None", "#N/A", "0", "17.0"),
        *(
            "4.91771E12",
            "4,91771E+12",
            "1.8446744073709552e+19",
            "5E+15",
            "4.9E+12.0",
            "17.00",
            "1,234",
            "1,234,567.0",
        ),
        *(
            "-1",
            "-nan",
            "<nil>",
            "FALSO",
            "{{user_id}}",
            "${userId}",
            "{user_id}",
            "<user_id>",
            "auth0|undefined",
        ),
        *("users/null", "undefinedundefined", "null@null", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
        *("é", "x" * 256, 17.0, 1e20, True, math.nan, [1], {}),
    ],
)
def test_an_id_that_a_program_or_a_spreadsheet_made_up_is_refused(user_id: object) -> None:
    with pytest.raises(InputRefused) as refused:
        position_of(GOOD | {"user_id": user_id}, date(2026, 6, 11))
    assert refused.value.field == "user_id"


@pytest.mark.parametrize(
    "user_id",
    [
        17,
        "17",
        "_a/b=",
        "x" * 255,
        "5e10",
        "{3F2504E0-4F89-11D3}",
        "S-1-5-21-1",
        "null-user",
        "12E34",
        "a,b",
        "1.2.3",
        "x<y>z",
        "auth0|nullable",
    ],
)
def test_an_id_of_any_issuer_has_a_position(user_id: object) -> None:
    assert position_of(GOOD | {"user_id": user_id}, date(2026, 6, 11)).user_id == str(user_id)


@pytest.mark.parametrize("streak", [True, 1e20, math.nan, math.inf, 4.5, "4.5", "1e3", -1, [4]])
def test_what_is_no_whole_number_is_refused(streak: object) -> None:
    with pytest.raises(InputRefused, match="streak is no whole number from 0 to"):
        position_of(GOOD | {"streak": streak}, date(2026, 6, 11))


@pytest.mark.parametrize("streak", [4, "4", 4.0, "004", "4.0"])
def test_a_number_may_be_written_in_several_ways(streak: object) -> None:
    assert position_of(GOOD | {"streak": streak}, date(2026, 6, 11)).streak == 4


def test_a_position_without_its_date_is_refused() -> None:
    with pytest.raises(InputRefused, match="as_of is missing: the date"):
        position_of({"user_id": "ann"}, date(2026, 6, 11))


def test_a_streak_without_its_last_date_is_refused() -> None:
    with pytest.raises(InputRefused, match="last_date is missing"):
        position_of({name: GOOD[name] for name in ("user_id", "as_of", "streak")}, date(2026, 6, 11))
