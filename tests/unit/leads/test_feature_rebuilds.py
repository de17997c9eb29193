"""What a rebuild from a lead's stored events makes of its item."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rules.days import DAY, stamp
from rules.leads.feature_changes import ALL, change_from_events, is_different
from rules.leads.features import BY_NAME, Input
from rules.leads.lead_events import LeadEvent
from tests.support.lead_event_strategies import START, histories, lead_event
from tests.support.lead_items import NOBODY, SMALL, contacts_of, written


def test_without_events_features_of_before_are_taken_away() -> None:
    assert change_from_events(NOBODY, ALL, [], START) is None
    merged_before = replace(NOBODY, version=3, features={"tenure_days": 4}, active_on="2026-01-01")
    after = written(merged_before, change_from_events(merged_before, ALL, [], START))
    assert (after.features, after.inputs, after.active_on) == ({}, None, None)
    assert change_from_events(after, ALL, [], START) is None


@SMALL
@given(histories(), st.integers(0, 400))
def test_a_rebuild_is_as_of_its_newest_event_or_later(events: list[LeadEvent], days: int) -> None:
    as_of = START - days * DAY
    change = change_from_events(NOBODY, ALL, events, as_of)
    newest = max(each.occurred for each in events)
    assert change is not None
    assert {change.computed_at, *change.as_of.values()} == {stamp(max(as_of, newest))}
    assert (Input.CAMPAIGNS in change.inputs) == bool(contacts_of(events))


@SMALL
@given(histories(), st.sets(st.sampled_from(Input), min_size=1))
def test_a_rebuild_of_some_inputs_leaves_the_others_alone(
    events: list[LeadEvent], affected: set[Input]
) -> None:
    whole = change_from_events(NOBODY, ALL, events, START)
    item = written(NOBODY, whole)
    part = change_from_events(item, affected, events, START)
    assert whole and part
    assert written(item, part) == replace(item, version=2)
    assert {*part.inputs} == affected - {Input.CAMPAIGNS}
    assert {*part.as_of} == affected
    assert change_from_events(NOBODY, affected, events, START) == whole, "but where there is no state yet"
    assert part.features == {
        name: value for name, value in whole.features.items() if BY_NAME[name].input in affected
    }


@SMALL
@given(histories(), st.integers(0, 3))
def test_a_rebuild_differs_where_something_stored_is_not_what_the_events_say(
    events: list[LeadEvent], days: int
) -> None:
    item = written(NOBODY, change_from_events(NOBODY, ALL, events, START))
    assert item.inputs
    later = change_from_events(item, ALL, events, START + timedelta(minutes=days))
    assert later and later.computed_at >= str(item.computed_at)
    assert not is_different(item, later), "a later instant of the same date is no difference"
    campaigns: dict[str, Any] = {} if contacts_of(events) else {Input.CAMPAIGNS: True}
    states = {name: text for name, text in item.inputs.items() if name != Input.CAMPAIGNS}
    for wrong in (
        replace(item, features={**item.features, "monetary_total": 77777}),
        replace(item, features={}),
        replace(item, inputs={**item.inputs, Input.PURCHASES: "1,1,1,1;;;;;"}),
        replace(item, inputs={**states, **campaigns}),
        replace(item, inputs=None),
        replace(item, active_on="2026-02-02"),
    ):
        change = change_from_events(wrong, ALL, events, START)
        assert change and is_different(wrong, change)
        assert replace(written(wrong, change), version=1) == item


def test_changes_of_leads_are_no_events_of_theirs() -> None:
    moved = lead_event(1, "leads_merged", START + 5 * DAY, change=1, groups=[])
    own = lead_event(2)
    change = change_from_events(NOBODY, ALL, [own, moved], START)
    assert change == change_from_events(NOBODY, ALL, [own], START)
    assert change_from_events(NOBODY, ALL, [moved], START) is None
