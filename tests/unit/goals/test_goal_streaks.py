"""Streaks that a book declares (rule 14), against a plain reading that goes day by day."""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache, partial

import pytest

from adapters.book_store import shipped_version
from rules.book.book import Book, Books, Version
from rules.book.goal_rules import Need, NeedKind, StreakPeriod, StreakRule
from rules.engagement.account_state import Profile
from rules.engagement.goals import (
    KnownPeriods,
    MeasuredDays,
    PastPeriods,
    PeriodOutcome,
    PeriodReason,
    SettledGoals,
    explain_period,
    first_date_needed,
    fold_periods,
    is_usable,
    judging_version,
    outcome,
    rule_of_period,
    shown_goal_streak,
    unsettled_goals,
)
from rules.engagement.streak import Cover, StreakStatus
from tests.support.effort import effort
from tests.support.goal_story import DAYS, SIX, GoalStory
from tests.support.point_story import WholeWorld

DAY, WEEK, MONTH = StreakPeriod
SEEDS = range(effort(1, soak=200))
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


def outcomes(
    rules: Callable[[date], StreakRule | None],
    per: StreakPeriod,
    days: MeasuredDays,
    since: date,
    until: date,
) -> str:
    first, letters = per.first(since), ""
    while first <= until:
        letters, first = letters + outcome(rules(first), per, first, days), per.after(first)
    return letters


def measured(story: GoalStory, user: str) -> Mapping[date, Mapping[str, int]]:
    return {when: day.measures for when, day in story.worlds[user].days.items() if day.measures}


@pytest.mark.parametrize("is_rewritten", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_live_is_the_plain_reading(seed: int, is_rewritten: bool) -> None:
    story = lived(seed, is_rewritten)
    reached = 0
    for user, world in story.worlds.items():
        known = KnownPeriods(unsettled_goals(story.books), story.books, measured(story, user))
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


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_kept_changes_no_answer(seed: int) -> None:
    """Kept at some dates, each from what was kept before and the days since."""
    story, chance = lived(seed), random.Random(seed)
    for user in story.users:
        days = measured(story, user)
        whole = KnownPeriods(unsettled_goals(story.books), story.books, days)
        kept = whole.goals
        for ahead in sorted(chance.sample(range(DAYS + 30), 6)):
            later = {when: each for when, each in days.items() if when >= first_date_needed(kept)}
            until = story.base.date() + timedelta(days=ahead)
            known = KnownPeriods(kept, story.books, later)
            for name, (per, _) in SIX.items():
                for asked in (until, until + timedelta(days=3), until - timedelta(days=17)):
                    found = known.before(name, StreakPeriod(per), asked)
                    wanted = whole.before(name, StreakPeriod(per), asked)
                    assert fold_periods(found, Cover()) == fold_periods(wanted, Cover()), (name, asked)
                    assert found.end == wanted.end
            if until > kept.until:
                kept = known.settled(until, "head", story.worlds[user].profile.cover)
            assert SettledGoals.of(kept.text) == kept


def test_an_entry_for_a_date_of_long_ago_makes_what_is_kept_unusable() -> None:
    kept = SettledGoals(MONDAY, "2026-03-10T00:00:00.000000Z")
    assert is_usable(kept, Profile("u"), BOOKS)
    assert is_usable(kept, Profile("u", past_entry="2026-03-09T00:00:00.000000Z"), BOOKS)
    assert not is_usable(kept, Profile("u", past_entry="2026-03-11T00:00:00.000000Z"), BOOKS)


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
    assert world.profile.past_entry in ("", world.entries[1].created_at)
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
    state, shows = shown_goal_streak(WALKS, PastPeriods(WEEK, MONDAY, letters), have, Cover())
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
        ("R", PeriodOutcome.REACHED, True, PeriodReason.REACHED),
        ("R", PeriodOutcome.MISSED, True, PeriodReason.MISSED),
        ("R", PeriodOutcome.MISSED, False, PeriodReason.OPEN),
        ("R", PeriodOutcome.FREEZABLE, True, PeriodReason.FREEZE),
        ("R", PeriodOutcome.UNASKED, True, PeriodReason.UNASKED),
        ("", PeriodOutcome.MISSED, True, PeriodReason.BEFORE),
        ("RR", PeriodOutcome.PAUSABLE, True, PeriodReason.PAUSE),
        ("RRR", PeriodOutcome.MISSED, True, PeriodReason.SKIPPED),
    ],
)
def test_why_a_week_counts(letters: str, letter: PeriodOutcome, is_over: bool, reason: PeriodReason) -> None:
    third, fourth = MONDAY + timedelta(days=14), MONDAY + timedelta(days=21)
    cover = Cover(
        freezes=((MONDAY, 1),),
        pauses=((third, third + timedelta(days=4)),),
        skipped=frozenset(fourth + timedelta(days=each) for each in range(4)),
    )
    past = PastPeriods(WEEK, MONDAY, letters)
    assert explain_period(past, letter, cover, is_over=is_over)[0] is reason


def same(book: Book) -> Book:
    return book


def declared(*versions: tuple[datetime, StreakRule | None]) -> Books:
    """Versions from 2 on, each with the streak `walks` or without, from an instant on."""
    shipped = shipped_version()
    found = [shipped]
    for number, (at, rule) in enumerate(versions, start=2):
        book = replace(shipped.book, streaks={} if rule is None else {"walks": rule})
        found.append(Version(number, at, partial(same, book), at))
    return Books(found)


def instant(day: date, hour: int = 0) -> datetime:
    return datetime(day.year, day.month, day.day, hour, tzinfo=UTC)


def walked(*days: date) -> dict[date, dict[str, int]]:
    return {each: {"WALK": 1} for each in days}


