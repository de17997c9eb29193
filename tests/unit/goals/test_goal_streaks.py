"""Streaks that a book declares (rule 14), against a plain reading that goes day by day."""

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache

import pytest

from adapters.book.shipped import shipped_version
from rules.book.streak_rules import Need, NeedKind, StreakPeriod, StreakRule
from rules.book.versions import Books
from rules.engagement.account_state import Profile
from rules.engagement.goals.goal_reasons import PeriodReason, explain_period
from rules.engagement.goals.goal_streaks import Outcome, PastPeriods, fold_periods, shown
from rules.engagement.goals.settled_goals import (
    KnownPeriods,
    SettledGoals,
    is_usable,
    nothing_settled,
    reads_from,
)
from rules.engagement.streaks import Cover, StreakStatus
from tests.support.effort import effort
from tests.support.goal_story import DAYS, SIX, GoalStory, shuffled
from tests.support.point_story import WholeWorld

DAY, WEEK, MONTH = StreakPeriod
SEEDS = range(effort(6, soak=200))
MONDAY = date(2026, 3, 2)
BOOKS = Books([shipped_version()])


@cache
def lived(seed: int, is_rewritten: bool = False) -> GoalStory:
    """is_rewritten: events are reversed, and versions take effect in the past."""
    story = GoalStory(seed)
    story.live()
    if is_rewritten:
        story.rewrite()
    return story


def measured(story: GoalStory, user: str) -> Mapping[date, Mapping[str, int]]:
    return {when: day.measures for when, day in story.worlds[user].days.items() if day.measures}


