"""A book that makes no sense is refused with the place and the reason."""

import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.book_store import shipped_document
from ingest.book_document import book_of_document
from rules.book.book import (
    DAY_POINTS_LIMIT,
    NO_ANSWERS,
    USUAL_OFFLINE,
    AnswerRules,
    Declarer,
    OfflineRules,
    Timing,
)
from rules.book.document import BookRefused
from rules.book.succession import differences

AT = datetime(2026, 6, 1, 12, tzinfo=UTC)
BOOST = {"since": "2026-06-01T00:00:00Z", "until": "2026-06-02T00:00:00Z", "factor": 2}
REPAIRS = {"price_points": 200, "within_days": 3, "dates_max": 2, "a_year": 4}
MUG: dict[str, Any] = {"price_points": 50, "brand": "acme", "stock": 20, "limit_per_user": 2}


def book(**changes: Any) -> dict[str, Any]:
    return copy.deepcopy(shipped_document() | changes)


def with_type(name: str = "READ", **said: Any) -> dict[str, Any]:
    made = book()
    made["event_types"][name] = {"points": 5} | said
    return made


def mug(**said: Any) -> dict[str, Any]:
    return book(rewards={"mug": MUG | said})


def answering(**changes: Any) -> dict[str, Any]:
    """The shipped book with other values in the section `answers`; None leaves one out."""
    section = shipped_document()["answers"] | changes
    return book(answers={name: each for name, each in section.items() if each is not None})


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
    assert shipped.answers == AnswerRules(10, 150, 3, Timing(2, 1_000, 600_000))
    assert (shipped.answers.most, dict(shipped.rewards)) == (15, {})


def test_a_book_of_one_type_is_enough_and_offers_nothing_else() -> None:
    small = book_of_document({"event_types": {"read.page": {"points": 0}}})
    assert (small.freezes.held_max, small.pauses.dates_a_year, small.boosts) == (0, 0, ())
    assert small.repairs.dates_max == 0
    assert book_of_document(book(repairs=REPAIRS)).repairs.price_points == 200
    assert (small.offline, small.answers) == (USUAL_OFFLINE, NO_ANSWERS)
    assert book_of_document(book(offline={"days_max": 0, "days_a_year": 0})).offline == OfflineRules(0, 0)
    assert small.cap("read.page", AT) is None


def test_a_reward_is_read_and_is_valid_between_two_instants() -> None:
    said = {
        "title": "<b>Mug</b> & 杯 👩\u200d🚀",
        "description": "Holds tea.\nOr <script>alert(1)</script>.",
        "image_url": "https://pictures.example.com:8443/mug%20blue.png?width=300",
    }
    span = {"valid_from": "2027-03-01T00:00:00+01:00", "valid_until": "2027-04-01T00:00:00+02:00"}
    reward = book_of_document(mug(**said, **span)).rewards["mug"]
    assert {name: getattr(reward, name) for name in MUG | said} == MUG | said
    begin, end = datetime(2027, 2, 28, 23, tzinfo=UTC), datetime(2027, 3, 31, 22, tzinfo=UTC)
    instants = (begin - timedelta(microseconds=1), begin, end - timedelta(microseconds=1), end)
    assert [reward.is_valid(each) for each in instants] == [False, True, True, False]
    endless = book_of_document(book(rewards={"tea": {"price_points": 1, "brand": "b"}})).rewards["tea"]
    assert (endless.stock, endless.limit_per_user, endless.title) == (None, None, "")
    assert endless.is_valid(AT)


