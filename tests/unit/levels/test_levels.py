"""Rule 24: a level follows from the points ever earned and the book in force."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.book_store import shipped_document
from ingest.book_document import book_of_document
from ingest.engagement.profiles import level_view
from rules.book.document import BookRefused
from rules.book.levels import Level, standing_of

TWO: list[dict[str, Any]] = [
    {"name": "silver", "from": 1000, "title": "Silver"},
    {"name": "gold", "from": 5000},
]


def levels_of(sections: Any) -> tuple[Level, ...]:
    return book_of_document(shipped_document() | {"levels": sections}).levels


def test_boundaries_are_exact() -> None:
    silver, gold = levels_of(TWO)
    assert (silver, gold) == (Level("silver", 1000, "Silver"), Level("gold", 5000))
    expected = {999: (None, silver), 1000: (silver, gold), 4999: (silver, gold), 5000: (gold, None)}
    assert {points: standing_of((silver, gold), points) for points in expected} == expected


def test_the_profile_says_what_is_missing() -> None:
    levels = levels_of([{**TWO[0], "image_url": "https://acme.example/silver.png"}, TWO[1]])
    assert level_view(levels, 999) is None
    assert level_view(levels, 1200) == {
        "name": "silver",
        "title": "Silver",
        "from": 1000,
        "image_url": "https://acme.example/silver.png",
        "next": {"name": "gold", "title": "", "from": 5000, "missing": 3800},
    }
    assert level_view(levels, 9_999_999) == {"name": "gold", "title": "", "from": 5000, "next": None}
    assert level_view((), 9_999_999) is None


def test_a_level_from_0_is_everybodys() -> None:
    assert level_view(levels_of([{"name": "newcomer", "from": 0}]), 0) == {
        "name": "newcomer",
        "title": "",
        "from": 0,
        "next": None,
    }


@given(st.sets(st.integers(0, 10_000), min_size=1, max_size=100), st.integers(0, 11_000))
def test_any_levels_are_as_a_plain_reading_says(starts: set[int], points: int) -> None:
    levels = levels_of([{"name": f"level{start}", "from": start} for start in sorted(starts)])
    reached = [level for level in levels if level.points <= points]
    above = [level for level in levels if level.points > points]
    assert standing_of(levels, points) == (reached[-1] if reached else None, above[0] if above else None)


@pytest.mark.parametrize(
    ("sections", "fault"),
    [
        ([TWO[1], TWO[0]], "levels.1.from is not above the 5000 of the level before"),
        ([TWO[0], {"name": "gold", "from": 1000}], "levels.1.from is not above the 1000 of the level before"),
        ([TWO[0], {"name": "silver", "from": 2000}], "levels.1.name is silver, which another level has"),
        ([{"name": "silver", "from": -1}], "levels.0.from must be bigger than or equal to 0"),
        ([{"name": "silver", "from": 1.5}], "levels.0.from must be integer"),
        ([{"name": "silver", "from": "1000"}], "levels.0.from must be integer"),
        ([{"name": "silver"}], "levels.0.from is missing"),
        ([{"from": 0}], "levels.0.name is missing"),
        ([{"name": "Silver", "from": 0}], "levels.0.name must match pattern"),
        ([{**TWO[0], "title": ""}], "levels.0.title must be longer than or equal to 1 characters"),
        ([{**TWO[0], "title": " "}], "levels.0.title is blank: leave it out"),
        ([{**TWO[0], "title": "a\u202eb"}], "levels.0.title has the character U+202E, which nobody sees"),
        ([{**TWO[0], "image_url": "http://a.example/b.png"}], "levels.0.image_url must begin with https://"),
        ([{**TWO[0], "points": 3}], "levels.0.points is unknown"),
        ([{"name": f"l{n}", "from": n} for n in range(101)], "levels must contain less than or equal to 100"),
        ({"silver": 1000}, "levels must be array"),
    ],
)
def test_a_book_is_refused_by_field_and_reason(sections: Any, fault: str) -> None:
    with pytest.raises(BookRefused) as refused:
        levels_of(sections)
    assert next(str(each) for each in refused.value.faults).startswith(fault)