@pytest.mark.parametrize("is_rewritten", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_live_is_the_plain_reading(seed: int, is_rewritten: bool) -> None:
    story = lived(seed, is_rewritten)
    reached = 0
    for user, world in story.worlds.items():
        known = KnownPeriods(nothing_settled(story.books), story.books, measured(story, user))
        plain = story.plain(user)
        for name, (per, _) in SIX.items():
            for ahead in (0, 11, 30, DAYS - 1, DAYS + 40):
                until = story.base.date() + timedelta(days=ahead)
                past = known.before(name, StreakPeriod(per), until)
                found = fold_periods(past, world.profile.cover)
                run = plain.run(name, per, until - timedelta(days=1))
                assert (found.length, found.longest, found.reached, found.last) == (
                    *(run.length, run.longest, run.reached, run.last),
                ), (user, name, until)
                assert list(found.spent) == run.covered
                reached += run.reached
    assert reached > 50, "streaks have lived"


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_any_order_of_arrival_gives_one_answer(seed: int) -> None:
    story = lived(seed)
    for user, events in story.users.items():
        world = WholeWorld(Profile(user), now=story.now)
        for event in shuffled(events, seed):
            world.apply([event])
        again = {when: day.measures for when, day in world.days.items() if day.measures}
        assert again == measured(story, user)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_kept_changes_no_answer(seed: int) -> None:
    """Kept at some dates, each from what was kept before and the days since."""
    story, chance = lived(seed), random.Random(seed)
    for user in story.users:
        days = measured(story, user)
        whole = KnownPeriods(nothing_settled(story.books), story.books, days)
        kept = whole.kept
        for ahead in sorted(chance.sample(range(DAYS + 30), 6)):
            later = {when: each for when, each in days.items() if when >= reads_from(kept)}
            until = story.base.date() + timedelta(days=ahead)
            known = KnownPeriods(kept, story.books, later)
            for name, (per, _) in SIX.items():
                for asked in (until, until + timedelta(days=3), until - timedelta(days=17)):
                    found = known.before(name, StreakPeriod(per), asked)
                    wanted = whole.before(name, StreakPeriod(per), asked)
                    assert fold_periods(found, Cover()) == fold_periods(wanted, Cover()), (name, asked)
                    assert found.end == wanted.end
            if until > kept.until:
                kept = known.settled(until, "head")
            assert SettledGoals.of(kept.text) == kept


def test_ten_years_are_kept_in_less_than_four_kilobytes() -> None:
    import zlib

    chance = random.Random(1)
    letters = {
        name: "".join(chance.choice("Rmb") for _ in range({"day": 3652, "week": 522, "month": 120}[per]))
        for name, (per, _) in SIX.items()
    }
    past = {name: PastPeriods(StreakPeriod(SIX[name][0]), MONDAY, told) for name, told in letters.items()}
    assert len(zlib.compress(SettledGoals(MONDAY, "h", past).text.encode())) < 4096


def test_an_entry_for_a_date_of_long_ago_makes_what_is_kept_unusable() -> None:
    kept = SettledGoals(MONDAY, "2026-03-10T00:00:00.000000Z")
    assert is_usable(kept, Profile("u"), BOOKS)
    assert is_usable(kept, Profile("u", past_entry="2026-03-09T00:00:00.000000Z"), BOOKS)
    assert not is_usable(kept, Profile("u", past_entry="2026-03-11T00:00:00.000000Z"), BOOKS)
    assert not is_usable(None, Profile("u"), BOOKS)


@pytest.mark.parametrize(
    ("effective", "published", "is_of_use"),
    [
        (MONDAY - timedelta(days=1), MONDAY + timedelta(days=9), False),  # what is kept was judged by others
        (MONDAY, MONDAY + timedelta(days=9), True),  # it judges later periods alone
        (MONDAY - timedelta(days=1), MONDAY - timedelta(days=1), True),  # it did not take effect in the past
    ],
)
def test_a_version_of_the_past_makes_what_is_kept_unusable(
    effective: date, published: date, is_of_use: bool
) -> None:
    shipped = shipped_version()
    at, by = (datetime(each.year, each.month, each.day, tzinfo=UTC) for each in (effective, published))
    books = Books([shipped, replace(shipped, number=2, effective_at=at, published_at=by)])
    kept = SettledGoals(MONDAY, "2026-03-10T00:00:00.000000Z", version=1)
    assert is_usable(kept, Profile("u"), books) == is_of_use
    assert is_usable(replace(kept, version=2), Profile("u"), books)


@pytest.mark.parametrize(("days_ago", "is_marked"), [(7, False), (8, True)])
def test_only_entries_of_long_ago_are_marked(days_ago: int, is_marked: bool) -> None:
    story = lived(0)
    event = next(each for each in story.users["u0"] if each.measures)
    at = event.activity_date + timedelta(days=days_ago)
    world = WholeWorld(Profile("u"), now=story.now.replace(year=at.year, month=at.month, day=at.day))
    world.apply([replace(event, user_id="u", created_at="1970-01-01T00:00:00.000000Z")])
    assert bool(world.profile.past_entry) is is_marked
    assert world.profile.past_entry in ("", world.entries[-1].created_at)
    unmeasured = WholeWorld(Profile("u"), now=world.now)
    unmeasured.apply([replace(event, user_id="u", measures=None)])
    assert unmeasured.profile.past_entry == ""
    assert [day.measures for day in unmeasured.days.values()] == [{}]


WALKS = StreakRule(WEEK, Need(NeedKind.ACTIVE_DAYS, 3), frozenset({"WALK"}), freezes=True, pauses=True)


@pytest.mark.parametrize(
    ("letters", "have", "status", "length"),
    [
        ("", 0, StreakStatus.NONE, 0),
        ("", 3, StreakStatus.ACTIVE, 1),
        ("RR", 2, StreakStatus.AT_RISK, 2),
        ("RR", 3, StreakStatus.ACTIVE, 3),
        ("RRb", 0, StreakStatus.BROKEN, 0),
        ("RRb", 4, StreakStatus.ACTIVE, 1),
        ("RR-", 0, StreakStatus.AT_RISK, 2),
    ],
)
def test_what_shows_in_a_week(letters: str, have: int, status: StreakStatus, length: int) -> None:
    state, shows = shown(WALKS, PastPeriods(WEEK, MONDAY, letters), have, Cover())
    assert (shows, state.length) == (status, length)


@pytest.mark.parametrize(("days", "length"), [(3, 0), (4, 2)])
def test_a_week_most_of_which_is_paused_is_no_miss(days: int, length: int) -> None:
    second = MONDAY + timedelta(days=7)
    cover = Cover(pauses=((second, second + timedelta(days=days - 1)),))
    assert fold_periods(PastPeriods(WEEK, MONDAY, "RpR"), cover).length == max(1, length)
    assert fold_periods(PastPeriods(WEEK, MONDAY, "RmR"), cover).length == 1, "pauses do not count for it"


def test_a_freeze_covers_a_missed_week_once_for_each_streak() -> None:
    cover = Cover(freezes=((MONDAY + timedelta(days=13), 1),))
    once, twice = (fold_periods(PastPeriods(WEEK, MONDAY, told), cover) for told in ("RfR", "RffR"))
    assert (once.length, once.spent) == (2, (MONDAY + timedelta(days=7),))
    assert twice.length == 1
    late = Cover(freezes=((MONDAY + timedelta(days=14), 1),))
    assert fold_periods(PastPeriods(WEEK, MONDAY, "RfR"), late).length == 1, "granted after that week"


@pytest.mark.parametrize(
    ("letters", "letter", "is_over", "reason"),
    [
        ("R", Outcome.REACHED, True, PeriodReason.REACHED),
        ("R", Outcome.MISSED, True, PeriodReason.MISSED),
        ("R", Outcome.MISSED, False, PeriodReason.OPEN),
        ("R", Outcome.FREEZABLE, True, PeriodReason.FREEZE),
        ("R", Outcome.UNASKED, True, PeriodReason.UNASKED),
        ("", Outcome.MISSED, True, PeriodReason.BEFORE),
        ("RR", Outcome.PAUSABLE, True, PeriodReason.PAUSE),
        ("RRR", Outcome.MISSED, True, PeriodReason.SKIPPED),
    ],
)
def test_why_a_week_counts(letters: str, letter: Outcome, is_over: bool, reason: PeriodReason) -> None:
    third, fourth = MONDAY + timedelta(days=14), MONDAY + timedelta(days=21)
    cover = Cover(
        freezes=((MONDAY, 1),),
        pauses=((third, third + timedelta(days=4)),),
        skipped=frozenset(fourth + timedelta(days=each) for each in range(4)),
    )
    past = PastPeriods(WEEK, MONDAY, letters)
    assert explain_period(past, letter, cover, is_over=is_over)[0] is reason


def test_periods() -> None:
    assert WEEK.first(date(2027, 1, 3)) == date(2026, 12, 28), "ISO week 53 of 2026"
    assert (WEEK.after(date(2026, 12, 28)), MONTH.after(date(2026, 12, 1))) == (
        date(2027, 1, 4),
        date(2027, 1, 1),
    )
    assert MONTH.last(date(2028, 2, 1)) == date(2028, 2, 29)
    assert MONTH.between(date(2026, 11, 1), date(2027, 2, 1)) == 3