@pytest.mark.parametrize(
    ("section", "rule"), [({"after_days": 9}, "9d"), ({"end_of": "year"}, "year"), (None, None)]
)
def test_how_points_expire(section: dict[str, Any] | None, rule: str | None) -> None:
    assert book_of_document(book(**{"expiry": section} if section else {})).expiry == rule


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
        (with_type(points=5.0), "event_types.READ.points is 5.0: write 5"),
        (with_type(cap={"events": 2.0, "per": "day"}), "event_types.READ.cap.events is 2.0: write 2"),
        (with_type(cap={"points": 4, "per": "day"}), "event_types.READ.cap.points is below the 5 points"),
        (with_type(cap={"per": "day"}), "event_types.READ.cap must have points or events, and not both"),
        (with_type(cap={"points": 9, "events": 2, "per": "day"}), "event_types.READ.cap must have points or"),
        (with_type(cap={"points": 9}), "event_types.READ.cap.per is missing"),
        (with_type(cap={"points": 9, "per": "month"}), "event_types.READ.cap.per must be one of"),
        (with_type(declared_by="friends"), "event_types.READ.declared_by must be one of"),
        (with_type(bonus=3), "event_types.READ.bonus is unknown"),
        (with_type(properties={"$ref": "#"}), "event_types.READ.properties.$ref is no keyword of a contract"),
        (book(boosts=[BOOST | {"factor": 1}]), "boosts.0.factor must be bigger than or equal to 2"),
        (book(boosts=[BOOST | {"until": BOOST["since"]}]), "boosts.0.until is not after since"),
        (book(boosts=[BOOST | {"since": "2026-06-01T00:00:00"}]), "boosts.0.since must be an RFC 3339"),
        (book(boosts=[BOOST | {"event_types": ["NONE"]}]), "boosts.0.event_types.0 names NONE, which is no"),
        (book(boosts=[BOOST, BOOST | {"event_types": ["CHECK_IN"]}]), "boosts.1 overlaps with boosts.0"),
        (book(expiry={"after_days": 9, "end_of": "year"}), "expiry must have after_days or end_of, and not"),
        (book(repairs=REPAIRS | {"dates_max": 5}), "repairs.dates_max is more than a_year"),
        (book(repairs=REPAIRS | {"price_points": 0}), "repairs.price_points must be bigger than or equal"),
        (
            book(repairs=REPAIRS | {"within_days": 8}),
            "repairs.within_days must be smaller than or equal to 7",
        ),
        (book(repairs={"price_points": 200}), "repairs.a_year is missing"),
        (book(rewards={"streak_repair": MUG}), "rewards.streak_repair is the name of what the book sells"),
        (
            book(freezes={"held_max": 5, "free_a_month": 2, "price_points": 0}),
            "freezes.price_points must be bigger",
        ),
        (book(pauses={"dates_max": 93, "dates_a_year": 92}), "pauses.dates_max is more than dates_a_year"),
        (book(offline={"days_max": 14, "days_a_year": 13}), "offline.days_max is more than days_a_year"),
        (book(note="x" * 300_001), "the book has 30"),
        ({"event_types": {"\ud800": {"points": 1}}}, "the book"),
        (answering(points=None), "answers.points is missing"),
        (answering(day_points_max=14), "answers.day_points_max is below the 15 points that one answer can"),
        (
            answering(day_points_max=DAY_POINTS_LIMIT + 1),
            "answers.day_points_max must be smaller than or equal",
        ),
        (answering(bonus=3), "answers.bonus is unknown: there are points, confidence_points, timing, day_"),
        (answering(timing={"points": 2, "from_ms": 1000}), "answers.timing.to_ms is missing"),
        (
            answering(timing={"points": 2, "from_ms": 9, "to_ms": 8}),
            "answers.timing.from_ms is more than to_ms",
        ),
        (mug(price_points=0), "rewards.mug.price_points must be bigger than or equal to 1"),
        (mug(price_points="50"), "rewards.mug.price_points must be integer"),
        (mug(brand="a b"), "rewards.mug.brand must match pattern"),
        (mug(stock=-1), "rewards.mug.stock must be bigger than or equal to 0"),
        (mug(limit_per_user=0), "rewards.mug.limit_per_user must be bigger than or equal to 1"),
        (mug(valid_until="tomorrow"), "rewards.mug.valid_until must be an RFC 3339 timestamp"),
        (
            mug(valid_from="2027-03-01T01:00:00+01:00", valid_until="2027-03-01T00:00:00Z"),
            "rewards.mug.valid_until is not after valid_from",
        ),
        (mug(colour="red"), "rewards.mug.colour is unknown"),
        (book(rewards={"a/b": MUG}), "rewards"),
        (book(rewards={"streak_freeze": MUG}), "rewards.streak_freeze is the name of what the book sells"),
        (mug(title="x" * 101), "rewards.mug.title must be shorter"),
        (mug(title=" \t "), "rewards.mug.title is blank: leave it out"),
        (mug(title="Mug\nof tea"), "rewards.mug.title has the character U+000A"),
        (mug(title="\u202egum"), "rewards.mug.title has the character U+202E"),
        (mug(description="a\rb"), "rewards.mug.description has the character U+000D"),
        (mug(image_url="http://e.com/a.png"), "rewards.mug.image_url must begin with https:// or data:"),
        (mug(image_url="data:text/html,AA=="), "rewards.mug.image_url must begin with https:// or data:"),
        (mug(image_url="data:image/png;base64"), "rewards.mug.image_url has no picture"),
        (mug(image_url="data:image/svg+xml,<svg a='1 2'/>"), "rewards.mug.image_url must be a URL in ASCII"),
        (mug(image_url="https://e.com/ä.png"), "rewards.mug.image_url must be a URL in ASCII"),
        (mug(image_url="https://e.com\\a"), "rewards.mug.image_url must be a URL in ASCII"),
        (mug(image_url="https:///a.png"), "rewards.mug.image_url has no host"),
        (mug(image_url="https://e.com:0/"), "rewards.mug.image_url has no host"),
        (mug(image_url="https://e.com:port/"), "rewards.mug.image_url is no URL"),
        (mug(image_url="https://[::1/"), "rewards.mug.image_url is no URL"),
        (mug(image_url="https://ann:secret@e.com/"), "rewards.mug.image_url must not have a user"),
    ],
    ids=lambda each: each[:60] if isinstance(each, str) else "",
)
def test_what_makes_no_sense_is_refused(document: Any, told: str) -> None:
    assert refusal(document)[0].startswith(told)


