"""What events and commands do to one account: points, caps, balance and the streak (rules 2 to 8)."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from rules.days import stamp, unstamp
from rules.engagement.account import decide, streak_after
from rules.engagement.account_state import Account, History, NeedsHistory, Profile
from rules.engagement.ledger import Draft, EntryKind, InsufficientBalance
from rules.engagement.streak import Cover, Streak
from tests.support.account_world import World, grant, june
from tests.support.books import most
from tests.support.engagement_strategies import NOW, TYPES, event


def test_the_first_event_opens_the_account_and_begins_the_streak() -> None:
    world = World()
    decision = world.apply([event("a", june(1))])
    assert [entry.draft.kind for entry in decision.entries] == [EntryKind.OPEN, EntryKind.EARN]
    assert (world.profile.total_points, world.profile.balance, world.profile.version) == (10, 10, 1)
    assert world.profile.streak == Streak(june(1), 1, 1, 1)
    world.check()


def test_nothing_to_apply_is_no_change() -> None:
    assert not World().decide([]).is_change
    world = World()
    world.apply([event("a", june(1))])
    assert not world.decide([]).is_change


def test_the_daily_cap_cuts_the_event_that_crosses_it() -> None:
    world = World()
    world.apply([event(str(number), june(1), "WORKOUT_COMPLETED", points=25) for number in range(2)])
    last = [event("x", june(1), "WORKOUT_COMPLETED", points=25), event("y", june(1), "WORKOUT_COMPLETED")]
    decision = world.apply(last)
    assert [entry.draft.points for entry in decision.entries] == [10, 0]
    assert world.days[june(1)].points_by_cap == {"WORKOUT_COMPLETED 60/day": 60}
    assert world.days[june(1)].events_count == 4
    world.check()


def test_the_cap_holds_within_one_batch_and_for_each_type_and_date_by_itself() -> None:
    world = World()
    batch = [event(f"{day}{kind}{n}", june(day), kind) for day in (1, 2) for kind in TYPES for n in range(12)]
    world.apply(batch)
    assert world.days[june(1)].points_by_cap == {f"{kind} {most(kind)}/day": most(kind) for kind in TYPES}
    assert world.profile.total_points == 2 * sum(most(kind) for kind in TYPES)
    world.check()


def test_sunday_s_work_synchronised_on_tuesday_counts_once() -> None:
    sunday, monday, tuesday = (june(day) for day in (7, 8, 9))
    world = World()
    world.apply([event("m", monday), event("t", tuesday)])
    world.apply([event("s2", sunday), event("s1", sunday)])
    assert world.profile.streak == Streak(tuesday, 3, 3, 3)
    assert world.days[sunday].events_count == 2
    world.check()


def test_a_command_that_the_balance_does_not_cover_is_refused_even_with_points_on_the_way() -> None:
    world = World()
    world.apply([event("a", june(1))])
    with pytest.raises(InsufficientBalance) as refused:
        world.decide([event("b", june(1))], [Draft(EntryKind.REDEEM, -11)])
    assert (refused.value.balance, refused.value.wanted) == (10, 11)


def test_entries_are_younger_than_the_events_that_they_apply() -> None:
    arrived = NOW + timedelta(minutes=3)
    decision = decide(Account(Profile("u"), {june(1): None}), [event("a", june(1), created_at=arrived)], NOW)
    assert decision.entries[-1].created_at > stamp(arrived)


def test_the_last_entry_says_how_far_the_stream_is_applied_while_that_is_known_of_all_events() -> None:
    world = World()

    def applied_through(*places: str) -> list[str]:
        events = [replace(event(f"k{place}", june(1)), stream_position=place) for place in places]
        return [entry.applied_through for entry in world.apply(events).entries]

    assert applied_through("s/1", "s/4", "s/2") == ["", "", "", "s/4"]
    assert applied_through("s/3") == ["s/4"]
    assert applied_through("") == [""]
    assert applied_through("s/5") == [""], "the place of an earlier event is not known"


def test_a_late_date_without_the_history_is_asked_for() -> None:
    streak = Streak(june(5), 1, 1, 1)
    with pytest.raises(NeedsHistory) as needs:
        streak_after(streak, Cover(), [june(4), june(6)], None)
    assert needs.value.since == june(4)
    with pytest.raises(NeedsHistory) as needs:
        streak_after(streak, Cover(), [june(4)], None, [june(2), june(3)])
    assert needs.value.since == june(2)
    assert streak_after(streak, Cover(), [june(6)], None) == Streak(june(6), 2, 2, 2)
    assert streak_after(streak, Cover(), [june(4)], History([june(5)]), [june(1)]) == Streak(june(5), 2, 2, 2)
    assert streak_after(streak, Cover(), [june(4)], History([june(5)], Streak(june(3), 7, 9, 9))) == Streak(
        june(5), 9, 9, 11
    )


def test_a_change_of_cover_that_does_not_reach_back_needs_no_history() -> None:
    world = World()
    world.apply([event("a", june(1))])
    decide(world.account([]), (), NOW, [grant(june(1))])
    with pytest.raises(NeedsHistory):
        decide(world.account([]), (), NOW, [grant(date(2026, 5, 31))])


@pytest.mark.parametrize(
    ("source", "hours", "is_past"), [("import", 73, True), ("import", 71, False), ("api", 73, False)]
)
def test_only_an_old_event_of_an_imported_history_is_no_news(source: str, hours: int, is_past: bool) -> None:
    """Rule 20. Who sends late events as an admin is told of corrected streaks as ever (rule 18)."""
    old = replace(event("a", june(1)), source=source)
    arrived = unstamp(old.event_id.partition("#")[0]) + timedelta(hours=hours)
    old = replace(old, created_at=stamp(arrived))
    after = decide(Account(Profile("u"), {june(1): None}), [old], arrived).profile
    assert (after.backfilled == after.version) is is_past
