"""The compact state of a lead is that of its events: any order, any repetition, whatever has been rolled off."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.days import DAY
from rules.leads.feature_items import evaluate_features, listing_date, rounded_mean
from rules.leads.features import ACTIVE_DAYS_MAX, BY_NAME, FEATURES, Contact, Input, shown_value
from rules.leads.lead_events import LeadEvent, MalformedLeadEvent
from rules.leads.memory import campaign_contact, remembered_entries
from rules.leads.series import (
    EMPTY_STATE,
    MARKS_MAX,
    SERIES_INPUTS,
    add_contribution,
    build_state,
    contributions,
    decode_series,
    drop_old_dates,
    encode_series,
)
from tests.support.examples import examples
from tests.support.lead_event_strategies import START, deliveries, histories, lead_event, with_cancellations


@settings(max_examples=examples(30))
@given(histories(), st.integers(0, 500))
def test_encoding_loses_nothing(events: list[LeadEvent], days: int) -> None:
    for series in build_state(events, START + days * DAY).values():
        assert decode_series(encode_series(series)) == series


@pytest.mark.parametrize("part", [2, 3], ids=["counts", "amounts"])
def test_a_count_or_an_amount_too_many_is_damage(part: int) -> None:
    orders = [lead_event(number, at=START + number % 2 * DAY) for number in range(3)]
    series = build_state(orders, START + 3 * DAY)[Input.PURCHASES]
    parts = encode_series(series).split(";")
    parts[part] += ",1"
    with pytest.raises(ValueError, match=r"zip\(\)"):
        decode_series(";".join(parts))


@settings(max_examples=examples(100))
@given(st.data())
def test_adding_in_any_order_with_duplicates_is_building(data: st.DataObject) -> None:
    types = ("purchase_completed", "purchase_completed", "order_refunded", "message_received")
    events = data.draw(with_cancellations(data.draw(histories(size_max=40, types=types))))
    delivered = data.draw(deliveries(events))
    steps = sorted(data.draw(st.lists(st.integers(0, 400), min_size=len(delivered), max_size=len(delivered))))
    state, known = dict(EMPTY_STATE), list[LeadEvent]()
    for event, days in zip(delivered, steps, strict=True):
        known.append(event)
        for input_, each in contributions(event).items():
            after = add_contribution(state[input_], input_, each, START + days * DAY)
            state[input_] = after or build_state(known, START + days * DAY)[input_]
    last = START + steps[-1] * DAY
    assert {each: drop_old_dates(series, each, last) for each, series in state.items()} == build_state(
        events, last
    )
    for event in events:
        for input_, each in contributions(event).items():
            assert add_contribution(state[input_], input_, each, last) in (None, state[input_]), "each is in"


def test_only_the_first_or_last_order_that_is_taken_back_needs_all_events() -> None:
    orders = [lead_event(n, at=START - days * DAY) for n, days in enumerate((900, 800, 400, 30, 2))]
    series = build_state(orders, START)[Input.PURCHASES]
    needs = []
    for each in orders:
        taken = replace(each, event_type="order_cancelled", external_event_id=f"{each.id}x")
        found = add_contribution(series, Input.PURCHASES, contributions(taken)[Input.PURCHASES], START)
        needs.append(found is None)
        assert found in (None, build_state([*orders, taken], START)[Input.PURCHASES])
    assert needs == [True, False, False, False, True]


def test_an_event_older_than_all_marks_needs_all_events() -> None:
    events = [lead_event(n, at=START + n * DAY) for n in range(MARKS_MAX + 2)]
    series = build_state(events, START)[Input.PURCHASES]
    for place, event in enumerate(events):
        contribution = contributions(event)[Input.PURCHASES]
        found = add_contribution(series, Input.PURCHASES, contribution, START)
        assert found is (None if place < 2 else series)


@settings(max_examples=examples(60))
@given(histories(), st.integers(0, 420))
def test_features_are_what_their_definition_says(events: list[LeadEvent], days: int) -> None:
    as_of = START + days * DAY
    state = build_state(events, as_of)
    contacts = [
        campaign_contact(each)
        for each in remembered_entries(events).values()
        if each.memory_type == "campaign_contact"
    ]
    expected = by_definition(events, as_of)
    # tests/support/lead_histories.py has a plain reading of every feature; this one is of the first ones.
    defined = [each for each in FEATURES if each.name in expected]
    for each in defined:
        assert evaluate_features([each], state, contacts, as_of) == {each.name: expected[each.name]}
    assert evaluate_features(defined, state, contacts, as_of) == expected, "windows that share their sums"


def by_definition(events: list[LeadEvent], as_of: datetime) -> dict[str, Any]:
    def within(days: int | None, *types: str) -> list[LeadEvent]:
        ages = {id(each): (as_of.date() - each.occurred.date()).days for each in events}
        return [
            each for each in events if each.event_type in types and (days is None or ages[id(each)] < days)
        ]

    def money(days: int | None) -> int:
        signs = {"purchase_completed": 1, "order_charged": 1, "order_refunded": -1}
        return sum(
            signs[each.event_type] * int(each.payload.get("amount_minor", 0)) for each in within(days, *signs)
        )

    def ages_of(some: list[LeadEvent]) -> list[int]:
        return [(as_of.date() - each.occurred.date()).days for each in some]

    orders = within(None, "purchase_completed")
    priced = [each for each in orders if "amount_minor" in each.payload]
    moods = [
        each.payload["sentiment_milli"]
        for each in within(30, "message_received", "form_submitted")
        if "sentiment_milli" in each.payload
    ]
    acts = [
        each
        for each in events
        if each.event_type not in ("order_refunded", "order_charged", "campaign_sent", "campaign_bounced")
    ]
    ignored = 0
    for campaign in ("spring", "summer"):
        met = [each for each in events if each.payload.get("campaign_id") == campaign]
        sent = ages_of([each for each in met if each.event_type == "campaign_sent"])
        ignored += bool(sent) and len(sent) == len(met) and 7 <= min(sent) < 90
    return {
        "monetary_total": money(None),
        **{f"monetary_{days}d": money(days) for days in (30, 90, 365)},
        **{f"frequency_purchases_{days}d": len(within(days, "purchase_completed")) for days in (30, 90, 365)},
        "average_order_value": rounded_mean(money(None), len(priced)) if priced else None,
        "days_since_last_purchase": min(ages_of(orders), default=None),
        "tenure_days": max(ages_of(orders), default=None),
        "has_purchased": bool(orders),
        "recency_days": min(ages_of(acts), default=None),
        "sentiment_avg_30d": rounded_mean(sum(moods), len(moods)) if moods else None,
        "campaign_ignored": ignored,
    }


@pytest.mark.parametrize(("ago", "ignored"), [(6, 0), (7, 1), (89, 1), (90, 0)])
def test_a_campaign_is_ignored_after_its_grace_and_until_its_window_ends(ago: int, ignored: int) -> None:
    feature, sent = BY_NAME["campaign_ignored"], START.toordinal() - ago
    for reacted, count in ((False, ignored), (True, 0)):
        values = evaluate_features([feature], EMPTY_STATE, [Contact(sent, reacted)], START)
        assert values == {"campaign_ignored": count}


def test_halves_are_rounded_up_also_below_zero() -> None:
    assert [rounded_mean(total, 2) for total in (3, 1, -1, -3)] == [2, 1, 0, -1]
    assert shown_value(BY_NAME["sentiment_avg_30d"], -250) == Decimal("-0.250")


@pytest.mark.parametrize(
    ("event_type", "days"),
    [
        ("page_viewed", ACTIVE_DAYS_MAX),
        ("purchase_completed", 365),
        ("order_refunded", 365),
        ("campaign_sent", 90),
    ],
)
def test_a_lead_is_listed_until_all_windows_are_empty(event_type: str, days: int) -> None:
    event = lead_event(1, event_type, START)
    met = [campaign_contact(each) for each in remembered_entries([event]).values() if "campaign" in each.name]
    listed = [listing_date(build_state([event], START), met, START + n * DAY) for n in (days - 1, days)]
    assert listed == [START.date().isoformat(), None]
    assert listing_date(EMPTY_STATE, [], START) is None


@pytest.mark.parametrize(
    ("field", "payload"),
    [
        *(("amount_minor", {"amount_minor": amount}) for amount in (-1, "5", None, True, 1.5)),
        ("foreign_minor", {"foreign_minor": -1, "currency": "EUR"}),
        *(("currency", {"foreign_minor": 5, "currency": name}) for name in ("euro", "", None)),
    ],
)
def test_a_bad_amount_is_named_and_left_out_of_a_rebuild(field: str, payload: dict[str, Any]) -> None:
    event = lead_event(1, "purchase_completed", START, **payload)
    with pytest.raises(MalformedLeadEvent, match=field):
        contributions(event)
    assert build_state([event], START) == EMPTY_STATE


def test_a_campaign_without_its_id_is_no_activity_either() -> None:
    with pytest.raises(MalformedLeadEvent, match="campaign_id"):
        contributions(lead_event(1, "campaign_opened", START, campaign_id=""))


def test_state_is_short() -> None:
    events = [lead_event(n, at=START - n * 9 * DAY) for n in range(20)]
    assert len("".join(encode_series(each) for each in build_state(events, START).values())) < 800


def test_every_series_has_a_state() -> None:
    assert {*SERIES_INPUTS, Input.CAMPAIGNS} == set(Input)