WEDNESDAY = MONDAY + timedelta(days=2)
ONE_WALK = replace(WALKS, need=Need(NeedKind.ACTIVE_DAYS, 1))


@pytest.mark.parametrize(
    ("books", "days", "letters"),
    [
        (declared((instant(WEDNESDAY, 9), ONE_WALK)), walked(MONDAY), "Rbb"),
        (declared((instant(WEDNESDAY, 9), ONE_WALK)), walked(WEDNESDAY + timedelta(days=3)), "Rbb"),
        (declared((instant(WEDNESDAY, 9), WALKS)), walked(WEDNESDAY), "-bb"),
        (declared((instant(WEDNESDAY, 9), WALKS)), walked(), "-bb"),
        (declared((instant(MONDAY), WALKS)), walked(), "bbb"),  # it is there when the week begins
        (declared((instant(MONDAY + timedelta(days=7)), WALKS)), walked(MONDAY), "-bb"),
        (declared((instant(WEDNESDAY, 9), ONE_WALK), (instant(WEDNESDAY, 10), WALKS)), walked(MONDAY), "Rbb"),
        (declared((instant(WEDNESDAY, 9), None), (instant(WEDNESDAY, 9), ONE_WALK)), walked(MONDAY), "Rbb"),
        (declared((instant(WEDNESDAY, 9), ONE_WALK), (instant(WEDNESDAY, 9), None)), walked(MONDAY), "---"),
        (declared((instant(WEDNESDAY, 9), ONE_WALK), (instant(WEDNESDAY, 10), None)), walked(MONDAY), "R--"),
    ],
)
def test_a_streak_takes_the_period_in_which_it_is_declared(
    books: Books, days: Mapping[date, Mapping[str, int]], letters: str
) -> None:
    last = MONDAY + timedelta(days=20)
    assert outcomes(partial(rule_of_period, books, "walks"), WEEK, days, MONDAY, last) == letters


@pytest.mark.parametrize("per", StreakPeriod)
def test_days_weeks_and_months_alike_take_the_open_period(per: StreakPeriod) -> None:
    rule = replace(ONE_WALK, per=per)
    books = declared((instant(WEDNESDAY, 9), rule))
    first = per.first(WEDNESDAY)
    for days, letter in ((walked(WEDNESDAY), "R"), (walked(), "-")):
        assert outcomes(partial(rule_of_period, books, "walks"), per, days, WEDNESDAY, WEDNESDAY) == letter
    version, found = judging_version(books, "walks", first)
    assert (version.number, found) == (2, replace(rule, is_opening=True))
    assert judging_version(books, "walks", per.after(first))[1] == rule
    assert judging_version(books, "walks", per.first(first - timedelta(days=1)))[1] is None


def test_a_streak_that_comes_again_goes_on_and_cannot_be_lost_in_the_week_in_which_it_does() -> None:
    books = declared(
        (instant(MONDAY - timedelta(days=30)), WALKS),
        (instant(MONDAY - timedelta(days=3)), None),
        (instant(WEDNESDAY, 9), WALKS),
    )
    week = [
        walked(*(MONDAY + timedelta(days=7 * number + each) for each in range(3))) for number in (-1, 0, 1)
    ]
    for days, told in ((week[0] | week[2], "R-R"), (week[0] | week[1] | week[2], "RRR")):
        letters = outcomes(
            partial(rule_of_period, books, "walks"),
            WEEK,
            days,
            MONDAY - timedelta(days=7),
            MONDAY + timedelta(days=7),
        )
        assert letters == told
    rule = rule_of_period(books, "walks", MONDAY)
    past = PastPeriods(WEEK, MONDAY - timedelta(days=7), "R")
    state, status = shown_goal_streak(rule, past, 0, Cover())
    assert (state.length, status) == (1, StreakStatus.ACTIVE), "no risk: it is no miss"
    assert shown_goal_streak(rule, past, 3, Cover())[0].length == 2


@pytest.mark.parametrize(
    ("is_over", "is_asked", "reason"),
    [
        (False, True, PeriodReason.OPEN),  # the week in which it was declared, which may yet be reached
        (True, True, PeriodReason.UNASKED),
        (False, False, PeriodReason.UNASKED),
    ],
)
def test_why_the_week_in_which_a_streak_is_declared_counts_or_not(
    is_over: bool, is_asked: bool, reason: PeriodReason
) -> None:
    past = PastPeriods(WEEK, MONDAY, "RR")
    found = explain_period(past, PeriodOutcome.UNASKED, Cover(), is_over=is_over, is_asked=is_asked)
    assert found == (reason, 2)


def test_what_was_kept_by_other_rules_is_counted_anew() -> None:
    text = SettledGoals(MONDAY, "head", {"walks": PastPeriods(WEEK, MONDAY, "RR")}, 3).text
    assert SettledGoals.of(text).version == 3
    first, rest = text.split("\n", 1)
    for line in (first.rpartition(" ")[0], f"{first.rpartition(' ')[0]} 1", f"{first} 1"):
        with pytest.raises(ValueError, match=r"unpack|edition|isoformat"):
            SettledGoals.of(f"{line}\n{rest}")


def test_periods() -> None:
    assert WEEK.first(date(2027, 1, 3)) == date(2026, 12, 28), "ISO week 53 of 2026"
    assert (WEEK.after(date(2026, 12, 28)), MONTH.after(date(2026, 12, 1))) == (
        date(2027, 1, 4),
        date(2027, 1, 1),
    )
    assert MONTH.last(date(2028, 2, 1)) == date(2028, 2, 29)
    assert MONTH.between(date(2026, 11, 1), date(2027, 2, 1)) == 3
