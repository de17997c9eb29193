"""A user repairs the run that has just broken, and gets back what a late event has made needless (rule 2)."""

import random
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from rules.book.daily import NO_REPAIRS, DailyRules, RepairRules, Weekday
from rules.days import DAY
from rules.engagement.account_state import Amnesties, Amnesty, DateReason, Profile, explain_date
from rules.engagement.ledger import Draft, EntryKind, FreezeNote
from rules.engagement.points import clawback
from rules.engagement.reconciliation import ledger_faults, profile_of
from rules.engagement.repairs import (
    BrokenRun,
    NotRepairable,
    Repair,
    RepairOffer,
    RepairRefusal,
    is_broken,
    is_repair,
    may_follow_break,
    needless_repairs,
    newest_break,
    newest_repair,
    offered_repair,
    repair_drafts,
)
from rules.engagement.rest_days import RestDays
from rules.engagement.spending import reversal_of
from rules.engagement.streak import Checkpoint, Cover, fold, net_freezes, resumed_streak, shown_streak
from tests.oracle.repair_reading import RepairTerms, repairable
from tests.oracle.streak_reading import Protection
from tests.support.account_world import World, grant, june, revoke
from tests.support.books import KnownBooks
from tests.support.effort import effort
from tests.support.engagement_strategies import event
from tests.support.short_profiles import ShortWorld, keep_profiles_short

RULES = RepairRules(price_points=20, within_days=3, dates_max=2, a_year=4)


def offer_to(world: World, today: date, rules: RepairRules = RULES) -> RepairOffer:
    """Offer what AccountStore.newest_break finds. Raises NotRepairable."""
    profile, run = world.profile, None
    if is_broken(profile.streak, profile.cover, today) and profile.streak:
        run = BrokenRun(profile.streak)
    elif may_follow_break(profile.streak, rules):
        since = today - rules.within_days * DAY
        profile = world.reaching(since)
        start = resumed_streak(profile.streak, profile.cover, since)
        active_dates = [day for day, each in world.days.items() if each.is_active]
        later = [day for day in active_dates if start is None or day > start.last]
        run = newest_break(later, start, profile.cover, today)
    return offered_repair(run, profile.cover, profile.repairs, rules, today)


def refusal(world: World, today: date, rules: RepairRules = RULES) -> RepairRefusal:
    with pytest.raises(NotRepairable) as refused:
        offer_to(world, today, rules)
    return refused.value.refusal


def buy(world: World, today: date) -> RepairOffer:
    offer = offer_to(world, today)
    world.apply(commands=repair_drafts(offer, 1))
    world.check()
    return offer


def active(*days: int, points: int = 100) -> World:
    """A user who was active on these dates of June."""
    world = World()
    world.apply([event(str(day), june(day), points=points) for day in days])
    return world


def current(world: World, today: date) -> int:
    return shown_streak(world.profile.streak, world.profile.cover, today).current


def test_a_run_that_has_just_broken_is_offered_until_it_is_too_late() -> None:
    world = active(1, 2, 3)
    assert refusal(world, june(4)) is RepairRefusal.NOTHING, "today is not over"
    assert offer_to(world, june(5)) == RepairOffer((june(4),), 20, june(6))
    assert offer_to(world, june(6)) == RepairOffer((june(4), june(5)), 40, june(6))
    assert refusal(world, june(7)) is RepairRefusal.DATES_MAX
    assert refusal(world, june(8)) is RepairRefusal.TOO_LATE
    assert offer_to(world, june(7), replace(RULES, dates_max=7, a_year=7)).until == june(7)
    assert refusal(world, june(5), NO_REPAIRS) is RepairRefusal.NOT_OFFERED
    assert refusal(World(), june(5)) is RepairRefusal.NOTHING


def test_the_run_goes_on_after_the_repair() -> None:
    world = active(1, 2, 3)
    before = world.profile.balance
    buy(world, june(6))
    assert world.profile.balance == before - 40
    assert current(world, june(6)) == 3
    world.apply([event("6", june(6))])
    world.check()
    assert world.profile.streak and world.profile.streak.length == 4, "repaired dates count 0"
    bought = [entry.draft for entry in world.entries if is_repair(entry.draft)]
    assert [(draft.points, draft.freeze_date) for draft in bought] == [
        (-20, "2026-06-04"),
        (-20, "2026-06-05"),
    ]
    before_it = fold([june(1), june(2), june(3)], world.profile.cover)
    assert explain_date(before_it, world.profile, june(5), june(6)) == (DateReason.REPAIR, 3)


