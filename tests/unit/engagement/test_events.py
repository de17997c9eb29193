"""An event's id, the digest of its body, and how late it may be."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.days import Moment, parse_moment
from rules.engagement.events import FUTURE_MAX, LATE_MAX, InputRefused, body_hash, check_age, event_id
from tests.support.engagement_strategies import instants

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
BODY = {
    "idempotency_key": "k",
    "user_id": "u",
    "event_type": "CHECK_IN",
    "occurred_at": "2026-06-01T12:00:00+02:00",
    "properties": {"a": 1, "b": [True, None, "é"]},
}


def at(moment: datetime) -> Moment:
    return Moment(moment, None)


def test_the_id_is_the_time_in_utc_and_one_name_for_user_and_key() -> None:
    there = event_id("u", "k", parse_moment("2026-06-01T12:00:00+02:00"))
    assert there == "2026-06-01T10:00:00Z#72582f65-7440-5066-afea-1b1602cc994e"
    assert there == event_id("u", "k", parse_moment("2026-06-01T10:00:00Z"))
    assert len({event_id(*pair, at(NOW)) for pair in (("u", "k"), ("v", "k"), ("uk", ""), ("", "uk"))}) == 4


@given(st.text(max_size=20), st.text(max_size=20), instants, instants)
def test_ids_sort_as_the_events_occurred(user: str, key: str, one: datetime, other: datetime) -> None:
    first, second = event_id(user, key, at(one)), event_id(user, key, at(other))
    assert (first < second) is (one < other)
    assert first == event_id(user, key, at(one))


def test_the_digest_does_not_depend_on_the_order_of_fields_nor_on_key_and_user() -> None:
    turned = dict(reversed(BODY.items())) | {"properties": {"b": [True, None, "é"], "a": 1}}
    assert body_hash(turned) == body_hash(BODY)
    assert body_hash({**BODY, "idempotency_key": "other", "user_id": "v"}) == body_hash(BODY)
    assert body_hash({name: BODY[name] for name in BODY if name != "user_id"}) == body_hash(BODY)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"properties": {"a": [1, -0.0]}}, {"properties": {"a": [1.0, 0]}}),
        ({"properties": {"caf\u00e9": "\u00e9"}}, {"properties": {"cafe\u0301": "e\u0301"}}),
        ({"occurred_at": "2026-06-01T10:00:00Z"}, {"occurred_at": "2026-06-01T10:00:00.000Z"}),
        ({"occurred_at": "2026-06-01T10:00:00.120+02:00"}, {"occurred_at": "2026-06-01T10:00:00.12+02:00"}),
        ({"occurred_at": "2026-06-01t10:00:00z"}, {"occurred_at": "2026-06-01T10:00:00.0Z"}),
    ],
)
def test_what_another_library_writes_differently_is_one_body(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert body_hash({**BODY, **one}) == body_hash({**BODY, **other})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"timezone": "UTC"}, {}),
        ({"source": "app"}, {}),
        ({"event_type": "CONTRIBUTION"}, {}),
        ({"properties": {"a": 1}}, {"properties": {"a": 1.5}}),
        ({"properties": {"a": 1}}, {"properties": {"a": True}}),
        ({"properties": {"a": 1}}, {"properties": {"a": "1"}}),
        ({"occurred_at": "2026-06-01T10:00:00.120Z"}, {"occurred_at": "2026-06-01T10:00:00.102Z"}),
        # A bare Z is read in the user's own zone, an offset is not.
        ({"occurred_at": "2026-06-01T10:00:00Z"}, {"occurred_at": "2026-06-01T10:00:00+00:00"}),
    ],
)
def test_what_says_something_else_is_another_body(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert body_hash({**BODY, **one}) != body_hash({**BODY, **other})


def test_the_digest_stays_the_same_from_release_to_release() -> None:
    assert body_hash(BODY) == "0fe3d38c3980f5e751df49c8bb9b7c55"


def code_of(moment: datetime, may_backfill: bool) -> str | None:
    try:
        check_age(at(moment), NOW, may_backfill)
    except InputRefused as refused:
        assert refused.field == "occurred_at"
        return refused.code
    return None


@pytest.mark.parametrize(
    ("moment", "anybody", "admin"),
    [
        (NOW + FUTURE_MAX, None, None),
        (NOW + FUTURE_MAX + SECOND, "in_the_future", "in_the_future"),
        (NOW - LATE_MAX, None, None),
        (NOW - LATE_MAX - SECOND, "backfill_forbidden", None),
        (datetime(1970, 1, 1, tzinfo=UTC), "backfill_forbidden", None),
        (datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), "too_old", "too_old"),
    ],
)
def test_late_and_early_events_are_refused_by_name(
    moment: datetime, anybody: str | None, admin: str | None
) -> None:
    assert (code_of(moment, False), code_of(moment, True)) == (anybody, admin)
