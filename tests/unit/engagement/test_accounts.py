"""Rules 2 to 8 on one account: any order, any split, any crash between two writes, one answer."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.days import stamp
from rules.engagement.absorbing import absorb, absorb_days, observe
from rules.engagement.account_state import Account, Day, Decision, NeedsHistory, Profile
from rules.engagement.accounts import TZ_CHANGES_KEPT_MAX, change_timezone, decide, streak_after
from rules.engagement.events import Event
from rules.engagement.ledger import OPENED_AT, Draft, Entry, EntryKind, FreezeNote, InsufficientBalance
from rules.engagement.points import RULES
from rules.engagement.streaks import Cover, Streak, effective, fold
from tests.support.engagement_strategies import NOW, TYPES, bases, event, near

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


def grant(day: date) -> Draft:
    return Draft(
        EntryKind.REDEEM, 0, reward_id="freeze", freeze=FreezeNote.GRANTED, freeze_date=day.isoformat()
    )


def revoke(day: date) -> Draft:
    return Draft(
        EntryKind.REVERSE, 0, reward_id="freeze", freeze=FreezeNote.REVOKED, freeze_date=day.isoformat()
    )


@dataclass
class World:
    """The three tables of one user, written in the order of the stores: ledger, days, profile."""

    profile: Profile = field(default_factory=lambda: Profile("u"))
    days: dict[date, Day] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    now: datetime = NOW

    def account(self, dates: Iterable[date]) -> Account:
        watermark = self.profile.head.created_at if self.profile.head else ""
        pending = [entry for entry in self.entries if entry.created_at > watermark]
        concerned = {date.fromisoformat(e.draft.activity_date) for e in pending if e.draft.activity_date}
        return Account(self.profile, {day: self.days.get(day) for day in {*dates, *concerned}}, pending)

    def decide(self, delivered: Sequence[Event], commands: Sequence[Draft] = ()) -> Decision:
        """Decide on the events that are in no entry yet; all of them are observed."""
        self.now += SECOND
        done = {entry.draft.event_id for entry in self.entries}
        fresh = [each for each in delivered if each.event_id not in done]
        account = self.account(each.activity_date for each in delivered)
        try:
            return decide(account, fresh, self.now, commands, delivered)
        except NeedsHistory:
            account = replace(account, history=sorted(self.days))
            return decide(account, fresh, self.now, commands, delivered)

    def apply(
        self, delivered: Sequence[Event] = (), commands: Sequence[Draft] = (), writes: int = 10**6
    ) -> Decision:
        """Decide, and write as much of it as the process lives to: 1 is the ledger alone."""
        decision = self.decide(delivered, commands)
        if writes and decision.entries:
            self.entries += decision.entries
        for day in list(decision.days)[: max(0, writes - 1)]:
            self.days[day] = decision.days[day]
        if writes > len(decision.days) + 1:
            self.profile = decision.profile
        return decision

    def answer(self) -> object:
        """What may not depend on order, splits or crashes."""
        shown = {
            day: (each.points_earned, each.events_count, each.first_event_id, dict(each.points_by_type))
            for day, each in self.days.items()
        }
        profile = self.profile
        return (
            profile.total_points,
            profile.balance,
            profile.streak,
            profile.cover,
            profile.observed_zone,
            shown,
        )

    def check(self) -> None:
        """The invariants of rule 7."""
        balance = 0
        for seq, entry in enumerate(self.entries):
            balance += entry.draft.points
            assert (entry.seq, entry.balance) == (seq, balance)
            assert entry.balance >= 0
        places = [entry.created_at for entry in self.entries]
        assert places == sorted(set(places))
        assert not self.entries or places[0] == OPENED_AT
        earned = [entry.draft for entry in self.entries if entry.draft.kind is EntryKind.EARN]
        assert len({draft.event_id for draft in earned}) == len(earned)
        assert self.profile.balance == balance
        assert self.profile.total_points == sum(draft.points for draft in earned)
        assert self.profile.total_points == sum(day.points_earned for day in self.days.values())
        assert len(earned) == sum(day.events_count for day in self.days.values())
        assert self.profile.streak == fold(self.days, self.profile.cover)
        spent = Counter[str]()
        for entry in self.entries:
            if entry.draft.freeze in (FreezeNote.SPENT, FreezeNote.REFUNDED) and entry.draft.freeze_date:
                spent[entry.draft.freeze_date] += 1 if entry.draft.freeze is FreezeNote.SPENT else -1
        journalled = sorted(day for day, times in spent.items() if times)
        assert set(spent.values()) <= {0, 1}
        streak = self.profile.streak
        assert journalled == [day.isoformat() for day in (streak.spent if streak else ())]


def june(day: int) -> date:
    return date(2026, 6, day)


def notes(decision: Decision) -> list[tuple[FreezeNote, str | None]]:
    return [(each.draft.freeze, each.draft.freeze_date) for each in decision.entries if each.draft.freeze]


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


def test_the_daily_cap_cuts_the_event_that_crosses_it_and_says_so() -> None:
    world = World()
    world.apply([event(str(number), june(1), "WORKOUT_COMPLETED", points=25) for number in range(2)])
    last = [event("x", june(1), "WORKOUT_COMPLETED", points=25), event("y", june(1), "WORKOUT_COMPLETED")]
    decision = world.apply(last)
    assert decision.cut == [(last[0], 10), (last[1], 0)]
    assert world.days[june(1)].points_by_type == {"WORKOUT_COMPLETED": 60}
    assert world.days[june(1)].events_count == 4
    world.check()


def test_the_cap_holds_within_one_batch_and_for_each_type_and_date_by_itself() -> None:
    world = World()
    batch = [event(f"{day}{kind}{n}", june(day), kind) for day in (1, 2) for kind in TYPES for n in range(12)]
    world.apply(batch)
    assert world.days[june(1)].points_by_type == {kind: RULES[kind].daily_points_max for kind in TYPES}
    assert world.profile.total_points == 2 * sum(RULES[kind].daily_points_max for kind in TYPES)
    world.check()


def test_a_late_event_refunds_the_freeze_that_covered_its_day_by_a_reversing_entry() -> None:
    world = World()
    world.apply(commands=[grant(june(1))])
    world.apply([event("a", june(1))])
    spending = world.apply([event("c", june(3))])
    assert notes(spending) == [(FreezeNote.SPENT, "2026-06-02")]
    late = world.apply([event("b", june(2), at=datetime(2026, 6, 2, 23, 58, tzinfo=UTC))])
    assert notes(late) == [(FreezeNote.REFUNDED, "2026-06-02")]
    assert [entry.draft.kind for entry in late.entries] == [EntryKind.REVERSE, EntryKind.EARN]
    assert world.profile.streak == Streak(june(3), 3, 3, 3)
    assert effective(world.profile.streak, world.profile.cover, june(3)).freezes_available == 1
    world.check()


def test_a_refunded_freeze_is_spent_on_the_next_missed_day_in_date_order() -> None:
    world = World()
    world.apply(commands=[grant(june(1))])
    world.apply([event(str(day), june(day)) for day in (1, 3, 5)])
    assert world.profile.streak == Streak(june(5), 1, 2, 3, (june(2),))
    late = world.apply([event("2", june(2))])
    assert notes(late) == [(FreezeNote.REFUNDED, "2026-06-02"), (FreezeNote.SPENT, "2026-06-04")]
    assert world.profile.streak == Streak(june(5), 4, 4, 4, (june(4),))
    world.check()


def test_two_freezes_cover_two_of_three_missed_days_and_are_journalled() -> None:
    world = World()
    world.apply(commands=[grant(june(1)), grant(june(1))])
    world.apply([event("a", june(1))])
    decision = world.apply([event("b", june(5))])
    assert notes(decision) == [(FreezeNote.SPENT, "2026-06-02"), (FreezeNote.SPENT, "2026-06-03")]
    assert world.profile.streak == Streak(june(5), 1, 1, 2, (june(2), june(3)))
    world.check()


def test_a_freeze_that_is_revoked_unspent_goes() -> None:
    world = World()
    world.apply([event("a", june(1))], [grant(june(1))])
    world.apply(commands=[revoke(june(1))])
    world.apply([event("c", june(3))])
    assert world.profile.streak == Streak(june(3), 1, 1, 2)
    world.check()


def test_a_freeze_that_is_revoked_when_spent_becomes_a_debt() -> None:
    world = World()
    world.apply(commands=[grant(june(1))])
    world.apply([event("a", june(1))])
    world.apply([event("c", june(3))])
    world.apply(commands=[revoke(june(4))])
    cover = world.profile.cover
    assert world.profile.streak == Streak(june(3), 2, 2, 2, (june(2),))
    assert effective(world.profile.streak, cover, june(4)).freezes_available == -1
    world.apply(commands=[grant(june(4))])
    world.apply([event("e", june(5))])
    assert world.profile.streak == Streak(june(5), 1, 2, 3, (june(2),))
    world.check()


def test_an_admin_s_grant_in_the_past_saves_a_run_that_had_ended() -> None:
    world = World()
    world.apply([event("a", june(1)), event("c", june(3))])
    assert world.profile.streak == Streak(june(3), 1, 1, 2)
    assert notes(world.apply(commands=[grant(june(2))])) == [
        (FreezeNote.GRANTED, "2026-06-02"),
        (FreezeNote.SPENT, "2026-06-02"),
    ]
    assert world.profile.streak == Streak(june(3), 2, 2, 2, (june(2),))
    world.check()


def test_a_second_grant_of_one_date_in_the_past_saves_a_run_that_had_ended() -> None:
    world = World()
    world.apply(commands=[grant(june(1))])
    world.apply([event("a", june(1)), event("d", june(4))])
    assert world.profile.streak == Streak(june(4), 1, 1, 2, (june(2),))
    world.apply(commands=[grant(june(1))])
    assert world.profile.streak == Streak(june(4), 2, 2, 2, (june(2), june(3)))
    world.check()


def test_sunday_s_work_synchronised_on_tuesday_counts_once() -> None:
    sunday, monday, tuesday = (june(day) for day in (7, 8, 9))
    world = World()
    world.apply([event("m", monday), event("t", tuesday)])
    world.apply([event("s2", sunday), event("s1", sunday)])
    assert world.profile.streak == Streak(tuesday, 3, 3, 3)
    assert world.days[sunday].events_count == 2
    world.check()


def test_a_date_that_apia_skipped_joins_its_neighbours() -> None:
    world = World()
    for day in (29, 31):
        world.apply([event(str(day), date(2011, 12, day), zone="Pacific/Apia")])
    assert world.profile.streak == Streak(date(2011, 12, 31), 2, 2, 2)
    assert world.profile.cover.skipped == {date(2011, 12, 30)}
    world.check()


def test_a_skipped_date_that_becomes_known_late_joins_a_run_that_had_ended() -> None:
    world = World()
    for day in (29, 31):
        world.apply([event(str(day), date(2011, 12, day))])
    assert world.profile.streak == Streak(date(2011, 12, 31), 1, 1, 2)
    world.apply([event("late", date(2011, 12, 29), zone="Pacific/Apia")])
    assert world.profile.streak == Streak(date(2011, 12, 31), 2, 2, 2)
    world.check()


def test_travel_west_credits_the_date_that_comes_twice_once() -> None:
    world = World()
    for key, at, zone, day in (
        ("a", datetime(2026, 6, 10, 11, tzinfo=UTC), "Pacific/Auckland", june(10)),
        ("b", datetime(2026, 6, 11, 1, tzinfo=UTC), "America/Los_Angeles", june(10)),
        ("c", datetime(2026, 6, 11, 19, tzinfo=UTC), "America/Los_Angeles", june(11)),
    ):
        world.apply([event(key, day, zone=zone, at=at)])
    assert world.profile.streak == Streak(june(11), 2, 2, 2)
    assert world.days[june(10)].events_count == 2
    assert world.profile.zone == "America/Los_Angeles"
    world.check()


def test_travel_east_continues_the_run_on_the_next_local_date() -> None:
    world = World()
    world.apply(
        [event("a", june(10), zone="-05:00", at=datetime(2026, 6, 11, 4, 30, tzinfo=UTC))],
    )
    world.apply([event("b", june(11), zone="+02:00", at=datetime(2026, 6, 11, 9, tzinfo=UTC))])
    assert world.profile.streak == Streak(june(11), 2, 2, 2)
    assert world.profile.zone == "+02:00"


def test_the_zone_is_that_of_the_event_that_occurred_last_whatever_arrives_last() -> None:
    world = World()
    world.apply([event("b", june(2), zone="Asia/Tokyo")])
    world.apply([event("a", june(1), zone="Europe/Berlin")])
    assert world.profile.zone == "Asia/Tokyo"


def test_the_zone_that_the_user_has_set_wins_over_the_observed_one() -> None:
    profile = observe(Profile("u", timezone="Europe/Paris"), [event("a", june(1), zone="Asia/Tokyo")])
    assert (profile.zone, profile.observed_zone) == ("Europe/Paris", "Asia/Tokyo")
    assert Profile("u").zone == "UTC"


def test_an_event_in_a_zone_that_no_longer_exists_is_still_applied() -> None:
    world = World()
    world.apply([event("a", june(1), zone="Europe/Atlantis")])
    assert world.profile.streak == Streak(june(1), 1, 1, 1)


def test_observing_again_changes_nothing() -> None:
    seen = [event("a", date(2011, 12, 29), zone="Pacific/Apia"), event("b", june(2), zone="Asia/Tokyo")]
    once = observe(Profile("u"), seen)
    assert observe(once, seen) is once
    assert observe(observe(Profile("u"), seen[::-1]), seen[:1]) == once


def test_a_command_that_the_balance_does_not_cover_is_refused_even_with_points_on_the_way() -> None:
    world = World()
    world.apply([event("a", june(1))])
    with pytest.raises(InsufficientBalance) as refused:
        world.decide([event("b", june(1))], [Draft(EntryKind.REDEEM, -11)])
    assert (refused.value.balance, refused.value.wanted) == (10, 11)


def test_a_redemption_lowers_the_balance_and_not_the_lifetime_points() -> None:
    world = World()
    world.apply([event("a", june(1))])
    world.apply(commands=[Draft(EntryKind.REDEEM, -10, reward_id="mug")])
    assert (world.profile.total_points, world.profile.balance) == (10, 0)
    world.check()


def test_entries_are_younger_than_the_events_that_they_apply() -> None:
    arrived = NOW + timedelta(minutes=3)
    decision = decide(Account(Profile("u"), {june(1): None}), [event("a", june(1), created_at=arrived)], NOW)
    assert decision.entries[-1].created_at > stamp(arrived)


def test_a_late_date_without_the_history_is_asked_for() -> None:
    streak = Streak(june(5), 1, 1, 1)
    with pytest.raises(NeedsHistory):
        streak_after(streak, Cover(), [june(4)], None, refold=False)
    with pytest.raises(NeedsHistory):
        streak_after(streak, Cover(), [], None, refold=True)
    assert streak_after(streak, Cover(), [june(6)], None, refold=False) == Streak(june(6), 2, 2, 2)
    assert streak_after(streak, Cover(), [june(4)], [june(5)], refold=True) == Streak(june(5), 2, 2, 2)


def test_a_change_of_cover_that_does_not_reach_back_needs_no_history() -> None:
    world = World()
    world.apply([event("a", june(1))])
    decide(world.account([]), (), NOW, [grant(june(1))])
    with pytest.raises(NeedsHistory):
        decide(world.account([]), (), NOW, [grant(date(2026, 5, 31))])


def test_more_than_two_zone_changes_in_24_hours_flag_a_review() -> None:
    profile = Profile("u")
    for hours, zone, flagged in ((0, "UTC", False), (1, "Asia/Tokyo", False), (23, "Europe/Paris", True)):
        profile = change_timezone(profile, zone, NOW + timedelta(hours=hours))
        assert profile.tz_review is flagged
    assert [to for _, to in profile.tz_changes] == ["UTC", "Asia/Tokyo", "Europe/Paris"]
    assert profile.version == 3


def test_two_zone_changes_a_day_are_no_reason_for_a_review() -> None:
    profile = Profile("u")
    for number in range(12):
        profile = change_timezone(profile, f"+{number:02}:00", NOW + number * timedelta(hours=12))
    assert not profile.tz_review
    assert len(profile.tz_changes) == TZ_CHANGES_KEPT_MAX
    assert profile.tz_changes[-1][1] == "+11:00"


def test_setting_the_zone_that_is_set_is_no_change() -> None:
    profile = change_timezone(Profile("u"), "UTC", NOW)
    assert change_timezone(profile, "UTC", NOW + SECOND) is profile


def test_a_review_stays_until_somebody_has_looked() -> None:
    flagged = replace(Profile("u"), tz_review=True)
    assert change_timezone(flagged, "UTC", NOW).tz_review


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[Event], list[Draft]]:
    """Events of one user around a base, and freezes granted or revoked around it."""
    base = draw(st.one_of(bases, st.just(date(2011, 12, 24))))
    picks = draw(
        st.lists(
            st.tuples(
                near(base, 12),
                st.sampled_from(TYPES),
                st.sampled_from(["UTC", "Pacific/Apia", "-07:00"]),
                st.sampled_from([5, 10, 15, 30]),
                st.integers(0, 23),
            ),
            min_size=1,
            max_size=14,
        )
    )
    events = [
        event(
            str(number),
            day,
            kind,
            zone,
            points=points,
            at=datetime(day.year, day.month, day.day, hour, tzinfo=UTC),
        )
        for number, (day, kind, zone, points, hour) in enumerate(picks)
    ]
    commands = []
    for day in draw(st.lists(near(base, 12), max_size=3)):
        commands.append(grant(day))
        if draw(st.integers(0, 3)) == 0:
            commands.append(revoke(day + timedelta(days=draw(st.integers(0, 5)))))
    return events, commands


def cuts(data: st.DataObject, events: list[Event]) -> list[list[Event]]:
    order = data.draw(st.permutations(events))
    parts: list[list[Event]] = [[]]
    for each in order:
        if data.draw(st.booleans()):
            parts.append([])
        parts[-1].append(each)
    return [part for part in parts if part]


@settings(deadline=None, max_examples=120)
@given(batches(), st.data())
def test_any_split_and_order_of_events_and_commands_give_one_answer(
    batch: tuple[list[Event], list[Draft]], data: st.DataObject
) -> None:
    events, commands = batch
    whole = World()
    whole.apply(events, commands)
    whole.check()
    steps: list[tuple[list[Event], list[Draft]]] = [(part, []) for part in cuts(data, events)]
    for command in commands:
        place = data.draw(st.integers(0, len(steps)))
        steps.insert(place, ([], [command]))
    split = World()
    for part, some in steps:
        split.apply(part, some)
        split.check()
    assert split.answer() == whole.answer()


@settings(deadline=None, max_examples=120)
@given(batches(), st.data())
def test_a_process_that_dies_after_any_write_leaves_nothing_that_the_next_does_not_finish(
    batch: tuple[list[Event], list[Draft]], data: st.DataObject
) -> None:
    events, commands = batch
    whole = World()
    whole.apply(commands=commands)
    whole.apply(events)
    broken = World()
    broken.apply(commands=commands, writes=data.draw(st.integers(1, 3)))
    for part in cuts(data, events):
        broken.apply(part, writes=data.draw(st.integers(0, 6)))
        broken.apply(part, writes=data.draw(st.integers(0, 6)))
        broken.apply(part)
    broken.apply()
    broken.check()
    assert broken.answer() == whole.answer()


@settings(deadline=None)
@given(batches(), st.integers(0, 6))
def test_repairing_twice_changes_nothing(batch: tuple[list[Event], list[Draft]], writes: int) -> None:
    events, commands = batch
    world = World()
    world.apply(commands=commands)
    world.apply(events, writes=max(1, writes))
    world.apply()
    once = world.answer(), world.profile, list(world.entries)
    assert not world.decide([]).is_change
    world.apply()
    assert (world.answer(), world.profile, world.entries) == once


@settings(deadline=None)
@given(batches(), st.data())
def test_absorbing_pending_entries_twice_counts_them_once(
    batch: tuple[list[Event], list[Draft]], data: st.DataObject
) -> None:
    events, commands = batch
    world = World()
    entries = world.apply(events, commands, writes=1).entries
    days = absorb_days({}, entries)
    assert absorb_days(days, entries) == {}
    assert absorb_days(days, entries[: data.draw(st.integers(0, len(entries)))]) == {}
    profile = absorb(world.profile, entries)
    newer = [entry for entry in entries if profile.head and entry.created_at > profile.head.created_at]
    assert newer == []
    assert absorb(profile, newer) is profile
    cut = data.draw(st.integers(0, len(entries)))
    halves = absorb(absorb(world.profile, entries[:cut]), entries[cut:])
    assert (halves.total_points, halves.head, halves.cover) == (
        profile.total_points,
        profile.head,
        profile.cover,
    )
    first = absorb_days({}, entries[:cut])
    assert {**first, **absorb_days(first, entries)} == days


@settings(deadline=None)
@given(batches(), st.data())
def test_observing_depends_on_no_order(batch: tuple[list[Event], list[Draft]], data: st.DataObject) -> None:
    events, _ = batch
    other = data.draw(st.permutations(events))
    assert observe(Profile("u"), [*other, *events]) == observe(Profile("u"), events)


@settings(deadline=None)
@given(batches())
def test_what_is_cut_and_what_is_earned_are_what_was_promised(
    batch: tuple[list[Event], list[Draft]],
) -> None:
    events, _ = batch
    decision = World().apply(events)
    earned = {e.draft.event_id: e.draft.points for e in decision.entries if e.draft.kind is EntryKind.EARN}
    cut = {each.event_id: award for each, award in decision.cut}
    assert earned == {each.event_id: cut.get(each.event_id, each.points_awarded) for each in events}
    assert all(award < each.points_awarded for each, award in decision.cut)
