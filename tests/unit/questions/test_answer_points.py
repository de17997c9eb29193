"""What answers earn is by the book of rules, and a date's points do not depend on the order of its answers."""

import random
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.book.book import NO_ANSWERS, AnswerRules, Book, Books, Timing, Version
from rules.days import EPOCH
from rules.key_ring import PersonHashes
from rules.questions.answer_stats import Stats, Tally, add_responses, fold_responses
from rules.questions.responses import KNOWN_AFTER, Response, day_points_max, new_response, points_for
from tests.support.books import SHIPPED
from tests.support.examples import examples
from tests.support.questions.asking import asked

DAY = date(2026, 3, 2)
BEGIN = datetime(2026, 3, 1, 10, tzinfo=UTC)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
STALE_MAX = timedelta(seconds=45)  # a process looks for versions twice a minute


def version(number: int, effective: datetime, published: datetime, rules: AnswerRules) -> Version:
    return Version(number, effective, lambda: Book({}, answers=rules), published)


def capped(number: int, cap: int, effective: datetime, published: datetime) -> Version:
    return version(number, effective, published, AnswerRules(10, cap))


@pytest.mark.parametrize(
    ("confidence", "took", "points"),
    [(None, None, 10), (1, None, 13), (5, 1_000, 15), (5, 999, 13), (None, 600_000, 12), (None, 600_001, 10)],
)
def test_the_shipped_book_has_points_and_bonuses(
    confidence: int | None, took: int | None, points: int
) -> None:
    assert sum(points_for(SHIPPED.answers, confidence, took).values()) == points


def test_points_are_told_by_reason_and_a_book_without_the_section_gives_none() -> None:
    assert points_for(SHIPPED.answers, 3, 2_000) == {"answer": 10, "confidence": 3, "timing": 2}
    assert points_for(AnswerRules(4, 9, timing=Timing(1, 0, 0)), 3, 0) == {"answer": 4, "timing": 1}
    assert points_for(NO_ANSWERS, 3, 2_000) == {"answer": 0}


def test_a_date_has_the_cap_that_was_in_force_when_it_began_anywhere() -> None:
    first = capped(1, 100, EPOCH, EPOCH)
    at_once = [
        capped(2, 50, BEGIN + late, BEGIN + late)
        for late in (-HOUR, -KNOWN_AFTER, -SECOND, timedelta(0), HOUR)
    ]
    assert [day_points_max(Books([first, each]), DAY) for each in at_once] == [50, 50, 100, 100, 100]
    assert {day_points_max(Books([first, each]), DAY + timedelta(days=1)) for each in at_once} == {50}
    planned = capped(2, 50, BEGIN, BEGIN - 9 * HOUR)
    assert day_points_max(Books([first, planned]), DAY) == 50, "it is in force from that instant on"


def test_a_version_that_takes_effect_in_the_past_caps_no_date_that_has_begun() -> None:
    first, later = capped(1, 100, EPOCH, EPOCH), capped(2, 50, BEGIN - 72 * HOUR, BEGIN + HOUR)
    books = Books([first, later])
    assert [day_points_max(books, DAY + timedelta(days=days)) for days in (-2, 0, 1)] == [100, 100, 50]


def test_before_the_first_version_it_is_the_first_one() -> None:
    late = BEGIN + 400 * HOUR
    books = Books([capped(1, 100, late, late), capped(2, 50, late + HOUR, late + HOUR)])
    assert day_points_max(books, DAY) == 100


@dataclass(frozen=True)
class Story:
    """Versions as they were published, and answers as processes took them that knew more or less of these."""

    versions: list[Version]
    answers: list[Response]


# Around the first dates' beginnings, where it matters which version a process knows.
instants = st.builds(
    lambda day, seconds: BEGIN + timedelta(days=day, seconds=seconds),
    st.integers(0, 3),
    st.one_of(st.integers(-120, 120), st.integers(0, 86_400)),
)
rules = st.one_of(
    st.just(NO_ANSWERS),
    st.builds(
        AnswerRules,
        points=st.integers(0, 15),
        day_points_max=st.integers(20, 60),
        confidence_points=st.integers(0, 5),
    ),
)
offsets = st.integers(-48, 56).map(
    lambda quarters: f"{'-' if quarters < 0 else '+'}{abs(quarters) // 4:02}:{abs(quarters) % 4 * 15:02}"
)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    published = [EPOCH, *sorted(draw(st.lists(instants, max_size=5)))]
    versions = []
    for number, at in enumerate(published, 1):
        later = draw(st.sampled_from((0, 0, 0, 40, 36 * 3600, -1, -40 * 3600))) if number > 1 else 0
        versions.append(version(number, at + later * SECOND, at, draw(rules)))
    taken: list[tuple[datetime, str, timedelta]] = draw(
        st.lists(st.tuples(instants, offsets, st.sampled_from((0 * SECOND, STALE_MAX))), max_size=25)
    )
    answers = []
    for number, (now, zone, stale) in enumerate(taken):
        known = Books(each for each in versions if each.published_at <= now - stale)
        body: dict[str, Any] = {"answer": "a", "timezone": zone} | ({"confidence": 3} if number % 2 else {})
        made = new_response(asked(), body, PersonHashes("person"), known, now)
        answers.append(replace(made, question_id=f"q{number}"))
    return Story(versions, answers)


def cap_of(versions: list[Version], day: date) -> int:
    """Rule 5 read once more: of what was public a minute before it was this date in Kiritimati, the last."""
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC) - 14 * HOUR
    cap, best = versions[0].book.answers.day_points_max, (EPOCH, 1)
    for each in versions:
        is_known = each.published_at <= begin - timedelta(minutes=1) and each.effective_at <= begin
        if is_known and (each.effective_at, each.number) >= best:
            cap, best = each.book.answers.day_points_max, (each.effective_at, each.number)
    return cap


@settings(max_examples=examples(60), deadline=None)
@given(stories(), st.randoms(use_true_random=False), st.integers(1, 4))
def test_in_any_order_over_several_versions_and_all_zones_a_date_has_one_sum(
    story: Story, chance: random.Random, size: int
) -> None:
    points: defaultdict[date, int] = defaultdict(int)
    for each in story.answers:
        points[each.activity_date] += each.points
        assert each.day_points_max == cap_of(story.versions, each.activity_date)
    due = sum(min(cap_of(story.versions, day), each) for day, each in points.items())
    live, order = Stats(), sorted(story.answers, key=lambda _: chance.random())
    for first in range(0, len(order), size):
        live = add_responses(live, order[first : first + size])
    assert live == fold_responses(order)
    assert live.total_points == due


@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from((30, 150, 200)))), st.randoms())
def test_answers_of_a_date_with_several_caps_are_folded_as_events_are(
    given_: list[tuple[int, int]], chance: random.Random
) -> None:
    """The lower cap binds those that have it."""
    template = new_response(
        asked(), {"answer": "a"}, PersonHashes("p"), Books([capped(1, 9, EPOCH, EPOCH)]), BEGIN
    )
    answers = [
        replace(template, question_id=f"q{number}", points=points, day_points_max=cap)
        for number, (points, cap) in enumerate(given_)
    ]
    due = 0
    for cap in (30, 150, 200):
        due = min(cap, due + sum(each.points for each in answers if each.day_points_max == cap))
    chance.shuffle(answers)
    assert fold_responses(answers).total_points == due


def test_no_cap_takes_away_what_a_date_has() -> None:
    assert Tally(1, 100).plus(10, 50) == Tally(2, 100)
    assert Tally(1, 45).plus(10, 50) == Tally(2, 50)
