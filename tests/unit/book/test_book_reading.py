"""A book that makes no sense is refused with the place and the reason; nothing else happens."""

import copy
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.book import shipped_document
from ingest.book_document import book_of_document
from rules.book.book import USUAL_OFFLINE, Book, Declarer, OfflineRules
from rules.book.differences import differences
from rules.book.document import BookRefused
from rules.book.succession import check_senders

AT = datetime(2026, 6, 1, 12, tzinfo=UTC)
BOOST = {"since": "2026-06-01T00:00:00Z", "until": "2026-06-02T00:00:00Z", "factor": 2}


def book(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy(shipped_document() | changes)


def with_type(name: str = "READ", **said: Any) -> dict[str, Any]:
    made = book()
    made["event_types"][name] = {"points": 5} | said
    return made


def checked_with_type(name: str = "READ", **said: Any) -> Book:
    return book_of_document(with_type(name, **said))


def refusal(document: Any) -> list[str]:
    with pytest.raises(BookRefused) as refused:
        book_of_document(document)
    return [str(each) for each in refused.value.faults]


def test_the_shipped_book_is_a_book() -> None:
    shipped = book_of_document(shipped_document())
    assert shipped.points("CHECK_IN", AT) == 5
    servers = {name for name, each in shipped.event_types.items() if each.declared_by is Declarer.SERVER}
    assert servers == {"FRIEND_INVITED", "PURCHASE_COMPLETED", "QUESTION_ANSWERED"}
    assert [shipped.freezes.price(taken) for taken in (0, 1, 2)] == [0, 0, 100]


def test_a_book_of_one_type_is_enough_and_offers_nothing_else() -> None:
    small = book_of_document({"event_types": {"read.page": {"points": 0}}})
    assert (small.freezes.held_max, small.pauses.dates_a_year, small.boosts) == (0, 0, ())
    assert small.offline == USUAL_OFFLINE
    assert book_of_document(book(offline={"days_max": 0, "days_a_year": 0})).offline == OfflineRules(0, 0)
    assert small.cap("read.page", AT) is None


def test_nobody_can_change_a_book_that_was_read() -> None:
    with pytest.raises(TypeError):
        book_of_document(shipped_document()).event_types["X"] = None  # type: ignore[index]


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ([], "the book must be object"),
        ({}, "event_types is missing"),
        (book(event_types={}), "event_types must contain at least 1 properties"),
        (book(prices={}), "prices is unknown"),
        (book(format=2), "format must be same as const definition: 1"),
        (with_type("has blank"), "event_types"),
        (with_type(points=-1), "event_types.READ.points must be bigger than or equal to 0"),
        (with_type(points=1.5), "event_types.READ.points must be integer"),
        (with_type(points=True), "event_types.READ.points must be integer"),
        (with_type(cap={"points": 4, "per": "day"}), "event_types.READ.cap.points is below the 5 points"),
        (with_type(cap={"per": "day"}), "event_types.READ.cap must have points or events, and not both"),
        (with_type(cap={"points": 9, "events": 2, "per": "day"}), "event_types.READ.cap must have points or"),
        (with_type(cap={"points": 9}), "event_types.READ.cap.per is missing"),
        (book(expiry={"after_days": 9, "end_of": "year"}), "expiry must have after_days or end_of, and not"),
        (with_type(cap={"points": 9, "per": "month"}), "event_types.READ.cap.per must be one of"),
        (with_type(declared_by="friends"), "event_types.READ.declared_by must be one of"),
        (with_type(bonus=3), "event_types.READ.bonus is unknown"),
        (with_type(properties={"$ref": "#"}), "event_types.READ.properties.$ref is no keyword of a contract"),
        (
            with_type(properties={"properties": {"a": 5}}),
            "event_types.READ.properties.properties.a is no object",
        ),
        (with_type(properties={"pattern": "(a+)+"}), "event_types.READ.properties.pattern may have 2"),
        (
            with_type(properties={"pattern": "[", "maxLength": 5}),
            "event_types.READ.properties.pattern is no regular expression",
        ),
        (
            with_type(properties={"minLength": -1}),
            "event_types.READ.properties.minLength must be a whole number",
        ),
        (
            with_type(properties={"required": ["a", "a"]}),
            "event_types.READ.properties.required has a name twice",
        ),
        (
            with_type(properties={"type": "text"}),
            "event_types.READ.properties.type must be of string, integer",
        ),
        (book(boosts=[BOOST | {"factor": 1}]), "boosts.0.factor must be bigger than or equal to 2"),
        (book(boosts=[BOOST | {"until": BOOST["since"]}]), "boosts.0.until is not after since"),
        (
            book(boosts=[BOOST | {"since": "2026-06-01T00:00:00"}]),
            "boosts.0.since must be an RFC 3339 timestamp",
        ),
        (
            book(boosts=[BOOST | {"event_types": ["NONE"]}]),
            "boosts.0.event_types.0 names NONE, which is no event",
        ),
        (book(boosts=[BOOST, BOOST | {"event_types": ["CHECK_IN"]}]), "boosts.1 overlaps with boosts.0"),
        (
            book(freezes={"held_max": 5, "free_a_month": 2, "price_points": 0}),
            "freezes.price_points must be bigger",
        ),
        (book(pauses={"dates_max": 93, "dates_a_year": 92}), "pauses.dates_max is more than dates_a_year"),
        (book(offline={"days_max": 14, "days_a_year": 13}), "offline.days_max is more than days_a_year"),
        (book(note="x" * 300_001), "the book has 30"),
        ({"event_types": {"\ud800": {"points": 1}}}, "the book"),
    ],
)
def test_what_makes_no_sense_is_refused(document: Any, told: str) -> None:
    assert refusal(document)[0].startswith(told)


