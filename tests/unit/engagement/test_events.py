"""An event as it is stored: its id, the digest of its body, how late it may be, and its shape."""

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.days import Moment, parse_moment, stamp
from rules.engagement.events import (
    FUTURE_MAX,
    LATE_MAX,
    RETENTION,
    Event,
    InputRefused,
    MalformedItem,
    body_hash,
    check_age,
    event_id,
    from_item,
    to_item,
)
from tests.support.engagement_strategies import dates, instants, zones

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
    assert there == "2026-06-01T10:00:00.000000Z#72582f65-7440-5066-afea-1b1602cc994e"
    assert there == event_id("u", "k", parse_moment("2026-06-01T10:00:00Z"))


def test_one_key_used_by_two_users_is_two_events() -> None:
    assert event_id("u", "k", at(NOW)) != event_id("v", "k", at(NOW))


def test_no_split_of_user_and_key_makes_two_pairs_one() -> None:
    assert event_id("ab", "c", at(NOW)) != event_id("a", "bc", at(NOW))


@settings(deadline=None)
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
    "change",
    [
        {"event_type": "CONTRIBUTION"},
        {"occurred_at": "2026-06-01T10:00:00Z"},
        {"timezone": "UTC"},
        {"source": "app"},
        {"properties": {"a": 2, "b": [True, None, "é"]}},
        {"properties": {"a": 1, "b": [None, True, "é"]}},
    ],
)
def test_another_body_has_another_digest(change: dict[str, Any]) -> None:
    assert body_hash({**BODY, **change}) != body_hash(BODY)


def test_the_digest_stays_the_same_from_release_to_release() -> None:
    assert body_hash(BODY) == "0fe3d38c3980f5e751df49c8bb9b7c55"


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=5), values, max_size=5), st.randoms())
def test_a_body_that_went_over_the_wire_again_has_the_same_digest(body: dict[str, Any], chance: Any) -> None:
    names = list(body)
    chance.shuffle(names)
    again = json.loads(json.dumps({name: body[name] for name in names}))
    assert body_hash(again) == body_hash(body)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=5), values, max_size=4), values)
def test_a_changed_field_changes_the_digest(body: dict[str, Any], value: Any) -> None:
    other = {**body, "x": value, "y": 1}
    assert body_hash(other) != body_hash({**other, "y": 2})


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


@settings(deadline=None)
@given(instants)
def test_an_event_is_accepted_within_72_hours_and_5_minutes_and_not_outside(moment: datetime) -> None:
    inside = NOW - timedelta(hours=72) <= moment <= NOW + timedelta(minutes=5)
    assert (code_of(moment, False) is None) is inside
    assert (code_of(moment, True) is None) is (moment <= NOW + timedelta(minutes=5))


events = st.builds(
    Event,
    user_id=st.text(min_size=1, max_size=10),
    event_id=st.text(min_size=1, max_size=10),
    idempotency_key=st.text(min_size=1, max_size=10),
    event_type=st.text(min_size=1, max_size=10),
    occurred_at=instants.map(datetime.isoformat),
    activity_date=dates,
    zone=zones,
    points_awarded=st.integers(0, 1000),
    source=st.text(min_size=1, max_size=10),
    created_at=instants.map(stamp),
    timezone=st.none() | zones,
    properties=st.none() | st.text(min_size=1),
    properties_ref=st.none() | st.text(min_size=1),
)


@settings(deadline=None)
@given(events, st.booleans())
def test_a_stored_event_reads_back(event: Event, index_key: bool) -> None:
    item = to_item(event, index_key)
    assert from_item(item) == event
    assert None not in item.values()
    assert item["activity_date"] == event.activity_date.isoformat()


@settings(deadline=None)
@given(events)
def test_an_event_expires_90_days_after_it_arrived(event: Event) -> None:
    arrived = datetime.fromisoformat(event.created_at.replace("Z", "+00:00"))
    assert to_item(event)["ttl"] == int((arrived + timedelta(days=90)).timestamp())
    assert timedelta(days=90) == RETENTION


STORED = to_item(
    Event(
        user_id="u",
        event_id="e",
        idempotency_key="k",
        event_type="CHECK_IN",
        occurred_at="2026-06-01T10:00:00Z",
        activity_date=date(2026, 6, 1),
        zone="UTC",
        points_awarded=5,
        source="api",
        created_at=stamp(NOW),
    )
)


def test_the_index_key_is_there_only_if_it_is_paid_for() -> None:
    event = from_item(STORED)
    assert "idempotency_key" not in to_item(event)
    assert to_item(event, index_key=True)["idempotency_key"] == "k"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"user_id": None}, "user_id is missing"),
        ({"event_id": ""}, "event_id is no text"),
        ({"client_key": 7}, "client_key is no text"),
        ({"points_awarded": None}, "points_awarded is missing"),
        ({"points_awarded": "5"}, "points_awarded is no whole number"),
        ({"points_awarded": -1}, "points_awarded is no whole number"),
        ({"points_awarded": True}, "points_awarded is no whole number"),
        ({"points_awarded": {"N": "1.5"}}, "points_awarded is no whole number"),
        ({"activity_date": "yesterday"}, "bad date"),
        ({"activity_date": "2026-02-30"}, "bad date"),
        ({"created_at": "then"}, "bad date"),
    ],
)
def test_a_stored_event_that_is_none_is_told_with_its_reason(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(MalformedItem, match=reason):
        from_item({**STORED, **change})


@settings(deadline=None)
@given(st.sampled_from(sorted(STORED)), values)
def test_no_attribute_can_raise_anything_but_malformed(name: str, value: Any) -> None:
    try:
        from_item({**STORED, name: value})
    except MalformedItem as error:
        assert str(error)