def test_a_fault_of_a_type_with_dots_in_its_name_is_told_by_its_keys() -> None:
    with pytest.raises(BookRefused) as refused:
        book_of_document(with_type("read.page", points=-1))
    assert refused.value.faults[0].path == ("event_types", "read.page", "points")


def test_all_that_is_wrong_with_a_book_is_told_at_once() -> None:
    document = book(foo=1)
    document["event_types"] |= {"a b": {}, "X": {"points": -1}, "Y.z": {"points": "1", "cap": 5}}
    document["rewards"] = {"mug": {"price": 5, "title": 7}, "cup": {"price_points": 0, "brand": "b"}}
    document["streaks"]["S"] = {"per": "year"}
    told = refusal(document)
    assert {each.partition(" is ")[0].partition(" must ")[0] for each in told} >= {
        *("event_types.a b", "event_types.a b.points", "event_types.X.points", "foo", "streaks.S"),
        *("event_types.Y.z.points", "event_types.Y.z.cap", "rewards.mug.price", "rewards.mug.price_points"),
        *("rewards.mug.brand", "rewards.mug.title", "rewards.cup.price_points", "streaks.S.per"),
    }
    assert len(set(told)) == len(told)
    made = with_type(cap={"points": 1, "per": "day"}) | {"boosts": [BOOST | {"until": BOOST["since"]}]}
    assert len(refusal(made)) == 2


def test_a_boost_holds_from_its_beginning_and_not_at_its_end() -> None:
    later = BOOST | {"since": BOOST["until"], "until": "2026-06-03T00:00:00Z", "factor": 4}
    other = BOOST | {"event_types": ["CHECK_IN"]}
    taken = book_of_document(book(boosts=[BOOST | {"event_types": ["CONTRIBUTION"]}, later, other]))
    assert [taken.factor(name, AT) for name in ("CHECK_IN", "CONTRIBUTION", "APP_OPENED")] == [2, 2, 1]
    midnight = datetime(2026, 6, 1, tzinfo=UTC)
    points = [taken.points("CHECK_IN", midnight.replace(day=day)) for day in (1, 2, 3)]
    assert points == [10, 20, 5]
    with pytest.raises(KeyError):
        taken.points("CLIENT_SAYS_1000", midnight)


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
    changed = with_type() | {"rewards": {"mug": MUG}}
    changed["event_types"]["CHECK_IN"]["points"] = 8
    del changed["event_types"]["APP_OPENED"]
    changed["answers"] = answering(confidence_points=None)["answers"]
    assert list(differences(book(), changed)) == [
        "answers.confidence_points: 3 -> gone",
        "event_types.APP_OPENED: {points: 1, cap: {points: 1, per: day}} -> gone",
        "event_types.CHECK_IN.points: 5 -> 8",
        "event_types.READ: new: {points: 5}",
        "rewards: new: {mug: {price_points: 50, brand: acme, stock: 20, limit_per_user: 2}}",
    ]
