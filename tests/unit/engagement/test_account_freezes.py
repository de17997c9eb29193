"""A freeze covers a missed day, is refunded by a late event, and becomes a debt when it is revoked too late."""

from datetime import UTC, datetime

from rules.engagement.account_state import Decision
from rules.engagement.ledger import EntryKind, FreezeNote
from rules.engagement.streak import Streak, shown_streak
from tests.support.account_world import World, grant, june, revoke
from tests.support.engagement_strategies import event


def notes(decision: Decision) -> list[tuple[FreezeNote, str | None]]:
    return [(each.draft.freeze, each.draft.freeze_date) for each in decision.entries if each.draft.freeze]


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
    assert shown_streak(world.profile.streak, world.profile.cover, june(3)).freezes_available == 1
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


def test_a_freeze_that_is_revoked_when_spent_becomes_a_debt() -> None:
    world = World()
    world.apply(commands=[grant(june(1))])
    world.apply([event("a", june(1))])
    world.apply([event("c", june(3))])
    world.apply(commands=[revoke(june(4))])
    cover = world.profile.cover
    assert world.profile.streak == Streak(june(3), 2, 2, 2, (june(2),))
    assert shown_streak(world.profile.streak, cover, june(4)).freezes_available == -1
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
