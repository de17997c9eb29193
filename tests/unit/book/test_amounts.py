"""Rule 5: points by an amount are exact, and a book says which it takes."""

import random
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.book_document import book_of_document
from rules.book.book import Version, terms_of
from rules.book.document import BookRefused
from rules.days import EPOCH

AT = datetime(2027, 3, 1, 12, tzinfo=UTC)
MINUTES: Any = {"type": "number", "minimum": 0, "maximum": 600}
BY_MINUTES: Any = {"base": 0, "of": "minutes", "each": 5, "earns": 1}


def document(points: Any, minutes: Any = MINUTES, **more: Any) -> dict[str, Any]:
    """A book in which listening earns points."""
    listen = {"points": points, "properties": {"properties": {"minutes": minutes}}} | more
    return {"event_types": {"LISTEN": listen}}


def earned(book: dict[str, Any], properties: dict[str, Any]) -> int:
    """The points of an event before its cap."""
    return terms_of(Version(1, EPOCH, lambda: book_of_document(book)), "LISTEN", AT, properties).points


thousandths = st.integers(0, 600_000)


@given(st.integers(0, 9), st.integers(1, 90_000), st.integers(1, 50), thousandths, st.sampled_from([1, 2, 3]))
def test_each_whole_part_of_an_amount_earns(
    base: int, each: int, earns: int, amount: int, factor: int
) -> None:
    """Floats of up to three decimals count as they are written: 0.1 three times is 0.3."""
    points = {
        "base": base,
        "of": "minutes",
        "each": each / 1000 if each % 1000 else each // 1000,
        "earns": earns,
    }
    boost = {"since": "2027-01-01T00:00:00Z", "until": "2028-01-01T00:00:00Z", "factor": factor}
    book = document(points) | ({"boosts": [boost]} if factor > 1 else {})
    if base + 600_000 // each * earns > 1_000_000:
        with pytest.raises(BookRefused, match=r"^event_types.LISTEN.points let one event earn"):
            book_of_document(book)
        return
    parts = Fraction(amount, 1000) / Fraction(each, 1000)
    assert earned(book, {"minutes": amount / 1000}) == factor * (base + int(parts) * earns)


@pytest.mark.parametrize(
    ("minutes", "points"),
    [(0.1 + 0.2, 3), (29, 290), (4.999, 49), (1e-9, 0), (None, 0), ("29", 0), (True, 0)],
)
def test_amounts_are_counted_in_thousandths(minutes: Any, points: int) -> None:
    """What is no number does not come so far where the contract asks for one; else it is no amount."""
    assert earned(document({"of": "minutes", "each": 0.1, "earns": 1}), {"minutes": minutes}) == points
    assert earned(document({**BY_MINUTES, "base": 7}), {}) == 7


@pytest.mark.parametrize(
    ("book", "fault"),
    [
        (document("5"), "points must be integer or object"),
        (document(-1), "points must be bigger than or equal to 0"),
        (document({"of": "minutes", "each": 5}), "points.earns is missing"),
        (document({**BY_MINUTES, "per": 1}), "points.per is unknown"),
        (document({**BY_MINUTES, "each": 0}), "points.each must be bigger than 0"),
        (document({**BY_MINUTES, "each": 0.0005}), "points.each has more than three decimals"),
        (document({**BY_MINUTES, "each": "5"}), "points.each must be number"),
        (document({**BY_MINUTES, "earns": 0}), "points.earns must be bigger than or equal to 1"),
        (document({**BY_MINUTES, "of": "pages"}), "points.of is no bounded number of LISTEN"),
        (document(BY_MINUTES, {"type": "number", "minimum": 0}), "points.of is no bounded number"),
        (document(BY_MINUTES, {"type": "string"}), "points.of is no bounded number of LISTEN"),
        (document(BY_MINUTES, {**MINUTES, "minimum": -1}), "points.of is no bounded number of LISTEN"),
        (
            document({**BY_MINUTES, "earns": 8334}),
            "points let one event earn 1,000,080 points; 1,000,000 are",
        ),
        (document({**BY_MINUTES, "base": 999_881}), "points let one event earn 1,000,001 points"),
        (
            document(BY_MINUTES, cap={"events": 3, "per": "day"}),
            "cap.events cannot be, because events differ",
        ),
        (document({**BY_MINUTES, "base": 9}, cap={"points": 8, "per": "day"}), "cap.points is below the 9"),
    ],
)
def test_a_book_is_refused_by_field_and_reason(book: dict[str, Any], fault: str) -> None:
    with pytest.raises(BookRefused) as refused:
        book_of_document(book)
    assert next(str(each) for each in refused.value.faults).startswith(f"event_types.LISTEN.{fault}")


def test_an_amount_is_one_of_the_four_properties_that_a_type_may_sum() -> None:
    chance = random.Random(7)
    names = [f"p{number}" for number in range(5)]
    chance.shuffle(names)
    listen = {
        "points": {"of": names[0], "each": 1, "earns": 1},
        "properties": {"properties": dict.fromkeys(names, MINUTES)},
    }
    streaks = {
        f"s{number}": {
            "per": "day",
            "needs": {"sum": {"property": name, "at_least": 1}},
            "event_types": ["LISTEN"],
        }
        for number, name in enumerate(names[1:])
    }
    with pytest.raises(BookRefused, match=r"sums more than 4 properties of LISTEN"):
        book_of_document({"event_types": {"LISTEN": listen}, "streaks": streaks})
    streaks.pop("s0")
    assert (
        len(
            book_of_document({"event_types": {"LISTEN": listen}, "streaks": streaks}).measured("LISTEN") or ()
        )
        == 4
    )


def test_a_book_without_goals_stores_the_amounts_that_earn_and_no_others() -> None:
    book = document(BY_MINUTES)
    book["event_types"]["WALK"] = {"points": 1}
    read = book_of_document(book)
    assert (read.measured("LISTEN"), read.measured("WALK"), read.measured("GONE")) == (
        ("minutes",),
        None,
        None,
    )
