"""Every feature has its independent reading, which the tests of the warehouse and of past instants trust.

What a reader is shown of a lead is true as of the reading, however long ago anything happened.
"""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from rules.days import DAY
from rules.leads.feature_items import features_at
from rules.leads.features import FEATURES, Input
from rules.leads.lake_entities import column_of
from rules.leads.lead_events import LeadEvent
from tests.support.examples import examples
from tests.support.lead_event_strategies import START, deliveries, histories, with_cancellations
from tests.support.lead_histories import features_of
from tests.support.lead_items import NOBODY, in_columns, refreshed, told, written


def test_every_feature_has_a_plain_reading() -> None:
    read = features_of([], "l", datetime(2026, 3, 1, tzinfo=UTC))
    declared = {column_of(each) for each in FEATURES}
    assert set(read) == declared, (
        f"tests/support/lead_histories.py: _values lacks {sorted(declared ^ set(read))}"
    )


@settings(max_examples=examples(50))
@given(st.data())
def test_a_reading_is_as_of_its_instant_up_to_three_years_after_the_last_event(data: st.DataObject) -> None:
    events = data.draw(with_cancellations(data.draw(histories(size_max=24))))
    item, known, now = NOBODY, list[LeadEvent](), START
    for event in data.draw(deliveries(events)):
        now += data.draw(st.sampled_from((0, 0, 1, 40, 91))) * DAY
        known.append(event)
        item = written(item, told(item, event, known, now, events))
        if data.draw(st.booleans()):
            item = written(item, refreshed(item, now))
    for days in sorted(data.draw(st.lists(st.integers(0, 3 * 365), min_size=3, max_size=3))):
        found, as_of = features_at(item, now + days * DAY)
        expected = features_of(events, "leaf", now + days * DAY)
        known_inputs = {Input(each) for each in as_of}
        assert {each.name for each in FEATURES if each.name in found} <= {
            each.name for each in FEATURES if each.input in known_inputs
        }
        for each in FEATURES:
            if each.input in known_inputs:
                assert in_columns(found)[column_of(each)] == expected[column_of(each)], each.name


def test_a_state_of_other_declarations_is_shown_as_it_is_stored() -> None:
    """It may lack what today's features need, so nothing is made of it."""
    stored = replace(
        NOBODY, features={"recency_days": 3}, as_of={"activity": "x"}, inputs={"declared": "other"}
    )
    assert features_at(stored, START) == ({"recency_days": 3}, {"activity": "x"})
