"""What an event adds to streaks is exact, fixed when it is accepted, and nothing where no book asks for it."""

from typing import Any

import pytest

from adapters.book_store import shipped_document
from ingest.book_document import book_of_document
from rules.book.document import BookRefused
from rules.book.measures import measures_of
from rules.engagement.events import amounts, with_measures

MINUTES: Any = {"type": "number", "minimum": 0, "maximum": 600}


def document(**streaks: Any) -> dict[str, Any]:
    types = {"READ": {"points": 5, "properties": {"properties": {"minutes": MINUTES}}}, "WALK": {"points": 1}}
    return {"event_types": types, "streaks": streaks}


def streak(**changes: Any) -> dict[str, Any]:
    return {"per": "week", "needs": {"active_days": 3}} | changes


READING = streak(needs={"sum": {"property": "minutes", "at_least": 30.5}}, event_types=["READ"])


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        (None, "n"),
        ({"minutes": 30.5}, "n,minutes=30500"),
        ({"minutes": 30}, "n,minutes=30000"),
        ({"minutes": 0.1}, "n,minutes=100"),
        ({"minutes": 0.0005}, "n"),
        ({"minutes": "30"}, "n"),
        ({"minutes": True}, "n"),
        ({"minutes": float("nan")}, "n"),
        ({"minutes": -1}, "n"),
        ({"pages": 4}, "n"),
    ],
)
def test_measures_of_an_event(properties: Any, text: str) -> None:
    assert measures_of(properties, ("minutes",)) == text


def test_ten_tenths_are_one() -> None:
    day: Any = {}
    for _ in range(10):
        day = with_measures(day, "READ", measures_of({"minutes": 0.1}, ("minutes",)))
    assert day == {"READ": 10, "READ minutes": 1000}


def test_a_text_that_is_none_is_told() -> None:
    for text in ("", "x", "n,minutes", "n,minutes=a"):
        with pytest.raises(ValueError, match=r"."):
            amounts("READ", text)


def test_a_book_without_streaks_measures_nothing() -> None:
    without = {
        key: said for key, said in shipped_document().items() if key not in ("streaks", "achievements")
    }
    assert book_of_document(without).measured("CHECK_IN") is None
    assert book_of_document(shipped_document()).measured("CHECK_IN") == ()
    assert measures_of({"minutes": 5}, None) is None
    book = book_of_document(document(reading=READING))
    assert (book.measured("READ"), book.measured("WALK")) == (("minutes",), ())


def refusal(**streaks: Any) -> list[str]:
    with pytest.raises(BookRefused) as refused:
        book_of_document(document(**streaks))
    return [str(each) for each in refused.value.faults]


SUM: Any = {"property": "minutes", "at_least": 5}


@pytest.mark.parametrize(
    ("said", "place"),
    [
        (streak(needs={}), "streaks.a.needs must have exactly one"),
        (streak(needs={"events": 1, "active_days": 1}), "streaks.a.needs must have exactly one"),
        (streak(needs={"active_days": 8}), "streaks.a.needs.active_days is more than the 7"),
        (streak(per="day", needs={"active_days": 2}), "streaks.a.needs.active_days is more than the 1"),
        (streak(per="month", needs={"active_days": 29}), "streaks.a.needs.active_days"),
        (streak(needs={"events": 0}), "streaks.a.needs.events"),
        (streak(per="year"), "streaks.a.per"),
        (streak(event_types=["RUN"]), "streaks.a.event_types.0 names RUN"),
        (streak(event_types=[]), "streaks.a.event_types"),
        (streak(needs={"sum": SUM}), "streaks.a needs event_types"),
        (
            streak(needs={"sum": SUM}, event_types=["WALK"]),
            "streaks.a.needs.sum.property is no bounded number of WALK",
        ),
        (
            streak(needs={"sum": SUM | {"at_least": 0.0005}}, event_types=["READ"]),
            "streaks.a.needs.sum.at_least has",
        ),
        (streak(needs={"sum": SUM | {"at_least": 0}}, event_types=["READ"]), "streaks.a.needs.sum.at_least"),
        (
            streak(needs={"sum": SUM | {"property": "a,b"}}, event_types=["READ"]),
            "streaks.a.needs.sum.property",
        ),
        (streak(surprise=1), "streaks.a"),
    ],
)
def test_a_streak_that_makes_no_sense_is_refused_with_its_place(said: Any, place: str) -> None:
    assert refusal(a=said)[0].startswith(place)


def test_daily_is_the_profile_s_own() -> None:
    assert refusal(daily=streak())[0].startswith("streaks.daily is the streak of the profile")


@pytest.mark.parametrize(
    "contract",
    [
        {"type": "string"},
        {"type": "number"},
        {"type": "number", "minimum": -1, "maximum": 5},
        {"type": "number", "minimum": 0, "maximum": 1_000_001},
        {"type": ["number", "null"], "minimum": 0, "maximum": 5},
    ],
)
def test_what_is_summed_must_be_a_bounded_number(contract: Any) -> None:
    made = document(a=READING)
    made["event_types"]["READ"]["properties"]["properties"]["minutes"] = contract
    with pytest.raises(BookRefused, match="is no bounded number of READ"):
        book_of_document(made)


def test_a_fifth_summed_property_of_a_type_is_refused() -> None:
    names = "abcde"
    made = document(
        **{
            name: streak(needs={"sum": {"property": name, "at_least": 1}}, event_types=["READ"])
            for name in names
        }
    )
    made["event_types"]["READ"]["properties"]["properties"] = dict.fromkeys(names, MINUTES)
    with pytest.raises(BookRefused, match="sums more than 4 properties of READ"):
        book_of_document(made)