@pytest.mark.parametrize(
    "said", [{"points": 5.0}, {"points": 5, "cap": {"events": 2.0, "per": "day"}}], ids=str
)
def test_5_0_is_not_taken_for_5(said: dict[str, Any]) -> None:
    assert refusal(with_type(**said))[0].endswith((": write 5", ": write 2"))


def test_a_fault_of_a_type_with_dots_in_its_name_is_told_by_its_keys() -> None:
    with pytest.raises(BookRefused) as refused:
        book_of_document(with_type("read.page", points=-1))
    assert refused.value.faults[0].path == ("event_types", "read.page", "points")


def test_all_faults_are_told_and_not_the_first_alone() -> None:
    made = with_type(cap={"points": 1, "per": "day"}) | {"boosts": [BOOST | {"until": BOOST["since"]}]}
    assert len(refusal(made)) == 2


def test_boosts_that_do_not_meet_are_no_overlap() -> None:
    later = BOOST | {"since": BOOST["until"], "until": "2026-06-03T00:00:00Z"}
    other = BOOST | {"event_types": ["CHECK_IN"]}
    taken = book_of_document(book(boosts=[BOOST | {"event_types": ["CONTRIBUTION"]}, later, other]))
    assert [taken.factor(name, AT) for name in ("CHECK_IN", "CONTRIBUTION", "APP_OPENED")] == [2, 2, 1]


def test_a_boost_holds_from_its_beginning_and_not_at_its_end() -> None:
    double = book_of_document(book(boosts=[BOOST]))
    midnight = datetime(2026, 6, 1, tzinfo=UTC)
    assert double.points("CHECK_IN", midnight) == 10
    assert double.points("CHECK_IN", midnight.replace(day=2)) == 5
    with pytest.raises(KeyError):
        double.points("CLIENT_SAYS_1000", midnight)


def test_a_contract_may_not_get_narrower_but_a_new_type_may_have_any() -> None:
    before = book_of_document(with_type(properties={"properties": {"pages": {"type": "integer"}}}))
    check_senders(before, checked_with_type(properties={"properties": {"pages": {"type": "number"}}}))
    check_senders(before, checked_with_type("NEW", properties={"required": ["pages"]}))
    with pytest.raises(BookRefused, match=r"event_types.READ.properties.required now has pages"):
        check_senders(before, checked_with_type(properties={"required": ["pages"]}))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=6,
)


@st.composite
def damaged(draw: st.DrawFn) -> Any:
    """The shipped book with one value somewhere replaced by anything."""
    made: Any = book(boosts=[BOOST])
    place, steps = made, draw(st.integers(1, 4))
    for step in range(steps):
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = draw(st.sampled_from(keys))
        if step == steps - 1 or not isinstance(place[key], dict | list) or not place[key]:
            place[key] = draw(json_values)
            break
        place = place[key]
    return made


@given(damaged())
def test_whatever_is_sent_is_a_book_or_refused(document: Any) -> None:
    try:
        found = book_of_document(document)
    except BookRefused as refused:
        assert refused.faults
    else:
        assert json.loads(json.dumps(document)) == document
        assert all(each.points >= 0 for each in found.event_types.values())


def test_differences_are_told_by_their_place() -> None:
    changed = with_type()
    changed["event_types"]["CHECK_IN"]["points"] = 8
    del changed["event_types"]["APP_OPENED"]
    assert list(differences(book(), changed)) == [
        "event_types.APP_OPENED: {points: 1, cap: {points: 1, per: day}} -> gone",
        "event_types.CHECK_IN.points: 5 -> 8",
        "event_types.READ: new: {points: 5}",
    ]
