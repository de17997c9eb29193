"""What an event and the passing of time change: at the end a lead's item says what its events say."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import example, given, settings
from hypothesis import strategies as st

from rules.days import DAY
from rules.leads.feature_changes import change_from_events, change_with_leaves, inputs_of
from rules.leads.features import BY_NAME, Input, Unit
from rules.leads.lead_events import LeadEvent
from rules.leads.series import contributions, decode_series, drop_old_dates, encode_series
from tests.support.examples import examples
from tests.support.lead_event_strategies import START, deliveries, histories, lead_event, with_cancellations
from tests.support.lead_items import NOBODY, SMALL, contacts_of, refreshed, told, written


@settings(max_examples=examples(60))
@given(st.data(), st.booleans())
def test_any_order_twice_and_with_refreshes_between_is_what_the_events_say(
    data: st.DataObject, stored_before: bool
) -> None:
    events = data.draw(with_cancellations(data.draw(histories(size_max=30))))
    delivered = data.draw(deliveries(events))
    days = sorted(data.draw(st.lists(st.integers(0, 120), min_size=len(delivered), max_size=len(delivered))))
    item, known = NOBODY, list[LeadEvent]()
    for event, day in zip(delivered, days, strict=True):
        now = START + day * DAY
        known.append(event)
        item = written(item, told(item, event, known, now, events if stored_before else known))
        if data.draw(st.booleans()):
            item = written(item, refreshed(item, now + timedelta(hours=1)))
    last = START + (days[-1] + 1) * DAY
    item = written(item, refreshed(item, last))
    whole = written(NOBODY, change_from_events(NOBODY, events, last))
    assert item.features == whole.features
    assert item.active_on == whole.active_on
    assert item.inputs and whole.inputs and set(item.inputs) == set(whole.inputs)
    rolled = {each: drop_old_dates(series, each, last) for each, series in item.state().items()}
    assert rolled == whole.state()


def in_euro(event_type: str, leaf: str) -> LeadEvent:
    return lead_event(1, event_type, START, leaf, foreign_minor=500, currency="EUR")


@SMALL
@given(histories(), histories(leaves=("other",)), st.integers(0, 500))
@example([in_euro("purchase_completed", "leaf")], [in_euro("order_refunded", "other")], 0)
@example([in_euro("purchase_completed", "leaf")], [in_euro("order_cancelled", "other")], 0)
def test_leaves_that_join_a_lead_add_what_their_events_say(
    first: list[LeadEvent], joining: list[LeadEvent], days: int
) -> None:
    merge = replace(lead_event(99, at=START + 900 * DAY), event_type="leads_merged")
    events, now = [*first, *joining], START + days * DAY
    item = written(NOBODY, change_from_events(NOBODY, first, START))
    change = change_with_leaves(item, [*joining, merge], contacts_of(events), now)
    joined = written(item, change or change_from_events(item, events, now))
    whole = written(NOBODY, change_from_events(NOBODY, events, now))
    assert joined == replace(whole, version=joined.version)


@SMALL
@given(histories(), st.integers(0, 500))
def test_a_second_refresh_of_the_same_instant_changes_nothing(events: list[LeadEvent], days: int) -> None:
    item = written(NOBODY, change_from_events(NOBODY, events, START))
    now = START + days * DAY
    item = written(item, refreshed(item, now))
    assert refreshed(item, now) is None
    assert refreshed(item, START) is None


@SMALL
@given(histories(), st.integers(0, 500))
def test_a_refresh_writes_only_what_time_has_changed(events: list[LeadEvent], days: int) -> None:
    item = written(NOBODY, change_from_events(NOBODY, events, START))
    change = refreshed(item, START + days * DAY)
    for name, value in (change.features if change else {}).items():
        assert BY_NAME[name].window_days is not None or BY_NAME[name].unit is Unit.DAYS
        assert value != item.features.get(name)
    moved = {BY_NAME[name].input for name in (change.features if change else ())}
    for each in (change.inputs, change.as_of) if change else ():
        assert {*each} <= moved
    assert item.inputs
    for name, text in (change.inputs if change else {}).items():
        rolled = drop_old_dates(decode_series(item.inputs[name]), Input(name), START + days * DAY)
        assert text == encode_series(rolled), "dates that no window reaches any more are dropped"


@SMALL
@given(histories())
def test_an_event_touches_the_inputs_of_its_type_alone(events: list[LeadEvent]) -> None:
    item = written(NOBODY, change_from_events(NOBODY, events[1:] or events, START))
    change = told(item, events[0], events, START, events)
    affected = inputs_of(events[0].event_type, contributions(events[0]))
    assert affected
    for each in (change.inputs, change.as_of) if change else ():
        assert {*each} <= affected
    assert {BY_NAME[name].input for name in (change.features if change else ())} <= affected


def test_a_campaign_s_event_moves_the_version_even_if_no_value_moves() -> None:
    known = [
        lead_event(1, "campaign_sent", campaign_id="a"),
        lead_event(2, "campaign_bounced", campaign_id="a"),
    ]
    item = written(NOBODY, change_from_events(NOBODY, known, START))
    change = told(item, known[1], known, START, known)
    assert change is not None
    assert (
        change.features == {"campaign_ignored": 0} == {"campaign_ignored": item.features["campaign_ignored"]}
    )


def test_an_event_that_comes_again_when_the_lead_is_long_idle_unlists_it() -> None:
    order = lead_event(1)
    item = written(NOBODY, change_from_events(NOBODY, [order], START))
    again = written(item, told(item, order, [order], START + 365 * DAY, [order]))
    assert (item.active_on, again.active_on) == ("2026-01-10", None)
