"""Events are added to a lead's state in any order: what is late is looked up, and the state is not built again."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from rules.days import DAY
from rules.leads.features import Input
from rules.leads.lead_events import LeadEvent
from rules.leads.series import (
    EMPTY_STATE,
    MARKS_MAX,
    Mark,
    Series,
    add_contribution,
    build_state,
    contributions,
    decode_series,
    drop_old_dates,
    encode_series,
    unnoted_marks,
)
from tests.support.examples import examples
from tests.support.lead_event_strategies import (
    START,
    deliveries,
    histories,
    lead_event,
    with_cancellations,
    without_marks,
)


def folded(delivered: Iterable[tuple[LeadEvent, datetime]]) -> tuple[dict[Input, Series], set[Mark], int]:
    """Add events one by one, each as of a time; returns the state, the notes, and how often it had to be built."""
    state, known, notes, built = dict(EMPTY_STATE), list[LeadEvent](), set[Mark](), 0
    for event, as_of in delivered:
        known.append(event)
        for input_, each in contributions(event).items():
            before = decode_series(encode_series(state[input_]))
            new = add_contribution(before, input_, each, as_of, has_note=each.mark in notes)
            if new is None:
                made = build_state(known, as_of)
                notes |= set(unnoted_marks(known, {input_: made[input_]}))
                new, built = replace(made[input_], has_all_notes=True), built + 1
            notes |= set(before.marks) - set(new.marks)
            state[input_] = new
    return state, notes, built


@settings(max_examples=examples(200))
@given(st.data())
def test_adding_in_any_order_with_duplicates_is_building(data: st.DataObject) -> None:
    types = ("purchase_completed", "purchase_completed", "order_refunded", "message_received")
    events = data.draw(with_cancellations(data.draw(histories(size_max=40, types=types))))
    delivered = data.draw(deliveries(events))
    steps = sorted(data.draw(st.lists(st.integers(0, 400), min_size=len(delivered), max_size=len(delivered))))
    moments = [START + timedelta(days=each) for each in steps]
    state, notes, _ = folded(zip(delivered, moments, strict=True))
    last = moments[-1]
    rolled = {each: without_marks(drop_old_dates(series, each, last)) for each, series in state.items()}
    assert rolled == {each: without_marks(series) for each, series in build_state(events, last).items()}
    for event in events:
        for input_, each in contributions(event).items():
            series = state[input_]
            assert add_contribution(series, input_, each, last, has_note=each.mark in notes) is series, (
                "each is in, for good"
            )


def test_a_history_that_comes_newest_first_is_never_built() -> None:
    """Nor is one of which some orders are taken back at once."""
    orders = [lead_event(n, at=START - n * 3 * DAY) for n in range(200)]
    taken = [
        replace(each, event_type="order_cancelled", external_event_id=f"x{n}")
        for n, each in enumerate(orders)
        if n % 5 == 2 and n < 100
    ]
    state, notes, built = folded((each, START) for each in [*orders, *taken])
    assert (built, len(notes)) == (0, 220 - len(state[Input.PURCHASES].marks))
    assert {each: without_marks(series) for each, series in state.items()} == {
        each: without_marks(series) for each, series in build_state([*orders, *taken], START).items()
    }


def test_only_the_first_order_of_long_ago_that_is_taken_back_needs_all_events() -> None:
    orders = [lead_event(n, at=START - days * DAY) for n, days in enumerate((900, 800, 400, 30, 2))]
    series = build_state(orders, START)[Input.PURCHASES]
    told = []
    for each in orders:
        taken = replace(each, event_type="order_cancelled", external_event_id=f"{each.id}x")
        found = add_contribution(series, Input.PURCHASES, contributions(taken)[Input.PURCHASES], START)
        told.append(found is None)
        if found is not None:
            assert without_marks(found) == without_marks(
                build_state([*orders, taken], START)[Input.PURCHASES]
            )
    assert told == [True, False, False, False, False]


def test_what_cannot_be_judged_is_told_and_what_can_is_recognised() -> None:
    events = [lead_event(n, at=START + n * DAY) for n in range(MARKS_MAX + 2)]
    now = START + 40 * DAY
    series = build_state(events, now)[Input.PURCHASES]
    assert not series.has_all_notes
    for place, event in enumerate(events):
        given_ = contributions(event)[Input.PURCHASES]
        assert series.has_left(given_.mark) is (place < 2)
        assert add_contribution(series, Input.PURCHASES, given_, now) is (None if place < 2 else series)
        assert add_contribution(series, Input.PURCHASES, given_, now, has_note=place < 2) is series
    late = contributions(lead_event(99, at=START + timedelta(hours=1)))[Input.PURCHASES]
    assert add_contribution(series, Input.PURCHASES, late, now) is None
    after = add_contribution(replace(series, has_all_notes=True), Input.PURCHASES, late, now)
    assert after
    assert (after.count, late.mark in after.marks) == (MARKS_MAX + 3, True)
