"""What an endpoint hears of, and when it is asked again."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.days import stamp
from rules.outgoing.notice_kinds import NoticeKind
from rules.outgoing.notices import (
    BACKOFF_MAX,
    BUS,
    FILTER_FIELDS,
    KINDS_OF_PARTS,
    OWNED_KINDS,
    RETRY_DELAYS,
    RETRY_WINDOW,
    TYPES,
    Endpoint,
    Filters,
    Notice,
    NoticeType,
    Notification,
    backoff_after,
    filter_problem,
    is_given_up,
    next_attempt,
    silent_filters,
)
from tests.support.message_schema import SCHEMA

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def endpoint(*types: str, **filters: Any) -> Endpoint:
    by_type: Filters = {"streak.extended": filters} if filters else {}
    return Endpoint("e1", "acme", "https://hooks.example.com/", frozenset(types), by_type)


def sent(kind: str, data: Any) -> Notification:
    return Notification("ann", 3, stamp(NOW), Notice(kind, data))


def extended(**data: Any) -> Notification:
    return sent(NoticeType.STREAK_EXTENDED, data)


OF_ACME = {"organization_id": "acme"} | {each.whose_data: "bot" for each in OWNED_KINDS}


def test_without_types_an_endpoint_hears_of_everything() -> None:
    everything = replace(endpoint(), whose={each.whose: frozenset({"bot"}) for each in OWNED_KINDS})
    assert all(everything.wants(sent(each, OF_ACME)) for each in TYPES)
    one = endpoint("points.changed")
    assert {each for each in TYPES if one.wants(sent(each, OF_ACME))} == {
        NoticeType.POINTS_CHANGED,
        NoticeType.TEST,
    }


def cases_of(kind: NoticeKind) -> Iterator[tuple[dict[str, Any], list[str]]]:
    whose = {"whose": {kind.whose: {"bot"}}}
    yield {"filters": {kind.type: {"number": [1]}}}, [kind.whose]
    yield {"types": {kind.type}}, [kind.whose]
    yield {"types": {kind.type}, **whose}, []
    named = f"filters.{kind.type}.{kind.whose_data}"
    yield {"filters": {kind.type: {kind.whose_data: ["eve"]}}, **whose}, [named]


ASKED = [(), tuple(KINDS_OF_PARTS)]


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("kind", OWNED_KINDS, ids=lambda kind: kind.type)
def test_an_endpoint_hears_of_things_of_those_alone_whom_it_names(
    kind: NoticeKind, asked: tuple[str, ...]
) -> None:
    thing = sent(kind.type, {kind.whose_data: "bot"})
    assert replace(endpoint(*asked), whose={kind.whose: frozenset({"bot"})}).wants(thing)
    assert not replace(endpoint(*asked), whose={kind.whose: frozenset({"robot"})}).wants(thing)
    assert not endpoint(*asked).wants(thing), "nobody was named"
    assert Endpoint(BUS, "", "apps").wants(thing)


@pytest.mark.parametrize(
    ("values", "found", "fits"),
    [
        ([7, 30], 7, True),
        ([7, 30], 8, False),
        ([{"at_least": 30}], 30, True),
        ([{"at_least": 30}], 29, False),
        ([7, {"at_least": 30}], 31, True),
        ([7], None, False),
        ([{"at_least": 0}], None, False),
        ([{"at_least": 0}], True, False),
        (["missed"], "missed", True),
        ([1], True, False),
        ([True], True, True),
    ],
)
def test_a_filter_names_values(values: list[Any], found: Any, fits: bool) -> None:
    assert endpoint(current_streak=values).wants(extended(current_streak=found)) == fits


def test_a_filter_is_for_its_type_alone_and_all_its_fields_must_fit() -> None:
    one = endpoint(current_streak=[7], **{"from": [6]})
    assert one.wants(sent(NoticeType.POINTS_CHANGED, {}))
    assert one.wants(extended(current_streak=7, **{"from": 6}))
    assert not one.wants(extended(current_streak=7, **{"from": 5}))


@pytest.mark.parametrize(
    ("name", "values", "fits"),
    [
        ("user_id", ["ann"], True),
        ("user_id", ["bob"], False),
        ("number", [{"at_least": 3}], True),
        ("number", [4], False),
    ],
)
def test_a_filter_may_ask_whose_notification_it_is_and_which(
    name: str, values: list[Any], fits: bool
) -> None:
    assert endpoint(**{name: values}).wants(extended(current_streak=7)) == fits


def test_the_fields_of_filters_are_the_texts_and_numbers_of_the_described_messages() -> None:
    forms = {"string": str, "integer": int}
    for kind, fields in FILTER_FIELDS.items():
        described: dict[str, Any] = {}
        for name, each in SCHEMA["$defs"][kind]["properties"].items():
            of_types = each.get("type", ())
            first_type = of_types if isinstance(of_types, str) else next(iter(of_types), "")
            if "enum" in each:
                described[name] = tuple(each["enum"])
            elif first_type in forms:
                described[name] = forms[first_type]
        assert described == fields, kind


@pytest.mark.parametrize(
    ("name", "values", "problem"),
    [
        ("current_streak", [7, {"at_least": 30}], ""),
        ("current_streak", ["7"], "is a number, and never '7'"),
        ("current_streak", [True], "is a number, and never True"),
        ("user_id", [7], "is a text, and never 7"),
        ("user_id", [{"at_least": 7}], "is a text, and never {'at_least': 7}"),
        (
            "profile",
            ["x"],
            "is no text or number of streak.extended: current_streak, from, number, user_id are",
        ),
        ("streak", [7], "is no text or number of streak.extended: current_streak, from, number, user_id are"),
    ],
)
def test_a_filter_that_would_never_match_has_a_problem(name: str, values: list[Any], problem: str) -> None:
    assert filter_problem(NoticeType.STREAK_EXTENDED, name, values) == problem


@given(st.integers(1, 10_000))
def test_waits_grow_and_never_end(failures: int) -> None:
    assert timedelta() < next_attempt(failures, NOW) - NOW <= RETRY_DELAYS[-1]
    assert next_attempt(failures, NOW) <= next_attempt(failures + 1, NOW)
    assert timedelta() < backoff_after(failures) <= backoff_after(failures + 1) <= BACKOFF_MAX


def test_after_three_days_of_silence_there_is_one_more_attempt() -> None:
    assert timedelta(days=3) + RETRY_DELAYS[-1] + BACKOFF_MAX < RETRY_WINDOW
    assert not is_given_up(NOW, NOW + timedelta(days=3, hours=1))
    assert is_given_up(NOW, NOW + RETRY_WINDOW)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"filters": {"streak.lost": {"lost_streak": [7]}}, "types": {"points.changed"}},
            ["filters.streak.lost"],
        ),
        *(case for kind in OWNED_KINDS for case in cases_of(kind)),
        ({"filters": {"streak.lost": {"user_id": ["a b"]}}}, ["filters.streak.lost.user_id"]),
        ({"filters": {"streak.lost": {"number": [7.5]}}}, ["filters.streak.lost.number"]),
        ({"filters": {"streak.lost": {"number": [7.0, {"at_least": 7.5}]}}}, []),
        ({"types": set(TYPES)}, []),
    ],
)
def test_an_endpoint_that_would_never_get_what_it_asks_for_is_told_the_field(
    fields: dict[str, Any], told: list[str]
) -> None:
    sets: dict[str, Any] = {
        name: frozenset(each) if isinstance(each, set) else each for name, each in fields.items()
    }
    endpoint = Endpoint("e", "acme", "https://example.com", **sets)
    assert [field for field, _ in silent_filters(endpoint)] == told