def test_who_has_begun_anew_joins_both_runs() -> None:
    world = active(1, 2, 3, 6, 7)
    assert world.profile.streak and world.profile.streak.length == 2
    assert buy(world, june(7)) == RepairOffer((june(4), june(5)), 40, june(7))
    assert world.profile.streak.length == 5
    assert refusal(world, june(7)) is RepairRefusal.NOTHING
    assert newest_repair(world.profile.repairs, RULES, june(7)) == world.profile.repairs[-1]


def test_a_run_that_was_imported_is_joined_as_any_other() -> None:
    world = World()
    cover = Cover(opening=Checkpoint(june(3), 30, 30, 40, 0))
    world.profile = replace(Profile("u"), cover=cover, streak=fold([], cover))
    offer = RepairOffer((june(4),), 20, june(6))
    assert offer_to(world, june(5)) == offer
    world.apply([event("5", june(5), points=100)])
    assert offer_to(world, june(5)) == replace(offer, until=june(6))
    world.apply(commands=repair_drafts(offer, 1))
    assert current(world, june(5)) == 31


def test_two_runs_are_never_repaired_at_once() -> None:
    world = active(1, 2, 4, 6)
    assert buy(world, june(6)).dates == (june(5),)
    assert current(world, june(6)) == 2
    assert refusal(world, june(6)) is RepairRefusal.NOTHING, "the break of the 3rd is not sold, too"


def test_a_late_event_gives_back_what_it_makes_needless() -> None:
    world = active(1, 2, 3)
    buy(world, june(6))
    before = world.profile.balance
    late = world.apply([event("5", june(5), points=0)])
    world.check()
    assert world.profile.balance == before + 20
    given = [entry.draft for entry in late.entries if entry.draft.kind is EntryKind.REVERSE]
    assert [(each.points, each.freeze, each.freeze_date) for each in given if each.reverses] == [
        (20, FreezeNote.REVOKED, "2026-06-05")
    ]
    assert [repair.day for repair in world.profile.repairs] == [june(4)]
    world.apply([event("6", june(6)), event("4", june(4), points=0)])
    world.check()
    assert world.profile.repairs == ()
    given_back = [entry.draft.points for entry in world.entries if entry.draft.reverses]
    assert given_back == [20, 20]
    assert current(world, june(6)) == 6
    balance = world.profile.balance
    world.apply([event("4 again", june(4), points=0)])
    assert world.profile.balance == balance, "it is given back once"


def test_a_freeze_that_is_given_back_covers_no_later_date() -> None:
    world = active(1, 2, 3)
    buy(world, june(5))
    world.apply([event("4", june(4)), event("5", june(5)), event("7", june(7))])
    world.check()
    assert world.profile.streak and world.profile.streak.length == 1, "nothing covers the 6th"


def test_an_amnesty_leaves_the_freeze_for_another_date_and_revoked_it_is_as_before() -> None:
    world = active(1, 2, 3)
    buy(world, june(5))
    outage = Amnesty(1, datetime(2026, 6, 4, 9, tzinfo=UTC), datetime(2026, 6, 4, 11, tzinfo=UTC))
    real, known = world.account, Amnesties((outage,), frozenset({1}))
    world.account = lambda dates: replace(real(dates), amnesties=known)  # type: ignore[method-assign]
    world.apply([event("5", june(5), points=0), event("7", june(7), points=0)])
    streak = world.profile.streak
    assert streak and (streak.length, streak.spent) == (5, (june(6),))
    assert [repair.day for repair in world.profile.repairs] == [june(4)]
    known = Amnesties((replace(outage, revoked_at="2026-06-08T00:00:00.000000Z"),))
    world.apply([event("7 again", june(7), points=0)])
    streak = world.profile.streak
    assert streak and (streak.length, streak.spent) == (1, (june(4),)), "as it was without the amnesty"
    world.check()


def test_a_late_event_that_shows_a_flight_gives_back_what_the_user_never_had() -> None:
    world = World()
    los_angeles = datetime(2026, 6, 3, 5, tzinfo=UTC)  # in the evening of the 2nd there
    world.apply([event("1", june(1)), event("2", june(2), zone="America/Los_Angeles", at=los_angeles)])
    buy(world, june(4))
    before = world.profile.balance
    sydney = datetime(2026, 6, 3, 20, tzinfo=UTC)  # in the morning of the 4th there
    world.apply([event("4", june(4), zone="Australia/Sydney", at=sydney, points=0)])
    assert (world.profile.balance, world.profile.repairs) == (before + 20, ())
    assert world.profile.streak and world.profile.streak.length == 3
    world.check()


