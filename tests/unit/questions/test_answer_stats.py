"""Stats depend on the set of responses alone, not on their order, batches or repetitions."""

import random
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.book_store import shipped_document
from adapters.platform.items import decode_item, encode_item
from adapters.questions.stats_items import decode_days, encode_days, stats_attributes, stats_from
from bench.counting.dynamodb_units import item_bytes
from rules.book.document import read_book
from rules.book.goal_rules import ConditionKind
from rules.days import AT_MIDNIGHT, stamp
from rules.engagement import streak as streaks
from rules.questions.answer_stats import (
    ANSWERS_COUNTED_MAX,
    BADGES,
    CATEGORIES_KEPT,
    DATES_KEPT,
    Badge,
    BadgeMeasure,
    ResponseTooOld,
    Stats,
    Tally,
    add_responses,
    earned_badges,
    fold_responses,
    streak_now,
)
from rules.questions.responses import EVENT_TYPE, Response
from tests.support.examples import examples
from tests.support.questions.answers import answer

DAY0 = date(2026, 3, 1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


histories = st.lists(
    st.builds(
        answer,
        st.integers(0, 60),
        st.integers(0, DATES_KEPT - 1),
        st.integers(0, 90),
        st.sampled_from("abcdef"),
        st.sampled_from(("UTC", "Asia/Tokyo", "-07:00")),
    ),
    max_size=40,
    unique_by=lambda each: each.key,
)


@given(histories, st.randoms(use_true_random=False), st.integers(1, 7))
@settings(max_examples=examples(60))
def test_any_order_in_any_batches_gives_what_all_from_scratch_give(
    history: list[Response], chance: random.Random, size: int
) -> None:
    shuffled = [*history, *history[:3]]
    chance.shuffle(shuffled)
    whole = fold_responses(shuffled)
    stats, order = Stats(), sorted(history, key=lambda _: chance.random())
    for first in range(0, len(order), size):
        stats = stats_from(decode_item(encode_item(_stored(_counted(stats, order, first, size)))))
    assert stats == whole
    assert _stored(stats) == _stored(whole)


def _stored(stats: Stats) -> dict[str, Any]:
    return stats_attributes("f" * 32, stats)


def _counted(stats: Stats, order: list[Response], first: int, size: int) -> Stats:
    """What the processor does: it adds, or begins again where one is too late to be added."""
    try:
        return add_responses(stats, order[first : first + size])
    except ResponseTooOld:
        return fold_responses(order[: first + size])


@given(histories)
@settings(max_examples=examples(60))
def test_what_shows_is_what_a_plain_reading_of_the_rules_gives(history: list[Response]) -> None:
    stats = fold_responses(history)
    by_day: defaultdict[date, int] = defaultdict(int)
    for each in history:
        by_day[each.activity_date] += each.points
    assert stats.total_answers == len(history)
    assert stats.total_points == sum(min(150, points) for points in by_day.values())
    runs: list[int] = []
    for day in sorted(by_day):
        runs.append(runs.pop() + 1 if runs and day - timedelta(days=1) in by_day else 1)
        if day + timedelta(days=1) not in by_day:
            runs.append(0)
    lengths = [each for each in runs if each]
    shown = _stored(stats)
    assert shown["streak_days"] == (lengths[-1] if lengths else 0)
    assert shown["longest_streak_days"] == max(lengths, default=0)
    assert shown["answers_by_category"] == {
        name: sum(each.category == name for each in history) for name in sorted({e.category for e in history})
    }


@given(histories)
@settings(max_examples=examples(60))
def test_a_badge_is_dated_by_the_first_date_whose_history_earns_it(history: list[Response]) -> None:
    table = (
        *(Badge(f"a{n}", "", BadgeMeasure.ANSWERS, n) for n in (1, 3, 10)),
        *(Badge(f"s{n}", "", BadgeMeasure.STREAK_DAYS, n) for n in (2, 3)),
        *(Badge(f"c{n}", "", BadgeMeasure.CATEGORIES, n) for n in (2, 5)),
    )
    dates = {each.badge.name: each.earned_on for each in earned_badges(fold_responses(history), table)}
    days = sorted({each.activity_date for each in history})
    for badge in table:
        reached = [
            day
            for day in days
            if _count(badge, [e for e in history if e.activity_date <= day]) >= badge.threshold
        ]
        assert dates.get(badge.name) == (reached[0] if reached else None)


def _count(badge: Badge, history: list[Response]) -> int:
    stats = fold_responses(history)
    longest = stats.streak.longest if stats.streak else 0
    return {"answers": len(history), "streak_days": longest, "categories": len(stats.categories)}[
        badge.counted
    ]


def test_badges_are_achievements_of_the_shipped_book() -> None:
    """Whoever has signed in earns them by his ledger, everybody by his stats: the tables say the same."""
    told = {
        (ConditionKind.COUNT, EVENT_TYPE, None): BadgeMeasure.ANSWERS,
        (ConditionKind.STREAK, None, "answering"): BadgeMeasure.STREAK_DAYS,
    }
    book = read_book(shipped_document())
    assert book.streaks["answering"].event_types == {EVENT_TYPE}
    of_book = {
        Badge(name, rule.title, told[each.kind, each.event_type, each.streak], each.at_least)
        for name, rule in book.achievements.items()
        for each in rule.conditions
        if rule.of_history
    }
    assert of_book == {each for each in BADGES if each.counted is not BadgeMeasure.CATEGORIES}
    assert len(of_book) == len(book.achievements)


def test_the_table_of_badges_is_reached() -> None:
    history = [answer(n, n // 11, category=f"c{n % 5}") for n in range(1_100)]
    assert [each.badge for each in earned_badges(fold_responses(history))] == list(BADGES)
    answers = [badge.threshold for badge in BADGES if badge.counted is BadgeMeasure.ANSWERS]
    assert max(answers) <= ANSWERS_COUNTED_MAX, "a date keeps as many"
    assert {each.badge.name: each.earned_on for each in earned_badges(fold_responses(history[:10]))} == {
        "first_answer": DAY0,
        "answers_10": DAY0,
        "categories_5": DAY0,
    }


def test_thousands_of_answers_counted_as_they_come_equal_the_rebuilt() -> None:
    chance = random.Random(7)
    people: dict[int, list[Response]] = defaultdict(list)
    for number in range(examples(3_000)):
        person = int(chance.paretovariate(0.6)) % 500
        response = answer(
            number, chance.randrange(120), chance.choice((10, 12, 13, 15)), chance.choice("abcdefgh")
        )
        people[person].append(replace(response, fingerprint_hash=f"{person:032x}"))
    assert len(people) > 20
    for history in people.values():
        live = Stats()
        for first in range(0, len(history), 20):
            live = stats_from(decode_item(encode_item(_stored(_counted(live, history, first, 20)))))
        chance.shuffle(history)
        assert live == fold_responses(history)


@given(
    st.dictionaries(
        st.dates(date(1990, 1, 1), date(2090, 1, 1)),
        st.builds(Tally, st.integers(1, 1000), st.integers(0, 150)),
    )
)
@settings(max_examples=examples(50))
def test_days_are_read_as_they_were_written(days: dict[date, Tally]) -> None:
    assert decode_days(encode_days(days)) == days


@pytest.mark.parametrize(
    "text", ["1", "1:", "1:000", "x:0000", "1:00_0", f"{'9' * 20}:0000", f"{date.max.toordinal()}:00000000"]
)
def test_cut_off_days_are_no_days(text: str) -> None:
    with pytest.raises(ValueError, match=r"cut off|invalid literal|no date|out of range"):
        decode_days(text)


def test_ten_years_of_answers_are_less_than_a_kilobyte() -> None:
    """The worst case: every day, many categories with names as long as allowed, a long zone, all badges."""
    history = [
        answer(n, n, points=150, category=f"{n % 40:032}", zone="America/Argentina/ComodRivadavia")
        for n in range(3_653)
    ]
    stats, stored = fold_responses(history), dict[str, Any]()
    for first in range(0, len(history), 500):
        stored = _stored(_counted(stats_from(stored) if stored else Stats(), history, first, 500))
    assert stored == _stored(stats)
    kept = {**stored, "_leaderboard": "_leaderboard#63", "version": 99_999, "updated_at": stamp(NOON)}
    assert item_bytes(encode_item(kept)) < 1_000
    assert stats.total_answers == 3_653
    assert stats.total_points == 3_653 * 150
    assert (stats.streak.length if stats.streak else 0) == 3_653
    assert len(stats.categories) == CATEGORIES_KEPT
    assert stats.others > 0
    assert {each.badge.name for each in earned_badges(stats)} == {badge.name for badge in BADGES}


@given(
    st.lists(st.tuples(st.integers(0, 60), st.sampled_from("abcdefghijklmnop")), max_size=60), st.randoms()
)
@settings(max_examples=examples(60))
def test_old_dates_and_many_categories_are_counted_in_any_order(
    given_: list[tuple[int, str]], chance: random.Random
) -> None:
    history = [answer(number, day, 10, name) for number, (day, name) in enumerate(given_)]
    order = sorted(history, key=lambda _: chance.random())
    live = Stats()
    for first in range(0, len(order), 5):
        live = stats_from(decode_item(encode_item(_stored(_counted(live, order, first, 5)))))
    assert live == fold_responses(history)
    assert live.total_answers == len(history)
    days = [each.activity_date for each in history]
    assert live.streak == streaks.fold(days, streaks.Cover())
    firsts = sorted(
        {(min(e.activity_date for e in history if e.category == name), name) for _, name in given_}
    )
    assert set(live.categories) == {name for _, name in firsts[:CATEGORIES_KEPT]}


def test_what_has_been_added_up_is_not_added_to() -> None:
    stats = fold_responses([answer(1, 0), answer(2, DATES_KEPT)])
    assert DAY0 not in stats.days
    with pytest.raises(ResponseTooOld):
        add_responses(stats, [answer(3, 0)])
    assert add_responses(stats, [answer(3, 1)]).total_answers == 3


@pytest.mark.parametrize(
    ("days_later", "shows", "status"), [(0, 3, "active"), (1, 3, "at_risk"), (2, 0, "broken")]
)
def test_a_streak_shows_0_once_a_day_was_missed(days_later: int, shows: int, status: str) -> None:
    stats = fold_responses([answer(day, day) for day in range(3)])
    streak = streak_now(stats, NOON + timedelta(days=2 + days_later), AT_MIDNIGHT)
    assert (streak.current, streak.longest, streak.status.value) == (shows, 3, status)


def test_a_streak_is_seen_from_the_newest_answer_s_zone() -> None:
    late = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    west = fold_responses(
        [answer(1), replace(answer(2, zone="-07:00"), activity_date=DAY0 + timedelta(days=1))]
    )
    assert (
        streak_now(west, late, AT_MIDNIGHT).current == 2
    )  # The earlier date has begun for the person already.
    assert streak_now(Stats(), late, AT_MIDNIGHT).current == 0
