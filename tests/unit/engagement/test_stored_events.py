"""An event as it is stored: what is written reads back, and what is no event is told with its reason."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.days import stamp, unstamp
from rules.engagement.events import Event, MalformedItem, from_item, to_item
from tests.support.engagement_strategies import dates, instants, values, zones

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


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
)


@given(events)
def test_a_stored_event_reads_back(event: Event) -> None:
    item = to_item(event)
    assert from_item(item) == event
    assert None not in item.values()
    assert item["activity_date"] == event.activity_date.isoformat()
    assert item["ttl"] == int((unstamp(event.created_at) + timedelta(days=90)).timestamp())


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


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"user_id": None}, "user_id is missing"),
        ({"event_id": ""}, "event_id is no text"),
        ({"idempotency_key": 7}, "idempotency_key is no text"),
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


@given(st.sampled_from(sorted(STORED)), values)
def test_no_attribute_can_raise_anything_but_malformed(name: str, value: Any) -> None:
    try:
        from_item({**STORED, name: value})
    except MalformedItem as error:
        assert str(error)