def test_freezes_and_rest_days_are_counted_first() -> None:
    world = World()
    world.apply(commands=[grant(june(1))])
    world.apply([event("2", june(2)), event("3", june(3))])
    assert offer_to(world, june(6)).dates == (june(5),), "the freeze covers the 4th"
    saturdays = RestDays(((date.min, DailyRules(frozenset({Weekday.SATURDAY}))),))
    world.profile = replace(world.profile, cover=replace(world.profile.cover, rest=saturdays))
    assert offer_to(world, june(8)).dates == (june(5), june(7)), "the 6th is a Saturday"


def test_a_debt_of_freezes_is_not_paid_by_a_repair() -> None:
    world = World()
    world.apply(commands=[grant(june(1))])
    world.apply([event("1", june(1)), event("3", june(3))])
    world.apply(commands=[revoke(june(4))])
    assert refusal(world, june(5)) is RepairRefusal.OWED


def test_a_year_has_so_many_repaired_dates() -> None:
    old = tuple(Repair(june(1) - days * DAY, 20, f"p{days}") for days in (30, 200, 350))
    world = active(1, 2, 3)
    world.profile = replace(world.profile, repairs=old)
    assert offer_to(world, june(5)) == RepairOffer((june(4),), 20, june(5)), "one is left"
    assert refusal(world, june(6)) is RepairRefusal.A_YEAR
    for days, is_offered in ((364, False), (365, True)):
        world.profile = replace(world.profile, repairs=(*old[:2], Repair(june(5) - days * DAY, 20, "old")))
        if is_offered:
            assert len(offer_to(world, june(6)).dates) == 2
        else:
            assert refusal(world, june(6)) is RepairRefusal.A_YEAR


def test_every_year_has_so_many_repaired_dates() -> None:
    """Also the year that ends with the first of the missed dates: between them the user was away by a pause."""
    week = RepairRules(price_points=20, within_days=7, dates_max=3, a_year=2)
    cover = Cover(pauses=((june(5), june(6)),))
    end = fold([june(2), june(3)], cover)
    assert end
    run = BrokenRun(end)
    old = [Repair(june(4) - days * DAY, 20, f"p{days}") for days in (364, 363)]
    assert offered_repair(run, cover, old[:1], week, june(8)).until == june(8)
    with pytest.raises(NotRepairable, match="2 dates were missed, and 1 more may be"):
        offered_repair(run, cover, old, week, june(8))
    with pytest.raises(NotRepairable, match="and 0 more may be"):
        offered_repair(run, cover, old, week, june(7))


def test_a_clawback_of_the_late_event_leaves_the_date_missed() -> None:
    """The points came back with the event, so the date is no longer repaired: it may be repaired again."""
    world = active(1, 2, 3)
    buy(world, june(5))
    world.apply([event("4", june(4))])
    earn = next(entry for entry in world.entries if entry.draft.activity_date == "2026-06-04")
    drafts = clawback(
        earn.draft, earn.created_at, [each.draft for each in world.entries], KnownBooks().books(), "fraud"
    )
    _claw_back(world, drafts)
    assert world.profile.repairs == ()
    assert current(world, june(5)) == 0
    assert offer_to(world, june(5)).dates == (june(4),)


def _claw_back(world: World, drafts: list[Draft]) -> None:
    days = {draft.day for draft in drafts}
    real = world.account
    world.account = lambda dates: real([*dates, *days])  # type: ignore[method-assign]
    world.apply(commands=drafts)


def test_a_repair_is_reversed_as_any_redemption_is() -> None:
    world = active(1, 2, 3)
    buy(world, june(5))
    (repair,) = world.profile.repairs
    entry = next(entry for entry in world.entries if entry.created_at == repair.place)
    world.apply(commands=[reversal_of(entry, world.profile.streak, world.profile.cover, june(5))])
    assert world.profile.repairs == ()
    world.apply([event("4", june(4))])
    assert sum(entry.draft.reverses == repair.place for entry in world.entries) == 1


def test_a_repair_as_a_profile_stores_it() -> None:
    repair = Repair(june(2), 200, "2026-06-03T09:00:00.000000Z")
    assert Repair.of(repair.text) == repair
    assert not needless_repairs([repair], {june(2)}, {repair.place})
    assert needless_repairs([repair], {june(2)}, ()) == [repair]


# ---- any history


