"""The section `answers` of a book: what makes no sense is refused with the place and the reason."""

import copy
from typing import Any

import pytest

from adapters.book import shipped_document
from adapters.questions.user_stats_store import decode_days, encode_days
from ingest.book_document import book_of_document
from rules.book.answer_rules import DAY_POINTS_LIMIT, NO_ANSWERS, AnswerRules, Timing
from rules.book.differences import differences
from rules.book.document import BookRefused
from rules.questions.answer_stats import Tally

SAID: dict[str, Any] = shipped_document()["answers"]


def book(**changes: Any) -> dict[str, Any]:
    """The shipped book with other values in the section; None leaves one out."""
    made = copy.deepcopy(shipped_document())
    made["answers"] = {name: each for name, each in (SAID | changes).items() if each is not None}
    return made


def test_the_section_is_read() -> None:
    assert book_of_document(book()).answers == AnswerRules(10, 150, 3, Timing(2, 1_000, 600_000))
    assert book_of_document(book(timing=None, confidence_points=None)).answers == AnswerRules(10, 150)
    assert book_of_document(book()).answers.most == 15


def test_a_book_without_it_gives_answers_nothing() -> None:
    document = {name: each for name, each in shipped_document().items() if name != "answers"}
    assert book_of_document(document).answers == NO_ANSWERS == AnswerRules(0, DAY_POINTS_LIMIT)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"points": None}, "answers.points is missing"),
        ({"day_points_max": None}, "answers.day_points_max is missing"),
        ({"day_points_max": 14}, "answers.day_points_max is below the 15 points that one answer can earn"),
        ({"day_points_max": DAY_POINTS_LIMIT + 1}, "answers.day_points_max must be smaller than or equal to"),
        (
            {"points": 0, "confidence_points": 0, "timing": None, "day_points_max": 0},
            "answers.day_points_max",
        ),
        ({"points": -1}, "answers.points must be bigger than or equal to 0"),
        ({"points": 10.0}, "answers.points is 10.0: write 10"),
        (
            {"bonus": 3},
            "answers.bonus is unknown: there are points, confidence_points, timing, day_points_max",
        ),
        ({"timing": {"points": 2, "from_ms": 1000}}, "answers.timing.to_ms is missing"),
        ({"timing": {"points": 2, "from_ms": 9, "to_ms": 8}}, "answers.timing.from_ms is more than to_ms"),
        (
            {"timing": {"points": 2, "from_ms": 9, "to_ms": 86_400_001}},
            "answers.timing.to_ms must be smaller",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(BookRefused) as refused:
        book_of_document(book(**changes))
    assert str(refused.value.faults[0]).startswith(told)


def test_what_differs_is_told() -> None:
    changed = book(points=8, timing={"points": 2, "from_ms": 1000, "to_ms": 9000}, confidence_points=None)
    assert list(differences(shipped_document(), changed)) == [
        "answers.confidence_points: 3 -> gone",
        "answers.points: 10 -> 8",
        "answers.timing.to_ms: 600000 -> 9000",
    ]


def test_a_date_s_item_holds_the_highest_cap() -> None:
    days = {each: Tally(1, DAY_POINTS_LIMIT) for each in decode_days("739676:0100")}
    assert decode_days(encode_days(days)) == days