@pytest.mark.parametrize("seed", range(effort(150, soak=20_000)))
def test_what_is_offered_is_what_a_plain_reading_finds(seed: int) -> None:
    chance = random.Random(seed)
    base = date(2026, 2, 20)
    days = [base + chance.randrange(20) * DAY for _ in range(chance.randrange(1, 14))]
    changes = [(base + chance.randrange(20) * DAY, 1) for _ in range(chance.randrange(4))]
    changes += [(day + chance.randrange(5) * DAY, -1) for day, _ in changes if chance.random() < 0.2]
    spans = [(first, first + chance.randrange(4) * DAY) for first in days if chance.random() < 0.1]
    rest = frozenset(chance.sample(range(7), chance.choice((0, 0, 0, 1, 2))))
    skipped = frozenset(base + chance.randrange(20) * DAY for _ in range(chance.choice((0, 0, 1))))
    cover = Cover(
        net_freezes(changes),
        tuple(spans),
        skipped,
        rest=RestDays(((date.min, DailyRules(frozenset(map(Weekday, rest)))),)) if rest else RestDays(),
    )
    plain = Protection(tuple(changes), tuple(spans), skipped, ((date.min, rest, 0),))
    within, most = chance.randrange(1, 8), chance.randrange(1, 5)
    rules = RepairRules(20, within, most, chance.randrange(most, 8))
    old = [base + chance.randrange(-370, 20) * DAY for _ in range(chance.randrange(4))]
    repairs = [Repair(day, 20, f"{number}") for number, day in enumerate(old)]
    world = World()
    world.apply([event(str(day), day, points=0) for day in days])
    streak = world.profile.streak
    assert streak
    world = World()
    world.profile = replace(Profile("u"), cover=cover)
    world.apply([event(str(day), day, points=0) for day in days])
    world.profile = replace(world.profile, repairs=tuple(repairs))
    for ahead in range(9):
        today = streak.last + ahead * DAY
        terms = RepairTerms(20, within, most, rules.a_year)
        expected = repairable(set(days), plain, old, terms, today)
        try:
            offer = offer_to(world, today, rules)
        except NotRepairable:
            assert expected is None, (today, expected)
            continue
        assert expected == (list(offer.dates), offer.until), today
        assert offer.price_points == 20 * len(offer.dates)


@pytest.mark.parametrize("seed", range(effort(100, soak=10_000)))
@pytest.mark.parametrize("kind", [World, ShortWorld])
def test_late_events_in_any_order_give_back_the_same(
    seed: int, kind: type[World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A journey with repairs; then all that comes late, twice, in other orders and batches, with dead writers."""
    is_short = kind is ShortWorld
    if is_short:
        keep_profiles_short(monkeypatch)
    chance = random.Random(seed)
    base = date(2026, 3, 25)
    journey, late = kind(), []
    journey.apply(commands=[grant(base + chance.randrange(9) * DAY) for _ in range(chance.randrange(3))])
    rules = RepairRules(20, 5, 3, 12)
    for number in range(18):
        day = base + number * DAY
        for sent in range(chance.choice((0, 0, 1, 1, 1, 2))):
            made = event(f"{day} {sent}", day, points=50)
            if chance.random() < 0.3:
                late.append(made)
            else:
                journey.apply([made])
        if chance.random() < 0.4 and journey.profile.streak and day >= journey.profile.streak.last:
            try:
                offer = offer_to(journey, day, rules)
            except NotRepairable:
                continue
            if offer.price_points <= journey.profile.balance:
                journey.apply(commands=repair_drafts(offer, 1))
                if not is_short:
                    journey.check()
                assert current(journey, day) > 0, "what is repaired goes on"
    answers = []
    for _ in range(3):
        world = kind(journey.profile, dict(journey.days), list(journey.entries), journey.now)
        events = [*late, *chance.sample(late, len(late) // 2)]
        chance.shuffle(events)
        while events:
            size = chance.randrange(1, 5)
            batch = list({each.event_id: each for each in events[:size]}.values())
            world.apply(batch, writes=chance.choice((0, 1, 2, 99, 99, 99)))
            events = events[size:]
        world.apply(late)
        world.apply(late)
        if not is_short:
            world.check()
        whole = profile_of(world.profile, world.entries)
        profile = world.reaching(date.min)
        assert (profile.repairs, profile.balance, profile.cover.freezes) == (
            whole.repairs,
            whole.balance,
            whole.cover.freezes,
        )
        days = {day: each.points_earned for day, each in world.days.items()}
        answers.append((whole.repairs, whole.balance, whole.cover, whole.streak, days))
        active_dates = {day for day, each in world.days.items() if each.is_active}
        bought = {entry.draft.freeze_date for entry in world.entries if is_repair(entry.draft)}
        kept = {repair.day.isoformat() for repair in profile.repairs}
        assert kept == {day for day in bought if day and date.fromisoformat(day) not in active_dates}
        faults = ledger_faults(world.entries)
        assert not [fault for fault in faults if "marked" not in fault and "active" not in fault]
    assert answers[0] == answers[1] == answers[2]
